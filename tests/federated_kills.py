"""kill -9 of a process that runs a federated job, and of the JVM with it, at random moments.

python -m tests.federated_kills FOLDER      # the child: runs the job in FOLDER to the end of its input
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import SinkKind
from headrace.plan.federated import Engine
from headrace.runtime.executor import JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.federated_cases import (
    QUERIES,
    STREAM,
    TABLES,
    answer,
    difference,
    job_of,
    plan_of,
    readings,
    sliced,
)
from tests.spark.harness import context_of, wait, with_files, write_batches

_JOB = "killed"


def run_child(root: Path) -> int:
    asked = json.loads((root / "asked.json").read_text())
    query = asked["query"]
    job = job_of({query: (plan_of(QUERIES[query]), tuple(map(Engine, asked["split"])))}, _JOB)
    streams = {"readings": with_files(STREAM, root / "in")}
    executor = SparkExecutor(os.environ, memory="1g")
    try:
        executor.start_federated(
            job,
            context_of(root, streams, TABLES, name=_JOB),
            {query: context_of(root, streams, TABLES, name=query)},
            drain=True,
        )
        return 0 if wait(executor, _JOB, 900).state is JobState.FINISHED else 1
    finally:
        executor.close()


def kill_round(
    root: Path, query: str, split: tuple[Engine, ...], *, seed: int, kills: int
) -> tuple[int, str]:
    """Kill one job up to `kills` times and let it finish: how often it was, and what was wrong."""
    rng, plan = random.Random(seed), plan_of(QUERIES[query])
    batches = sliced(readings(seed, 60, rate=10), 12)
    write_batches(root / "in", batches)
    (root / "asked.json").write_text(json.dumps({"query": query, "split": list(split)}))
    done = 0
    while done < kills:
        child = _child(root)
        _let_run(root, child, rng)
        if child.poll() is not None:
            break
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        done += 1
    child = _child(root)
    if child.wait() != 0:
        return done, (root / "log").read_text()[-3000:]
    got = read_results(root / "results" / query, SinkKind.PARQUET, plan.schema)
    found = difference(plan, answer(plan, pa.concat_tables(batches)), got)
    return done, found.text() if found else ""


def _child(root: Path) -> subprocess.Popen[bytes]:
    with (root / "log").open("ab") as log:
        command = [sys.executable, "-m", "tests.federated_kills", str(root)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _let_run(root: Path, child: subprocess.Popen[bytes], rng: random.Random) -> None:
    """Until a few more batches are under way, and a moment longer: kills fall into all parts of a batch."""
    planned = root / ".headrace" / "jobs" / _JOB / "checkpoint" / "offsets"

    def count() -> int:
        return sum(1 for path in planned.glob("[0-9]*"))

    goal = count() + rng.randint(1, 4)
    while count() < goal and child.poll() is None:
        time.sleep(0.02)
    time.sleep(rng.random() * rng.choice((0.05, 0.5, 2.0)))


if __name__ == "__main__":
    sys.exit(run_child(Path(sys.argv[1])))
