"""Joins of results of windows, made up at random, every order of them, and small input for them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from headrace.service.federating_joins import Order

_AGGREGATES = ("count(*)", "sum(v)", "max(v)", "min(v)")
_KEYS = (("k",), ("p",), ("k", "p"))


def every_order(numbers: Sequence[int]) -> Iterator[Order]:
    """All trees over these inputs, sides not told apart."""
    if len(numbers) == 1:
        yield numbers[0]
        return
    first, *rest = numbers
    for size in range(len(rest)):
        for beside in combinations(rest, size):
            others = [number for number in rest if number not in beside]
            for left in every_order([first, *beside]):
                for right in every_order(others):
                    yield left, right


def random_query(seed: int, *, connected: bool = False) -> str:
    """Three to five inputs with keys of their own, joined on keys that they share, on comparisons, or on
    nothing; now and then grouped, filtered, and with conditions beside those of the joins. Where they are
    to be `connected`, no input is joined on nothing, and none is filtered."""
    chance = random.Random(seed)
    count = chance.choice((3, 3, 4, 4, 5))
    keys = [chance.choice(_KEYS) for _ in range(count)]
    inputs = [_input(chance, f"i{n}", own, 0.0 if connected else 0.3) for n, own in enumerate(keys)]
    text = inputs[0]
    for n in range(1, count):
        either = f"i{n - 1}.x <= i{n}.x" if connected else f"i{n}.x < 30"
        text += f"\nJOIN {inputs[n]} ON {_condition(chance, keys, n) or either}"
    if chance.random() < 0.3:
        text += "\nWHERE i0.x < i2.x + 40"
    if chance.random() < 0.3:
        shown, tail = "count(*) AS n, max(i1.x) AS top", f"\nGROUP BY i0.{keys[0][0]}"
        return f"SELECT i0.window_start, i0.window_end, {shown}\nFROM {text}{tail}"
    shown = ", ".join(f"i{n}.{c} AS c{n}{c}" for n, own in enumerate(keys) for c in (*own, "x"))
    return f"SELECT i0.window_start, i0.window_end, {shown}\nFROM {text}"


def _input(chance: random.Random, name: str, keys: tuple[str, ...], filtered: float) -> str:
    window = f"[RANGE {chance.choice((2, 3, 6))} SECONDS SLIDE 1 SECOND]"
    where = " WHERE v < 60" if chance.random() < filtered else ""
    columns = ", ".join((*keys, f"{chance.choice(_AGGREGATES)} AS x"))
    return f"(SELECT {columns} FROM readings {window}{where} GROUP BY {', '.join(keys)}) AS {name}"


def _condition(chance: random.Random, keys: Sequence[tuple[str, ...]], n: int) -> str:
    other = chance.randrange(n)
    shared = [key for key in keys[n] if key in keys[other]]
    parts = [f"i{other}.{key} = i{n}.{key}" for key in shared if chance.random() < 0.8]
    if chance.random() < 0.3:
        parts.append(f"i{chance.randrange(n)}.x <= i{n}.x + {chance.choice((0, 30))}")
    return " AND ".join(parts)


def readings(seed: int, rows: int = 60) -> pa.Table:
    chance = np.random.default_rng(seed)
    times = 1_700_000_000_000_000 + chance.integers(0, 8_000_000, rows)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(chance.integers(0, 3, rows), pa.int32(), mask=chance.random(rows) < 0.1),
            "p": pa.array(chance.choice(["load", "work"], rows)),
            # Whole numbers: sums are the same in every order.
            "v": pa.array(chance.integers(0, 100, rows).astype(np.float64)),
        }
    )
