"""Moves under crashes: whatever happens at whatever point, one copy, and every batch once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import EngineError, HeadraceError
from headrace.runtime.executor import JobState, Progress
from headrace.runtime.relocate import Entry, Move, Outcome, Step, home_of, suspects, wanted_at
from tests.unit.runtime.moving_world import Event, Manager, ManagerCrash, World

MOVE = Move(1, "q", "a", "b")
ORDER = [Step.PREPARE, Step.STOP, Step.HAND_OVER, Step.REWIRE, Step.START, Step.CONFIRM, Step.CLEAN]


@pytest.fixture(scope="module", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@contextmanager
def world(**how: object) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        yield World(Path(folder), **how)  # type: ignore[arg-type]


def begun(made: World, site: str = "a") -> Manager:
    """A manager that has started every job at a site, before anything happens."""
    events, made.events = made.events, []
    manager = Manager(made)
    for job in made.jobs:
        manager.sites.start(job, site)
    made.events, made.points = events, 0
    return manager


def finish(made: World, lives: int = 12) -> None:
    """New managers, one after the other, until every move has ended; in the end all sites are there."""
    for life in range(lives):
        if life > 3:
            made.mend_all()
        with suppress(ManagerCrash, HeadraceError):
            manager = Manager(made)
            manager.relocator.resume()
            if not made.open_moves() and not rescued(made, manager):
                return
    raise AssertionError(f"moves are still open: {made.open_moves()}")


def rescued(made: World, manager: Manager) -> bool:
    """A site that dies once the first batch was seen there, or before a move was begun, is lost by itself,
    as at any other time: whoever watches the sites moves its jobs. And a job that has failed at the only site
    that answers stays there: whoever watches the jobs starts it again."""
    if made.copies("q"):
        return False
    was = made.ended[-1].site if made.ended else "a"
    assert made.places[was].died or any("the reply was lost" in one.reason for one in made.ended)
    manager.relocator.move(Move(100 + len(made.ended), "q", was, "c" if was != "c" else "a"))
    return True


def assert_sound(made: World, job: str = "q") -> None:
    """No batch was given twice or left out."""
    batches = made.given.get(job, [])
    assert batches == list(range(len(batches)))


def test_a_move_does_its_steps_in_order_and_ends_at_the_target() -> None:
    with world() as made:
        outcome = begun(made).relocator.move(MOVE)
        assert outcome.moved and outcome.site == "b" and made.copies("q") == ["b"]
        assert [entry.step for _, entry in made.journal] == ORDER
        assert made.ended == [outcome] and not made.open_moves()
        assert outcome.pause is not None
        assert_sound(made)


class Slow(World):
    """Has batches only when it is told, and remembers when steps were written down."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ticks, self.slept, self.seen = True, 0, list[tuple[Step, int, int]]()

    def tick(self) -> None:
        if self.ticks:
            super().tick()

    def write(self, move: Move, entry: Entry) -> None:
        self.seen.append((entry.step, self.slept, len(self.given["q"])))
        super().write(move, entry)


class Patient(Manager):
    """Whose jobs end a batch after so many looks, if ever."""

    def __init__(self, made: Slow, looks: int | None) -> None:
        super().__init__(made)
        self._made, self._looks = made, looks

    def _sleep(self, seconds: float) -> None:
        super()._sleep(seconds)
        self._made.slept += 1
        self._made.ticks = self._made.slept == self._looks
        self._made.tick()
        self._made.ticks = False


@contextmanager
def slow(commits: tuple[float, ...], looks: int | None) -> Iterator[tuple[Slow, Patient]]:
    """A job at a that has committed batches at these moments."""
    with tempfile.TemporaryDirectory() as folder:
        made = Slow(Path(folder))
        manager = Patient(made, looks)
        manager.sites.start("q", "a")
        for number, moment in enumerate(commits):
            if number == len(made.given["q"]):
                made.tick()
            os.utime(made.state("q", "a") / "checkpoint" / "commits" / str(number), (moment, moment))
        made.ticks = False
        yield made, manager


