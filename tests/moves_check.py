"""Random moves of jobs with state under load, with and without kills: every answer must equal the reference.

    python -m tests.moves_check --moves 100 --kills 50 --seed 0

Three local Spark Connect servers, a tree of windows, an interval join and windows over joins, and a feeder
that writes input all the time. First moves that nothing disturbs, which tell the pauses; then moves in which
the manager, the source or the target is killed with kill -9 at a random step. Who was killed is started
again, and in the end all jobs are drained and compared. Exit code 1 if an answer differs, or a key has
something published before what should come earlier.

A JVM compiles what it runs while it runs it, for minutes. `--warm 2` takes every job to every site twice
before any move counts.

A virtual machine may be given less than its processors (steal). Pauses are told of all moves, and once more
of those in which others took next to nothing: the rest says more of the neighbours than of a move.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from headrace.errors import HeadraceError
from headrace.runtime.relocate import Step
from headrace.runtime.spark.servers import Starting, Wanted, servers, stop
from headrace.service.sites import Up, checker, down, up
from tests.moves_load import JOBS, Feeder, Load

_REPLY_SECONDS = 600.0
_LATE_SECONDS = 0.5
_UNDISTURBED = 0.02
"""Of the processors' time, what others may take in an undisturbed move, its rehearsal included."""


@dataclass(frozen=True, slots=True)
class How:
    seed: int = 0
    apart: bool = False
    """Each site has storage of its own for checkpoints."""
    every: float = 1.0
    """Seconds between two files of input."""
    rows: int = 40
    """In each of them, half a second of event time apart."""
    patience: float = 10.0
    """Seconds in which a site must answer."""
    jobs: tuple[str, ...] = JOBS
    minutes: float = float("inf")
    """After which no other move is begun."""


class ManagerProcess:
    """The manager as a process of its own, so that it can be killed."""

    def __init__(self, root: Path, folder: Path, how: How) -> None:
        self._root = root
        kept = "apart" if how.apart else "shared"
        self._arguments = [str(root), str(folder), str(how.patience), kept, ",".join(how.jobs)]
        self._process: subprocess.Popen[str] | None = None
        self.rescues: list[dict[str, Any]] = []
        self.at: dict[str, str] = {}

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.moves_manager", *self._arguments]
        with (self._root / "manager.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        told = self._read()
        assert told is not None, (self._root / "manager.log").read_text()[-3000:]

    def ask(self, **what: object) -> dict[str, Any] | None:
        """The answer; None: it was killed."""
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any] | None:
        assert self._process is not None and self._process.stdout is not None
        hung = threading.Timer(_REPLY_SECONDS, self._process.kill)
        hung.start()
        try:
            for line in self._process.stdout:
                told: dict[str, Any] = json.loads(line)
                self.at = told.get("at", self.at)
                if "rescued" not in told:
                    return told
                self.rescues.append(told)
                self.at[told["rescued"]] = told["site"]
            self._process.wait()
            return None
        finally:
            hung.cancel()

    def ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@dataclass(slots=True)
class Result:
    moves: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    """Those who were really gone after a move in which they should be."""
    pauses: list[float] = field(default_factory=list)
    by_job: dict[str, list[float]] = field(default_factory=dict)
    parts: dict[str, list[float]] = field(default_factory=dict)
    """What pauses are made of."""
    undisturbed: dict[str, list[float]] = field(default_factory=dict)
    """Pauses of the moves in which this machine had its processors to itself, by job."""
    taken: list[float] = field(default_factory=list)
    """Which part of the processors' time others took in each move, in percent."""
    cold: list[float] = field(default_factory=list)
    """Pauses of the moves before."""
    others: dict[str, list[float]] = field(default_factory=lambda: {"during": [], "before": []})
    """Seconds between two batches of jobs that are not moved: the longest of each job in the move of another,
    and all before it."""
    rescues: list[float] = field(default_factory=list)
    """Seconds without a batch of jobs that were lost with their site."""
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        told = [f"{self.moves} moves, kills: {self.kills or 'none'}"]
        for name, found in (
            ("pause while sites were warmed", self.cold),
            ("pause of a move", self.pauses),
            *((f"pause of a move of {job}", found) for job, found in sorted(self.by_job.items())),
            *(
                (f"pause of a move of {job} while others took less than {_UNDISTURBED:.0%}", found)
                for job, found in sorted(self.undisturbed.items())
            ),
            *((f"of a pause, {part}", found) for part, found in self.parts.items()),
            ("another job's longest time between two batches, in a move", self.others["during"]),
            ("another job's time between two batches, before it", self.others["before"]),
            ("pause of a lost job", self.rescues),
        ):
            if found:
                low, high = statistics.median(found), quantile(found, 0.95)
                told.append(
                    f"{name}: p50 {low:.2f} s, p95 {high:.2f} s, most {max(found):.2f} s ({len(found)})"
                )
        if self.taken:
            low, high = statistics.median(self.taken), quantile(self.taken, 0.95)
            told.append(f"others took of the processors in a move: p50 {low:.0f} %, p95 {high:.0f} %")
        return [*told, *(self.problems or ["every answer equals the reference, in order for each key"])]


