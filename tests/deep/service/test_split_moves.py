"""Split jobs are moved between sites, by command and because a site is lost, while the run is killed at every
step: every window is given once, and there are never two copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import UserError
from headrace.service import moving
from headrace.service.moving import ask_move, moves_of
from headrace.state.moves import Moves
from tests.deep.service.test_switching import COSTS, jump
from tests.unit.service.federated_sample import calibrated
from tests.unit.service.split_moves import World


def _asked(world: World, target: str) -> Callable[[Moves], object]:
    return lambda moves: moves.ask(world.job(), "east", target)


def _lost(world: World) -> Callable[[Moves], object]:
    def die(_: Moves) -> None:
        world.down.add("east")
        world.copies = {key: engine for key, engine in world.copies.items() if key[1] != "east"}

    return die


def test_a_split_job_is_moved_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    world.plot = {6: _asked(world, "west")}
    world.run()
    job = world.job()
    assert any(f"{job} moved from east to west" in note for note in world.notes)
    with moves_of(world.project) as moves:
        assert moves.homes() == {job: "west"}
    before = world.check()
    world.plot, world.notes = {}, []
    world.run(10)
    assert world.check() > before and world.notes == [], "it lives there, also in the next run"


def test_a_split_job_of_a_lost_site_goes_on_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    world.plot = {8: _lost(world)}
    world.run(40)
    assert "site east does not answer: it is taken out" in world.notes
    with moves_of(world.project) as moves:
        assert moves.homes()[world.job()] in ("west", "south")
    assert world.check() > 15


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    world.run(3)
    monkeypatch.setattr(moving, "open_project", lambda path: world.project)
    job = world.job()
    with pytest.raises(UserError, match=f"top is answered by {job}") as found:
        ask_move(world.project.root, "top", "west")
    assert f"headrace move {job} SITE" in (found.value.hint or "")
    with pytest.raises(UserError, match="is at east already"):
        ask_move(world.project.root, job, "east")
    assert ask_move(world.project.root, job, "west")


@pytest.mark.parametrize("what", ["asked", "lost"])
def test_killed_at_every_step_of_a_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    def begun(root: Path) -> World:
        world = World(root, monkeypatch)
        world.plot = {4: _asked(world, "west") if what == "asked" else _lost(world)}
        return world

    probe = begun(tmp_path / "probe")
    probe.killed(10**9, 12)
    steps = probe.death.steps
    first = max(next(i for i, name in enumerate(steps) if name.startswith("clear")) - 6, 0)
    last = max(i for i, name in enumerate(steps) if name.startswith("start")) + 5
    for step in range(first, min(last, len(steps))):
        world = begun(tmp_path / str(step))
        assert world.killed(step, 12)
        before = world.check()
        world.plot = {}
        # Some of the rounds go by until the next run has found out that the site is lost.
        world.run(8)
        assert world.check() >= before + 4, steps[step]
        with moves_of(world.project) as moves:
            assert not moves.open_moves() and not moves.any_asked()


def test_moved_in_the_midst_of_a_handover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that the job has taken stays with what it has kept, wherever it goes."""
    world = World(tmp_path, monkeypatch, "engine: auto", jump)
    calibrated(world.project, COSTS, "east")
    calibrated(world.project, COSTS, "west")
    world.plot = {number: lambda moves: _move_everything(world, moves) for number in range(20, 50, 6)}
    world.run(90)
    assert any("another split is better" in note for note in world.notes)
    assert sum("moved from" in note for note in world.notes) >= 4
    assert world.check() > 40


def _move_everything(world: World, moves: Moves) -> None:
    for job, site in list(world.copies):
        moves.ask(job, site, "west" if site == "east" else "east")
