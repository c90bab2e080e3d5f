"""The long runs: `python -m tests.soak [--cases 500] [--kills 20] [--seed 0]`.

Random queries on Spark against the reference, and kill -9 at random moments. Prints what was found, keeps
the folder of whatever failed, exits 1 if anything did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from headrace.runtime.spark.executor import SparkExecutor
from tests.kills import run_round
from tests.property.spark_cases import Outcome, run_cases

_KILLS_PER_PROJECT = 4


def soak_cases(count: int, seed: int, root: Path) -> int:
    """Run the random cases; how many differ."""
    began, seen, kinds = time.monotonic(), list[Outcome](), Counter[str]()

    def heard(outcome: Outcome) -> None:
        seen.append(outcome)
        kinds[outcome.kind] += 1
        if outcome.problem:
            print(outcome.problem, flush=True)
        if len(seen) % 25 == 0:
            print(f"{len(seen)} of {count} cases, {time.monotonic() - began:.0f} s", flush=True)

    executor = SparkExecutor(os.environ)
    try:
        outcomes = run_cases(executor, range(seed, seed + count), root, heard)
    finally:
        executor.close()
    wrong = sum(bool(o.problem) for o in outcomes)
    rows, empty = sum(o.rows for o in outcomes), sum(o.rows == 0 for o in outcomes)
    print(f"kinds: {dict(sorted(kinds.items()))}")
    print(f"{len(outcomes)} cases, {rows} rows, {empty} with no rows: {wrong} differ")
    return wrong


def soak_kills(count: int, seed: int, root: Path) -> int:
    """Kill and resume until `count` kills are done; how many projects came out wrong."""
    done = wrong = rows = 0
    number = seed
    while done < count:
        folder = root / f"project{number}"
        outcome = run_round(
            folder, number, min(_KILLS_PER_PROJECT, count - done), lambda t: print(t, flush=True)
        )
        done, rows, number = done + outcome.kills, rows + outcome.rows, number + 1
        if outcome.problems:
            wrong += 1
            print("\n".join(outcome.problems), flush=True)
        else:
            shutil.rmtree(folder)
    print(f"{done} kills in {number - seed} projects, {rows} rows: {wrong} projects differ")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="headrace-soak-"))
    began = time.monotonic()
    wrong = soak_cases(options.cases, options.seed, root) if options.cases else 0
    wrong += soak_kills(options.kills, options.seed, root) if options.kills else 0
    print(f"{time.monotonic() - began:.0f} s; {'all equal' if not wrong else f'see {root}'}")
    if not wrong:
        shutil.rmtree(root)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
