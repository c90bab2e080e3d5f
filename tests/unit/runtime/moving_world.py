"""A small world for moves: sites that run copies of jobs by themselves, die, or are cut off; a manager that
is one of many, and crashes; a journal that survives it. Every call is a point at which something may happen.

Copies commit batches into real folders, and what they give is written down: a batch that is given twice, left
out, or run by two copies at once is seen.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.catalog.model import Sink
from headrace.errors import EngineError
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.relocate import Entry, Move, Outcome, Patience, Relocator
from headrace.runtime.sites import ExecutorSites, Unit, Ways
from headrace.runtime.spark.checkpoint import last_committed
from tests.spark.plans import SHAPES

SITES = ("a", "b", "c")


class ManagerCrash(BaseException):
    """kill -9 of the manager: nothing of ours may catch it."""


@dataclass(slots=True)
class Place:
    """One site. A copy that runs there goes on whatever happens to the manager."""

    alive: bool = True
    died: bool = False
    """At some time; it may be back."""
    reachable: bool = True
    engine: FakeExecutor = field(default_factory=FakeExecutor)
    running: set[str] = field(default_factory=set)

    def die(self) -> None:
        self.alive, self.died, self.engine, self.running = False, True, FakeExecutor(), set()


@dataclass(frozen=True, slots=True)
class Event:
    """What happens at the n-th point: `crash`, `kill S`, `cut S`, `mend S`, `lose` (the reply of a start)."""

    point: int
    what: str


@dataclass(slots=True)
class World:
    root: Path
    jobs: tuple[str, ...] = ("q",)
    shared: bool = True
    """All sites see one storage."""
    fast: bool = False
    """Sites keep checkpoints in storages of their own."""
    proven: bool = True
    """A cut-off site can be killed; otherwise its lease has to be waited for."""
    events: list[Event] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=lambda: {name: Place() for name in SITES})
    given: dict[str, list[int]] = field(default_factory=dict)
    journal: list[tuple[Move, Entry]] = field(default_factory=list)
    ended: list[Outcome] = field(default_factory=list)
    points: int = 0
    lost: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # -- points -------------------------------------------------------------------------------------

    def point(self) -> None:
        with self._lock:
            self.tick()
            now = [event for event in self.events if event.point == self.points]
            self.points += 1
            for event in now:
                self._happen(event.what)

    def _happen(self, what: str) -> None:
        verb, _, site = what.partition(" ")
        match verb:
            case "kill":
                self.places[site].die()
            case "cut":
                self.places[site].reachable = False
            case "mend":
                self.places[site].reachable = True
                self.places[site].alive = True
            case "lose":
                self.lost = True
            case _:
                raise ManagerCrash

    def mend_all(self) -> None:
        for site in self.places:
            self._happen(f"mend {site}")

    # -- the storage and the copies -------------------------------------------------------------------

    def storage(self, site: str) -> Path | None:
        """Where the site has checkpoints. The last one has them where the jobs have all else."""
        return self.root / f"fast-{site}" if self.fast and site != SITES[-1] else None

    def state(self, job: str, site: str) -> Path:
        return self.root / ("storage" if self.shared else f"storage-{site}") / job

    def tick(self) -> None:
        """Every copy commits a batch."""
        for job in self.jobs:
            copies = [site for site, place in self.places.items() if job in place.running]
            assert len(copies) <= 1, f"{job} runs at {copies}"
            for site in copies:
                self._batch(job, site)

    def _batch(self, job: str, site: str) -> None:
        state = self.state(job, site)
        number = last_committed(state / "checkpoint") + 1
        (state / "checkpoint" / "commits").mkdir(parents=True, exist_ok=True)
        if not number:
            (state / "job.json").write_text(json.dumps({"plan": "p"}), encoding="utf-8")
        (state / "checkpoint" / "commits" / str(number)).write_text("v1", encoding="utf-8")
        self.given.setdefault(job, []).append(number)

    def copies(self, job: str) -> list[str]:
        return [site for site, place in self.places.items() if job in place.running]

    # -- the journal ----------------------------------------------------------------------------------

    def write(self, move: Move, entry: Entry) -> None:
        self.point()
        self.journal.append((move, entry))
        self.point()

    def end(self, outcome: Outcome) -> None:
        self.point()
        self.ended.append(outcome)
        self.point()

    def open_moves(self) -> Sequence[tuple[Move, Sequence[Entry]]]:
        over = {outcome.move for outcome in self.ended}
        moves = dict.fromkeys(move for move, _ in self.journal if move not in over)
        return [(move, [e for other, e in self.journal if other == move]) for move in moves]


class Remote:
    """Implements `runtime.executor.Executor` for one manager: it knows the jobs that it has started."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._at: dict[str, str] = {}

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        self._begin(job.id, context.endpoint, lambda engine: engine.start(job, context, drain=drain))

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        raise NotImplementedError

    def start_federated(self, *_: object, **__: object) -> None:
        raise NotImplementedError

    def start_channel(self, *_: object, **__: object) -> None:
        raise NotImplementedError

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        raise NotImplementedError

    def seen_until(self, job_id: str) -> int | None:
        raise NotImplementedError

    def _begin(self, job: str, site: str, start: object) -> None:
        world, place = self._world, self._world.places[site]
        world.point()
        self._reach(site)
        assert not world.copies(job), f"{job} is started at {site} and runs at {world.copies(job)}"
        assert callable(start)
        start(place.engine)
        place.running.add(job)
        self._at[job] = site
        world.point()
        if world.lost:
            world.lost = False
            raise EngineError("the reply was lost")

    def _reach(self, site: str) -> Place:
        place = self._world.places[site]
        if not (place.alive and place.reachable):
            raise EngineError(f"{site} does not answer")
        return place

    def stop(self, job_id: str) -> None:
        self._world.point()
        place = self._reach(self._at[job_id])
        if job_id in place.running:
            place.engine.stop(job_id)
            place.running.discard(job_id)
        self._world.point()

    def status(self, job_id: str) -> JobState:
        place = self._world.places[self._at[job_id]]
        if not (place.alive and place.reachable):
            return JobState.FAILED
        return JobState.RUNNING if job_id in place.running else JobState.STOPPED

    def progress(self, job_id: str) -> Progress:
        self._world.point()
        state = self.status(job_id)
        return Progress(job_id, state, batch=0 if state is JobState.RUNNING else None)

    def close(self) -> None:
        raise NotImplementedError


