from __future__ import annotations

import math
import random
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from headrace.runtime.windows import sketch


def of(column: pa.Array) -> pa.Array:
    """One sketch of a whole column."""
    distinct = sorted({e for e in sketch.entries(column).to_pylist() if e is not None})
    return sketch.sketches(pa.array([distinct], pa.list_(pa.uint16())))


def count(parts: list[pa.Array]) -> int:
    """Of the merged sketches of several columns."""
    packed = np.array([of(part)[0].as_py() for part in parts], object)
    merged = sketch.grouped(packed, np.array([0]))
    return int(sketch.estimate(sketch.unpack(merged))[0])


@pytest.mark.parametrize("size", [1, 2, 5, 20, 100, 500, 1500, 3000, 20_000, 200_000])
def test_the_error_is_what_it_should_be(size: int) -> None:
    """1.04 / sqrt(512) is 4.6 %: over twenty sets the spread is below 5.5 %, and there is no bias."""
    errors = []
    for seed in range(20):
        values = pa.array(np.random.default_rng(seed).integers(0, 2**62, size))
        errors.append(count([values]) / size - 1)
    assert math.sqrt(sum(e * e for e in errors) / 20) < 0.055
    assert abs(sum(errors) / 20) < 0.035
    if size <= 2:
        assert not any(errors)


def test_parts_that_overlap_count_once() -> None:
    values = np.random.default_rng(3).integers(0, 2**40, 5000)
    parts = [pa.array(values[k : k + 1000]) for k in range(0, 4500, 500)]
    assert count(parts) == count([pa.array(values)])
    assert count([parts[0], parts[0]]) == count([parts[0]])


def test_every_type_is_counted() -> None:
    day = datetime(2026, 11, 16)
    columns = [
        pa.array([True, False, None, True]),
        pa.array([1, 2, None, 1], pa.int32()),
        pa.array([1.5, 2.5, None, 1.5], pa.float32()),
        pa.array(["", "é", None, ""]),
        pa.array([date(1969, 12, 31), date(2026, 1, 1), None, date(1969, 12, 31)]),
        pa.array([day, day + timedelta(microseconds=1), None, day], pa.timestamp("us")),
        pa.array([0.0, math.nan, None, -0.0]),
        pa.array([math.nan, -math.inf, None, -math.nan]),
    ]
    for column in columns:
        assert count([column]) == 2, column.type
        assert count([column.slice(1, 2)]) == 1, column.type
        assert count([column.slice(2, 1)]) == 0, column.type


def test_texts_of_all_lengths_differ_and_do_not_depend_on_their_neighbours() -> None:
    """Eight bytes at a time, zeros at the end of a text are part of it, long texts go another way."""
    chance = random.Random(0)
    texts = ["x" * k for k in range(300)] + ["\0" * k for k in range(1, 20)]
    texts += ["".join(chance.choices("abé\0", k=chance.randint(1, 40))) for _ in range(500)]
    texts = sorted(set(texts))
    chance.shuffle(texts)
    together = sketch.hashed(pa.array(texts))
    assert len(set(together.tolist())) == len(texts)
    alone = [int(sketch.hashed(pa.array(["before", None, text])[2:])[0]) for text in texts]
    assert alone == together.tolist()
    assert 0.9 < count([pa.array(texts)]) / len(texts) < 1.1


def test_the_hash_never_changes() -> None:
    """It is in the state of running jobs. The first is the first number of splitmix64 from seed 0."""
    numbers = [0xE220A8397B1DCDAF, 10451216379200822465, 16490336266968443936]
    texts = [0xE220A8397B1DCDAF, 15845709860319245226, 914860636913051138]
    assert sketch.hashed(pa.array([0, 1, -1])).tolist() == numbers
    assert sketch.hashed(pa.array(["", "a", "headrace!"])).tolist() == texts


def test_bytes_are_short_for_few_values_and_come_back() -> None:
    chance = np.random.default_rng(0)
    registers = np.zeros((60, sketch.REGISTERS), np.uint8)
    for row in range(1, 60):
        places = chance.choice(sketch.REGISTERS, min(512, row * 9), replace=False)
        registers[row, places] = chance.integers(1, 57, len(places))
    packed = sketch.pack(registers)
    assert [len(p) for p in packed] == [min(512, 18 * row) for row in range(60)]
    assert (sketch.unpack(packed) == registers).all()
