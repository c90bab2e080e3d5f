"""kill -9 in the midst of a change: whatever step it hits, the next run carries the change through, and no
query loses a window or gets one that it should not. Every step of all of it: tests/deep/service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.service.change_kills import SCENARIOS, Kills, scratch

STRIDE = 9


@pytest.mark.parametrize("name", SCENARIOS)
def test_kills(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch() as folder:
        kills = Kills(folder, monkeypatch)
        steps = [kills.at(name, step) for step in range(0, 60, STRIDE)]
        assert steps[0] is not None, "nothing was killed"
        assert steps[-1] is None, "the run goes on after the last step that was tried"


def test_the_check_finds_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that was lost, and one that was given too much."""
    with scratch() as folder:
        kills = Kills(folder, monkeypatch)
        assert kills.at("drop a tree", 0) is not None
        part = kills.root / "results" / "a" / "part-000002.json"
        part.unlink()
        with pytest.raises(AssertionError):
            kills.ground().check_answers()
        part.write_text("{}\n")
        kills.ground().check_answers()
        (part.parent / "part-000099.json").write_text("{}\n")
        with pytest.raises(AssertionError):
            kills.ground().check_answers()
