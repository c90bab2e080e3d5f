"""kill -9 at the steps of a change: all of them where queries come and go, every fourth elsewhere."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.service.change_kills import SCENARIOS, Kills, scratch

ALL = ("add and drop", "pending")


@pytest.mark.parametrize("name", SCENARIOS)
def test_kills(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch() as folder:
        kills = Kills(folder, monkeypatch)
        steps = itertools.count(0, 1 if name in ALL else 4)
        done = list(itertools.takewhile(lambda step: step is not None, (kills.at(name, n) for n in steps)))
    kinds = {step.split(" ")[0] for step in done if step}
    assert kinds >= ({"transaction", "start", "stop", "batch", "remove"} if name in ALL else {"transaction"})
