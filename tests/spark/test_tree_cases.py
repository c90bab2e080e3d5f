"""A few random trees on Spark; `python -m tests.trees_check --level spark` runs any number."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime.spark.executor import SparkExecutor
from tests.property.tree_spark import spark_cases

pytestmark = pytest.mark.spark


def test_random_trees_give_what_the_reference_gives(executor: SparkExecutor, tmp_path: Path) -> None:
    outcomes = spark_cases(executor, range(4_000_000, 4_000_004), tmp_path)
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    assert not problems, "\n".join(problems)
    assert sum(o.rows for o in outcomes) > 100


def test_members_of_a_tree_come_and_go(executor: SparkExecutor, tmp_path: Path) -> None:
    outcomes = spark_cases(executor, range(5_000_000, 5_000_003), tmp_path, changes=True)
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    assert not problems, "\n".join(problems)
    assert sum(o.rows for o in outcomes) > 100
