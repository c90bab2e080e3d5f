"""What shows only after a while: drift, growth, keys that are gone, the price of state."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pyarrow as pa

from headrace.plan.types import Column, DataType
from headrace.runtime.windows import Bucket, TreeSpec
from tests.unit.runtime.windows.plain import Query, call, tree

KEY = (Column("k", DataType.BIGINT),)


def table(spec: TreeSpec, starts: object, keys: object, values: object) -> pa.Table:
    """One row a fragment and key: every partial column has the value itself, counts are 1."""
    columns = {"fragment_start": pa.array(starts, pa.int64()), "k": pa.array(keys, pa.int64())}
    rows = len(columns["k"])
    for partial in spec.partials:
        ones = np.ones(rows, np.int64)
        columns[partial.name] = pa.array(ones if partial.kind == "count" else values)
    return pa.table(columns)


def test_no_drift_in_a_hundred_thousand_windows() -> None:
    """A stretch of huge values, then tiny ones: whoever subtracts keeps the rounding of the huge ones."""
    size, count = 70, 100_000
    values = np.random.default_rng(1).uniform(0.5, 1.5, count)
    values[1000:2000] *= 1e15
    spec, _ = tree([Query(size, 1, (call("sum", "x"), call("avg", "x")))], KEY)
    bucket, sums = Bucket(spec), list[float]()
    for low in range(0, count, 5000):
        times = np.arange(low, low + 5000)
        bucket.push(table(spec, times, np.zeros(5000), values[low : low + 5000]))
        for _, batch in bucket.advance(low + 5000):
            sums += batch["o0"].to_pylist()
    exact = [math.fsum(values[max(0, end - size) : end]) for end in range(1, count + 1)]
    assert len(sums) == count
    assert max(abs(s - e) / e for s, e in zip(sums, exact, strict=True)) < 1e-14


def test_state_neither_grows_nor_is_written_again_and_again() -> None:
    """A day of event time in small batches: what is stored stays at a range's worth, what is written is a
    small multiple of what came."""
    spec, _ = tree([Query(3600, 60, (call("sum", "x"),)), Query(600, 60, (call("max", "x"),))], KEY)
    bucket, store = Bucket(spec), dict[str, bytes]()
    written, first, sizes, chunks = 0, 0, list[int](), list[int]()
    for low in range(0, 86_400, 120):
        starts = np.repeat(np.arange(low, low + 120, 60), 5)
        bucket.push(table(spec, starts, np.tile(np.arange(5), 2), np.ones(10)))
        list(bucket.advance(low + 120))
        puts, deletes = bucket.changes()
        written += sum(map(len, puts.values()))

        for name in deletes:
            del store[name]
        store |= puts
        first = first or written
        sizes.append(sum(map(len, store.values())))
        chunks.append(len(store))
    assert max(sizes[200:]) <= 1.02 * max(sizes[50:200])
    assert max(chunks) < 35
    assert written < 3 * 720 * first


def test_keys_that_are_gone_are_forgotten() -> None:
    spec, _ = tree([Query(10, 1, (call("sum", "x"),))], KEY)
    bucket = Bucket(spec)
    for low in range(0, 3_000, 10):
        bucket.push(table(spec, np.arange(low, low + 10), np.arange(low, low + 10), np.ones(10)))
        answers = [batch for _, batch in bucket.advance(low + 10)]
        bucket.changes()
        starts = answers[0]["window_start"].cast(pa.int64()).to_numpy()
        assert (answers[0]["k"].to_numpy() >= starts).all() and (
            answers[0]["k"].to_numpy() < starts + 10
        ).all()
    assert bucket.known_keys < 200


def test_a_gap_of_a_year_costs_nothing() -> None:
    """At a slide of a microsecond a loop over the windows of the gap would not end."""
    year = 365 * 86_400 * 10**6
    spec, _ = tree([Query(3, 1, (call("count"),))], KEY)
    bucket = Bucket(spec)
    bucket.push(table(spec, [0, year], [1, 1], [1.0, 1.0]))
    (found,) = [batch for _, batch in bucket.advance(2 * year)]
    assert found["window_start"].cast(pa.int64()).to_pylist() == [-2, -1, 0, year - 2, year - 1, year]
    assert bucket.next_due() is None


def test_sparse_keys_do_not_take_a_dense_block() -> None:
    """20,000 keys, four fragments each, in a range of a day by the second: dense would be 14 GB a column."""
    spec, _ = tree([Query(86_400, 1, (call("sum", "x"),), valid_from=-400)], KEY)
    bucket = Bucket(spec)
    times = np.arange(80_000)
    bucket.push(table(spec, times, times % 20_000, np.ones(80_000)))
    tracemalloc.start()
    ((_, batch),) = bucket.advance(86_020)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert batch.num_rows == 21 * 20_000
    assert set(batch["o0"].to_pylist()) == {4.0}
    assert peak < 100e6


def test_long_windows_of_few_rows_are_right() -> None:
    """Several levels of totals: the number of rows in a window of 100,000 parts, and their sum."""
    chance = np.random.default_rng(3)
    times = np.sort(chance.choice(180_000, 300, replace=False))
    spec, _ = tree(
        [Query(100_000, 1000, (call("count"), call("sum", "x"))), Query(99_999, 1, (call("max", "x"),))], KEY
    )
    bucket, values = Bucket(spec), chance.random(300)
    got: list[tuple[int, int, float]] = []
    for low in range(0, 180_000, 45_000):
        chosen = (times >= low) & (times < low + 45_000)
        bucket.push(table(spec, times[chosen], np.zeros(chosen.sum()), values[chosen]))
        for index, batch in bucket.advance(low + 45_000):
            if index == 0:
                starts = batch["window_start"].cast(pa.int64()).to_pylist()
                got += list(zip(starts, batch["o0"].to_pylist(), batch["o1"].to_pylist(), strict=True))
    for start, count, total in got:
        inside = values[(times >= start) & (times < start + 100_000)]
        assert count == len(inside)
        assert math.isclose(total, math.fsum(inside), rel_tol=1e-12)
    assert len(got) > 150
