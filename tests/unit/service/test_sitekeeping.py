"""A run over several sites on the fake engine: lost sites, sites that come back, moves that are asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.catalog.model import Project, Site
from headrace.errors import SiteSilent, UserError
from headrace.plan.placed import Job
from headrace.runtime.executor import JobContext, JobState
from headrace.runtime.fake import FakeExecutor, Script
from headrace.runtime.sites import Ways
from headrace.service import moving_run
from headrace.service.layout import state_file
from headrace.service.moving import moves_of
from headrace.service.run import Hooks, Options, Outcome, Runner
from headrace.state.moves import Moves
from headrace.state.store import Store
from tests.unit.service import sample

NAMES = ("east", "west")


class World:
    """Sites that can be cut off, a run over them, and a plot: what happens at which round."""

    def __init__(self, root: Path, moves: Moves, store: Store, found: Project) -> None:
        self.down: set[str] = set()
        self.cleared: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.executor = FakeExecutor()
        self.moves, self.store, self.project = moves, store, found
        self.plot: list[tuple[Callable[[], bool], Callable[[], object]]] = []
        self.round = 0
        self.answer: Callable[[str], bool] = lambda site: True
        self.dead: Callable[[str], bool] = lambda site: False

    def _watch(self, snapshot: object) -> None:
        """Sites are asked by real threads: what happens next waits for what was to happen, not for rounds."""
        self.round += 1
        assert self.round < 20_000, self.notes
        if self.plot and self.plot[0][0]():
            self.plot.pop(0)[1]()

    @property
    def ways(self) -> Ways:
        return Ways(
            lambda site: self.answer(site) and site not in self.down,
            lambda job, site: self.cleared.append((job, site)),
            others=lambda job: tuple(self.project.sites),
            is_dead=lambda site: self.dead(site),
        )

    def run(self, *, drain: bool = False, moving: bool = True, serve: bool = False) -> Outcome:
        clock = sample.Clock()
        hooks = Hooks(
            self._watch,
            self.notes.append,
            planner=sample.only_jobs(),
            moves=self.moves,
            seconds=lambda: clock().timestamp(),
        )
        options = Options(drain=drain, serve=serve)
        self.runner = Runner(self.project, self.store, clock, clock.sleep, options, hooks)
        self.runner.prepare()
        return self.runner.run(self.executor, self.ways if moving else None)

    def after(self, rounds: int) -> Callable[[], bool]:
        """Once so many rounds are over since it was first asked."""
        first: list[int] = []

        def over() -> bool:
            first[:] = first or [self.round]
            return self.round - first[0] >= rounds

        return over

    def at(self, site: str, *jobs: str) -> Callable[[], bool]:
        """Once these jobs run at a site."""
        return lambda: all(
            self.executor.calls.count(("start", job))
            and self.endpoint(job) == f"sc://{site}:1"
            and self.executor.status(job) is JobState.RUNNING
            for job in jobs
        )

    def stop(self) -> None:
        self.runner.request_stop()

    def endpoint(self, job: str) -> str:
        return self.executor.context(job).endpoint


class FailsInTheEast(FakeExecutor):
    """What the scripts say is true of one site only."""

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        if "west" in context.endpoint:
            self.scripts = {}
        super().start(job, context, drain=drain)


class SilentEast(FakeExecutor):
    """One site does not answer, as Spark's client says it."""

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        if "east" in context.endpoint:
            raise SiteSilent("no server answers at sc://east:1")
        super().start(job, context, drain=drain)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = sample.project(tmp_path, ("a", "b"))
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1") for name in NAMES}
    queries = {name: query.model_copy(update={"site": "east"}) for name, query in made.queries.items()}
    made = made.model_copy(update={"sites": sites, "queries": queries})
    state_file(made).parent.mkdir(parents=True, exist_ok=True)
    with Store(state_file(made)) as store, moves_of(made) as moves:
        yield World(tmp_path, moves, store, made)


def test_a_lost_site_is_taken_out_and_its_jobs_go_on(world: World) -> None:
    world.plot = [
        (world.after(10), lambda: world.down.add("east")),
        (world.at("west", "a", "b"), world.stop),
    ]
    outcome = world.run()
    assert outcome.failures == () and outcome.exit_code == 0
    assert world.endpoint("a") == world.endpoint("b") == "sc://west:1"
    assert world.moves.homes() == {"a": "west", "b": "west"}
    assert {("a", "east"), ("b", "east")} <= set(world.cleared)
    assert any("site east does not answer" in note for note in world.notes)


