"""A few random trees on Spark; `python -m tests.trees_check --level spark` runs any number."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime.spark.executor import SparkExecutor
from tests.property.tree_spark import spark_cases

pytestmark = pytest.mark.spark
# Seeds with late rows, whatever batches without rows Spark puts in between.
_WHOLE, _CHANGED = (4_000_005, 4_000_016, 4_000_033), (5_000_006, 5_000_008, 5_000_026)


def test_random_trees_give_what_the_reference_gives(executor: SparkExecutor, tmp_path: Path) -> None:
    outcomes = spark_cases(executor, _WHOLE, tmp_path)
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    assert not problems, "\n".join(problems)
    assert sum(o.rows for o in outcomes) > 100 and sum(o.late for o in outcomes) > 0


def test_members_of_a_tree_come_and_go(executor: SparkExecutor, tmp_path: Path) -> None:
    outcomes = spark_cases(executor, _CHANGED, tmp_path, changes=True)
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    assert not problems, "\n".join(problems)
    assert sum(o.rows for o in outcomes) > 100 and sum(o.late for o in outcomes) > 0
