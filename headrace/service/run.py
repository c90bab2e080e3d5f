"""Run a project: start its jobs and trees, watch them, take changes that commands ask for, stop them.

Without `drain` all of them run until `request_stop`. With it, at most `planner.parallel` run at once, the
next one starting as one ends, and changes are taken at the beginning only: a tree that closes its streams
has nothing left for a new member. A job or tree that fails ends alone; the others go on, and the outcome
names its queries. Where only the engine was at fault, for a moment, it is started again a few times first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import LogicalPlan
from headrace.plan.placed import Job, PlacedPlan, TreeJob
from headrace.runtime.executor import Executor, JobState, Progress
from headrace.runtime.sites import Ways
from headrace.runtime.spark.passing import hinted
from headrace.service.compared import SiteComparison
from headrace.service.deployment import Planner
from headrace.service.feeding import Feeding
from headrace.service.fleet import Fleet, Start, Unit, parts, units_of
from headrace.service.keeper import Keeper, Lives, OnPlan
from headrace.service.layout import FILE_SINKS
from headrace.service.moments import Clock
from headrace.service.moving_run import Moving
from headrace.service.rechoosing import Rules
from headrace.service.restarting import RUN, SERVE, Restarting
from headrace.service.sitekeeping import Sitekeeping
from headrace.service.spread_records import Spread
from headrace.service.switching import Switching
from headrace.service.taking import Taking
from headrace.service.warming import Warming
from headrace.state.moves import Moves
from headrace.state.store import Store

__all__ = ["FILE_SINKS", "JobState", "Options", "Outcome", "Progress", "Runner", "Snapshot", "Watched"]

POLL_SECONDS = 0.5
_NOTES = 1000
"""That many are kept for the outcome: a service may run for months."""
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
    """(query, or job that makes a stream for queries; reason)"""
    interrupted: bool
    drained: bool
    refused: int = 0
    """How many of the failures are of what cannot be run as the user asked."""
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
    serve: bool = False
    """Go on until told to stop, whatever fails: failed jobs are started again."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who is told what happens, and who makes data and decides."""

    watch: Callable[[Snapshot], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None
    on_plan: OnPlan = lambda project, placed: None
    planner: Planner = field(default_factory=Planner)
    rules: Rules = field(default_factory=Rules)
    """When splits are chosen again."""
    moves: Moves | None = None
    """Where jobs live, and what commands ask to be moved."""
    seconds: Callable[[], float] = time.monotonic
    each_round: Callable[[Project, Fleet], None] = lambda project, fleet: None
    """Called once a round, with what runs: statistics, and what follows from them."""


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
        moves = self._hooks.moves
        lives = Lives() if moves is None else Lives(moves.homes, moves.forget, moves.settle)
        self._keeper = Keeper(project, store, clock, self._hooks.planner, self._hooks.on_plan, lives)
        self._fleet: Fleet | None = None
        self._placed = PlacedPlan(())
        self._spread = Spread()
        self._notes: deque[str] = deque(maxlen=_NOTES)
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
        self._spread = Spread(wanted.channels, wanted.placed)
        for note in wanted.notes:
            self._note(note)
        return wanted.placed

    @property
    def channels(self) -> ChannelPlan:
        """The jobs and channels of what is prepared."""
        return self._spread.plan

    def run(self, executor: Executor, ways: Ways | None = None) -> Outcome:
        """Start, watch, stop. The executor is closed whatever happens. Without `ways` nothing is moved."""
        self._began = self._clock()
        how = Start(self._options.drain, self._options.master)
        fleet = Fleet(executor, self._store, self._clock, how, self._show)
        self._fleet = fleet
        taking = Taking(self._keeper, fleet, self._store, self._clock, self._note)
        switching = Switching(self._keeper, fleet, self._clock, self._note, self._hooks.rules)
        for unit in switching.prepare(self._units()):
            fleet.enlist(unit)
        fleet.feed(self._keeper.project, self._spread)
        feeding = Feeding(
            fleet, lambda: self._keeper.project, self._hooks.seconds, self._note, self._options.drain
        )
        feeding.reopen()
        keeping = self._sitekeeping(fleet, ways)
        if keeping is not None:
            taking.lost, taking.held = keeping.lost, keeping.moving.held
        restarting = self._restarting(fleet, taking)
        if ways is not None:
            restarting.clear = ways.clear
        try:
            self._loop(fleet, taking, switching, keeping, restarting, feeding)
            taking.settle()
            interrupted = self._stop and fleet.unfinished()
            fleet.stop(fleet.alive())
            feeding.tidy()
        finally:
            if keeping is not None:
                keeping.close()
            executor.close()
        last = self._show()
        failed = [(q, p.error) for q, p in fleet.seen.items() if p.state is JobState.FAILED]
        failures = tuple((name, hinted(error)) for name, error in (*failed, *feeding.failures()))
        drained, refused = self._options.drain, len(fleet.refused & {name for name, _ in failures})
        return Outcome(last, failures, interrupted, drained, refused, tuple(self._notes))

    def _restarting(self, fleet: Fleet, taking: Taking) -> Restarting:
        """In a run that ends, a job that is started again waits until one of those that run is done: too many
        may run already."""
        serve, seconds = self._options.serve, self._hooks.seconds
        if serve:
            return Restarting(fleet, taking.start, seconds, self._note, rule=SERVE)
        return Restarting(fleet, fleet.again, seconds, self._note, rule=RUN)

    def _sitekeeping(self, fleet: Fleet, ways: Ways | None) -> Sitekeeping | None:
        moves, hooks = self._hooks.moves, self._hooks
        if moves is None or ways is None:
            return None
        return Sitekeeping(
            Moving(fleet, lambda: self._keeper.project, moves, ways, self._note), hooks.seconds
        )

    def _loop(
        self,
        fleet: Fleet,
        taking: Taking,
        switching: Switching,
        keeping: Sitekeeping | None,
        restarting: Restarting,
        feeding: Feeding,
    ) -> None:
        serve = self._options.serve

        def going() -> bool:
            busy = serve or fleet.unfinished() or switching.busy or restarting.busy
            return (busy or (keeping is not None and keeping.busy)) and not self._stop

        def own_fault(unit: str) -> bool:
            return keeping is None or keeping.is_own_fault(unit)

        warming = Warming(keeping.moving, self._hooks.seconds, keeping.lost) if serve and keeping else None
        if keeping is not None and warming is not None:
            keeping.moving.warmth = warming
        while going():
            self._start_some(fleet, taking, feeding)
            if not (self._options.drain or switching.busy):
                taking.take()
            fleet.observe()
            switching.look(taking.start, anew=not self._options.drain)
            taking.settle()
            if keeping is None:
                self._refuse_moves("the run that is on has one Spark for all sites (--master)")
            else:
                keeping.look(asked=not (self._options.drain or taking.busy))
            if self._options.drain:
                self._refuse_moves("the run that is on drains its input and moves nothing")
            if warming is not None:
                warming.look()
            feeding.look(lambda unit: own_fault(unit) and not (serve or restarting.may_again(unit)))
            restarting.look(own_fault)
            self._hooks.each_round(self._keeper.project, fleet)
            self._show()
            if going():
                self._sleep(_HURRY_SECONDS if taking.busy else POLL_SECONDS)
        if warming is not None:
            warming.close()

    def _refuse_moves(self, reason: str) -> None:
        moves = self._hooks.moves
        if moves is not None and moves.any_asked():
            for record in moves.asked():
                moves.refuse(record.id, reason)

    def _units(self) -> list[Unit]:
        return units_of(self._placed, self._keeper.project.queries, self._spread.plan)

    def _start_some(self, fleet: Fleet, taking: Taking, feeding: Feeding) -> None:
        limit = self._keeper.project.planner.parallel if self._options.drain else len(fleet.units)
        while not self._stop and (unit := feeding.next_turn(limit)) is not None:
            fleet.waiting.remove(unit)
            taking.start(fleet.units[unit])

    def snapshot(self) -> Snapshot:
        """A row for each query, in the project's order."""
        fleet = self._fleet
        if fleet is None:
            return Snapshot((), 0.0)
        places = fleet.places()
        order = [name for name in self._keeper.project.queries if name in places]
        jobs = tuple(self._watched(fleet, name, places[name]) for name in order)
        return Snapshot(jobs, (self._clock() - self._began).total_seconds())

    @staticmethod
    def _watched(fleet: Fleet, name: str, unit: Unit) -> Watched:
        together = None if isinstance(unit, Job | ChannelJob) else unit.id
        return Watched(name, unit.site, fleet.seen.get(name), together)

    def deployed(self) -> PlacedPlan:
        """What runs now, with the queries that came and without those that went; every query whole."""
        units = [] if self._fleet is None else list(map(self._whole, self._fleet.units.values()))
        jobs = tuple(unit for unit in units if isinstance(unit, Job))
        trees = tuple(unit for unit in units if isinstance(unit, TreeJob))
        return PlacedPlan(jobs, trees, federated=tuple(u for u in units if isinstance(u, FederatedJob)))

    def _whole(self, unit: Unit) -> Unit:
        """A unit that is spread as it would be if it were not; what makes streams for it stays as it is."""
        spread = self._fleet.spread if self._fleet is not None else Spread()
        if isinstance(unit, ChannelJob) and unit.query is not None:
            return replace(spread.placed.job(unit.id), site=unit.site)
        if isinstance(unit, TreeJob) and spread.is_fed(unit.id):
            whole = next(tree for tree in spread.placed.trees if tree.id == unit.id)
            return replace(whole, site=unit.site)
        return unit

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
