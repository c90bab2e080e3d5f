"""Moves of a project's jobs: what is refused, moves by a run on the fake engine, moves where nothing runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Project, Sink, SinkKind, Site
from headrace.errors import EngineError, NotSupported, UserError
from headrace.plan.placed import PlacedPlan
from headrace.runtime.executor import JobState
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.relocate import Entry, Move, Step
from headrace.runtime.sites import Unit, Ways
from headrace.runtime.spark.sites import SparkFence
from headrace.service import moving
from headrace.service.fleet import Fleet, Start
from headrace.service.layout import job_folder, lock_file, state_file
from headrace.service.moving import (
    ask_move,
    at_homes,
    disk_executor,
    moves_of,
    settle_open,
    spark_ways,
    wait_for_move,
)
from headrace.service.moving_run import Moving
from headrace.service.placing_problem import network_of
from headrace.state.lock import DRAINING, RUNNING, RunLock
from headrace.state.moves import Moves
from headrace.state.records import DeployedQuery, Deployment, Edits, TreeRecord
from headrace.state.store import Store
from tests.unit.service import sample


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = sample.project(tmp_path, ("a", "b", "c", "m"), m=Sink(kind=SinkKind.MEMORY))
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1") for name in ("east", "west", "south")}
    east = {name: made.queries[name].model_copy(update={"site": "east"}) for name in ("b", "c")}
    made = made.model_copy(update={"sites": {**made.sites, **sites}, "queries": {**made.queries, **east}})
    monkeypatch.setattr(moving, "open_project", lambda path: made)
    deployment = Deployment(
        (TreeRecord("t1", "east", "{}"),),
        (
            DeployedQuery("a", None, "f"),
            DeployedQuery("b", "t1", "f"),
            DeployedQuery("c", "t1", "f"),
            DeployedQuery("m", None, "f"),
        ),
    )
    with Store(state_file(made)) as store:
        store.deploy(deployment, Edits())
    return made


@pytest.fixture
def moves(project: Project) -> Iterator[Moves]:
    with moves_of(project) as opened:
        yield opened


class Sites:
    """Which sites answer, and what they were told."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.cleared: list[tuple[str, str]] = []
        self.prepared: list[tuple[str, str]] = []
        self.stuck = ""
        self.may_prepare = threading.Event()
        self.may_prepare.set()

    def clear(self, job: str, site: str) -> None:
        if site == self.stuck:
            raise EngineError(f"{job} may still run at {site}")
        self.cleared.append((job, site))

    def prepare(self, unit: Unit, site: str) -> None:
        assert unit.context(site).endpoint == f"sc://{site}:1"
        self.prepared.append((unit.job.id, site))
        assert self.may_prepare.wait(60)
        if site in self.down:
            raise EngineError(f"{site} does not answer")

    @property
    def ways(self) -> Ways:
        names = ("east", "west", "south")
        return Ways(lambda site: site not in self.down, self.clear, self.prepare, lambda job: names)

    @contextmanager
    def of(self, project: Project) -> Iterator[Ways]:
        yield self.ways


