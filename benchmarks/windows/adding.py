"""What the others notice when a query is added to, and dropped from, a tree of many that runs.

    python -m benchmarks.windows.adding [--queries 50] [--trigger 5] [--folder DIR]

A project with that many window queries runs as a process; input keeps coming. One query is added and, some
time later, dropped, by the commands that a user would give. The pause is the longest time between two batches
around a change, by the times of Spark's own commit files. In the end the input is drained, and every answer
is compared with a batch evaluation: a lost or repeated row shows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_700_000_000_000_000
KEYS = 200
ROWS_A_SECOND = 200
EVENT_SECONDS = 5
"""Of event time in each file; there is one file each second."""
_HEADRACE = [sys.executable, "-m", "headrace.cli.main"]
_PROJECT = """name: adding
streams:
  s:
    columns: {{ts: timestamp, k: int, v: double}}
    time: ts
    watermark: 2 seconds
    rate: 5000
    distinct: {{k: {keys}}}
    source: {{kind: files, path: in, format: parquet}}
planner: {{trigger: {trigger} seconds}}
queries:
"""
_SQL = "SELECT window_end, k, {what} AS x FROM s [RANGE {size} SECONDS SLIDE {slide} SECONDS] GROUP BY k"
_WHAT = ("sum(v)", "avg(v)", "max(v)", "min(v)", "count(*)")


def sql(number: int) -> str:
    return _SQL.format(what=_WHAT[number % len(_WHAT)], size=240 + number, slide=1 + number % 3)


def write_project(folder: Path, queries: int, trigger: int) -> None:
    text = _PROJECT.format(keys=KEYS, trigger=trigger)
    text += "".join(f'  q{n}: {{sql: "{sql(n)}"}}\n' for n in range(queries))
    (folder / "in").mkdir(parents=True)
    (folder / "headrace.yaml").write_text(text, encoding="utf-8")
    (folder / "new.sql").write_text(_SQL.format(what="avg(v)", size=90, slide=4), encoding="utf-8")


class Feed(threading.Thread):
    """A file each second, until told to stop."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._folder, self._enough, self.files = folder, threading.Event(), 0

    def run(self) -> None:
        rng = np.random.default_rng(0)
        while not self._enough.wait(1.0):
            first, count = self.files * EVENT_SECONDS * 1_000_000, ROWS_A_SECOND * EVENT_SECONDS
            times = first + np.sort(rng.integers(0, EVENT_SECONDS * 1_000_000, count))
            times -= rng.integers(0, 1_500_000, count)
            rows = {
                "ts": pa.array(START + times, pa.timestamp("us", "UTC")),
                "k": pa.array(rng.integers(0, KEYS, count), pa.int32()),
                "v": pa.array(rng.normal(50, 10, count)),
            }
            staged = self._folder / f".{self.files:05d}.tmp"
            pq.write_table(pa.table(rows), staged)
            staged.rename(self._folder / f"{self.files:05d}.parquet")
            self.files += 1

    def stop(self) -> None:
        self._enough.set()
        self.join()


@dataclass(frozen=True, slots=True)
class Change:
    what: str
    told: str
    """What the command said."""
    seconds: float
    """Until the command returned."""
    pause: float
    usual: float
    """The longest time between two batches before the change."""


class Running:
    """`headrace run` of the project, as a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [*_HEADRACE, "run", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def commits(self) -> list[float]:
        """When each batch of the tree was committed."""
        found = (self.folder / ".headrace" / "jobs").glob("tree-*/checkpoint/commits/[0-9]*")
        return sorted(path.stat().st_mtime for path in found)

    def until(self, batches: int) -> None:
        deadline = time.monotonic() + 300
        while len(self.commits()) < batches:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"the run is at {len(self.commits())} batches and does not get on")
            time.sleep(0.2)

    def change(self, what: str, command: Sequence[str]) -> Change:
        before, began = self.commits(), time.time()
        done = subprocess.run([*_HEADRACE, *command], capture_output=True, text=True, check=True)
        seconds = time.time() - began
        self.until(len(before) + 6)
        times = self.commits()
        gaps = [(b - a, b) for a, b in itertools.pairwise(times)]
        pause = max(gap for gap, end in gaps if end >= began)
        usual = max(gap for gap, end in gaps[-12:] if end < began)
        return Change(what, done.stdout.strip(), seconds, pause, usual)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(120)


def verify(folder: Path, queries: Sequence[str]) -> list[str]:
    """The queries whose results are not those of a batch evaluation."""
    wrong = []
    for query in queries:
        command = [*_HEADRACE, "results", query, str(folder), "--verify", "--json"]
        if subprocess.run(command, capture_output=True).returncode:
            wrong.append(query)
    return wrong


def measure(folder: Path, queries: int, trigger: int) -> dict[str, object]:
    write_project(folder, queries, trigger)
    feed = Feed(folder / "in")
    feed.start()
    running = Running(folder)
    try:
        running.until(8)
        added = running.change("add", ["add", "new", str(folder), "--sql", str(folder / "new.sql")])
        dropped = running.change("drop", ["drop", "q3", str(folder)])
    finally:
        feed.stop()
        running.stop()
    subprocess.run([*_HEADRACE, "run", str(folder), "--drain"], check=True, capture_output=True)
    names = [f"q{n}" for n in range(queries) if n != 3] + ["new"]
    wrong = verify(folder, names)
    return {
        "queries": queries,
        "trigger_seconds": trigger,
        "rows": feed.files * EVENT_SECONDS * ROWS_A_SECOND,
        "changes": [_data(change, trigger) for change in (added, dropped)],
        "compared": len(names),
        "differ": wrong,
    }


def _data(change: Change, trigger: int) -> dict[str, object]:
    return {
        "what": change.what,
        "pause_seconds": round(change.pause, 2),
        "intervals": round(change.pause / trigger, 2),
        "longest_before_seconds": round(change.usual, 2),
        "command_seconds": round(change.seconds, 2),
        "said": change.told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--trigger", type=int, default=5, help="seconds between micro-batches")
    parser.add_argument("--folder", type=Path, help="made by the run; default: a temporary one")
    args = parser.parse_args()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch) / "adding"
        sys.stdout.write(json.dumps(measure(folder, args.queries, args.trigger), indent=1) + "\n")


if __name__ == "__main__":
    main()
