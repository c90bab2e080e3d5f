"""kill -9 at random moments, then resume: the output must equal the reference exactly.

Each project has five queries (a window, a nested aggregate, a comparison with the own window, a join with a
window over it, a stateless filter into JSON) over two streams that arrive in many small files. It is run by
the real command in its own process group, killed a few times when a random number of batches has been
committed, and then left to finish. Sometimes only the Python process is killed and the JVM finds out by
itself, sometimes all of them at once.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.catalog.load import load_project
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.results import read_results
from headrace.service.planning import plan_jobs
from tests.spark.harness import write_batches

PROJECT = """
name: kills
streams:
  readings:
    columns: {ts: timestamp, plug: int, value: double}
    time: ts
    watermark: 4 seconds
    source: {kind: files, path: readings, format: parquet, files_per_batch: 1}
  switches:
    columns: {ts: timestamp, plug: int, command: string}
    time: ts
    watermark: 4 seconds
    source: {kind: files, path: switches, format: parquet, files_per_batch: 1}
queries:
  sliding:
    sql: |
      SELECT window_start, plug, avg(value) AS mean, count(*) AS n
      FROM readings [RANGE 10 SECONDS SLIDE 3 SECONDS] GROUP BY plug
  nested:
    sql: |
      SELECT window_end, max(total) AS top
      FROM (SELECT plug, sum(value) AS total FROM readings [RANGE 8 SECONDS SLIDE 4 SECONDS] GROUP BY plug)
  own:
    sql: |
      SELECT a.window_start, a.plug, count(*) AS n
      FROM readings [RANGE 6 SECONDS SLIDE 2 SECONDS] AS a
      WHERE a.value > 0.9 * (SELECT max(b.value) FROM readings [RANGE 6 SECONDS SLIDE 2 SECONDS] AS b
                             WHERE b.plug = a.plug)
      GROUP BY a.plug
  joined:
    sql: |
      SELECT window_start, s.command, count(*) AS n, max(r.value) AS top
      FROM switches [RANGE 2 SECONDS] AS s JOIN readings [RANGE 3 SECONDS] AS r ON s.plug = r.plug
      GROUP BY window(r.ts, '6 seconds', '3 seconds'), s.command
  high:
    sql: SELECT ts, plug, value FROM readings WHERE value > 70
    sink: json
planner: {shuffle_partitions: 1, parallel: 5}
"""
_SECOND = 1_000_000
_START = 1_700_000_040 * _SECOND
_FILES = 12


@dataclass(frozen=True, slots=True)
class Round:
    """One project: how often it was killed, and what was wrong in the end."""

    kills: int
    rows: int
    problems: tuple[str, ...]


def _batches(rng: random.Random, rows: int, last: str) -> list[pa.Table]:
    """Out of order by less than the watermark delay."""
    times = [_START + i * 120 * _SECOND // rows - rng.randrange(3 * _SECOND) for i in range(rows)]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "plug": pa.array([rng.randrange(4) for _ in times], pa.int32()),
            last: [rng.choice(("on", "off")) if last == "command" else rng.random() * 100 for _ in times],
        }
    )
    size = -(-rows // _FILES)
    return [table.slice(k * size, size) for k in range(_FILES)]


def make_project(root: Path, seed: int) -> dict[str, pa.Table]:
    """The project's files; gives its whole input for the reference."""
    rng = random.Random(seed)
    root.mkdir(parents=True)
    (root / "headrace.yaml").write_text(PROJECT)
    inputs = {"readings": _batches(rng, 720, "value"), "switches": _batches(rng, 120, "command")}
    for name, batches in inputs.items():
        write_batches(root / name, batches)
    return {name: pa.concat_tables(batches) for name, batches in inputs.items()}


def _start(root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headrace.cli.main", "run", str(root), "--drain", "--json"]
    with (root / "run.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _commits(root: Path) -> int:
    return sum(1 for _ in root.glob(".headrace/jobs/*/checkpoint/commits/[0-9]*"))


def _reach(root: Path, process: subprocess.Popen[bytes], goal: int) -> bool:
    """Wait for so many commits; False if the run ended before."""
    deadline = time.monotonic() + 120
    while _commits(root) < goal and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return process.poll() is None


def _kill_somewhere(root: Path, process: subprocess.Popen[bytes], rng: random.Random) -> bool:
    """Kill the run after a random number of further commits and a moment; False if it ended before."""
    running = _reach(root, process, _commits(root) + rng.randrange(14))
    time.sleep(rng.random() * 0.6)
    if not running or process.poll() is not None:
        return False
    if rng.random() < 0.5:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def _differences(root: Path, inputs: dict[str, pa.Table]) -> tuple[int, list[str]]:
    project, rows, problems = load_project(root), 0, []
    for job in plan_jobs(project).jobs:
        expected = evaluate(job.plan, inputs)
        kind = project.queries[job.query].sink.kind
        got = read_results(root / "results" / job.query, kind, job.plan.schema)
        approximate, spread = inexact_columns(job.plan)
        difference = multiset_difference(expected, got, approximate=approximate, spread=spread)
        rows += expected.num_rows
        if difference:
            problems.append(f"{job.query}: {difference.text()}")
    return rows, problems


def run_round(root: Path, seed: int, kills: int, say: Callable[[str], None] = lambda _: None) -> Round:
    """Kill one project `kills` times, then let it finish and compare."""
    inputs = make_project(root, seed)
    rng, killed = random.Random(seed), 0
    while killed < kills:
        process = _start(root)
        if not _kill_somewhere(root, process, rng):
            break
        killed += 1
        say(f"project {seed}: kill {killed} of {kills} after {_commits(root)} commits")
    return _to_the_end(root, _start(root), inputs, killed)


def lose_engine(root: Path, seed: int, times: int = 1) -> Round:
    """Kill only the JVM of one run, so often: the run itself starts another one and goes on."""
    inputs, rng = make_project(root, seed), random.Random(seed)
    process, killed = _start(root), 0
    while killed < times and _reach(root, process, _commits(root) + 3 + rng.randrange(8)):
        pid = int((root / ".headrace" / "engine.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        killed += 1
        while process.poll() is None and pid == int(_engine_file(root).split()[0]):
            time.sleep(0.05)
    return _to_the_end(root, process, inputs, killed)


def _engine_file(root: Path) -> str:
    path = root / ".headrace" / "engine.pid"
    return path.read_text() if path.exists() else "0"


def _to_the_end(
    root: Path, process: subprocess.Popen[bytes], inputs: dict[str, pa.Table], killed: int
) -> Round:
    problems = []
    if process.wait(timeout=300) != 0:
        problems.append(f"exit code {process.returncode}: {(root / 'run.log').read_text()[-2000:]}")
    rows, differences = _differences(root, inputs)
    return Round(killed, rows, (*problems, *differences))