def _processors() -> tuple[float, float]:
    """Seconds of all processors since the start of the machine, and those that others had."""
    times = psutil.cpu_times()
    # A guest's are in the user's already.
    every = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return every, getattr(times, "steal", 0.0)


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Check:
    root: Path
    folder: Path
    how: How

    def run(self, moves: int, kills: int, warm: int = 0) -> Result:
        how = self.how
        rng, result = random.Random(how.seed), Result()
        load = Load(self.root, {server.name: server.address for server in servers(self.folder)}, how.apart)
        feeder = Feeder(load, how.seed, how.every, rows=how.rows)
        feeder.start()
        manager = ManagerProcess(self.root, self.folder, how)
        try:
            manager.start()
            self._warm(result, manager, warm)
            until = time.monotonic() + 60 * how.minutes
            for number in range(moves + kills):
                if time.monotonic() > until:
                    print(f"{how.minutes:g} minutes are over: {moves + kills - number} moves are left out")
                    break
                self._one(rng, result, manager, killing=number >= moves)
            self._end(feeder, manager, load, result)
        finally:
            feeder.stop()
            manager.stop()
        return result

    def _warm(self, result: Result, manager: ManagerProcess, times: int) -> None:
        ring = self._names()
        for number in range(times * len(ring)):
            for job in self.how.jobs:
                told = manager.ask(do="move", job=job, target=ring[(number + 1) % len(ring)], kill=None)
                print(f"warming: {job} {told and told.get('pause')}", flush=True)
                if told is None or not told["moved"]:
                    result.problems.append(f"{job} was not moved: {told}")
                elif told["pause"] is not None:
                    result.cold.append(told["pause"])

    def _one(self, rng: random.Random, result: Result, manager: ManagerProcess, *, killing: bool) -> None:
        job = rng.choice(self.how.jobs)
        target = rng.choice([name for name in self._names() if name != manager.at[job]])
        kill = None
        if killing:
            who, step = rng.choice(("manager", "source", "target")), rng.choice(list(Step)).value
            kill = {"who": who, "step": step, "delay": rng.choice((0.0, rng.random()))}
        time.sleep(rng.random())
        every, others = _processors()
        told = manager.ask(do="move", job=job, target=target, kill=kill)
        until, then = _processors()
        taken = (then - others) / max(until - every, 0.01)
        result.moves += 1
        shown = {key: value for key, value in (told or {}).items() if key not in ("gaps", "parts")}
        print(
            f"{result.moves}: {job} to {target}, kill {kill}, {taken:.0%} taken: {shown or None}", flush=True
        )
        if told is None and kill is None:
            result.problems.append(f"the manager ended by itself, moving {job} to {target}")
        if kill is not None:
            # Some come after the answer, and one that is late would be taken for that of the next move.
            time.sleep(float(str(kill["delay"])) + _LATE_SECONDS)
        sites, ended = revive(self.folder), manager.ended()
        if kill is not None and (ended if kill["who"] == "manager" else sites):
            result.kills[str(kill["who"])] = result.kills.get(str(kill["who"]), 0) + 1
        if ended:
            manager.start()
        if kill is None and told is not None and not told["moved"]:
            result.problems.append(f"{job} was not moved to {target}: {told}")
        if kill is None and told is not None and told.get("pause") is not None:
            result.pauses.append(told["pause"])
            result.by_job.setdefault(job, []).append(told["pause"])
            result.taken.append(100 * taken)
            if taken < _UNDISTURBED:
                result.undisturbed.setdefault(job, []).append(told["pause"])
            for when, found in told.pop("gaps").items():
                result.others[when] += found
            for part, seconds in told["parts"].items():
                result.parts.setdefault(part, []).append(seconds)

    def _names(self) -> list[str]:
        return [server.name for server in servers(self.folder)]

    def _end(self, feeder: Feeder, manager: ManagerProcess, load: Load, result: Result) -> None:
        files = feeder.stop()
        print(f"{files} files of {self.how.rows} rows were written", flush=True)
        told = manager.ask(do="drain")
        if told is None or told.get("drained"):
            result.problems.append(f"not drained: {told}")
        result.rescues = [one["pause"] for one in manager.rescues if one["pause"] is not None]
        result.problems += load.problems(self.how.jobs)


def revive(folder: Path) -> list[str]:
    """A site that was killed is there again, at the same address; the names of those that were gone."""
    gone = [server for server in servers(folder) if server.process() is None]
    for dead in gone:
        stop(dead)
        wanted = Wanted(dead.name, dead.folder, dead.port, dead.memory, dead.cores)
        with Starting(wanted, os.environ) as begun:
            while not checker().check(dead.address, 60.0).answers:
                begun.check_alive()
                time.sleep(0.3)
            begun.keep()
    return [server.name for server in gone]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--moves", type=int, default=100)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--warm", type=int, default=0, metavar="TIMES", help="rounds of all jobs before")
    parser.add_argument("--memory", default="1g")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two files of input")
    parser.add_argument("--rows", type=int, default=40, help="in each of them")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no move after these")
    parser.add_argument(
        "--apart", action="store_true", help="each site has storage of its own for checkpoints"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=10.0,
        help="seconds in which a site must answer; more on a busy machine",
    )
    how = parser.parse_args(arguments)
    # However it is ended, the servers are.
    signal.signal(signal.SIGTERM, _end_once)
    try:
        return _check(how)
    except HeadraceError as error:
        print(error.render())
        return 1


def _end_once(*_: object) -> None:
    """A second wish to end would leave some of the servers."""
    for wish in (signal.SIGTERM, signal.SIGINT):
        signal.signal(wish, signal.SIG_IGN)
    sys.exit(143)


def _check(how: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="headrace-moves-") as name:
        root, folder = Path(name) / "project", Path(name) / "sites"
        root.mkdir()
        up(folder, Up(how.sites, how.memory), os.environ, print)
        try:
            jobs = tuple(how.jobs.split(","))
            chosen = How(how.seed, how.apart, how.every, how.rows, how.patience, jobs, how.minutes)
            result = Check(root, folder, chosen).run(how.moves, how.kills, how.warm)
        finally:
            down(folder)
    print("\n".join(result.lines()))
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
