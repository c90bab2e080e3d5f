"""Random streams, trees, restarts and changes through the weaver, and what may never happen in between."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.runtime.windows import scan
from tests.unit.runtime.windows.weaving import (
    KEYS,
    Run,
    arrivals,
    random_members,
    steady_with_late_rows,
)


@given(st.integers(0, 2**32), st.sampled_from([(64, 4), (4, 4), (4, 1)]))
@settings(max_examples=25, deadline=None)
def test_every_window_holds_the_rows_that_came_in_time(seed: int, tiles: tuple[int, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "TILE", tiles[0])
        patch.setattr(scan, "DIRECT", tiles[1])
        play(random.Random(seed))


def play(chance: random.Random) -> None:
    delay = chance.choice([0, 10, 200])
    run = Run(random_members(chance, chance.randint(1, 6), "q"), KEYS, chance, delay)
    for number, rows in enumerate(arrivals(chance, 120, delay)):
        run.batch(rows)
        if chance.random() < 0.2:
            run.restart()
        if chance.random() < 0.25 and run.weaver.watermark is not None:
            gone = {m.name for m in run.tree.members if chance.random() < 0.5}
            run.change(gone, random_members(chance, chance.randint(1, 3), f"new{number}_"))
    run.finish()


def test_late_rows_are_seen_in_all_that_was_made_before() -> None:
    windows = [(300, 1, None), (299, 1, None), (80, 1, (0,)), (130, 2, None), (135, 10, ())]
    steady_with_late_rows(windows, 480, 0)
