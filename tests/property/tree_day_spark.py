"""A day of event time through a tree on Spark: what its state store holds is looked at every few hours."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

from headrace.catalog.model import SinkKind
from headrace.plan.placed import TreeJob, shape_of
from headrace.runtime.executor import ENDED
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.property.generate_trees import STREAM, member_of
from tests.property.tree_day import DAY_QUERIES, DAY_STREAM, day_batches
from tests.property.tree_judge import Judge
from tests.spark.harness import context_of, wait, with_files, write_batches

_NEVER = -(2**62)
_ID = "day"


def spark_day(root: Path, hours: int = 24) -> tuple[list[int], list[str]]:
    """State rows kept, sampled as batches go by, and what was wrong."""
    members = {name: member_of(DAY_STREAM, name, sql) for name, sql in DAY_QUERIES.items()}
    tree = TreeJob(_ID, "local", shape_of(tuple(members.values())), tuple(members.values()))
    batches = day_batches(hours, Random(24))
    write_batches(root / "in", batches)
    streams = {STREAM: with_files(DAY_STREAM, root / "in")}
    contexts = {name: context_of(root, streams, {}, name=name) for name in members}
    executor = SparkExecutor(os.environ)
    try:
        executor.start_tree(tree, context_of(root, streams, {}, name=_ID), contexts, drain=True)
        sizes = _sampled(executor, len(batches))
        wait(executor, _ID)
    finally:
        executor.close()
    problems = _growth(sizes)
    judge = Judge(DAY_STREAM, batches, [_NEVER] * len(batches))
    for name, member in members.items():
        got = read_results(contexts[name].results, SinkKind.PARQUET, member.plan.schema)
        problems += judge.problems(member, [got], None)[2]
    return sizes, problems


def _sampled(executor: SparkExecutor, batches: int) -> list[int]:
    """State rows of the tree about every hour of event time (six batches), until the last few."""
    found: dict[int, int] = {}
    while executor.status(_ID) not in ENDED:
        progress = executor.progress(_ID)
        if progress.batch is not None and progress.batch < batches - 2 and progress.state_rows is not None:
            found.setdefault(progress.batch // 6, progress.state_rows)
        time.sleep(0.1)
    return [found[hour] for hour in sorted(found)]


def _growth(sizes: list[int]) -> list[str]:
    """The longest range is two hours, after which as many rows go as come."""
    early, late = sizes[3:9], sizes[9:]
    if not late:
        return ["too few samples"]
    return [f"state grew from {max(early)} rows to {max(late)}"] if max(late) > 1.5 * max(early) + 2 else []
