"""Whole trees against the reference, as many as you like:

    python -m tests.trees_check --cases 1000 --changes 200 --seed 0             # the engine, no JVM
    python -m tests.trees_check --cases 60 --changes 30 --level spark
    python -m tests.trees_check --cases 0 --changes 0 --kills 30 --day

A case is a random stream with 2 to 12 random queries in one tree, with restarts; `--changes` are cases whose
queries are added and dropped on the way; `--kills` are kill -9 of running projects; `--day` is a day of event
time on Spark. Prints what was found, keeps the folder of whatever failed, exits 1 if anything did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.property.tree_cases import engine_case
from tests.property.tree_judge import Outcome

_KILLS_PER_PROJECT = 3


class Tally:
    """What has come of the cases so far."""

    def __init__(self, what: str, count: int) -> None:
        self._what, self._count, self._began = what, count, time.monotonic()
        self.cases = self.queries = self.rows = self.late = self.wrong = 0

    def heard(self, outcome: Outcome) -> None:
        self.cases += 1
        self.queries += outcome.queries
        self.rows += outcome.rows
        self.late += outcome.late
        if outcome.problems:
            self.wrong += 1
            print("\n".join(outcome.problems), flush=True)
        if self.cases % 50 == 0 and self.cases < self._count:
            print(f"{self.cases} of {self._count} {self._what}, {self._seconds:.0f} s", flush=True)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def total(self) -> int:
        counts = f"{self.cases} {self._what}, {self.queries} queries, {self.rows} rows, {self.late} late"
        print(f"{counts}: {self.wrong} differ ({self._seconds:.0f} s)", flush=True)
        return self.wrong


def check_engine(count: int, seed: int, *, changes: bool, processes: int) -> int:
    """Through the engine alone; how many cases differ."""
    tally = Tally("engine cases with changes" if changes else "engine cases", count)
    for outcome in _played(partial(engine_case, changes=changes), range(seed, seed + count), processes):
        tally.heard(outcome)
    return tally.total()


def _played(play: Callable[[int], Outcome], seeds: range, processes: int) -> Iterator[Outcome]:
    if processes <= 1:
        yield from map(play, seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(play, seeds, chunksize=5)


def check_spark(count: int, seed: int, root: Path, *, changes: bool) -> int:
    """As jobs of one Spark session; how many cases differ."""
    from headrace.runtime.spark.executor import SparkExecutor
    from tests.property.tree_spark import spark_cases

    tally = Tally("Spark cases with changes" if changes else "Spark cases", count)
    executor = SparkExecutor(os.environ)
    try:
        spark_cases(executor, range(seed, seed + count), root, changes=changes, on_outcome=tally.heard)
    finally:
        executor.close()
    return tally.total()


def check_kills(count: int, seed: int, root: Path) -> int:
    """Kill running projects, with queries added and dropped; how many projects came out wrong."""
    from tests.kills_trees import run_round

    done = wrong = rows = changes = 0
    number = seed
    while done < count:
        folder = root / f"project{number}"
        kills = min(_KILLS_PER_PROJECT, count - done)
        outcome = run_round(folder, number, kills, say=partial(print, flush=True))
        done, rows, number = done + outcome.kills, rows + outcome.rows, number + 1
        changes += outcome.changes
        if outcome.problems:
            wrong += 1
            print("\n".join(outcome.problems), flush=True)
        else:
            shutil.rmtree(folder)
    counts = f"{done} kills and {changes} changes in {number - seed} projects, {rows} rows"
    print(f"{counts}: {wrong} projects differ", flush=True)
    return wrong


def check_day(root: Path) -> int:
    """A day of event time on Spark; 1 if what is kept grew or an answer is wrong."""
    from tests.property.tree_day_spark import spark_day

    sizes, problems = spark_day(root)
    print(f"state rows of the tree by hour: {', '.join(map(str, sizes))}")
    print("\n".join(problems) or "a day on Spark: no growth, all answers equal", flush=True)
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--day", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", choices=("engine", "spark"), default="engine")
    parser.add_argument("--processes", type=int, default=2, help="of the engine level")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="headrace-trees-"))
    wrong = 0
    for count, changes in ((options.cases, False), (options.changes, True)):
        if count and options.level == "spark":
            wrong += check_spark(count, options.seed, root / str(changes), changes=changes)
        elif count:
            wrong += check_engine(count, options.seed, changes=changes, processes=options.processes)
    wrong += check_kills(options.kills, options.seed, root) if options.kills else 0
    wrong += check_day(root / "day") if options.day else 0
    print("all equal" if not wrong else f"see {root}")
    if not wrong:
        shutil.rmtree(root)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
