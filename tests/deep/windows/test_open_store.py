"""What is in the store is what is open, whatever came and went, and little of it is written each time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from headrace.runtime.windows.open_store import OpenStore, is_open
from headrace.runtime.windows.rows import Rows


def rows_at(starts: list[int]) -> Rows:
    found = np.array(sorted(starts), np.int64)
    return Rows(found, np.zeros(len(found), np.int32), np.zeros(len(found), np.int32), [], [])


@pytest.mark.parametrize("seed", range(20))
def test_the_store_has_what_is_open(seed: int) -> None:
    chance = random.Random(seed)
    step, at_once = chance.choice([1, 1000, 10**6, 10**9]), chance.choice([1, 40, 400])
    store, items = OpenStore(), dict[str, list[int]]()
    held: list[int] = []
    for now in range(0, 300, 3):
        came = [step * (now + chance.randint(-5, 5)) for _ in range(at_once)]
        came += [step * (now + 100_000)] if chance.random() < 0.02 else []
        closed = step * (now - chance.choice([0, 10, 30, 100]))
        gone = [start for start in held if start < closed]
        held = [start for start in held if start >= closed] + came
        held = held if chance.random() > 0.03 else []
        touched = np.array(came + gone, np.int64)
        puts, deletes = store.changes(rows_at(held) if held else None, touched)
        assert not puts.keys() & set(deletes)
        for name in deletes:
            del items[name]
        items |= {name: rows.starts.tolist() for name, rows in puts.items()}
        assert sorted(start for item in items.values() for start in item) == sorted(held)
        assert all(map(is_open, items)) and len(items) <= 64
        if chance.random() < 0.1:
            store = OpenStore(items)


def test_little_is_written_where_much_is_open() -> None:
    """600 open fragments of 200 keys, of which one comes and one goes each time."""
    store, written = OpenStore(), list[int]()
    for now in range(600, 700):
        held = rows_at([10**6 * start for start in range(now - 600, now) for _ in range(200)])
        puts, _ = store.changes(held, np.array([(now - 1) * 10**6, (now - 601) * 10**6]))
        written.append(sum(map(len, puts.values())))
    assert written[0] == 120_000 and sum(written[1:]) < 99 * 12_000
