"""A service on the fake engine over sites that are as full as what runs there makes them; no real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from headrace.catalog.model import Project, Site
from headrace.runtime.executor import JobState, Progress
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.sites import Ways
from headrace.service.fleet import Fleet
from headrace.service.gathering import Gathering
from headrace.service.layout import state_file
from headrace.service.moving import moves_of, settle_open
from headrace.service.probing import Seen, SiteUse
from headrace.service.rebalancing import Mode, Rebalancing, how_of
from headrace.service.run import Hooks, Options, Outcome, Runner
from headrace.state.moves import MoveRecord, Moves
from headrace.state.store import Store
from tests.unit.service import sample

SITES = ("east", "west", "south")
EVERY = 10.0
_POLL = 0.5


class Killed(BaseException):
    """Nobody catches it, as nobody catches kill -9."""


class Engine(FakeExecutor):
    """Each job takes so many cores: that is how long its batches are, of which there is one a round."""

    def __init__(self, cores: Mapping[str, float]) -> None:
        super().__init__()
        self.cores = cores

    def progress(self, job_id: str) -> Progress:
        seen = super().progress(job_id)
        return replace(seen, batch_millis=round(1000 * _POLL * self.cores.get(job_id, 0.0)))

    def site(self, job: str) -> str:
        return self.context(job).endpoint.removeprefix("sc://").removesuffix(":1")

    def running(self) -> dict[str, str]:
        """Job -> site, of those that run."""
        ended = (JobState.STOPPED, JobState.FAILED, JobState.FINISHED)
        return {job: self.site(job) for job in self._jobs if self.status(job) not in ended}


def project(root: Path, jobs: Collection[str], cpu: float = 1.0, at: str = "east") -> Project:
    made = sample.project(root, tuple(jobs))
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1", cpu=cpu) for name in SITES}
    queries = {name: query.model_copy(update={"site": at}) for name, query in made.queries.items()}
    streams = {name: one.model_copy(update={"site": at}) for name, one in made.streams.items()}
    state_file(made).parent.mkdir(parents=True, exist_ok=True)
    return made.model_copy(update={"sites": sites, "queries": queries, "streams": streams})


@dataclass(slots=True)
class World:
    project: Project
    cores: dict[str, float]
    noise: float = 0.0
    policy: str = "balance"
    model: str = "cpu"
    mode: Mode = "auto"
    clock: sample.Clock = field(default_factory=sample.Clock)
    random: Random = field(default_factory=lambda: Random(7))
    notes: list[str] = field(default_factory=list)
    plot: dict[int, Callable[[], object]] = field(default_factory=dict)
    """What happens at which round."""
    round: int = 0
    engine: Engine = field(default_factory=lambda: Engine({}))
    kill_at_step: int | None = None
    """Killed when this entry is about to be written into the journal of moves."""
    steps: int = 0
    ran: dict[str, str] = field(default_factory=dict)
    """Job -> site, of those that ran when the service was told to stop."""

    def probe(self, project: Project) -> Seen:
        """A site gives no more cores than it has."""
        uses = {}
        for name, site in project.sites.items():
            there = sum(self.cores[job] for job, at in self.engine.running().items() if at == name)
            noisy = there * (1 + self.noise * (2 * self.random.random() - 1))
            uses[name] = SiteUse(min(site.cpu, noisy), 1e8)
        return Seen(uses)

    @property
    def ways(self) -> Ways:
        return Ways(lambda site: True, lambda job, site: None, others=lambda job: SITES)

    def run(self, rounds: int) -> Outcome:
        """A service for so many rounds, on a new engine; what an earlier one has left is settled first."""
        self.engine, self.round = Engine(self.cores), 0
        with Store(state_file(self.project)) as store, moves_of(self.project) as moves:
            moves.now = self._moment
            settle_open(self.project, moves, self.ways)
            gathering = Gathering(self.probe, self.notes.append, self._seconds, self.clock)
            how = how_of(self.policy, self.model, patience=EVERY)
            rebalancing = Rebalancing(gathering, moves, how, self.mode, EVERY, self.notes.append)
            journalled = moves.write

            def write(*args: object) -> None:
                self.steps += 1
                if self.steps == self.kill_at_step:
                    raise Killed
                journalled(*args)  # type: ignore[arg-type]

            moves.write = write  # type: ignore[method-assign, assignment]
            try:
                return self._runner(store, moves, rebalancing, rounds).run(self.engine, self.ways)
            finally:
                gathering.close()

    def _runner(self, store: Store, moves: Moves, rebalancing: Rebalancing, rounds: int) -> Runner:
        def each_round(project: Project, fleet: Fleet) -> None:
            rebalancing.look(project, fleet)
            if moves.any_asked():
                # Moves are prepared by threads, which need real time.
                time.sleep(0.001)
            self.round += 1
            self.plot.get(self.round, lambda: None)()
            if self.round >= rounds:
                self.ran = self.engine.running()
                runner.request_stop()

        hooks = Hooks(
            note=self.notes.append,
            planner=sample.only_jobs(),
            moves=moves,
            seconds=self._seconds,
            each_round=each_round,
        )
        options = Options(serve=True)
        runner = Runner(self.project, store, self.clock, self.clock.sleep, options, hooks)
        runner.prepare()
        return runner

    def _seconds(self) -> float:
        return self.clock().timestamp()

    def _moment(self) -> str:
        return self.clock().isoformat(timespec="milliseconds")

    def moves(self) -> list[MoveRecord]:
        """The oldest first."""
        with moves_of(self.project) as moves:
            return list(reversed(moves.latest(1000)))

    def homes(self) -> dict[str, str]:
        with moves_of(self.project) as moves:
            return {name: moves.homes().get(name, query.site) for name, query in self.project.queries.items()}

    def loads(self) -> dict[str, float]:
        """What each site is truly asked for."""
        at = self.homes()
        return {site: sum(self.cores[job] for job in at if at[job] == site) for site in SITES}
