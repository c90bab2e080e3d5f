"""A manager of moves that can be killed: the jobs of moves_load.py at the sites of a folder, told by lines.

    {"do": "move", "job": "tree", "target": "site2", "kill": {"who": "source", "step": "start", "delay": 0.1}}
    {"do": "drain"}

It answers each with a line. In between it watches: a job that was lost with its site goes on at another. A
new manager ends what the one before it has left, carries its moves on, and starts every job where it lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.runtime.executor import ENDED, JobState
from headrace.runtime.relocate import Entry, Move, Outcome, Patience, Relocator, Step, Unsettled
from headrace.runtime.sites import ExecutorSites, Ways
from headrace.runtime.spark.health import Checker
from headrace.runtime.spark.remote import Ledger
from headrace.runtime.spark.servers import kill, servers
from headrace.runtime.spark.sites import FenceTimes, SitesExecutor, SparkFence
from headrace.state.moves import Moves
from tests.moves_load import JOBS, Load

_WATCH_SECONDS = 0.3
_LAST_BATCHES = 30


def fresh() -> str:
    return str(uuid.uuid4())


class Killing(Moves):
    """A journal that kills somebody at a step, once."""

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__(path, lambda: datetime.now(UTC).isoformat())
        self._folder = folder
        self.kill: dict[str, Any] | None = None
        self.begun: dict[Step, float] = {}
        """When each step of the last move was written down."""

    def write(self, move: Move, entry: Entry) -> None:
        super().write(move, entry)
        self.begun[entry.step] = time.time()
        if self.kill is not None and self.kill["step"] == entry.step.value:
            wanted, self.kill = self.kill, None
            threading.Timer(wanted["delay"], self._do, (wanted["who"], move)).start()

    def _do(self, who: str, move: Move) -> None:
        if who == "manager":
            os.kill(os.getpid(), signal.SIGKILL)
        site = move.source if who == "source" else move.target
        for server in servers(self._folder):
            if server.name == site:
                kill(server)


class Manager:
    def __init__(
        self,
        root: Path,
        folder: Path,
        *,
        apart: bool = False,
        fast: bool = False,
        patience: float = 10.0,
        jobs: Sequence[str] = JOBS,
    ) -> None:
        self.jobs = jobs
        self.sites_at = {server.name: server.address for server in servers(folder)}
        self.load = Load(root, self.sites_at, apart, fast)
        self.executor = SitesExecutor(os.environ, fresh=fresh)
        self.journal = Killing(root / ".headrace" / "state.db", folder)
        self.fence = SparkFence(
            self.executor,
            Ledger(root / ".headrace", fresh),
            self.sites_at,
            lambda: servers(folder),
            Checker(time.monotonic, fresh),
            FenceTimes(patience=patience),
        )
        self.ways = Ways(
            self.fence.answers, self.fence.clear, self.executor.rehearse, lambda job: list(self.sites_at)
        )
        self.sites = ExecutorSites(self.executor, self.load.units(jobs=jobs), self.ways)
        self.relocator = Relocator(
            self.sites, self.journal, time.monotonic, time.sleep, patience=Patience(300.0, 60.0)
        )

    def begin(self) -> None:
        """What an earlier life has left is ended, its moves are carried on, and every job runs."""
        self.fence.clear_all()
        self.relocator.resume()
        stuck = {move.job for move, _ in self.journal.open_moves()}
        homes = self.journal.homes()
        for job in self.jobs:
            if job not in stuck and self.sites.site_of(job) is None:
                self._start(job, homes.get(job, ""))

    def _start(self, job: str, home: str) -> None:
        order = dict.fromkeys([home, *self.sites_at]) if home else self.sites_at
        site = next(one for one in order if self.fence.answers(one))
        self.journal.settle(job, site)
        self.sites.start(job, site)

    def move(self, job: str, target: str) -> Outcome:
        source = self.sites.site_of(job) or ""
        return self.relocator.move(Move(self.journal.ask(job, source, target), job, source, target))

    def gaps(self, job: str, since: float) -> dict[str, list[float]]:
        """Seconds between two batches of the other jobs: the longest of each that was not over when this move
        began, and all that were."""
        during, before = [], []
        for other in self.jobs:
            site = self.sites.site_of(other)
            if other == job or site is None:
                continue
            ends = _commits(self.sites.state(other, site))
            pairs = [(late - early, late) for early, late in pairwise(ends)]
            during.append(max((gap for gap, end in pairs if end >= since), default=0.0))
            before += [gap for gap, end in pairs if end < since]
        return {"during": during, "before": before}

    def parts(self, outcome: Outcome) -> dict[str, float]:
        """What the pause of a move was made of, in seconds."""
        if not outcome.moved or outcome.pause is None:
            return {}
        state, begun = self.sites.state(outcome.move.job, outcome.site), self.journal.begun
        ends, stopped = _commits(state), begun[Step.STOP]
        last = max(end for end in ends if end < begun[Step.START])
        first = min(end for end in ends if end >= begun[Step.START])
        planned = [one for one in _written(state, "offsets") if begun[Step.START] <= one <= first]
        moments = {
            "before it was told to stop": (last, stopped),
            "to stop": (max(last, stopped), begun[Step.HAND_OVER]),
            "to hand over": (begun[Step.HAND_OVER], begun[Step.START]),
            "to start": (begun[Step.START], begun[Step.CONFIRM]),
            "until the first batch": (begun[Step.CONFIRM], planned[0] if planned else first),
            "for the first batch": (planned[0] if planned else first, first),
        }
        return {name: max(0.0, late - early) for name, (early, late) in moments.items()}

    def watch(self) -> list[Outcome]:
        """Jobs that were lost with their site go on at another one; moves that are stuck are tried again."""
        found = [one for one in self.relocator.resume() if isinstance(one, Outcome)]
        stuck = {move.job for move, _ in self.journal.open_moves()}
        for job in self.jobs:
            if job in stuck or self.executor.status(job) is not JobState.FAILED:
                continue
            was = self.sites.site_of(job) or ""
            others = [one for one in self.sites_at if one != was and self.fence.answers(one)]
            if others:
                move = Move(self.journal.ask(job, was, others[0]), job, was, others[0])
                with contextlib.suppress(Unsettled):
                    found.append(self.relocator.carry(move))
        return found

    def drain(self) -> list[str]:
        """Stop, and read to the end; what went wrong."""
        while self.watch() or self.journal.open_moves():
            time.sleep(_WATCH_SECONDS)
        for job in self.jobs:
            self.executor.stop(job)
        last = ExecutorSites(self.executor, self.load.units(drain=True), self.ways)
        for job in self.jobs:
            last.start(job, self.sites.site_of(job) or "")
        while any(self.executor.status(job) not in ENDED for job in self.jobs):
            time.sleep(0.1)
        seen = [self.executor.progress(job) for job in self.jobs]
        return [f"{one.job} {one.state}: {one.error}" for one in seen if one.state is not JobState.FINISHED]


def serve(manager: Manager) -> None:
    _say({"ready": True, "at": _places(manager)})
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], _WATCH_SECONDS)
        if not ready:
            for outcome in manager.watch():
                _say({"rescued": outcome.move.job, "site": outcome.site, "pause": outcome.pause})
            continue
        line = sys.stdin.readline()
        if not line:
            break
        asked = json.loads(line)
        if asked["do"] == "drain":
            _say({"drained": manager.drain()})
            break
        manager.journal.kill = asked.get("kill")
        try:
            since = time.time()
            outcome = manager.move(asked["job"], asked["target"])
            told = {"moved": outcome.moved, "site": outcome.site, "pause": outcome.pause}
            told["gaps"] = manager.gaps(asked["job"], since)
            told["parts"] = manager.parts(outcome)
            _say({**told, "reason": outcome.reason, "at": _places(manager)})
        except HeadraceError as error:
            _say({"moved": False, "error": error.render(), "at": _places(manager)})


def _commits(state: Path) -> list[float]:
    """When the last batches of a job were committed."""
    return _written(state, "commits")


def _written(state: Path, log: str) -> list[float]:
    """When the last entries of a log of Spark's were written."""
    found = []
    for path in (state / "checkpoint" / log).iterdir():
        # Spark removes old ones meanwhile.
        with contextlib.suppress(FileNotFoundError):
            found += [path.stat().st_mtime] if path.name.isdecimal() else []
    return sorted(found)[-_LAST_BATCHES:]


def _places(manager: Manager) -> dict[str, str | None]:
    return {job: manager.sites.site_of(job) for job in manager.jobs}


def _say(data: object) -> None:
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    root_, folder_, patience_, apart_, jobs_ = sys.argv[1:]
    made = Manager(
        Path(root_),
        Path(folder_),
        apart=apart_ == "apart",
        patience=float(patience_),
        jobs=jobs_.split(","),
    )
    made.begin()
    serve(made)
    made.executor.close()
