"""The journal of moves: what is kept of those that have ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime.relocate import Entry, Move, Outcome, Step
from headrace.state import moves as journal
from headrace.state.moves import Moves


def test_only_the_latest_ended_moves_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_KEPT", 3)
    moment = iter(range(1000))
    with Moves(tmp_path / "state.db", lambda: f"{next(moment):04}") as moves:
        oldest = moves.ask("open", "east", "west")
        moves.write(Move(oldest, "open", "east", "west"), Entry(Step.PREPARE, "west"))
        asked = []
        for number in range(6):
            asked.append(moves.ask(f"j{number}", "east", "west"))
            move = Move(asked[-1], f"j{number}", "east", "west")
            moves.write(move, Entry(Step.PREPARE, "west"))
            moves.end(Outcome(move, "west", True))
        moves.refuse(moves.ask("no", "east", "west"), "no")
        last = moves.ask("last", "east", "west")
        kept = [record.id for record in moves.latest(100)]
        assert kept == [last, last - 1, *reversed(asked[-2:]), oldest], "three that ended, and the open ones"
        assert [bool(moves.entries(one)) for one in (oldest, *asked)] == [True] + [False] * 4 + [True] * 2
        assert moves.homes() == {f"j{number}": "west" for number in range(6)}
        # One that was open for long has ended just now: it is among the latest.
        moves.end(Outcome(Move(oldest, "open", "east", "west"), "west", True))
        moves.refuse(last, "no")
        moves.ask("again", "east", "west")
        assert oldest in [record.id for record in moves.latest(100)] and moves.get(asked[-2]) is None


def test_only_what_was_moved_has_a_home(tmp_path: Path) -> None:
    with Moves(tmp_path / "state.db", lambda: "now") as moves:

        def ended(source: str, target: str, site: str) -> dict[str, str]:
            move = Move(moves.ask("j", source, target), "j", source, target)
            moves.end(Outcome(move, site, site == target))
            return dict(moves.homes())

        assert ended("east", "west", "east") == {}, "it stayed"
        assert ended("east", "east", "east") == {}, "it was started again where it was"
        assert ended("east", "west", "south") == {"j": "south"}, "it has come to lie elsewhere"
        assert ended("south", "west", "south") == {"j": "south"}
        assert ended("south", "east", "east") == {"j": "east"}, "it was moved there, whatever the file says"
