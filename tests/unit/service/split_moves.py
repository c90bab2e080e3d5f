"""A project with one split job and three sites, a run of it that can be killed at any step, and what goes on
at the sites meanwhile: a copy that a killed run has left works on there until the fence has ended it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Project
from headrace.errors import EngineError
from headrace.plan.federated import FederatedJob
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.sites import Ways
from headrace.service import keeper, moving_run, sitekeeping
from headrace.service.layout import results_folder, state_file
from headrace.service.moving import moves_of, settle_asked, settle_open
from headrace.service.rechoosing import Rules
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.state.file import StateFile
from headrace.state.moves import Moves
from headrace.state.store import Store
from tests.unit.service.disk_engine import Death, Killed
from tests.unit.service.federated_sample import TOP, SplitEngine, write
from tests.unit.service.sample import Clock

SITES = ("east", "west", "south")
REST = "sites:\n" + "".join(f'  {name}: {{endpoint: "sc://{name}:1"}}\n' for name in SITES)
RULES = Rules(every=0.5, looks=2, span=2.0, stale=60.0)
_TRANSACTION, _CLEAR = StateFile._transaction, keeper.Keeper._clear


class Inline:
    """Stands for a pool of threads: what is submitted is done at once, so that steps have one order."""

    def __init__(self, *_: object) -> None:
        return None

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done

    def close(self) -> None:
        return None


class SiteEngine(SplitEngine):
    """Knows where its jobs run. `world` outlives the process of the run."""

    def __init__(self, world: World, rate: Callable[[int], float]) -> None:
        super().__init__(world.death, rate)
        self.world = world
        self.at: dict[str, str] = {}

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        site = context.endpoint.removeprefix("sc://").removesuffix(":1")
        if site in self.world.down:
            raise EngineError(f"{site} does not answer")
        super().start_federated(job, context, members, drain=drain)
        others = [where for one, where in self.world.copies if one == job.id]
        assert not others, f"{job.id} runs at {others}, and is started at {site}"
        self.at[job.id] = site
        self.world.copies[job.id, site] = self

    def stop(self, job_id: str) -> None:
        super().stop(job_id)
        self.world.copies.pop((job_id, self.at[job_id]), None)

    def progress(self, job_id: str) -> Progress:
        if job_id in self.at and self.at[job_id] in self.world.down:
            self._units[job_id].state = JobState.FAILED
        return super().progress(job_id)

    def goes_on(self, job_id: str, seconds: int) -> None:
        """What a copy does that nobody watches."""
        for _ in range(seconds):
            self._second(self._units[job_id])


class World:
    def __init__(
        self,
        root: Path,
        monkeypatch: pytest.MonkeyPatch,
        engine: str = "engines: [spark, duckdb, duckdb]",
        rate: Callable[[int], float] = lambda _: 100.0,
    ) -> None:
        self.death, self.rate = Death(), rate
        self.down: set[str] = set()
        self.copies: dict[tuple[str, str], SiteEngine] = {}
        """Who runs which job where."""
        self.plot: dict[int, Callable[[Moves], object]] = {}
        """What commands ask for, by round."""
        self.notes: list[str] = []
        self.project: Project = write(root, REST, top=f"{TOP}#{engine}\n    site: east")
        for module in (moving_run, sitekeeping):
            monkeypatch.setattr(module, "Beside", Inline)

        def transaction(store: Any, work: Any, **how: Any) -> Any:
            self.death.step("transaction")
            return _TRANSACTION(store, work, **how)

        def clear(kept: keeper.Keeper, one: Any) -> None:
            self.death.step("remove")
            _CLEAR(kept, one)

        monkeypatch.setattr(StateFile, "_transaction", transaction)
        monkeypatch.setattr(keeper.Keeper, "_clear", clear)

    # -- sites --------------------------------------------------------------------------------------

    def fence(self, job: str, site: str) -> None:
        self.death.step(f"clear {job} {site}")
        self.copies.pop((job, site), None)

    @property
    def ways(self) -> Ways:
        return Ways(lambda site: site not in self.down, self.fence, others=lambda job: SITES)

    def job(self) -> str:
        with Store(state_file(self.project)) as store:
            return store.deployment().federated[-1].id

    # -- runs ---------------------------------------------------------------------------------------

    def run(self, rounds: int = 30) -> Outcome:
        """As session.py does it: what an earlier run has left at sites is ended before anything starts."""
        clock, count = Clock(), 0
        with Store(state_file(self.project)) as store, moves_of(self.project) as moves:
            for job, site in list(self.copies):
                self.fence(job, site)
            settle_open(self.project, moves, self.ways)
            settle_asked(self.project, moves, self.ways)

            def watch(snapshot: Snapshot) -> None:
                nonlocal count
                count += 1
                if count in self.plot:
                    self.plot[count](moves)
                if count >= rounds:
                    runner.request_stop()

            seconds = iter(range(10**9)).__next__
            hooks = Hooks(watch, self.notes.append, rules=RULES, moves=moves, seconds=seconds)
            runner = Runner(self.project, store, clock, clock.sleep, Options(), hooks)
            runner.prepare()
            return runner.run(SiteEngine(self, self.rate), self.ways)

    def killed(self, step: int, rounds: int = 30, lives_on: int = 3) -> bool:
        """Whether the run was killed; the copies that it has left work on for a while."""
        self.death.at, self.death.steps, self.death.dead = step, [], False
        with suppress(Killed):
            self.run(rounds)
        died, self.death.at, self.death.dead = self.death.dead, None, False
        for (job, _), engine in self.copies.items():
            engine.goes_on(job, lives_on)
        return died

    def check(self) -> int:
        """Every window once, from the first one on; how many."""
        folder = results_folder(self.project, self.project.queries["top"])
        ends = sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("part-*"))
        assert ends == list(range(1, len(ends) + 1))
        return len(ends)