@pytest.mark.parametrize(("dead", "times"), [(True, 1), (False, 3)])
def test_a_site_that_may_only_be_busy_is_asked_again(world: World, dead: bool, times: int) -> None:
    misses: list[str] = []

    def answer(site: str) -> bool:
        if site in world.down:
            misses.append(site)
        return True

    def look() -> None:
        assert misses == ["east"] * times
        world.stop()

    world.answer, world.dead = answer, lambda site: dead
    world.plot = [
        (world.after(10), lambda: world.down.add("east")),
        (lambda: any("taken out" in note for note in world.notes), look),
    ]
    world.run()
    assert world.endpoint("a") == "sc://west:1" and not world.plot


def test_a_site_that_is_slow_to_answer_keeps_no_job_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving_run, "_SOON_SECONDS", 0.01)
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1") for name in ("north", *NAMES)}
    world.project = world.project.model_copy(update={"sites": sites})
    over, waited = threading.Event(), list[bool]()

    def answer(site: str) -> bool:
        if site == "north":
            waited.append(not over.wait(20))
        return True

    world.answer = answer
    world.plot = [
        (world.after(10), lambda: world.down.add("east")),
        (world.at("west", "a", "b"), world.stop),
    ]
    world.run()
    over.set()
    assert not any(waited)


def test_jobs_of_a_lost_site_stay_in_its_region(world: World) -> None:
    sites = {
        name: Site(name=name, endpoint=f"sc://{name}:1", region=region)
        for name, region in (("east", "here"), ("west", "there"), ("north", "here"))
    }
    world.project = world.project.model_copy(update={"sites": sites})
    world.plot = [
        (world.after(10), lambda: world.down.add("east")),
        (world.at("north", "a", "b"), lambda: world.down.add("north")),
        (world.at("west", "a", "b"), world.stop),
    ]
    assert world.run().failures == ()
    assert world.moves.homes() == {"a": "west", "b": "west"}, "and elsewhere, where none is left there"


def test_one_missed_answer_is_not_a_lost_site(world: World) -> None:
    answers = iter([True, True, False, False, True])
    world.answer = lambda site: next(answers, True)
    world.plot = [(lambda: next(answers, None) is None, world.stop)]
    world.run()
    assert world.endpoint("a") == "sc://east:1" and not world.cleared and not world.notes


def test_a_job_that_fails_with_its_site_runs_again_elsewhere(world: World) -> None:
    """Its failure is seen before the site is asked: the run must not end for that."""
    world.down.add("east")
    world.plot = [(world.at("west", "a", "b"), world.stop)]
    world.executor = FailsInTheEast({"a": Script(fail_at=3), "b": Script(fail_at=3)})
    outcome = world.run()
    assert outcome.failures == () and world.endpoint("a") == "sc://west:1"


def test_a_job_that_fails_at_a_site_that_answers_has_failed(world: World) -> None:
    world.executor = FakeExecutor({"a": Script(fail_at=3), "b": Script(fail_at=3)})
    outcome = world.run()
    assert [query for query, _ in outcome.failures] == ["a", "b"] and not world.cleared


class LosesItsEngine(FakeExecutor):
    """What the scripts say is true of the first starts of each job only."""

    def __init__(self, script: Script, starts: int) -> None:
        super().__init__({"a": script, "b": script})
        self.script, self.starts = script, starts

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        again = self.calls.count(("start", job.id)) >= self.starts
        self.scripts = {**self.scripts, job.id: Script() if again else self.script}
        super().start(job, context, drain=drain)


def test_a_site_that_is_back_before_it_is_asked_gets_its_jobs_again(world: World) -> None:
    world.executor = LosesItsEngine(Script(fail_at=1, lost=True), 1)
    outcome = world.run(drain=True)
    assert outcome.failures == () and outcome.exit_code == 0
    assert world.executor.calls.count(("start", "a")) == world.executor.calls.count(("start", "b")) == 2
    assert world.endpoint("a") == "sc://east:1" and {("a", "east"), ("b", "east")} <= set(world.cleared)
    assert any("site east was gone, and is back: a" in note for note in world.notes)


