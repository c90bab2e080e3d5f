"""A few of the random cases that `make soak` runs by the hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime.spark.executor import SparkExecutor
from tests.property.spark_cases import run_cases

pytestmark = pytest.mark.spark


def test_spark_gives_what_the_reference_gives(executor: SparkExecutor, tmp_path: Path) -> None:
    outcomes = run_cases(executor, range(1_000_000, 1_000_016), tmp_path)
    assert len(outcomes) == 16
    assert sum(o.rows > 0 for o in outcomes) > 8
    problems = [o.problem for o in outcomes if o.problem]
    assert not problems, "\n\n".join(problems)
