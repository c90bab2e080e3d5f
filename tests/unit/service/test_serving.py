"""`headrace serve` on the fake engine: events, nothing to run yet, signals; and what `status` says of it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Project, Rebalance
from headrace.errors import UserError
from headrace.runtime.executor import JobState, Progress
from headrace.runtime.fake import FakeExecutor, Script
from headrace.runtime.sites import REHEARSAL, Ways
from headrace.service import session
from headrace.service.layout import job_folder, lock_file, own_folder
from headrace.service.meter import Meter
from headrace.service.moving import moves_of
from headrace.service.rebalance import Carrying, advise, rebalance
from headrace.service.rebalancing import how_of
from headrace.service.run import Hooks, Snapshot, Watched
from headrace.service.serving import Event, Events, Serve, serve_of, serve_project
from headrace.service.status import Health, status_of
from headrace.state.lock import DRAINING, RUNNING, RunLock
from headrace.state.moves import MoveRecord
from tests.unit.service import sample
from tests.unit.service.served import SITES, World
from tests.unit.service.served import project as spread


class Service:
    """`serve_project` on the fake engine; a signal ends it after so many rounds. No time passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine, self.events, self.rounds = FakeExecutor(), list[Event](), 25
        self.at: dict[int, Callable[[], object]] = {}
        self.done: Callable[[], bool] = lambda: True
        """What must have come about, too: sites are asked by threads, which take real time."""
        self._round = 0
        ways = Ways(lambda site: True, lambda job, site: None, others=lambda job: SITES)
        monkeypatch.setattr(session, "plan_jobs", lambda project, only: sample.placed(project))
        monkeypatch.setattr(session, "Hooks", partial(Hooks, planner=sample.only_jobs()))
        monkeypatch.setattr(session, "spark_executor", lambda *_: self.engine)
        monkeypatch.setattr(session, "site_ways", lambda *_: ways)
        monkeypatch.setattr(session, "over_lines", lambda *_: ())
        # Looks at all processes of the machine, in every round.
        monkeypatch.setattr(Meter, "see", lambda *_: None)
        monkeypatch.setattr(time, "sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self._round += 1
        self.at.get(self._round, lambda: None)()
        if self._round >= self.rounds and (self.done() or self._round > 5000):
            signal.raise_signal(signal.SIGTERM)

    def serve(self, project: Project, how: Serve | None = None) -> int:
        return serve_project(project, how or Serve(), {}, self.events.append).exit_code

    def told(self) -> list[str]:
        return [event.text for event in self.events]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


def test_events_are_told_once_and_a_signal_ends_it(tmp_path: Path, service: Service) -> None:
    service.engine = FakeExecutor({"b": Script(fail_at=1, reason="no disk\nat all")})
    service.done = lambda: any("b has failed" in line for line in service.told())
    assert service.serve(spread(tmp_path, "ab")) == 1
    told = service.told()
    for line in ("a is starting at east", "a is running at east", "b is failed at east: no disk"):
        assert told.count(line) == 1
    assert any("b has failed, and is started again in 5 s" in line for line in told)
    assert told[-1].startswith(("a is stopped", "b is")) and ("stop", "a") in service.engine.calls


def test_a_service_may_have_nothing_to_run_yet(tmp_path: Path, service: Service) -> None:
    project = sample.project(tmp_path, ())
    assert service.serve(project) == 0 and service._round >= service.rounds and not service.events


def test_moves_are_taken_while_it_serves(tmp_path: Path, service: Service) -> None:
    project = spread(tmp_path, "ab")

    def ask() -> None:
        with moves_of(project) as moves:
            moves.ask("a", "east", "west")

    service.at, service.done = {5: ask}, lambda: "a is running at west" in service.told()
    assert service.serve(project) == 0
    assert any(line.startswith("a moved from east to west") for line in service.told())
    assert "a is running at west" in service.told()
    status = status_of(project, lambda _: {})
    job = next(job for job in status["jobs"] if job["job"] == "a")
    assert (job["site"], job["wanted_site"], job["desired"], job["observed"]) == (
        "west",
        "west",
        "running",
        "stopped",
    )
    [move] = status["moves"]
    assert (move["state"], move["target"]) == ("moved", "west")


def test_a_wrong_project_leaves_nothing_behind(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(project: Project, only: object) -> None:
        raise UserError("the query is wrong")

    monkeypatch.setattr(session, "plan_jobs", wrong)
    with pytest.raises(UserError, match="the query is wrong"):
        service.serve(sample.project(tmp_path, ("a",)))
    assert not own_folder(sample.project(tmp_path)).exists()


def test_what_a_killed_process_has_left_of_rehearsals_is_removed(tmp_path: Path, service: Service) -> None:
    project = spread(tmp_path, "ab")
    left, kept = job_folder(project, f"{REHEARSAL}a"), job_folder(project, "b") / "checkpoint"
    for folder in (left / "job" / "checkpoint", kept):
        folder.mkdir(parents=True)
        (folder / "metadata").write_text("x")
    with RunLock(lock_file(project), RUNNING), pytest.raises(UserError):
        service.serve(project)
    assert left.exists()
    assert service.serve(project) == 0
    assert not left.exists() and (kept / "metadata").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("always", 30.0, "ours", "cpu"), '"always" is no way'),
        (("auto", 1.0, "ours", "cpu"), "too often"),
        (("auto", float("nan"), "ours", "cpu"), "too often, or never"),
        (("auto", 30.0, "mine", "cpu"), 'no policy "mine"'),
        (("auto", 30.0, "ours", "cpus"), 'no cost model "cpus"'),
        (("auto", 30.0, "ours", "cpu", "local[2]"), "--master"),
        (("auto", None, None, None, None, Rebalance(every=1)), "too often"),
    ],
)
def test_wrong_ways_to_serve(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        serve_of(*arguments)


def test_a_service_goes_by_the_file_but_for_what_its_command_says() -> None:
    asked = Rebalance(policy="balance", model="memory", every=7_000_000)
    by_file, by_command = serve_of("auto", asked=asked), serve_of("auto", 9.0, "ours", "cpu", asked=asked)
    assert (by_file.every, by_file.asked.policy, by_file.asked.model) == (7.0, "balance", "memory")
    assert (by_command.every, by_command.asked.policy, by_command.asked.model) == (9.0, "ours", "cpu")
    assert (serve_of("off").every, serve_of("off").asked) == (30.0, Rebalance())


def test_a_query_that_leaves_is_told() -> None:
    found: list[Event] = []
    events = Events(found.append, sample.Clock())
    events.snapshot(
        Snapshot((Watched("a", "x", None), Watched("b", "x", Progress("b", JobState.RUNNING), "t")), 0.0)
    )
    events.snapshot(Snapshot((Watched("b", "x", Progress("b", JobState.RUNNING, 3), "t"),), 1.0))
    assert [one.text for one in found] == [
        "a is waiting at x",
        "b is running at x, in t",
        "a is not run any more",
    ]
    assert found[1].at.startswith("2024-05-01T00:00:00") and found[1].state == "running"


# -- status -----------------------------------------------------------------------------------------


def test_the_status_of_what_never_ran(tmp_path: Path) -> None:
    project = sample.project(tmp_path, ("a",))
    found = status_of(project)
    [job] = found["jobs"]
    assert not found["process"]["running"] and found["age"] is None and found["costs"] == {}
    assert (job["job"], job["desired"], job["observed"], job["site"]) == ("a", None, None, "local")
    assert found["sites"][0]["health"] == "not started" and not own_folder(project).exists()


def test_the_status_tells_figures_costs_and_their_age(tmp_path: Path) -> None:
    cores = {"a": 0.4, "b": 0.2}
    world = World(spread(tmp_path, cores), cores, mode="off")
    world.run(100)
    world.clock.sleep(3600)
    asked = {"west": Health("away", "no route")}
    found = status_of(world.project, lambda _: asked, world.clock)
    assert found["age"] == pytest.approx(3600, abs=10) and not found["process"]["running"]
    jobs = {job["job"]: job for job in found["jobs"]}
    assert jobs["a"]["cpu"] == pytest.approx(0.4, rel=0.05) and jobs["b"]["cpu"] == pytest.approx(
        0.2, rel=0.05
    )
    assert jobs["a"]["rows_in"] == pytest.approx(200, rel=0.05) and jobs["a"]["selectivity"] == pytest.approx(
        0.1
    )
    assert not jobs["a"]["current"] and jobs["a"]["age"] == pytest.approx(3600, abs=10)
    sites = {site["site"]: site for site in found["sites"]}
    assert sites["east"]["jobs"] == ["a", "b"] and sites["west"]["health"] == "away"
    assert found["costs"]["cpu"]["east"]["cost"] == pytest.approx(0.6, rel=0.05)


def test_costs_are_shares_of_a_full_site(tmp_path: Path) -> None:
    cores = {"a": 0.4, "b": 0.2}
    world = World(spread(tmp_path, cores), cores, mode="off")
    seen: list[object] = []
    world.plot = {60: lambda: seen.append(status_of(world.project, lambda _: {}, world.clock)["costs"])}
    world.run(80)
    [costs] = seen
    assert isinstance(costs, dict) and set(costs) == {"cpu", "memory", "network", "combined"}
    assert costs["cpu"]["east"]["cost"] == pytest.approx(0.6, rel=0.05) and costs["cpu"]["west"]["cost"] == 0
    assert costs["cpu"]["east"]["jobs"] == pytest.approx(cores, rel=0.05)


def test_where_a_job_is_to_be_and_where_it_is_are_apart(tmp_path: Path) -> None:
    cores = {"a": 0.4, "b": 0.2}
    world = World(spread(tmp_path, cores), cores, mode="off")
    world.run(30)
    with moves_of(world.project) as moves:
        asked = moves.ask("a", "east", "west")
        found = {job["job"]: job for job in status_of(world.project, lambda _: {}, world.clock)["jobs"]}
        assert (found["a"]["site"], found["a"]["wanted_site"]) == ("east", "west")
        assert (found["b"]["site"], found["b"]["wanted_site"]) == ("east", "east")
        with RunLock(lock_file(world.project), RUNNING):
            advice = advise(world.project, how_of("balance", "cpu"), world.clock).data
        assert advice["moves"] == [] and advice["why"] == "a is being moved to west"
        moves.refuse(asked, "no")
        # As after a kill in the midst of a move: it lives there, and no run has started it there yet.
        moves.settle("a", "south")
    job = status_of(world.project, lambda _: {}, world.clock)["jobs"][0]
    assert (job["site"], job["wanted_site"]) == ("east", "south")


def test_a_run_that_is_on_is_told_with_its_process(tmp_path: Path) -> None:
    project = sample.project(tmp_path, ("a",))
    with RunLock(lock_file(project), RUNNING):
        found = status_of(project)["process"]
    assert found["running"] and found["doing"] == "run" and found["pid"] is not None and found["since"]


# -- rebalance --------------------------------------------------------------------------------------


def test_advice_needs_figures(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing is known"):
        advise(sample.project(tmp_path, ("a",)), how_of("ours", "cpu"))


def uneven(root: Path) -> World:
    """All jobs at one site; what was gathered last is of a moment at which they ran."""
    cores = dict.fromkeys("abcdef", 0.3)
    world = World(spread(root, cores), cores, mode="off")
    world.run(50)
    return world


@pytest.mark.parametrize("policy", ["ours", "balance"])
def test_advice_says_what_would_move_and_asks_nothing(tmp_path: Path, policy: str) -> None:
    world = uneven(tmp_path)
    data = advise(world.project, how_of(policy, "cpu"), world.clock).data
    assert data["moves"] and not data["running"] and not data["pause_measured"] and not world.moves()
    assert data["before"]["east"] == pytest.approx(1.0) and max(data["after"].values()) < 0.85
    assert {move["source"] for move in data["moves"]} == {"east"} and all(
        move["why"] for move in data["moves"]
    )


def test_rebalance_asks_the_run_that_is_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = uneven(tmp_path)
    asked: list[tuple[str, str]] = []

    def ask(path: Path, job: str, site: str) -> int:
        asked.append((job, site))
        return len(asked)

    def wait(path: Path, move: int, timeout: float) -> MoveRecord:
        job, site = asked[move - 1]
        return MoveRecord(move, job, "east", site, "moved", site, 2.0, "", "", "")

    monkeypatch.setattr("headrace.service.rebalance.open_project", lambda path: world.project)
    carrying = Carrying(ask, wait, world.clock)
    how = how_of("balance", "cpu")
    with pytest.raises(UserError, match="nothing runs"):
        rebalance(tmp_path, how, 1.0, carrying)
    with RunLock(lock_file(world.project), DRAINING), pytest.raises(UserError, match="drains"):
        rebalance(tmp_path, how, 1.0, carrying)
    with RunLock(lock_file(world.project), RUNNING):
        data = rebalance(tmp_path, how, 1.0, carrying)
        assert [(one.job, one.site) for one in data["done"]] == asked and len(asked) == 4
        world.clock.sleep(100)
        with pytest.raises(UserError, match="old"):
            rebalance(tmp_path, how, 1.0, carrying)