def test_a_job_that_loses_its_engine_at_every_batch_goes_on(world: World) -> None:
    """It comes further each time: that is no fault of its own. (The fake begins anew: the batches it reaches
    are told to grow.)"""

    class Further(LosesItsEngine):
        def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
            reached = 2 + self.calls.count(("start", job.id))
            self.script = Script(fail_at=reached, lost=True, batches=50)
            super().start(job, context, drain=drain)

    world.executor = Further(Script(), 7)
    assert world.run(drain=True).failures == ()
    assert world.executor.calls.count(("start", "a")) == 8


def test_a_job_that_ends_its_engine_every_time_has_failed(world: World) -> None:
    world.executor = FakeExecutor({"a": Script(fail_at=0, lost=True), "b": Script(batches=50)})
    outcome = world.run(drain=True)
    assert [query for query, _ in outcome.failures] == ["a"]
    # A move that comes to nothing tries twice.
    assert 4 <= world.executor.calls.count(("start", "a")) <= 7
    assert world.executor.calls.count(("start", "b")) == 1


def test_jobs_wait_for_a_site_and_go_on_where_it_comes_back(world: World) -> None:
    world.plot = [
        (world.after(10), lambda: world.down.update(NAMES)),
        (lambda: any("a, b wait" in note for note in world.notes), lambda: world.down.discard("east")),
        (lambda: world.executor.calls.count(("start", "b")) == 2, world.stop),
    ]
    outcome = world.run()
    assert outcome.failures == ()
    assert [n for n in world.notes if "no other site does: a, b wait" in n] and "site east answers again" in (
        world.notes
    )
    assert [call for call in world.executor.calls if call[0] == "start"].count(("start", "a")) == 2
    assert world.endpoint("a") == "sc://east:1"


def test_a_drain_goes_on_elsewhere_and_ends(world: World) -> None:
    world.executor = FakeExecutor({"a": Script(batches=5000), "b": Script(batches=5000)})
    world.plot = [(world.after(10), lambda: world.down.add("east"))]
    outcome = world.run(drain=True)
    assert outcome.exit_code == 0 and outcome.drained and not outcome.interrupted
    assert world.endpoint("a") == "sc://west:1"


def test_jobs_that_wait_for_their_turn_are_led_elsewhere(world: World) -> None:
    planner = world.project.planner.model_copy(update={"parallel": 1})
    world.project = world.project.model_copy(update={"planner": planner})
    world.executor = FakeExecutor({"a": Script(batches=5000), "b": Script(batches=5000)})
    world.plot = [(world.after(10), lambda: world.down.add("east"))]
    outcome = world.run(drain=True)
    assert outcome.exit_code == 0
    assert world.executor.most_at_once == 1
    assert world.endpoint("a") == world.endpoint("b") == "sc://west:1"


def test_a_move_that_is_asked_for_is_carried_out_and_kept(world: World) -> None:
    world.plot = [
        (world.after(10), lambda: world.moves.ask("a", "east", "west")),
        (lambda: "a moved from east to west" in "".join(world.notes), world.stop),
    ]
    world.run()
    assert world.endpoint("a") == "sc://west:1" and world.endpoint("b") == "sc://east:1"
    world.plot = [(world.after(10), world.stop)]
    world.executor = FakeExecutor()
    world.run()
    assert world.endpoint("a") == "sc://west:1" and world.endpoint("b") == "sc://east:1"


def test_with_one_spark_for_all_sites_moves_are_refused(world: World) -> None:
    world.plot = [
        (world.after(10), lambda: world.moves.ask("a", "east", "west")),
        (world.after(10), world.stop),
    ]
    world.run(moving=False)
    [record] = world.moves.latest(1)
    assert record.state == "refused" and "--master" in record.message


def test_a_site_that_is_down_from_the_start_is_none(world: World) -> None:
    world.executor = SilentEast()
    world.down.add("east")
    outcome = world.run(drain=True)
    assert outcome.exit_code == 0 and outcome.failures == () and world.endpoint("a") == "sc://west:1"


def test_a_site_that_never_answers_is_not_waited_for(world: World) -> None:
    world.executor = SilentEast()
    world.down.update(NAMES)
    outcome = world.run(drain=True)
    assert outcome.exit_code == 2 and "no server answers" in outcome.failures[0][1]


def test_a_job_that_fails_everywhere_has_failed(world: World) -> None:
    """Its move does not stay open for ever."""
    world.executor = FakeExecutor({"a": Script(fail_at=3)})
    world.plot = [
        (world.after(2), lambda: world.moves.ask("a", "east", "west")),
        (lambda: world.moves.latest(1)[0].ended is not None and world.round > 50, world.stop),
    ]
    outcome = world.run()
    assert [query for query, _ in outcome.failures] == ["a"] and not world.moves.open_moves()


