"""kill -9 at random moments of a project that is spread over sites: the answers must equal the reference.

Three streams come from two sites. A join of all three is read by a window query and by a filter (one derived
stream, two readers), and a tree is fed by a filter at another site. Everything else is as in tests/kills.py.

    python -m tests.kills_spread FOLDER [ROUNDS] [KILLS]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tests import kills
from tests.kills import Round
from tests.spark.harness import write_batches

_JOINED = (
    "FROM readings AS r JOIN switches AS s ON r.plug = s.plug"
    " AND s.ts BETWEEN r.ts - INTERVAL 2 SECONDS AND r.ts + INTERVAL 3 SECONDS\n"
    "      JOIN meters AS m ON m.plug = s.plug AND m.ts BETWEEN s.ts AND s.ts + INTERVAL 2 SECONDS"
)


def _stream(name: str, site: str, column: str) -> str:
    return f"""  {name}:
    columns: {{ts: timestamp, plug: int, {column}}}
    time: ts
    watermark: 4 seconds
    distinct: {{plug: 100}}
    site: {site}
    source: {{kind: files, path: {name}, format: parquet, files_per_batch: 1}}"""


PROJECT = f"""
name: kills_spread
streams:
{_stream("readings", "west", "value: double")}
{_stream("switches", "west", "command: string")}
{_stream("meters", "east", "value: double")}
sites:
  west: {{endpoint: "local[2]"}}
  east: {{endpoint: "local[2]"}}
links:
  - {{between: [west, east], latency: 20ms}}
queries:
  counted:
    site: east
    sql: |
      SELECT window.start, s.command, count(*) AS n, max(m.value) AS top
      {_JOINED}
      GROUP BY window(r.ts, '6 seconds', '3 seconds'), s.command
  picked:
    site: east
    sql: |
      SELECT r.ts, m.ts AS later, r.value, s.command
      {_JOINED}
      WHERE s.command = 'on'
  fed:
    site: east
    sql: |
      SELECT window_start, plug, count(*) AS n, max(value) AS top
      FROM readings [RANGE 10 SECONDS SLIDE 5 SECONDS] WHERE value > 20 GROUP BY plug
planner: {{shuffle_partitions: 1, parallel: 8, spread: true, trigger: 300ms}}
"""


def make_project(root: Path, seed: int, files_per_batch: int = 1) -> dict[str, pa.Table]:
    """The project's files; gives its whole input for the reference."""
    rng = random.Random(seed)
    root.mkdir(parents=True)
    text = PROJECT.replace("files_per_batch: 1", f"files_per_batch: {files_per_batch}")
    (root / "headrace.yaml").write_text(text)
    inputs = {
        "readings": kills._batches(rng, 360, "value"),
        "switches": kills._batches(rng, 120, "command"),
        "meters": kills._batches(rng, 240, "value"),
    }
    for name, batches in inputs.items():
        write_batches(root / name, batches)
    return {name: pa.concat_tables(batches) for name, batches in inputs.items()}


def run_round(root: Path, seed: int, times: int, say: Callable[[str], None] = lambda _: None) -> Round:
    """Kill one project so many times, then let it finish and compare."""
    inputs = make_project(root, seed)
    rng, killed = random.Random(seed), 0
    while killed < times:
        process = kills._start(root)
        if not kills._kill_somewhere(root, process, rng):
            break
        killed += 1
        say(f"project {seed}: kill {killed} of {times} after {kills._commits(root)} commits")
    process = kills._start(root)
    problems = []
    if process.wait(timeout=600) != 0:
        problems.append(f"exit code {process.returncode}: {(root / 'run.log').read_text()[-2000:]}")
    rows, differences = kills._differences(root, inputs)
    return Round(killed, rows, (*problems, *differences))


if __name__ == "__main__":
    folder, rounds, each = Path(sys.argv[1]), *(int(text) for text in (*sys.argv[2:], "3", "4")[:2])
    for number in range(rounds):
        done = run_round(folder / str(number), number, each, lambda text: print(text, flush=True))
        print(f"project {number}: {done.kills} kills, {done.rows} rows, {list(done.problems) or 'equal'}")
