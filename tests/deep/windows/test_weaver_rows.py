from __future__ import annotations

import random

import pytest

from headrace.runtime.windows import scan
from tests.unit.runtime.windows.weaving import (
    KEYS,
    Run,
    arrivals,
    random_members,
    steady_with_late_rows,
)


@pytest.mark.parametrize("seed", range(8))
def test_every_window_holds_the_rows_that_came_in_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd seeds have small tiles, so that totals of tiles, and of these, are made and repaired too."""
    if seed % 2:
        monkeypatch.setattr(scan, "TILE", 4)
        monkeypatch.setattr(scan, "DIRECT", seed % 4)
    chance = random.Random(seed)
    delay = chance.choice([0, 10, 200])
    run = Run(random_members(chance, chance.randint(1, 5), "q"), KEYS, chance, delay)
    for rows in arrivals(chance, 120, delay):
        run.batch(rows)
        if chance.random() < 0.2:
            run.restart()
    run.finish()


@pytest.mark.parametrize("seed", range(8))
def test_queries_come_and_go(seed: int) -> None:
    chance = random.Random(seed)
    delay = chance.choice([0, 10, 200])
    run = Run(random_members(chance, 3, "q"), KEYS, chance, delay)
    for number, rows in enumerate(arrivals(chance, 120, delay)):
        run.batch(rows)
        if number in (2, 5):
            gone = {m.name for m in run.tree.members if chance.random() < 0.5}
            run.change(gone, random_members(chance, 2, f"new{number}_"))
    run.finish()


@pytest.mark.parametrize("keys", [0, 1, 3])
def test_late_rows_are_seen_in_all_that_was_made_before(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles, their totals and the totals of these are there when a row comes that belongs in them."""
    monkeypatch.setattr(scan, "TILE", 4)
    monkeypatch.setattr(scan, "DIRECT", 1)
    windows = [(90, 1, None), (89, 1, None), (30, 1, (0,)), (50, 2, None), (55, 10, ()), (1, 1, None)]
    steady_with_late_rows(windows, 180, keys)
