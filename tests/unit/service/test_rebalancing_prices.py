"""What a move is taken to cost: what moving has cost before, and no outage, nor the time without input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.runtime.relocate import Entry, Move, Outcome, Step
from headrace.service.rebalancing import how_of, measured_rules, priced
from headrace.state.moves import Moves
from tests.unit.runtime.moving_world import Manager, World
from tests.unit.service.served import project
from tests.unit.service.test_rebalancing import gathered

STOOD = 3.0
"""Seconds from the stop to the first batch, by the manager's clock."""


@pytest.fixture
def moves(tmp_path: Path) -> Iterator[Moves]:
    with Moves(tmp_path / "state.db", lambda: "2024-01-01T00:00:00+00:00") as made:
        yield made


class Recorded(World):
    """The journal is the real one. Starting takes its time."""

    moves: Moves
    manager: Manager

    def write(self, move: Move, entry: Entry) -> None:
        if entry.step is Step.START:
            self.manager._now += STOOD
        self.moves.write(move, entry)

    def end(self, outcome: Outcome) -> None:
        self.moves.end(outcome)


def begun(root: Path, moves: Moves) -> tuple[Recorded, Manager, Move]:
    made = Recorded(root)
    made.moves = moves
    made.manager = Manager(made)
    made.manager.sites.start("q", "a")
    return made, made.manager, Move(moves.ask("q", "a", "b"), "q", "a", "b")


def paused(monkeypatch: pytest.MonkeyPatch, seconds: float | None) -> None:
    """Between the last batch at the old site and the first at the new one."""
    monkeypatch.setattr("headrace.runtime.relocate.pause_after", lambda state, batch: seconds)


def price(moves: Moves) -> float | None:
    (record,) = priced(moves, moves.latest(9))
    assert record.state == "moved"
    return record.pause


@pytest.mark.parametrize(
    ("pause", "paid"), [(600.0, STOOD), (2.25, 2.25), (STOOD, STOOD), (None, None), (-1.0, 0.0)]
)
def test_a_quiet_job_is_not_dear(
    tmp_path: Path, moves: Moves, monkeypatch: pytest.MonkeyPatch, pause: float | None, paid: float | None
) -> None:
    """What is told of the move stays as it was."""
    paused(monkeypatch, pause)
    _, manager, move = begun(tmp_path, moves)
    assert manager.relocator.move(move).pause == pause
    (record,) = moves.latest(1)
    assert record.pause == pause and price(moves) == paid


@pytest.mark.parametrize("revived", [False, True])
def test_a_rescue_has_no_price(
    tmp_path: Path, moves: Moves, monkeypatch: pytest.MonkeyPatch, revived: bool
) -> None:
    """A site that is lost, or that was and is back: nothing is prepared, and the job stood still anyway."""
    paused(monkeypatch, 600.0)
    world, manager, move = begun(tmp_path, moves)
    world.places["a"].die()
    if revived:
        world.places["a"].alive = True
    assert manager.relocator.carry(move).pause == 600.0
    assert price(moves) is None


def test_a_move_whose_source_dies_meanwhile_has_no_price(
    tmp_path: Path, moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(monkeypatch, 600.0)
    world, manager, move = begun(tmp_path, moves)
    assert manager.relocator.prepare(move) is None
    world.places["a"].die()
    assert manager.relocator.carry(move).pause == 600.0
    assert price(moves) is None


def test_a_move_that_is_resumed_has_no_price(
    tmp_path: Path, moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(monkeypatch, 600.0)
    world, manager, move = begun(tmp_path, moves)
    for entry in (Entry(Step.PREPARE, "b"), Entry(Step.STOP, "a")):
        moves.write(move, entry)
    manager.sites.stop("q", "a")
    world.places["a"].die()
    world.open_moves = moves.open_moves  # type: ignore[method-assign]
    (outcome,) = manager.relocator.resume()
    assert isinstance(outcome, Outcome) and outcome.moved and outcome.pause == 600.0
    assert price(moves) is None


def test_an_outage_is_no_price_for_those_who_come_after(tmp_path: Path, moves: Moves) -> None:
    """Rescues with a pause of ten minutes, and one true move: only that says what moves cost."""
    for job in "abc":
        move = Move(moves.ask(job, "north", "east"), job, "north", "east")
        moves.write(move, Entry(Step.STOP, "north"))
        moves.write(move, Entry(Step.CLEAN, "east"))
        moves.end(Outcome(move, "east", True, 600.0))
    made, rules = project(tmp_path, "abc"), how_of("ours", "cpu").rules
    found = measured_rules(rules, made, gathered(a="east"), priced(moves, moves.latest(9)), 1e9)
    assert not found.pauses and found.pause == rules.pause
    move = Move(moves.ask("a", "east", "west"), "a", "east", "west")
    for entry in (Entry(Step.PREPARE, "west"), Entry(Step.CLEAN, "west", {"price": 1500})):
        moves.write(move, entry)
    moves.end(Outcome(move, "west", True, 7200.0))
    found = measured_rules(rules, made, gathered(a="west"), priced(moves, moves.latest(9)), 1e9)
    assert dict(found.pauses) == {"a": 1.5} and found.pause == 1.5
