"""Every split of the paper's queries against the reference, as often as you like:

    python -m tests.federated_check --splits all --restarts                      # the engine, no JVM
    python -m tests.federated_check --level spark --splits 6 --queries cq1,cq3 --restarts
    python -m tests.federated_check --level spark --splits all --restarts --together 16
    python -m tests.federated_check --splits 0 --kills 20 --seed 1
    python -m tests.federated_check --splits 0 --hour

`--splits` is how many splits of each query are tried (`all`: all 2^n); with `--restarts` each is stopped and
started again on the way, and batches are repeated; with `--together` so many of them are one job on Spark,
side by side. `--kills` are kill -9 of a process that runs such a job on
Spark. `--hour` is an hour of event time, in which nothing in DuckDB may grow beyond the window. Prints what
was found, exits 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import SinkKind
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, operators
from headrace.runtime.executor import ENDED
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.federated_cases import (
    DELAY,
    QUERIES,
    SECOND,
    STREAM,
    TABLES,
    Driven,
    answer,
    difference,
    job_of,
    letters,
    plan_of,
    readings,
    sliced,
    splits,
    with_arrival,
)
from tests.federated_kills import kill_round
from tests.spark.harness import context_of, wait, with_files, write_batches

Split = tuple[Engine, ...]
_HOUR = 3600


def chosen(plan: lp.LogicalPlan, count: str, rng: random.Random) -> list[Split]:
    every = list(splits(plan))
    return every if count == "all" or int(count) >= len(every) else rng.sample(every, int(count))


Check = Callable[[Sequence[Split]], Sequence[str]]
"""For each of some splits, in which way its answer differs; empty: it does not."""


def check_splits(query: str, tried: Sequence[Split], check: Check, what: str, together: int = 1) -> int:
    """How many of the splits differ."""
    began, wrong = time.monotonic(), 0
    for first in range(0, len(tried), together):
        some = tried[first : first + together]
        for split, problem in zip(some, check(some), strict=True):
            if problem:
                wrong += 1
                print(f"{query} {letters(split)}: {problem}", flush=True)
        number = first + len(some)
        if number % 16 == 0 and number < len(tried):
            print(f"{query}: {number} of {len(tried)} splits, {time.monotonic() - began:.0f} s", flush=True)
    print(
        f"{query}: {len(tried)} splits {what}: {wrong} differ ({time.monotonic() - began:.0f} s)", flush=True
    )
    return wrong


# -- the engine alone ---------------------------------------------------------------------------------


def engine_splits(query: str, seed: int, *, restarts: bool) -> Check:
    rng, plan = random.Random(seed), plan_of(QUERIES[query])
    # Out of order by more than the watermark allows: some rows are late.
    batches = sliced(readings(seed, 45, rate=10, disorder=9 * SECOND), rng.randint(4, 9))
    known: dict[tuple[lp.LogicalPlan, int], pa.Table] = {}
    wanted: list[pa.Table] = []

    def one(split: Split) -> str:
        with tempfile.TemporaryDirectory() as folder:
            driven = Driven(job_of({query: (plan, split)}), Path(folder), batches, known=known)
            if not wanted:
                wanted.append(answer(plan, with_arrival(batches, driven.marks[: len(batches)])))
            for number in range(len(driven.marks)):
                driven.run(number + 1, max(number - restarts, 0))
                if restarts and rng.random() < 0.4:
                    driven.federation.close()
                    driven.federation = driven.opened()
            found = difference(plan, wanted[0], driven.answers(query))
            driven.federation.close()
            return found.text() if found else ""

    return lambda some: [one(split) for split in some]


# -- on Spark -----------------------------------------------------------------------------------------


def spark_splits(executor: SparkExecutor, query: str, seed: int, *, restarts: bool) -> Check:
    """All of them as members of one job."""
    rng, plan = random.Random(seed), plan_of(QUERIES[query])
    batches = sliced(readings(seed, 40, rate=10), 4)
    wanted = answer(plan, pa.concat_tables(batches))

    def check(some: Sequence[Split]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            write_batches(root / "in", batches)
            streams = {"readings": with_files(STREAM, root / "in")}
            names = {f"{query}_{letters(split)}": split for split in some}
            job = job_of({name: (plan, split) for name, split in names.items()}, f"of-{min(names)}")
            context = context_of(root, streams, TABLES, name=job.id)
            members = {name: context_of(root, streams, TABLES, name=name) for name in names}
            if restarts:
                executor.start_federated(job, context, members, drain=False)
                _wait_for_batch(executor, job.id, rng.randint(0, 2))
                executor.stop(job.id)
            executor.start_federated(job, context, members, drain=True)
            wait(executor, job.id, 600)
            got = [read_results(members[name].results, SinkKind.PARQUET, plan.schema) for name in names]
            found = [difference(plan, wanted, one) for one in got]
            return [one.text() if one else "" for one in found]

    return check


def _wait_for_batch(executor: SparkExecutor, job: str, batch: int) -> None:
    while executor.status(job) not in ENDED:
        reached = executor.progress(job).batch
        if reached is not None and reached >= batch:
            return
        time.sleep(0.05)


# -- an hour ------------------------------------------------------------------------------------------


def check_hour(query: str, seed: int) -> int:
    """All on DuckDB, an hour of event time in batches of ten seconds; 1 where something grew, or differs."""
    rate, per_batch = 20, 10
    plan = plan_of(QUERIES[query])
    rows = readings(seed, _HOUR, rate=rate)
    batches = sliced(rows, _HOUR // per_batch)
    longest = max(node.spec.range for node in lp.nodes(plan) if isinstance(node, lp.Window)) // SECOND
    # A window, the watermark's delay, the batch before it is in force, the new batch, a chunk, and the
    # disorder.
    most = rate * (longest + DELAY // SECOND + 2 * per_batch + longest // 8 + per_batch + 2) * 1.15
    with tempfile.TemporaryDirectory() as folder:
        split = (Engine.DUCKDB,) * len(operators(plan))
        driven = Driven(job_of({query: (plan, split)}), Path(folder), batches)
        kept, held, files = [], [], []
        for number in range(len(driven.marks)):
            driven.run(number + 1, number)
            kept.append(driven.federation.done.kept)
            held.append(driven.federation.done.held)
            files.append(sum(1 for _ in Path(folder).rglob("kept/*/*.arrow")))
        found = difference(plan, answer(plan, rows), driven.answers(query))
    early, late = max(held[20:60]), max(held[60:])
    print(
        f"{query}, an hour: at most {max(kept)} rows kept (allowed {most:.0f}), {max(files)} files; "
        f"DuckDB held {early >> 10} KiB at most in the first ten minutes, {late >> 10} KiB in the rest; "
        f"{found.text()}",
        flush=True,
    )
    return int(bool(found) or max(kept) > most or late > 1.25 * early + (1 << 20))


# -- the command --------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.federated_check")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--splits", default="all")
    parser.add_argument("--level", choices=("engine", "spark"), default="engine")
    parser.add_argument("--restarts", action="store_true")
    parser.add_argument("--together", type=int, default=1, help="splits in one job, on Spark")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    queries = asked.queries.split(",")
    wrong = check_all(queries, asked) if asked.splits != "0" else 0
    if asked.hour:
        wrong += sum(check_hour(query, asked.seed) for query in queries)
    if asked.kills:
        wrong += check_kills(queries, asked.kills, asked.seed)
    return 1 if wrong else 0


def check_all(queries: Sequence[str], asked: argparse.Namespace) -> int:
    rng, wrong = random.Random(asked.seed), 0
    executor = SparkExecutor(os.environ) if asked.level == "spark" else None
    try:
        for query in queries:
            if executor is None:
                check = engine_splits(query, asked.seed, restarts=asked.restarts)
            else:
                check = spark_splits(executor, query, asked.seed, restarts=asked.restarts)
            what = asked.level + (", restarted" if asked.restarts else "")
            tried = chosen(plan_of(QUERIES[query]), asked.splits, rng)
            wrong += check_splits(query, tried, check, what, asked.together)
    finally:
        if executor is not None:
            executor.close()
    return wrong


def check_kills(queries: Sequence[str], kills: int, seed: int) -> int:
    """Jobs that are killed a few times each, until there were so many kills."""
    rng, killed, jobs, wrong = random.Random(seed), 0, 0, 0
    while killed < kills:
        query = rng.choice(list(queries))
        split = rng.choice(list(splits(plan_of(QUERIES[query]))))
        with tempfile.TemporaryDirectory() as folder:
            more, problem = kill_round(
                Path(folder), query, split, seed=rng.randrange(10**6), kills=min(3, kills - killed)
            )
        killed, jobs = killed + more, jobs + 1
        if problem:
            wrong += 1
            print(f"{query} {letters(split)}, killed: {problem}", flush=True)
    print(f"{jobs} jobs killed {killed} times: {wrong} differ", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
