"""A service, or a run, loses a site, again and again: how long jobs stand still, and what they answer.

    python -m tests.losses_check --losses 10

Some local Spark Connect servers, four queries of different kinds, a file for each of two streams every
second. The server that most jobs are at is killed with kill -9. Its jobs must be committing batches elsewhere
soon: what is told is the time from the kill to the first batch of each, as its checkpoint has it. Then the
server is started again, the machine is left alone for a while, and the next round begins. In the end all is
drained and compared with the reference. Exit code 1 if an answer differs.

The first rounds find servers that have run nothing yet; they are told apart.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.runtime.spark.servers import kill, servers
from headrace.service.sites import Up, as_yaml, down, up
from tests import kills
from tests.moves_check import quantile, revive
from tests.spark.harness import write_batches
from tests.spark.test_run_sites import _command, _query

QUERIES = ("sliding", "nested", "joined", "high")
_START = 1_700_000_040_000_000
_ROWS = {"readings": ("value", 12), "switches": ("command", 3)}
_MOST_SECONDS = 300.0


@dataclass(slots=True)
class Feeder:
    """A file of each stream every so many seconds; each holds a second of event time."""

    root: Path
    every: float
    written: int = 0
    tables: dict[str, list[pa.Table]] = field(default_factory=lambda: {name: [] for name in _ROWS})
    _rng: random.Random = field(default_factory=lambda: random.Random(3))
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._write()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def inputs(self) -> dict[str, pa.Table]:
        return {name: pa.concat_tables(tables) for name, tables in self.tables.items()}

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            self._write()

    def _write(self) -> None:
        for name, (last, rows) in _ROWS.items():
            began = _START + self.written * 1_000_000
            times = [began - self._rng.randrange(3_000_000) for _ in range(rows)]
            values = [
                self._rng.choice(("on", "off")) if last == "command" else 100 * self._rng.random()
                for _ in times
            ]
            plugs = pa.array([self._rng.randrange(4) for _ in times], pa.int32())
            table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "plug": plugs, last: values})
            self.tables[name].append(table)
            write_batches(self.root / name, [table], first=self.written)
        self.written += 1


@dataclass(frozen=True, slots=True)
class How:
    losses: int
    cold: int
    """Rounds before, that do not count."""
    sites: int
    memory: str
    every: float
    rest: float
    verb: str = "serve"


def project(root: Path, sites: str) -> None:
    head, body = kills.PROJECT.replace("files_per_batch: 1", "files_per_batch: 8").split("queries:")
    wanted = [f"  {name}:{_query(body, name)}" for name in QUERIES]
    text = f"{head}queries:\n{''.join(wanted)}planner: {{shuffle_partitions: 1}}\n{sites}"
    (root / "headrace.yaml").write_text(text)


def first_after(root: Path, job: str, moment: float) -> float | None:
    """When a job has committed its first batch after a moment."""
    found = []
    for path in (root / ".headrace" / "jobs" / job / "checkpoint" / "commits").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError):
            found.append(path.stat().st_mtime)
    return min((one for one in found if one > moment), default=None)


class Losing:
    def __init__(self, root: Path, how: How) -> None:
        self._root, self._how = root, how
        self._folder = root / ".headrace" / "sites"

    def run(self) -> tuple[list[float], list[float], list[str]]:
        """Pauses of jobs when servers had run nothing, and afterwards; and what was wrong."""
        feeder = Feeder(self._root, self._how.every)
        feeder.start()
        serving = self._start(self._how.verb)
        cold: list[float] = []
        warm: list[float] = []
        try:
            for number in range(self._how.cold + self._how.losses):
                self._settle()
                site, pauses = self._lose()
                (cold if number < self._how.cold else warm).extend(pauses.values())
                told = ", ".join(f"{job} {seconds:.1f} s" for job, seconds in sorted(pauses.items()))
                print(f"{number + 1}: {site} was killed; {told}", flush=True)
                revive(self._folder)
            self._settle()
            feeder.stop()
            serving.send_signal(signal.SIGINT)
            serving.wait(timeout=120)
        finally:
            feeder.stop()
            serving.kill()
            serving.wait()
        drained = self._start("run", "--drain").wait(timeout=_MOST_SECONDS)
        problems = [f"the last run ended with {drained}: {self._log()}"] if drained else []
        rows, differences = kills._differences(self._root, feeder.inputs())
        print(f"{feeder.written} files of each stream, {rows} rows of answers", flush=True)
        return cold, warm, [*problems, *differences]

    def _start(self, *args: str) -> subprocess.Popen[bytes]:
        with (self._root / "run.log").open("ab") as log:
            return subprocess.Popen(_command(self._root, *args), stdout=log, stderr=log)

    def _log(self) -> str:
        return (self._root / "run.log").read_text()[-3000:]

    def _settle(self) -> None:
        """Until every query runs and batches are done; then a rest, so that servers can compile."""
        began = time.time()
        while not self._all_run(began):
            assert time.time() - began < _MOST_SECONDS, self._log()
            time.sleep(1.0)
        time.sleep(self._how.rest)

    def _all_run(self, since: float) -> bool:
        """By the state that is told, and by a batch of each job since then."""
        jobs = self._jobs()
        running = bool(jobs) and all(job["observed"] == "running" for job in jobs)
        return running and all(first_after(self._root, job["job"], since) for job in jobs)

    def _jobs(self) -> list[dict[str, Any]]:
        command = _command(self._root, "status", "--json")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return list(json.loads(done.stdout)["jobs"])

    def _lose(self) -> tuple[str, dict[str, float]]:
        places = {job["job"]: job["site"] for job in self._jobs()}
        at = list(places.values())
        site = max(sorted(set(at)), key=at.count)
        lost = [job for job, place in places.items() if place == site]
        # `kill` waits until the server is gone. A batch before that may be its last one.
        moment = time.time()
        kill(next(one for one in servers(self._folder) if one.name == site))
        gone = time.time()
        found: dict[str, float] = {}
        while len(found) < len(lost):
            assert time.time() - moment < _MOST_SECONDS, self._log()
            time.sleep(0.2)
            for job in lost:
                first = first_after(self._root, job, gone)
                if first is not None:
                    found[job] = first - moment
        return site, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--losses", type=int, default=10)
    parser.add_argument("--cold", type=int, default=3, help="rounds before, that do not count")
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--memory", default="1g")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two files of input")
    parser.add_argument("--rest", type=float, default=15.0, help="seconds before a server is killed")
    parser.add_argument("--verb", choices=("serve", "run"), default="serve", help="what runs the jobs")
    args = parser.parse_args(arguments)
    # However it is ended, the servers are.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    how = How(args.losses, args.cold, args.sites, args.memory, args.every, args.rest, args.verb)
    with tempfile.TemporaryDirectory(prefix="headrace-losses-") as name:
        root = Path(name)
        found = up(root / ".headrace" / "sites", Up(how.sites, how.memory), os.environ)
        try:
            project(root, as_yaml(found))
            cold, warm, problems = Losing(root, how).run()
        finally:
            down(root / ".headrace" / "sites")
    for what, pauses in (("where servers had run nothing", cold), ("afterwards", warm)):
        if pauses:
            middle, high = quantile(pauses, 0.5), quantile(pauses, 0.95)
            times = f"p50 {middle:.1f} s, p95 {high:.1f} s, most {max(pauses):.1f} s ({len(pauses)} jobs)"
            print(f"from the kill to a batch elsewhere, {what}: {times}")
    print("\n".join(problems or ["every answer equals the reference"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