def test_a_failed_job_does_not_come_back_when_its_site_is_lost(world: World) -> None:
    world.executor = FakeExecutor({"a": Script(fail_at=3)})
    answers: list[str] = []

    def answer(site: str) -> bool:
        answers.append(site)
        return True

    world.answer = answer
    world.plot = [
        (lambda: world.round > 5 and world.executor.status("a") is JobState.FAILED, answers.clear),
        (lambda: answers.count("east") > 2, lambda: world.down.add("east")),
        (world.at("west", "b"), world.stop),
    ]
    outcome = world.run()
    assert [query for query, _ in outcome.failures] == ["a"]
    assert world.executor.calls.count(("start", "a")) == 1


def test_an_answer_from_before_a_failure_says_nothing_of_it(world: World) -> None:
    world.executor = FailsInTheEast({"a": Script(fail_at=3), "b": Script(fail_at=3)})
    slow, failed = threading.Event(), list[str]()

    def answer(site: str) -> bool:
        if site == "east" and not failed:
            failed.append(site)
            slow.wait(5)
            return True
        return site != "east"

    world.answer = answer
    world.plot = [
        (lambda: world.round > 5 and world.executor.status("b") is JobState.FAILED, slow.set),
        (world.at("west", "a", "b"), world.stop),
    ]
    assert world.run().failures == ()


@pytest.mark.parametrize(
    ("job", "target", "reason"),
    [("a", "north", "without a site north"), ("z", "west", "does not have it"), ("a", "east", "already")],
)
def test_what_this_run_cannot_move_is_refused(world: World, job: str, target: str, reason: str) -> None:
    world.plot = [
        (world.after(2), lambda: world.moves.ask(job, "west", target)),
        (lambda: world.moves.latest(1)[0].ended is not None, world.stop),
    ]
    world.run()
    [record] = world.moves.latest(1)
    assert record.state == "refused" and reason in record.message


def test_a_job_is_moved_from_where_it_is(world: World) -> None:
    """Whoever asked may have gone by a file that was changed since the run began."""
    world.plot = [
        (world.at("east", "a"), lambda: world.moves.ask("a", "south", "west")),
        (world.at("west", "a"), world.stop),
    ]
    assert world.run().failures == ()
    assert world.moves.latest(1)[0].source == "east"


# -- a service --------------------------------------------------------------------------------------


def test_a_service_starts_failed_jobs_again_ever_more_seldom(world: World) -> None:
    world.executor = FakeExecutor({"a": Script(fail_at=0)})
    world.plot = [(lambda: len(world.notes) > 4, world.stop)]
    world.run(serve=True)
    waits = [note for note in world.notes if note.startswith("a has failed")]
    assert [note.split(" in ")[1].split(":")[0] for note in waits[:4]] == ["5 s", "10 s", "20 s", "40 s"]
    starts = world.executor.calls.count(("start", "a"))
    assert len(waits) - 1 <= starts - 1 <= len(waits) and world.executor.calls.count(("start", "b")) == 1


def test_a_service_takes_a_failed_job_elsewhere_when_its_site_is_lost(world: World) -> None:
    """It had failed by itself, and its site is gone when it is to be started again."""

    class Dead(FailsInTheEast):
        def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
            if "east" in context.endpoint and "east" in world.down:
                raise SiteSilent("no server answers at sc://east:1")
            super().start(job, context, drain=drain)

    world.executor = Dead({"a": Script(fail_at=0)})
    world.plot = [
        (
            lambda: any(note.startswith("a has failed") for note in world.notes),
            lambda: world.down.add("east"),
        ),
        (world.at("west", "a", "b"), world.stop),
    ]
    world.run(serve=True)
    assert world.endpoint("a") == world.endpoint("b") == "sc://west:1"


def test_a_service_goes_on_when_nothing_is_left_to_do(world: World) -> None:
    refused = UserError("not so")
    world.executor = FakeExecutor({"a": Script(refuse=refused), "b": Script(refuse=refused)})
    world.plot = [(world.after(50), world.stop)]
    outcome = world.run(serve=True)
    assert world.round >= 50 and outcome.exit_code == 2
    assert world.executor.calls.count(("start", "a")) == 1