@pytest.mark.parametrize(
    ("looks", "commits", "planned", "slept", "batches"),
    [
        (2, (10, 12), True, 2, 1),
        (2, (10, 12), False, 2, 1),
        (None, (10, 70), True, 3, 0),
        (None, (10, 70), False, 0, 0),
        (None, (10, 10.4), False, 1, 0),
        (None, (10,), False, 0, 0),
    ],
    ids=[
        "one is running",
        "one comes soon",
        "one takes too long",
        "the next is far off",
        "there is no input",
        "there was only one",
    ],
)
def test_a_job_is_stopped_when_it_has_just_ended_a_batch(
    looks: int | None, commits: tuple[float, ...], planned: bool, slept: int, batches: int
) -> None:
    with slow(commits, looks) as (made, manager):
        before = len(made.given["q"])
        offsets = made.state("q", "a") / "checkpoint" / "offsets"
        offsets.mkdir()
        (offsets / str(before if planned else before - 1)).touch()
        with suppress(EngineError):
            manager.relocator.carry(MOVE)
        assert made.seen[0] == (Step.STOP, slept, before + batches)


def test_a_job_that_ends_is_not_waited_for() -> None:
    with slow((10, 12), None) as (made, manager):
        # Whoever has its state by heart hears of the end only by asking how far it is.
        asked: list[str] = []

        def progress(job: str) -> Progress:
            asked.append(job)
            return Progress(job, JobState.FAILED)

        manager.sites.progress = progress  # type: ignore[method-assign]
        with suppress(EngineError):
            manager.relocator.carry(MOVE)
        assert asked and made.seen[0][:2] == (Step.STOP, 0)


