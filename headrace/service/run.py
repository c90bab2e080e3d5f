"""Run a project: start its jobs and trees, watch them, take changes that commands ask for, stop them.

Without `drain` all of them run until `request_stop`. With it, at most `planner.parallel` run at once, the
next one starting as one ends, and changes are taken at the beginning only: a tree that closes its streams
has nothing left for a new member. A job or tree that fails ends alone; the others go on, and the outcome
names its queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.catalog.model import Project
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import LogicalPlan
from headrace.plan.placed import Job, PlacedPlan, TreeJob
from headrace.runtime.executor import Executor, JobState, Progress
from headrace.service.compared import SiteComparison
from headrace.service.deployment import Planner
from headrace.service.fleet import Fleet, Start, Unit, parts, queries, units_of
from headrace.service.keeper import Keeper, OnPlan
from headrace.service.layout import FILE_SINKS
from headrace.service.moments import Clock
from headrace.service.rechoosing import Rules
from headrace.service.switching import Switching
from headrace.service.taking import Taking
from headrace.state.store import Store

__all__ = ["FILE_SINKS", "JobState", "Options", "Outcome", "Progress", "Runner", "Snapshot", "Watched"]

POLL_SECONDS = 0.5
_HURRY_SECONDS = 0.1
"""Between two looks while somebody waits for a change."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One query as the watcher sees it. `progress` None: it waits for its turn."""

    job: str
    site: str
    progress: Progress | None
    tree: str | None = None
    """The tree or split job that answers it; None: a job of its own."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queries at one moment."""

    jobs: tuple[Watched, ...]
    seconds: float
    """Since the run began."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    last: Snapshot
    failures: tuple[tuple[str, str], ...]
    """(query, reason)"""
    interrupted: bool
    drained: bool
    refused: int = 0
    """How many of the failures are queries that cannot be run as the user asked."""
    notes: tuple[str, ...] = ()
    costs: tuple[SiteComparison, ...] = ()
    """What each site should have taken, and took."""

    @property
    def exit_code(self) -> int:
        """0: all fine. 1: a job failed. 2: jobs were refused, and no other failed. 130: a drain was
        stopped before the input was exhausted."""
        if self.failures:
            return 2 if len(self.failures) == self.refused else 1
        return 130 if self.interrupted and self.drained else 0


@dataclass(frozen=True, slots=True)
class Options:
    drain: bool = False
    fresh: bool = False
    master: str | None = None
    only: tuple[str, ...] = ()
    """The queries to run; none named: all."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who is told what happens, and who makes data and decides."""

    watch: Callable[[Snapshot], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None
    on_plan: OnPlan = lambda project, placed: None
    planner: Planner = field(default_factory=Planner)
    rules: Rules = field(default_factory=Rules)
    """When splits are chosen again."""


class Runner:
    """One run, from `prepare` to the end of `run`. The run lock must be held."""

    def __init__(
        self,
        project: Project,
        store: Store,
        clock: Clock,
        sleep: Callable[[float], None],
        options: Options,
        hooks: Hooks | None = None,
    ) -> None:
        self._hooks = hooks or Hooks()
        self._store, self._clock, self._sleep, self._options = store, clock, sleep, options
        self._keeper = Keeper(project, store, clock, self._hooks.planner, self._hooks.on_plan)
        self._fleet: Fleet | None = None
        self._placed = PlacedPlan(())
        self._notes: list[str] = []
        self._stop = False
        self._began = clock()

    def request_stop(self) -> None:
        """Ask for a clean end; may be called from a signal handler."""
        self._stop = True

    def prepare(self) -> PlacedPlan:
        """What will run, checked and written down; nothing is started. Raises UserError."""
        options = self._options
        wanted = self._keeper.prepare(options.only, fresh=options.fresh, drain=options.drain)
        self._placed = wanted.placed
        for note in wanted.notes:
            self._note(note)
        return wanted.placed

    def run(self, executor: Executor) -> Outcome:
        """Start, watch, stop. The executor is closed whatever happens."""
        self._began = self._clock()
        how = Start(self._options.drain, self._options.master)
        fleet = Fleet(executor, self._store, self._clock, how, self._show)
        self._fleet = fleet
        taking = Taking(self._keeper, fleet, self._store, self._clock, self._note)
        switching = Switching(self._keeper, fleet, self._clock, self._note, self._hooks.rules)
        for unit in switching.prepare(units_of(self._placed, self._keeper.project.queries)):
            fleet.enlist(unit)
        try:
            self._loop(fleet, taking, switching)
            taking.settle()
            interrupted = self._stop and fleet.unfinished()
            fleet.stop(fleet.alive())
        finally:
            executor.close()
        last = self._show()
        failures = tuple((q, p.error) for q, p in fleet.seen.items() if p.state is JobState.FAILED)
        drained, refused = self._options.drain, len(fleet.refused)
        return Outcome(last, failures, interrupted, drained, refused, tuple(self._notes))

    def _loop(self, fleet: Fleet, taking: Taking, switching: Switching) -> None:
        while not self._stop and (fleet.unfinished() or switching.busy):
            self._start_some(fleet, taking)
            if not (self._options.drain or switching.busy):
                taking.take()
            fleet.observe()
            switching.look(taking.start, anew=not self._options.drain)
            taking.settle()
            self._show()
            if (fleet.unfinished() or switching.busy) and not self._stop:
                self._sleep(_HURRY_SECONDS if taking.busy else POLL_SECONDS)

    def _start_some(self, fleet: Fleet, taking: Taking) -> None:
        limit = self._keeper.project.planner.parallel if self._options.drain else len(fleet.units)
        while fleet.waiting and len(fleet.alive()) < limit and not self._stop:
            taking.start(fleet.units[fleet.waiting.pop(0)])

    def snapshot(self) -> Snapshot:
        """A row for each query, in the project's order."""
        fleet = self._fleet
        if fleet is None:
            return Snapshot((), 0.0)
        names = {name for unit in fleet.units.values() for name in queries(unit)}
        order = [name for name in self._keeper.project.queries if name in names]
        units = [(name, fleet.unit_of(name)) for name in order]
        jobs = tuple(self._watched(fleet, name, unit) for name, unit in units if unit is not None)
        return Snapshot(jobs, (self._clock() - self._began).total_seconds())

    @staticmethod
    def _watched(fleet: Fleet, name: str, unit: Unit) -> Watched:
        together = None if isinstance(unit, Job) else unit.id
        return Watched(name, unit.site, fleet.seen.get(name), together)

    def deployed(self) -> PlacedPlan:
        """What runs now, with the queries that came and without those that went."""
        units = [] if self._fleet is None else list(self._fleet.units.values())
        jobs = tuple(unit for unit in units if isinstance(unit, Job))
        trees = tuple(unit for unit in units if isinstance(unit, TreeJob))
        return PlacedPlan(jobs, trees, federated=tuple(u for u in units if isinstance(u, FederatedJob)))

    def plan_of(self, query: str) -> LogicalPlan:
        """The plan of a query that runs, added ones too."""
        units = [] if self._fleet is None else list(self._fleet.units.values())
        found = (part.plan for unit in units for part in parts(unit) if part.query == query)
        return next(found, None) or self._placed.plan_of(query)

    def _show(self) -> Snapshot:
        snapshot = self.snapshot()
        self._hooks.watch(snapshot)
        return snapshot

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._hooks.note(text)