@pytest.mark.parametrize(
    ("job", "site", "message"),
    [
        ("a", "nowhere", 'site "nowhere" does not exist'),
        ("z", "east", 'no job "z" is deployed'),
        ("b", "west", "b is answered by t1, with c"),
        ("t1", "east", "t1 is at east already"),
        ("a", "local", "a is at local already"),
    ],
)
def test_what_cannot_be_moved_is_refused(project: Project, job: str, site: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ask_move(project.root, job, site)


def test_a_site_that_nobody_declared_is_no_target(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`local` is always in the catalog; a job there would be in the process of the run."""
    at_east = {name: query.model_copy(update={"site": "east"}) for name, query in project.queries.items()}
    streams = {name: one.model_copy(update={"site": "east"}) for name, one in project.streams.items()}
    sites = {**{n: s for n, s in project.sites.items() if n != "local"}, "local": Site(name="local")}
    other = project.model_copy(update={"queries": at_east, "streams": streams, "sites": sites})
    monkeypatch.setattr(moving, "open_project", lambda path: other)
    with pytest.raises(UserError, match='site "local" does not exist'):
        ask_move(other.root, "a", "local")
    assert other.default_site == "east"
    assert network_of(other, {"local"}).sites == ("east", "west", "south", "local")


def test_results_in_memory_are_not_left_behind(project: Project) -> None:
    with pytest.raises(NotSupported, match="in memory"):
        ask_move(project.root, "m", "east")


def test_a_job_has_one_move_at_a_time(project: Project) -> None:
    ask_move(project.root, "a", "east")
    with pytest.raises(UserError, match="being moved to east already"):
        ask_move(project.root, "a", "west")


def test_a_drain_moves_nothing(project: Project) -> None:
    with RunLock(lock_file(project), DRAINING), pytest.raises(UserError, match="drains"):
        ask_move(project.root, "a", "east")


def test_where_nothing_runs_the_move_is_made_on_disk(project: Project, moves: Moves) -> None:
    sites = Sites()
    asked = ask_move(project.root, "t1", "west")
    record = wait_for_move(project.root, asked, ways_of=sites.of)
    assert record.state == "moved" and moves.homes() == {"t1": "west"}
    assert sites.cleared == [("t1", "east")] and "moved from east to west" in moving.told(record)
    back = wait_for_move(project.root, ask_move(project.root, "t1", "east"), ways_of=sites.of)
    assert back.source == "west" and moves.homes() == {"t1": "east"}


def test_on_disk_nothing_moves_from_where_it_may_still_run(project: Project, moves: Moves) -> None:
    sites = Sites()
    sites.stuck = "east"
    record = wait_for_move(project.root, ask_move(project.root, "t1", "west"), ways_of=sites.of)
    assert record.state == "refused" and "may still run" in record.message and moves.homes() == {}


def test_a_run_that_is_on_is_waited_for(project: Project) -> None:
    slept: list[float] = []
    with RunLock(lock_file(project), RUNNING):
        asked = ask_move(project.root, "a", "east")
        record = wait_for_move(project.root, asked, 1.0, slept.append)
    assert record.state == "asked" and sum(slept) == pytest.approx(1.0)


def test_a_plan_goes_by_the_homes() -> None:
    placed = sample.placed(sample.project(Path(), ("a", "b")))
    found = at_homes(placed, {"a": "east", "b": "gone"}, {"east": 1, "local": 2})
    assert {job.id: job.site for job in found.jobs} == {"a": "east", "b": "local"}
    assert isinstance(found, PlacedPlan)


# -- a run ------------------------------------------------------------------------------------------


class Run:
    """A fleet on the fake engine, with job a at east."""

    def __init__(self, project: Project, store: Store, moves: Moves) -> None:
        clock = sample.Clock()
        self.executor, self.sites, self.notes = FakeExecutor(), Sites(), list[str]()
        self.fleet = Fleet(self.executor, store, clock, Start())
        [job] = [job for job in sample.placed(project).jobs if job.id == "a"]
        self.fleet.start(project, at_homes(PlacedPlan((job,)), {"a": "east"}, project.sites).jobs[0])
        self.moving = Moving(self.fleet, lambda: project, moves, self.sites.ways, self.notes.append)
        moves.settle("a", "east")

    def rounds(self, count: int = 100) -> None:
        for _ in range(count):
            if self.moving.carry_out():
                return
            self.fleet.observe()
            self.moving._pool.submit(lambda: None).result()
        raise AssertionError("no move has ended")


@pytest.fixture
def run(project: Project, moves: Moves) -> Iterator[Run]:
    with Store(state_file(project)) as store:
        made = Run(project, store, moves)
        yield made
        made.moving.close()


def test_a_run_takes_a_move_and_carries_it_out(project: Project, moves: Moves, run: Run) -> None:
    assert not run.moving.pending_moves() and run.moving.carry_out() == []
    asked = moves.ask("a", "east", "west")
    assert run.moving.pending_moves()
    run.rounds()
    record = moves.get(asked)
    assert record is not None and record.state == "moved" and record.site == "west"
    assert run.fleet.units["a"].site == "west" and moves.homes()["a"] == "west"
    assert run.executor.context("a").endpoint == "sc://west:1"
    assert run.executor.calls == [("start", "a"), ("stop", "a"), ("start", "a")]
    assert run.sites.prepared == [("a", "west")] and "a moved from east to west" in run.notes[0]
    steps = [entry.step for entry in moves.entries(asked)]
    assert steps == list(Step)


def test_a_target_that_is_down_is_told_and_the_job_stays(moves: Moves, run: Run) -> None:
    run.sites.down = {"west"}
    asked = moves.ask("a", "east", "west")
    run.rounds()
    record = moves.get(asked)
    assert record is not None and record.state == "stayed" and "does not answer" in record.message
    assert run.executor.calls == [("start", "a")] and run.fleet.units["a"].site == "east"


def test_sites_are_looked_at_between_two_moves(project: Project, moves: Moves, run: Run) -> None:
    """A move stops the loop for seconds: of those that are ready at once, one is carried in each round."""
    [b] = [job for job in sample.placed(project).jobs if job.id == "b"]
    run.fleet.start(project, at_homes(PlacedPlan((b,)), {"b": "east"}, project.sites).jobs[0])
    asked = [moves.ask(job, "east", "west") for job in ("a", "b")]
    run.sites.may_prepare.clear()
    assert run.moving.carry_out() == [], "both are being prepared"
    run.sites.may_prepare.set()
    wait(future for _, future in run.moving._preparing.values())
    assert [outcome.move.id for outcome in run.moving.carry_out()] == asked[:1]
    assert not run.moving.held(), "b runs, and may be rescued or dropped"
    assert [outcome.move.id for outcome in run.moving.carry_out()] == asked[1:]


def test_a_job_that_stands_still_does_not_wait_until_another_is_prepared(
    project: Project, moves: Moves, run: Run
) -> None:
    [b] = [job for job in sample.placed(project).jobs if job.id == "b"]
    run.fleet.start(project, at_homes(PlacedPlan((b,)), {"b": "east"}, project.sites).jobs[0])
    stuck, asked = moves.ask("a", "east", "south"), moves.ask("b", "east", "west")
    moves.write(Move(stuck, "a", "east", "south"), Entry(Step.STOP, "east"))
    run.fleet.stop(["a"])
    run.sites.may_prepare.clear()
    assert run.moving.carry_out() == [], "b is being prepared"
    [outcome] = run.moving.resume()
    assert outcome.move.id == stuck and run.fleet.states["a"].state is JobState.RUNNING
    run.sites.may_prepare.set()
    run.rounds()
    record = moves.get(asked)
    assert record is not None and record.state == "moved"


def test_jobs_of_a_lost_site_go_on_elsewhere(moves: Moves, run: Run) -> None:
    run.sites.down = {"east"}
    [outcome] = run.moving.rescue("east")
    assert (
        outcome.moved
        and run.fleet.units["a"].site == "west"
        and run.fleet.states["a"].state is JobState.RUNNING
    )
    assert run.sites.cleared and run.sites.prepared == []


def test_with_no_site_left_jobs_wait(moves: Moves, run: Run) -> None:
    run.sites.down = {"east", "west", "south"}
    assert run.moving.rescue("east") == [] and "wait" in run.notes[0]


def test_the_next_run_settles_what_a_killed_one_has_left(project: Project, moves: Moves) -> None:
    job_folder(project, "a").mkdir(parents=True)
    facts: dict[str, str | int] = {"from": "east", "fingerprint": "", "batch": -1}
    for job, entries in (
        ("a", [Entry(Step.PREPARE, "west"), Entry(Step.STOP, "east"), Entry(Step.HAND_OVER, "west", facts)]),
        ("t1", [Entry(Step.PREPARE, "west")]),
    ):
        move = Move(moves.ask(job, "east", "west"), job, "east", "west")
        for entry in entries:
            moves.write(move, entry)
    sites = Sites()
    found = settle_open(project, moves, sites.ways)
    assert [(one.move.job, one.site) for one in found] == [("a", "west"), ("t1", "east")]
    assert moves.homes() == {"a": "west"} and not moves.open_moves(), "t1 is where it was"
    assert ("a", "east") in sites.cleared and ("t1", "east") in sites.cleared


def test_a_checkpoint_that_is_not_as_it_was_left_keeps_no_run_from_starting(
    project: Project, moves: Moves
) -> None:
    """A query whose results are in memory begins anew at every start: killed after the start of its rescue,
    it has less than the journal says. The move ends; what is wrong is told."""
    folder = job_folder(project, "a")
    folder.mkdir(parents=True)
    facts: dict[str, str | int] = {"from": "east", "fingerprint": "f", "batch": 10}
    asked = moves.ask("a", "east", "west")
    for entry in (Entry(Step.STOP, "east"), Entry(Step.HAND_OVER, "west", facts), Entry(Step.START, "west")):
        moves.write(Move(asked, "a", "east", "west"), entry)
    sites = Sites()
    [found] = settle_open(project, moves, sites.ways)
    assert found.site == "west" and "belongs to another plan" in found.reason
    assert not moves.open_moves() and {("a", "east"), ("a", "west")} <= set(sites.cleared)
    moves.write(Move(moves.ask("a", "west", "east"), "a", "west", "east"), Entry(Step.STOP, "west"))
    (folder / "job.json").write_text("{")
    [found] = settle_open(project, moves, sites.ways)
    assert found.site == "west" and found.reason and not moves.open_moves()


def test_a_job_that_is_added_again_elsewhere_while_its_move_is_prepared_is_left_alone(
    project: Project, moves: Moves, run: Run
) -> None:
    asked = moves.ask("a", "east", "west")
    run.sites.may_prepare.clear()
    assert run.moving.carry_out() == [], "it is being prepared"
    unit = run.fleet.units["a"]
    run.fleet.stop(["a"])
    run.fleet.forget("a")
    run.fleet.start(project, replace(unit, site="south"))
    run.sites.may_prepare.set()
    run.rounds()
    record = moves.get(asked)
    assert record is not None and record.state == "stayed" and "added again" in record.message
    assert run.fleet.units["a"].site == "south"
    assert run.executor.calls == [("start", "a"), ("stop", "a"), ("start", "a")]


def test_spark_rehearses_and_knows_which_of_its_servers_are_dead(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkFence, "is_dead", lambda fence, site: site == "east")
    with disk_executor() as executor:
        ways = spark_ways(project, executor)
        assert ways.rehearse == executor.rehearse
        assert ways.is_dead("east") and not ways.is_dead("west")


def test_a_run_does_not_start_while_an_old_copy_may_run(project: Project, moves: Moves) -> None:
    move = Move(moves.ask("a", "east", "west"), "a", "east", "west")
    moves.write(move, Entry(Step.STOP, "east"))
    sites = Sites()
    sites.stuck = "east"
    with pytest.raises(EngineError, match="may still run"):
        settle_open(project, moves, sites.ways)
    assert moves.open_moves()


def test_the_move_of_a_dropped_job_is_open_as_long_as_a_copy_may_run(moves: Moves, run: Run) -> None:
    asked = moves.ask("a", "east", "west")
    move = Move(asked, "a", "east", "west")
    moves.write(move, Entry(Step.START, "west"))
    run.fleet.stop(["a"])
    run.fleet.forget("a")
    run.sites.stuck = "west"
    for _ in range(2):
        assert run.moving.resume() == [] and run.moving.held() == {"a"}
    assert run.notes == ["a was dropped while it was moved: a may still run at west"]
    run.sites.stuck = ""
    run.moving.resume()
    assert ("a", "west") in run.sites.cleared and not run.moving.held() and "a" not in moves.homes()


def test_the_next_run_ends_the_copies_of_a_job_that_was_dropped(project: Project, moves: Moves) -> None:
    move = Move(moves.ask("gone", "east", "west"), "gone", "east", "west")
    moves.write(move, Entry(Step.START, "west"))
    sites = Sites()
    sites.stuck = "west"
    with pytest.raises(EngineError, match="may still run"):
        settle_open(project, moves, sites.ways)
    sites.stuck = ""
    assert settle_open(project, moves, sites.ways) == () and not moves.open_moves()
    assert ("gone", "west") in sites.cleared and moves.homes() == {}