@pytest.mark.parametrize("wrong", [OSError("stale"), ValueError("half a file"), EngineError("silent")])
def test_a_storage_that_cannot_be_read_is_no_reason_to_end(
    wrong: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> int:
        raise wrong

    with slow((10, 12), None) as (made, manager), monkeypatch.context() as patch:
        patch.setattr("headrace.runtime.relocate.last_committed", fail)
        with suppress(EngineError):
            manager.relocator.carry(MOVE)
        assert made.seen[0][:2] == (Step.STOP, 0)


def test_jobs_that_stand_still_are_carried_without_waiting_for_a_batch() -> None:
    with slow((10, 12), None) as (made, manager):
        with suppress(EngineError):
            manager.relocator.carry_all([MOVE])
        assert made.seen[0][:2] == (Step.STOP, 0)


def test_a_job_is_not_stopped_for_a_target_that_has_died_since() -> None:
    with world() as made:
        manager = begun(made)
        assert manager.relocator.prepare(MOVE) is None
        made.places["b"].die()
        outcome = manager.relocator.carry(MOVE)
        assert (outcome.moved, outcome.site, outcome.reason) == (False, "a", "b does not answer")
        assert made.copies("q") == ["a"] and [e.step for _, e in made.journal] == [Step.PREPARE]
        assert made.ended == [outcome]


def test_moves_that_are_resumed_are_all_started_before_one_is_waited_for() -> None:
    jobs = ("p", "q", "r")
    with world(jobs=jobs) as made:
        manager = begun(made)
        made.tick()
        made.places["a"].die()
        for number, job in enumerate(jobs):
            made.write(Move(number, job, "a", "b"), Entry(Step.STOP, "a"))
        manager.relocator.resume({2})
        steps = [(move.job, entry.step) for move, entry in made.journal]
        assert steps.index(("q", Step.START)) < steps.index(("p", Step.CLEAN))
        assert made.copies("p") == made.copies("q") == ["b"] and made.copies("r") == []
        manager.relocator.resume()
        assert made.copies("r") == ["b"]


def test_a_target_that_cannot_be_prepared_leaves_the_job_alone() -> None:
    with world() as made:
        manager = begun(made)
        made.places["b"].die()
        outcome = manager.relocator.move(MOVE)
        assert not outcome.moved and outcome.site == "a" and "does not answer" in outcome.reason
        assert made.copies("q") == ["a"] and [e.step for _, e in made.journal] == [Step.PREPARE]


def test_a_dead_source_is_left_for_the_target() -> None:
    with world() as made:
        manager = begun(made)
        made.tick()
        made.places["a"].die()
        outcome = manager.relocator.move(MOVE)
        assert outcome.moved and made.copies("q") == ["b"]
        assert_sound(made)


def test_a_source_that_may_still_run_it_is_waited_for() -> None:
    with world(proven=False) as made:
        manager = begun(made)
        made.places["a"].reachable = False
        with pytest.raises(EngineError, match="may still run"):
            manager.relocator.move(MOVE)
        assert made.copies("q") == ["a"] and made.open_moves()
        made.mend_all()
        finish(made)
        assert len(made.copies("q")) == 1
        assert_sound(made)


def test_storage_that_is_not_shared_is_copied_and_the_old_one_retired() -> None:
    with world(shared=False) as made:
        manager = begun(made)
        made.tick()
        assert manager.relocator.move(MOVE).moved
        assert not (made.state("q", "a") / "checkpoint").exists()
        assert manager.relocator.move(Move(2, "q", "b", "a")).moved
        assert made.copies("q") == ["a"] and (made.state("q", "a") / "checkpoint").is_dir()
        assert_sound(made)


def test_several_jobs_move_at_once() -> None:
    jobs = ("p", "q", "r")
    with world(jobs=jobs) as made:
        manager = begun(made)
        moves = [Move(number, job, "a", "b") for number, job in enumerate(jobs)]
        outcomes = manager.relocator.move_all(moves)
        assert all(isinstance(one, Outcome) and one.moved for one in outcomes)
        assert all(made.copies(job) == ["b"] for job in jobs)


def test_jobs_of_a_dead_site_are_all_started_before_one_is_waited_for() -> None:
    jobs = ("p", "q", "r")
    with world(jobs=jobs) as made:
        manager = begun(made)
        made.tick()
        made.places["a"].die()
        moves = [Move(number, job, "a", "b") for number, job in enumerate(jobs)]
        outcomes = manager.relocator.carry_all(moves, "a")
        assert all(isinstance(one, Outcome) and one.moved for one in outcomes)
        steps = [(move.job, entry.step) for move, entry in made.journal]
        assert steps.index(("r", Step.START)) < steps.index(("p", Step.CLEAN))
        for job in jobs:
            assert made.copies(job) == ["b"]
            assert_sound(made, job)


def test_one_that_cannot_be_started_does_not_keep_the_others() -> None:
    jobs = ("p", "q", "r")
    with world(jobs=jobs) as made:
        manager = begun(made)
        made.places["a"].die()
        made.places["b"].die()
        moves = [Move(1, "p", "a", "c"), Move(2, "q", "a", "b"), Move(3, "r", "a", "c")]
        p, q, r = manager.relocator.carry_all(moves, "a")
        assert isinstance(p, Outcome) and p.moved and isinstance(r, Outcome) and r.moved
        assert isinstance(q, Outcome) and (q.moved, q.site) == (False, "c")
        made.places["c"].die()
        assert all(isinstance(one, EngineError) for one in manager.relocator.carry_all(moves, "a"))


def carried(made: World) -> None:
    """Both jobs of a dead site, to another one."""
    manager = begun(made)
    made.tick()
    made.places["a"].die()
    with suppress(ManagerCrash):
        manager.relocator.carry_all([Move(1, "p", "a", "b"), Move(2, "q", "a", "b")], "a")


@pytest.mark.parametrize("what", ["crash", "kill b", "cut b", "lose"])
def test_whatever_happens_while_several_are_carried_there_is_one_copy_of_each(what: str) -> None:
    jobs = ("p", "q")
    with world(jobs=jobs) as made:
        carried(made)
        count = made.points
    assert count > 20
    for point in range(count):
        with world(jobs=jobs, events=[Event(point, what)]) as made:
            carried(made)
            made.mend_all()
            manager = Manager(made)
            manager.relocator.resume()
            at = {one.move.job: one.site for one in made.ended}
            lost = [job for job in jobs if not made.copies(job)]
            again = [Move(10 + n, job, at.get(job, "a"), "c") for n, job in enumerate(lost)]
            assert all(isinstance(one, Outcome) for one in manager.relocator.carry_all(again))
            made.tick()
            for job in jobs:
                assert len(made.copies(job)) == 1
                assert_sound(made, job)


def test_hooks_are_told_before_the_start() -> None:
    with world() as made:
        told: list[tuple[str, str, tuple[str, ...]]] = []
        manager = begun(made)
        manager.relocator._hooks = [lambda move, site: told.append((move.job, site, tuple(made.copies("q"))))]
        manager.relocator.move(MOVE)
        assert told == [("q", "b", ())]


def count_points() -> int:
    with world() as made:
        begun(made).relocator.move(MOVE)
        return made.points


@pytest.mark.parametrize("what", ["crash", "kill a", "kill b", "cut a", "cut b", "lose"])
@pytest.mark.parametrize("shared", [True, False])
def test_whatever_happens_at_any_point_there_is_one_copy(what: str, shared: bool) -> None:
    for point in range(count_points()):
        with world(events=[Event(point, what)], shared=shared) as made:
            with suppress(ManagerCrash, HeadraceError):
                begun(made).relocator.move(MOVE)
            handed = any(entry.step is Step.HAND_OVER for _, entry in made.journal)
            finish(made)
            assert len(made.copies("q")) == 1, f"{what} at {point}"
            if what == "crash":
                assert made.copies("q") == ["b" if handed else "a"], f"crash at {point}"
            assert_sound(made)


@pytest.mark.parametrize("shared", [True, False])
def test_a_start_that_fails_is_not_taken_for_a_copy(shared: bool) -> None:
    """The target dies between the question and the start; another life moves on, by the fence alone."""
    with world(events=[Event(0, "crash"), Event(5, "kill b")], shared=shared) as made:
        with suppress(ManagerCrash):
            begun(made).relocator.move(MOVE)
        for number in (2, 3):
            with suppress(HeadraceError):
                Manager(made).relocator.move(Move(number, "q", "a", "b"))
        finish(made)
        assert len(made.copies("q")) == 1
        assert_sound(made)


happenings = st.sampled_from(
    ["crash", "crash", "kill a", "kill b", "kill c", "cut a", "cut b", "mend a", "mend b", "lose"]
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 80), happenings), max_size=6),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3),
)
def test_any_sequence_of_crashes_ends_in_one_copy_and_every_batch_once(
    events: list[tuple[int, str]], shared: bool, proven: bool, targets: list[str]
) -> None:
    with world(events=[Event(*event) for event in events], shared=shared, proven=proven) as made:
        manager, site = begun(made), "a"
        for number, target in enumerate(targets, start=1):
            if target == site:
                continue
            try:
                manager.relocator.move(Move(number, "q", site, target))
            except (ManagerCrash, HeadraceError):
                # Jobs that another life has started are moved by the fence alone.
                manager = Manager(made)
            finish(made)
            [site] = made.copies("q")
        assert len(made.copies("q")) == 1
        assert_sound(made)


def test_a_crashed_life_knows_where_to_look() -> None:
    facts: dict[str, str | int] = {"from": "a", "fingerprint": "p", "batch": 3}
    entries = [Entry(Step.STOP, "a")]
    assert wanted_at(MOVE, entries) == home_of(MOVE, entries) == "a" and suspects(MOVE, entries) == ["a"]
    entries.append(Entry(Step.HAND_OVER, "b", facts))
    assert wanted_at(MOVE, entries) == "b" and home_of(MOVE, entries) == "a"
    entries += [Entry(Step.REWIRE, "b"), Entry(Step.START, "b")]
    assert home_of(MOVE, entries) == "b" and suspects(MOVE, entries) == ["a", "b"]
