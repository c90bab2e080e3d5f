"""Moves between sites that keep checkpoints in storages of their own: whatever happens at whatever point,
also in the midst of a copy, there is one checkpoint, one copy of the job, and every batch once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import HeadraceError
from headrace.runtime.relocate import Move, Step, Unsettled
from headrace.runtime.storage import CHECKPOINT, keep_at, named
from tests.deep.runtime.test_relocate import MOVE, assert_sound, begun, finish, happenings, world
from tests.unit.runtime.moving_world import SITES, Event, Manager, ManagerCrash, World


@pytest.fixture(scope="module", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@contextmanager
def fast(**how: object) -> Iterator[World]:
    """Every step on disk is a point, too. The last site has checkpoints where all else is."""
    with world(fast=True, **how) as made, pytest.MonkeyPatch.context() as patch:
        for site in SITES[:-1]:
            (made.root / f"fast-{site}").mkdir()
        patch.setattr("headrace.runtime.relocate.keep_at", partial(keep_at, step=lambda _: made.point()))
        yield made


def place(made: World) -> Path:
    return named(made.state("q", "a") / CHECKPOINT)


def checkpoints(made: World) -> list[Path]:
    """All folders with batches, wherever they are."""
    return [path.parent for path in made.root.rglob("commits") if not path.parent.is_symlink()]


def assert_placed(made: World) -> None:
    """The checkpoint is where the site that runs the job has it."""
    [site] = made.copies("q")
    storage = made.storage(site)
    assert place(made) == (made.state("q", site) / CHECKPOINT if storage is None else storage / "q")


def test_the_checkpoint_goes_with_the_job_and_the_old_one_is_removed() -> None:
    with fast() as made:
        manager = begun(made)
        made.tick()
        for number, (source, target) in enumerate((("a", "b"), ("b", "c"), ("c", "a")), start=1):
            assert manager.relocator.move(Move(number, "q", source, target)).moved
            assert_placed(made)
            assert checkpoints(made) == [place(made)]
        assert not list(made.root.rglob(".leaving-*")) + list(made.root.rglob(".arriving-*"))
        assert_sound(made)


@pytest.mark.parametrize("what", ["crash", "kill a", "kill b", "cut a", "cut b", "lose"])
@pytest.mark.parametrize("target", ["b", "c"])
def test_whatever_happens_at_any_point_there_is_one_checkpoint(what: str, target: str) -> None:
    move = Move(1, "q", "a", target)
    with fast() as made:
        begun(made).relocator.move(move)
        count = made.points
    assert count > 30
    for point in range(count):
        with fast(events=[Event(point, what)]) as made:
            with suppress(ManagerCrash, HeadraceError):
                begun(made).relocator.move(move)
            handed = any(entry.step is Step.HAND_OVER for _, entry in made.journal)
            finish(made)
            made.tick()
            if what == "crash":
                assert made.copies("q") == [target if handed else "a"], f"crash at {point}"
            assert_placed(made)
            assert_sound(made)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 120), happenings), max_size=6),
    st.booleans(),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3),
)
def test_any_sequence_of_crashes_ends_in_one_checkpoint_and_every_batch_once(
    events: list[tuple[int, str]], proven: bool, targets: list[str]
) -> None:
    with fast(events=[Event(*event) for event in events], proven=proven) as made:
        manager, site = begun(made), "a"
        for number, target in enumerate(targets, start=1):
            if target == site:
                continue
            try:
                manager.relocator.move(Move(number, "q", site, target))
            except (ManagerCrash, HeadraceError):
                manager = Manager(made)
            finish(made)
            [site] = made.copies("q")
        made.tick()
        assert_placed(made)
        assert_sound(made)


def test_a_storage_that_went_with_its_site_is_waited_for() -> None:
    with fast() as made:
        manager = begun(made)
        made.tick()
        made.places["a"].die()
        away = made.root / "unplugged"
        (made.root / "fast-a").rename(away)
        with pytest.raises(Unsettled, match="cannot be read here") as caught:
            manager.relocator.move(MOVE)
        assert "--fresh" in caught.value.message and not made.copies("q") and made.open_moves()
        # Another life of the manager does not start it over either, nor does a site that is back.
        [error] = Manager(made).relocator.resume()
        made.mend_all()
        [again] = Manager(made).relocator.resume()
        assert isinstance(error, Unsettled) and isinstance(again, Unsettled) and not made.copies("q")
        away.rename(made.root / "fast-a")
        finish(made)
        made.tick()
        assert_placed(made)
        assert_sound(made)


def test_a_target_whose_storage_takes_nothing_sends_it_back() -> None:
    with fast() as made:
        manager = begun(made)
        made.tick()
        (made.root / "fast-b").rmdir()
        outcome = manager.relocator.move(MOVE)
        assert not outcome.moved and outcome.site == "a" and "cannot take the checkpoint" in outcome.reason
        made.tick()
        assert_placed(made)
        assert_sound(made)
