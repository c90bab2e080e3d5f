"""Two regions of two sites each, on an engine that keeps its state on disk: sites are lost and come back,
queries are added, jobs are rebalanced, and the process that runs it all is killed at any step.

What happens next waits for what was to happen, not for rounds: sites are asked by real threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from headrace.catalog.model import Project, Query, Sink, SinkKind, Site
from headrace.errors import SiteSilent
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.sites import Ways
from headrace.service.fleet import Fleet
from headrace.service.gathering import Gathering
from headrace.service.layout import state_file
from headrace.service.moving import moves_of, settle_asked, settle_open
from headrace.service.probing import Seen
from headrace.service.rebalancing import Rebalancing, how_of
from headrace.service.run import Hooks, Options, Runner
from headrace.state.moves import Moves
from headrace.state.records import AddedQuery
from headrace.state.store import Store
from tests.unit.service.disk_engine import DiskEngine, Ground, Killed
from tests.unit.service.sample import Clock, project, weaver

SITES = {"n1": "north", "n2": "north", "s1": "south", "s2": "south"}
EVERY = 10.0
_POLL = 0.5
_MOST_ROUNDS = 20_000
JSON = Sink(kind=SinkKind.JSON)

Plot = list[tuple[Callable[[], bool], Callable[[], object]]]
"""When what happens: the first of them waits for its condition."""


def free(name: str, sql: str) -> Query:
    return Query(name=name, sql=sql, sink=JSON, site="n1", free=True)


class SiteEngine(DiskEngine):
    """Each job takes so many cores; a site that is down ends its jobs, and starts none."""

    def __init__(self, world: Regions) -> None:
        super().__init__(world.death)
        self.down, self.cores, self.silent = world.down, world.cores, world.silent
        self.at: dict[str, str] = {}

    def _start(self, unit: str, own: JobContext, members: Mapping[str, JobContext], *, drain: bool) -> None:
        site = own.endpoint.removeprefix("sc://").removesuffix(":1")
        if site in self.down:
            self.silent.append((unit, site))
            raise SiteSilent(f"no server answers at {site}")
        super()._start(unit, own, members, drain=drain)
        self.at[unit] = site

    def progress(self, job_id: str) -> Progress:
        for unit, site in self.at.items():
            if site in self.down and self._units[unit].state is JobState.RUNNING:
                self._units[unit].state = JobState.FAILED
        millis = round(1000 * _POLL * self.cores.get(job_id, 0.01))
        return replace(super().progress(job_id), batch_millis=millis)

    def running(self) -> dict[str, str]:
        """Query -> site, of those that run; a query that runs twice is found at its start."""
        return {
            query: self.at[unit]
            for unit, one in self._units.items()
            if one.state is JobState.RUNNING
            for query in one.members
        }


@dataclass
class Regions(Ground):
    cores: dict[str, float] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    pattern: str = "ours"
    policy: str = "balance"
    told: list[str] = field(default_factory=list)
    """Notes of all runs."""
    clock: Clock = field(default_factory=Clock)
    here: SiteEngine | None = None
    silent: list[tuple[str, str]] = field(default_factory=list)
    """Units that were to be started at a site that is down."""

    @property
    def project(self) -> Project:
        made = project(self.root)
        sites = {n: Site(name=n, endpoint=f"sc://{n}:1", cpu=1.0, region=r) for n, r in SITES.items()}
        streams = {name: one.model_copy(update={"site": "n1"}) for name, one in made.streams.items()}
        planner = made.planner.model_copy(update={"distribution": self.pattern})
        return made.model_copy(
            update={"queries": self.queries, "sites": sites, "streams": streams, "planner": planner}
        )

    @property
    def ways(self) -> Ways:
        return Ways(
            lambda site: site not in self.down, lambda job, site: None, others=lambda job: tuple(SITES)
        )

    def live(self, plot: Plot, kill_at: int | None = None) -> int:
        """Until the plot is over, with a kill on the way; the number of steps there were before it."""
        self.death.at, self.death.steps, self.death.dead = kill_at, [], False
        with suppress(Killed):
            self._live(plot)
        steps, died = len(self.death.steps), self.death.dead
        self.death.at, self.death.dead = None, False
        if died:
            self._live(plot)
        assert not plot
        return steps

    def _live(self, plot: Plot) -> None:
        with Store(state_file(self.project)) as store, moves_of(self.project) as moves:
            moves.now = lambda: self.clock().isoformat(timespec="milliseconds")
            settle_open(self.project, moves, self.ways)
            settle_asked(self.project, moves, self.ways)
            gathering = Gathering(lambda _: Seen({}), self.told.append, self._seconds, self.clock)
            how = how_of(self.policy, "cpu", patience=EVERY)
            rebalancing = Rebalancing(gathering, moves, how, "auto", EVERY, self.told.append)
            self.here = SiteEngine(self)
            try:
                self._runner(store, moves, rebalancing, plot).run(self.here, self.ways)
            finally:
                gathering.close()

    def _runner(self, store: Store, moves: Moves, rebalancing: Rebalancing, plot: Plot) -> Runner:
        rounds = 0

        def each_round(project: Project, fleet: Fleet) -> None:
            nonlocal rounds
            rebalancing.look(project, fleet)
            time.sleep(0.0003)
            rounds += 1
            assert rounds < _MOST_ROUNDS, (self.told, self.running(), len(plot))
            if plot and plot[0][0]():
                plot.pop(0)[1]()
            if not plot:
                runner.request_stop()

        hooks = Hooks(
            note=self.told.append,
            planner=weaver(),
            moves=moves,
            seconds=self._seconds,
            each_round=each_round,
        )
        runner = Runner(self.project, store, self.clock, self.clock.sleep, Options(serve=True), hooks)
        runner.prepare()
        return runner

    def _seconds(self) -> float:
        return self.clock().timestamp()

    # -- what there is to see ---------------------------------------------------------------------------

    def running(self) -> dict[str, str]:
        return {} if self.here is None else self.here.running()

    def regions(self) -> dict[str, str]:
        return {query: SITES[site] for query, site in self.running().items()}

    def all_run(self, *more: str, without: str | None = None) -> Callable[[], bool]:
        """Once all queries run, and none at this site."""

        def so() -> bool:
            names = {*self.queries, *more}
            return set(self.running()) == names and without not in self.running().values()

        return so

    def after(self, seconds: float) -> Callable[[], bool]:
        """Once so much time has passed since it was first asked."""
        first: list[float] = []

        def over() -> bool:
            first[:] = first or [self._seconds()]
            return self._seconds() - first[0] >= seconds

        return over

    def add(self, name: str, sql: str = "5", *, from_start: bool = False) -> int:
        with self.store() as store:
            return store.ask_add(AddedQuery(name, sql, "json", None, ""), from_start, "now")
