"""An engine that keeps its state on disk, and a project that can be killed at any step.

The engine has no rows: batch n of a tree gives window n to each of its members, as a file of that name in
the results folder. A member that comes to a tree which has had p batches starts with window p + 1. So what a
query has at the end says what was lost and what was given that should not be: nothing, if its windows are all
those from its first one on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Project, Query, Site
from headrace.errors import InternalError, UserError
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.channels.ports import Ports
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.service import keeper
from headrace.service.layout import job_folder, results_folder, state_file
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.state.file import StateFile
from headrace.state.records import AddedQuery
from headrace.state.store import Store
from tests.unit.service.sample import Clock, project, weaver

_TRANSACTION, _CLEAR = StateFile._transaction, keeper.Keeper._clear


class Killed(BaseException):
    """Stands for kill -9."""


@dataclass
class Death:
    """Kills at a step. Once dead, nothing happens any more."""

    at: int | None = None
    steps: list[str] = field(default_factory=list)
    dead: bool = False

    def step(self, name: str) -> None:
        if not self.dead:
            self.dead = len(self.steps) == self.at
            self.steps.append(name)
        if self.dead:
            raise Killed


@dataclass
class _Unit:
    folder: Path
    members: dict[str, JobContext]
    state: JobState = JobState.RUNNING
    batches: int = 0


class DiskEngine:
    """Implements runtime.executor.Executor. `bad` are queries with which no tree starts."""

    def __init__(self, death: Death, bad: frozenset[str] = frozenset(), drained_after: int = 3) -> None:
        self._death, self._bad, self._last = death, bad, drained_after
        self._units: dict[str, _Unit] = {}
        self._drain = False
        self.calls: list[tuple[str, str]] = []

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        self._start(job.id, context, {job.query: context}, drain=drain)

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        assert tuple(members) == tuple(m.query for m in tree.members)
        self._start(tree.id, context, members, drain=drain)

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        raise AssertionError("no split jobs here")

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        raise AssertionError("nothing is spread here")

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        raise AssertionError("no split jobs here")

    def seen_until(self, job_id: str) -> int | None:
        raise AssertionError("no split jobs here")

    def _start(self, unit: str, own: JobContext, members: Mapping[str, JobContext], *, drain: bool) -> None:
        self._death.step(f"start {unit}")
        self.calls.append(("start", unit))
        if unit in self._units and self._units[unit].state is JobState.RUNNING:
            raise InternalError(f"{unit} runs already")
        running = [u for u in self._units.values() if u.state is JobState.RUNNING]
        assert not any(set(u.members) & set(members) for u in running), "a query runs twice"
        if self._bad & set(members):
            raise UserError(f"{min(self._bad & set(members))} is too bad to run", hint="Drop it.")
        known = history(own.state)
        first = known["position"]
        starts = {q: known["members"].get(q, first) for q in members}
        _write(own.state, known["position"], starts)
        self._units[unit] = _Unit(own.state, dict(members))
        self._drain = drain

    def stop(self, job_id: str) -> None:
        self._death.step(f"stop {job_id}")
        self.calls.append(("stop", job_id))
        self._units[job_id].state = JobState.STOPPED

    def status(self, job_id: str) -> JobState:
        return self._units[job_id].state

    def progress(self, job_id: str) -> Progress:
        """Each look at a unit is one batch."""
        unit = self._units.get(job_id)
        if unit is None:
            unit = next(u for u in self._units.values() if job_id in u.members)
        elif unit.state is JobState.RUNNING:
            self._death.step(f"batch of {job_id}")
            self._batch(unit)
        known = history(unit.folder)
        start = known["members"].get(job_id)
        batch = unit.batches - 1 if unit.batches else None
        return Progress(job_id, unit.state, batch=batch, valid_from=start or None)

    def _batch(self, unit: _Unit) -> None:
        known = history(unit.folder)
        window = known["position"] + 1
        for context in unit.members.values():
            (context.results / f"part-{window:06d}.json").write_text("{}\n")
        _write(unit.folder, window, known["members"])
        unit.batches += 1
        if self._drain and unit.batches >= self._last:
            unit.state = JobState.FINISHED

    def close(self) -> None:
        if not self._death.dead:
            self.calls.append(("close", ""))


def history(folder: Path) -> dict[str, Any]:
    file = folder / "engine.json"
    empty: dict[str, Any] = {"position": 0, "members": {}}
    return json.loads(file.read_text()) if file.exists() else empty


def _write(folder: Path, position: int, members: Mapping[str, int]) -> None:
    file = folder / "engine.json"
    file.with_suffix(".tmp").write_text(json.dumps({"position": position, "members": dict(members)}))
    file.with_suffix(".tmp").rename(file)


@dataclass
class Ground:
    """A project on disk, and all that runs in it."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    queries: dict[str, Query]
    death: Death = field(default_factory=Death)
    engine: DiskEngine | None = None
    notes: list[str] = field(default_factory=list)
    sites: tuple[str, ...] = ("local",)

    def __post_init__(self) -> None:
        def transaction(store: Store, work: Any, **how: Any) -> Any:
            if not getattr(store, "theirs", False):
                self.death.step("transaction")
            return _TRANSACTION(store, work, **how)

        def clear(kept: keeper.Keeper, one: Any) -> None:
            self.death.step(f"remove {one.name}")
            _CLEAR(kept, one)

        self.monkeypatch.setattr(StateFile, "_transaction", transaction)
        self.monkeypatch.setattr(keeper.Keeper, "_clear", clear)

    @property
    def project(self) -> Project:
        sites = {name: Site(name=name, endpoint="local[2]") for name in self.sites}
        return project(self.root).model_copy(update={"queries": self.queries, "sites": sites})

    def run(
        self,
        rounds: int = 4,
        at: Mapping[int, Callable[[], object]] | None = None,
        options: Options | None = None,
        bad: frozenset[str] = frozenset(),
    ) -> Outcome:
        """A run that is stopped after so many rounds; `at` says what other processes do in between."""
        clock, count = Clock(), 0
        with Store(state_file(self.project)) as store:

            def watch(snapshot: Snapshot) -> None:
                nonlocal count
                if any(watched.progress is None for watched in snapshot.jobs):
                    return
                count += 1
                if at and count in at:
                    at[count]()
                if count >= rounds:
                    runner.request_stop()

            self.notes = []
            hooks = Hooks(watch, self.notes.append, planner=weaver())
            runner = Runner(self.project, store, clock, clock.sleep, options or Options(), hooks)
            runner.prepare()
            self.engine = DiskEngine(self.death, bad)
            return runner.run(self.engine)

    def killed(self, step: int, **how: Any) -> bool:
        """Run, and die at a step; whether it came to that."""
        self.death.at, self.death.steps, self.death.dead = step, [], False
        with suppress(Killed):
            self.run(**how)
        died = self.death.dead
        self.death.at, self.death.dead = None, False
        return died

    # -- what commands do, in processes of their own ------------------------------------------------

    def store(self) -> Store:
        made = Store(state_file(self.project))
        made.theirs = True  # type: ignore[attr-defined]
        return made

    def add(self, name: str, sql: str = "5", *, from_start: bool = False) -> int:
        with self.store() as store:
            return store.ask_add(AddedQuery(name, sql, "json", None, "local"), from_start, "now")

    def drop(self, *names: str) -> list[int]:
        with self.store() as store:
            return store.ask_drop({name: name in self.queries for name in names}, "now")

    # -- what there is to see -----------------------------------------------------------------------

    def trees(self) -> dict[str, list[str]]:
        with self.store() as store:
            deployment = store.deployment()
        return {t.id: [row.query for row in deployment.members(t.id)] for t in deployment.trees}

    def windows(self, name: str) -> list[int]:
        folder = results_folder(self.project, Query(name=name, sql=""))
        return sorted(int(path.stem.split("-")[1]) for path in folder.glob("part-*"))

    def folder(self, name: str) -> Path:
        return job_folder(self.project, name)

    def check_answers(self) -> None:
        """Every query that is deployed has all windows from its first one to the last of its tree, and what
        is said of the first one is true."""
        with self.store() as store:
            deployment = store.deployment()
            valid = {record.id: record.valid_from for record in store.all()}
        assert deployment.doomed == ()
        for row in deployment.queries:
            known = history(self.folder(row.tree or row.query))
            first = known["members"][row.query]
            assert self.windows(row.query) == list(range(first + 1, known["position"] + 1)), row.query
            assert valid[row.query] == (first or None), row.query