class Manager:
    """One life of a manager over a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        ways = Ways(self.answers, self.clear, self.prepare, lambda job: SITES)
        self._executor = Remote(world)
        units = {job: self._unit(job) for job in world.jobs}
        self.sites = ExecutorSites(self._executor, units, ways)
        self._now = 0.0
        self.relocator = Relocator(
            self.sites, world, lambda: self._now, self._sleep, patience=Patience(5.0, 2.0, 1.0)
        )

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    def _unit(self, job: str) -> Unit:
        plan = SHAPES["stateless"]
        return Unit(Job(job, job, "a", plan), lambda site: self._context(job, site))

    def _context(self, job: str, site: str) -> JobContext:
        state = self._world.state(job, site)
        context = JobContext({}, {}, Sink(), self._world.root, state, state / "results", site)
        return replace(context, storage=self._world.storage(site))

    def answers(self, site: str) -> bool:
        self._world.point()
        place = self._world.places[site]
        return place.alive and place.reachable

    def prepare(self, unit: Unit, site: str) -> None:
        self._world.point()
        if not self.answers(site):
            raise EngineError(f"{site} does not answer")

    def clear(self, job: str, site: str) -> None:
        self._world.point()
        place = self._world.places[site]
        if place.alive and not place.reachable:
            if not self._world.proven:
                raise EngineError(f"{site} may still run {job}")
            place.die()
        place.running.discard(job)
        if job in place.engine._jobs:
            place.engine.stop(job)
        self._world.point()
