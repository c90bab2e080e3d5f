"""Checkpoints that go from one storage to another: killed at every step, one is valid, and it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.runtime.copies import digests
from headrace.runtime.storage import (
    CHECKPOINT,
    MARKER,
    Step,
    StorageSilent,
    forget,
    keep_at,
    kept_in,
    named,
    sweep,
    tidy,
)

PLACES = ("own", "fast", "slow")


class Killed(BaseException):
    """Nobody catches it."""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr("time.sleep", lambda _: None)


class Job:
    """With a folder of its own and two storages."""

    def __init__(self, root: Path) -> None:
        self.root, self.state = root, root / "jobs" / "q"
        for name in ("fast", "slow"):
            (root / name).mkdir(parents=True)
        self.state.mkdir(parents=True)
        self.batches = 0

    def place(self, name: str) -> Path | None:
        return None if name == "own" else self.root / name / "q"

    def begin(self, name: str) -> None:
        keep_at(self.state, self.place(name))
        self.batch()

    def batch(self) -> None:
        """As Spark does: under the name in the job's folder, making folders where there are none."""
        folder = self.state / CHECKPOINT / "commits"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(self.batches)).write_text(f"v1 {self.batches}")
        self.batches += 1

    def whole(self) -> bool:
        return set(digests(kept_in(self.state))) == {f"commits/{one}" for one in range(self.batches)}

    def at(self) -> Path:
        return named(self.state / CHECKPOINT)

    def expected(self, name: str) -> Path:
        return self.place(name) or self.state / CHECKPOINT


def jobs(root: Path) -> Iterator[Job]:
    number = 0
    while True:
        number += 1
        yield Job(root / str(number))


@pytest.mark.parametrize(("before", "after"), list(product(PLACES, PLACES)))
def test_from_any_place_to_any_other(tmp_path: Path, before: str, after: str) -> None:
    job = Job(tmp_path)
    job.begin(before)
    copied = keep_at(job.state, job.place(after))
    assert copied == (before != after) and job.whole() and job.at() == job.expected(after)
    job.batch()
    tidy(job.state, [job.place(one) for one in PLACES])
    left = [path for path in tmp_path.rglob("*") if path.name == "commits" and not path.parent.is_symlink()]
    assert job.whole() and len(left) == 1 and not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(("before", "after"), list(permutations(PLACES, 2)))
@pytest.mark.parametrize("then", PLACES)
def test_killed_at_every_step_it_goes_on_to_where_it_is_wanted_then(
    tmp_path: Path, before: str, after: str, then: str
) -> None:
    made, steps = jobs(tmp_path), 0
    while True:
        job, seen = next(made), 0
        job.begin(before)

        def kill(_: str, job: Job = job, most: int = steps) -> None:
            nonlocal seen
            assert job.whole(), "at every step what is valid is whole"
            seen += 1
            if seen > most:
                raise Killed

        try:
            keep_at(job.state, job.place(after), kill)
        except Killed:
            steps += 1
        else:
            break
        assert job.whole()
        keep_at(job.state, job.place(then))
        assert job.whole() and job.at() == job.expected(then)
        job.batch()
        tidy(job.state, [job.place(one) for one in PLACES])
        assert job.whole()
    assert steps >= 5


def test_a_second_kill_on_the_way_back(tmp_path: Path) -> None:
    """Killed at each step of the way there, and then at each step of the way on."""
    made = jobs(tmp_path)
    for first, second in product(range(8), range(8)):
        job = next(made)
        job.begin("fast")
        for wanted, count in (("own", first), ("slow", second)):
            left = iter(range(count))

            def kill(_: str, left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    raise Killed

            try:
                keep_at(job.state, job.place(wanted), kill)
            except Killed:
                assert job.whole()
        keep_at(job.state, job.place("fast"))
        assert job.whole() and job.at() == job.expected("fast")


def test_who_writes_under_the_old_name_finds_nothing(tmp_path: Path) -> None:
    """A site that was taken for dead, and is not, in the midst of the copy."""
    job = Job(tmp_path)
    job.begin("fast")
    failed = []

    def zombie(step: str) -> None:
        if step == "arrive":
            try:
                job.batch()
            except OSError:
                failed.append(step)

    keep_at(job.state, job.place("slow"), zombie)
    assert failed == ["arrive"] and job.whole()


@pytest.mark.parametrize("after", PLACES)
def test_what_cannot_be_read_is_not_started_over(tmp_path: Path, after: str) -> None:
    job = Job(tmp_path)
    job.begin("fast")
    (tmp_path / "fast").rename(tmp_path / "unplugged")
    for _ in range(2):
        with pytest.raises(StorageSilent, match="cannot be read here") as caught:
            keep_at(job.state, job.place(after))
        assert "--fresh" in caught.value.hint and job.at() == job.expected("fast")
    with pytest.raises(StorageSilent):
        kept_in(job.state)
    (tmp_path / "unplugged").rename(tmp_path / "fast")
    keep_at(job.state, job.place(after))
    assert job.whole() and job.at() == job.expected(after)


def test_a_place_that_cannot_take_it_leaves_it_where_it_is(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.begin("fast")
    shutil.rmtree(tmp_path / "slow")
    with pytest.raises(EngineError, match="cannot take the checkpoint of q"):
        keep_at(job.state, job.place("slow"))
    assert job.whole()
    keep_at(job.state, job.place("fast"))
    assert job.whole() and job.at() == job.expected("fast")


def test_a_copy_that_is_not_the_same_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path)
    job.begin("fast")

    def damage(copy: Path) -> None:
        (copy / "commits" / "0").write_text("v1 X")

    monkeypatch.setattr("headrace.runtime.copies.make_durable", damage)
    with pytest.raises(EngineError, match="not copied whole") as caught:
        keep_at(job.state, job.place("slow"))
    assert caught.value.detail == "Differs: commits/0" and job.whole()
    monkeypatch.undo()
    keep_at(job.state, job.place("slow"))
    assert job.whole() and job.at() == job.expected("slow")


def test_what_another_has_left_at_the_place_is_no_checkpoint(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for name in ("q", ".leaving-q", ".arriving-q"):
        (tmp_path / "fast" / name / "commits").mkdir(parents=True)
        (tmp_path / "fast" / name / "commits" / "77").write_text("v1")
    job.begin("fast")
    assert job.whole()


@pytest.mark.parametrize(("one", "other"), list(permutations(PLACES, 2)))
def test_what_an_earlier_visit_has_left_is_no_checkpoint(tmp_path: Path, one: str, other: str) -> None:
    """Nothing was tidied, as when its storage could not be reached."""
    job = Job(tmp_path)
    job.begin(one)
    for place in (other, one, other, one):
        keep_at(job.state, job.place(place))
        job.batch()
        assert job.whole() and job.at() == job.expected(place)


@pytest.mark.parametrize("alias", ["link", "mounted"])
def test_a_storage_under_two_names_is_one(tmp_path: Path, alias: str) -> None:
    """By a link, or mounted twice: there the folders are different ones to the system."""
    job = Job(tmp_path)
    job.begin("fast")
    if alias == "link":
        (tmp_path / "other").symlink_to(tmp_path / "fast")
    else:
        (tmp_path / "fast" / MARKER).write_text("one storage")
        shutil.copytree(tmp_path / "fast", tmp_path / "other")
    sweep(tmp_path / "other", tmp_path / "jobs")
    assert (tmp_path / "other" / "q").is_dir()
    assert not keep_at(job.state, tmp_path / "other" / "q")
    tidy(job.state, [None, tmp_path / "other" / "q", tmp_path / "fast" / "q"])
    assert job.whole() and (tmp_path / "other" / "q").is_dir()


def test_nothing_is_swept_while_it_is_not_known_what_is_used(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.begin("fast")
    (tmp_path / "slow" / "q").mkdir()
    (tmp_path / "fast").rename(tmp_path / "away")
    sweep(tmp_path / "slow", tmp_path / "jobs")
    assert (tmp_path / "slow" / "q").is_dir()
    (tmp_path / "away").rename(tmp_path / "fast")
    sweep(tmp_path / "slow", tmp_path / "jobs")
    assert not (tmp_path / "slow" / "q").exists() and job.whole()


def test_half_a_copy_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path)
    job.begin("fast")

    def full(source: Path, staged: Path) -> str:
        shutil.copytree(source, staged, dirs_exist_ok=True)
        return "No space left on device"

    monkeypatch.setattr("headrace.runtime.storage.difference", full)
    with pytest.raises(EngineError, match="not copied whole"):
        keep_at(job.state, job.place("slow"))
    assert not any((tmp_path / "slow").iterdir())
    monkeypatch.undo()
    assert job.whole()


def test_the_sweep_keeps_what_is_named(tmp_path: Path) -> None:
    job, fast = Job(tmp_path), tmp_path / "fast"
    job.begin("fast")
    for name in ("gone", ".leaving-gone", ".arriving-q", ".rehearsal-q"):
        (fast / name).mkdir()
    (fast / "a-file").write_text("x")
    sweep(fast, job.state.parent)
    assert sorted(one.name for one in fast.iterdir()) == ["a-file", "q"] and job.whole()
    with pytest.raises(Killed):
        keep_at(job.state, None, kill_at("copy"))
    sweep(fast, job.state.parent)
    assert [one.name for one in fast.iterdir() if one.is_dir()] == [".leaving-q"] and job.whole()
    keep_at(job.state, None)
    sweep(fast, job.state.parent)
    assert not [one for one in fast.iterdir() if one.is_dir()] and job.whole()
    sweep(tmp_path / "nowhere", job.state.parent)


def test_what_is_forgotten_is_gone_from_the_storage_that_is_named_only(tmp_path: Path) -> None:
    job, fast = Job(tmp_path), tmp_path / "fast"
    job.begin("fast")
    forget(job.state, [tmp_path / "slow"])
    assert job.whole()
    forget(job.state, [fast])
    assert not list(fast.iterdir())
    forget(job.state, [fast])


def kill_at(name: str) -> Step:
    def step(now: str) -> None:
        if now == name:
            raise Killed

    return step
