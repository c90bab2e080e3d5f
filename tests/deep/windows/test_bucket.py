"""Random trees against the plain evaluation of every window over the raw rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import EngineError
from headrace.plan.types import Column, DataType
from headrace.runtime.windows import Bucket, Span, TreeSpec, scan, valid_from
from tests.unit.runtime.windows.plain import (
    CALLS,
    Query,
    Row,
    answers,
    assert_same,
    call,
    edges_of,
    fragments,
    give,
    last_edge,
    next_edge,
    random_rows,
    tree,
    windows_of,
)

KEYS = (Column("k", DataType.STRING), Column("n", DataType.DOUBLE))
NAMES: list[tuple[object, ...]] = [
    ("a", 1.0),
    ("a", 2.0),
    (None, 1.0),
    ("b", None),
    ("", -1.0),
    ("c", 3.0),
    ("d", 4.0),
]
Found = list[dict[object, list[object]]]


@st.composite
def queries(draw: st.DrawFn) -> Query:
    slide = draw(st.integers(1, 40))
    size = draw(st.one_of(st.integers(1, 60), st.integers(1, 1500), st.just(slide * 64), st.just(slide * 5)))
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4))
    return Query(min(size, slide * 300), slide, tuple(calls))


sets = st.lists(queries(), min_size=1, max_size=5)


class Runner:
    """Pushes rows as Spark would, and checks all that comes."""

    def __init__(
        self, members: Sequence[Query], rows: list[Row], chance: random.Random, keys: tuple[Column, ...]
    ):
        self.rows, self.chance, self.keys = rows, chance, keys
        self.members = list(members)
        self.spec, self.made = tree(members, keys)
        self.bucket = Bucket(self.spec)
        self.store: dict[str, bytes] = {}
        self.cuts: dict[int, tuple[int, int]] = {}
        """Row number -> the fragment it is in, once Spark has seen the row."""
        self.pushed = set[int]()
        self.watermark: int | None = None
        self.since: list[int | None] = [None] * len(members)
        self.found: Found = [{} for _ in members]

    def see(self, until: int) -> None:
        """Spark reads the rows before `until`, under the edges of now."""
        edges = edges_of(self.members)
        for number, row in enumerate(self.rows):
            if row.time < until and number not in self.cuts:
                self.cuts[number] = last_edge(edges, row.time), next_edge(edges, row.time)

    def closed(self, watermark: int) -> pa.Table:
        """The fragments that the watermark has closed and that were not pushed yet."""
        self.see(watermark)
        ready = [n for n, (_, end) in self.cuts.items() if end <= watermark and n not in self.pushed]
        self.pushed |= set(ready)
        return fragments([(self.cuts[n][0], self.rows[n]) for n in ready], self.spec, self.made)

    def step(self, watermark: int) -> None:
        table = self.closed(watermark)
        self.watermark = watermark
        order = list(range(table.num_rows))
        self.chance.shuffle(order)
        table = table.take(pa.array(order, pa.int64()))
        half = self.chance.randint(0, table.num_rows)
        self.bucket.push(table.slice(0, half))
        self.bucket.push(table.slice(half))
        self._check_due()
        give(self.bucket, watermark, self.found)
        self.save()

    def _check_due(self) -> None:
        """The first window that is due is the first that comes."""
        ends = [
            start + query.range
            for query, since in zip(self.members, self.since, strict=True)
            for number in self.pushed
            for start in windows_of(self.rows[number], query, self._after(since), 10**9)
        ]
        assert self.bucket.next_due() == min(ends, default=None)

    def _after(self, since: int | None) -> int | None:
        marks = [m for m in (since, self.bucket.watermark) if m is not None]
        return max(marks, default=None)

    def save(self) -> None:
        puts, deletes = self.bucket.changes()
        assert not set(puts) & set(deletes)
        for name in deletes:
            del self.store[name]
        self.store |= puts

    def restore(self) -> None:
        items = list(self.store.items())
        self.chance.shuffle(items)
        self.bucket = Bucket.restore(self.spec, items)

    def check(self, member: int, upto: int) -> None:
        query = self.members[member]
        expected = answers(self.rows, query, after=self.since[member], upto=upto)
        assert_same(self.found[member], expected, query)

    def check_all(self) -> None:
        assert self.watermark is not None
        for member in range(len(self.members)):
            self.check(member, self.watermark)


def marks(rows: list[Row], chance: random.Random, steps: int) -> list[int]:
    low, high = rows[0].time - 5, rows[-1].time
    return sorted({*(chance.randint(low, high) for _ in range(steps)), high + 10**5})


@pytest.mark.parametrize(("tile", "direct"), [(scan.TILE, scan.DIRECT), (4, 4), (4, 1)])
@given(sets, st.integers(0, 2**32), st.sampled_from([(), KEYS[:1], KEYS]), st.sampled_from([0.0, 0.3]))
@settings(max_examples=8, deadline=None)
def test_every_window_is_right(
    tile: int, direct: int, members: list[Query], seed: int, keys: tuple[Column, ...], null: float
) -> None:
    """With small tiles the totals of tiles, and of these, are asked too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "TILE", tile)
        patch.setattr(scan, "DIRECT", direct)
        check_every_window(members, random.Random(seed), keys, null)


def check_every_window(
    members: list[Query], chance: random.Random, keys: tuple[Column, ...], null: float
) -> None:
    names = list(dict.fromkeys(name[: len(keys)] for name in NAMES))
    rows = random_rows(chance, 60, names, chance.choice([500, 5000]), null)
    runner = Runner(members, rows, chance, keys)
    for watermark in marks(rows, chance, 6):
        runner.step(watermark)
        if chance.random() < 0.3:
            runner.restore()
    runner.check_all()
    assert list(runner.store) == ["marks"], "state of windows that are over is left"


@given(sets, sets, st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_other_queries_after_a_restore(before: list[Query], fresh: list[Query], seed: int) -> None:
    """Queries go and come at a restart; those that stay lose nothing, the new ones are right from the
    declared instant on."""
    chance = random.Random(seed)
    rows = random_rows(chance, 60, [n[:1] for n in NAMES], 1500, 0.1)
    runner = Runner(before, rows, chance, KEYS[:1])
    steps = marks(rows, chance, 6)
    change = chance.randrange(1, max(2, len(steps)))
    for number, watermark in enumerate(steps):
        if number == change:
            switch(runner, fresh)
        runner.step(watermark)
    runner.check_all()


def switch(runner: Runner, fresh: list[Query]) -> None:
    assert runner.watermark is not None and runner.bucket.kept_from is not None
    seen = runner.watermark + runner.chance.randint(0, 60)
    runner.see(seen)
    edges = edges_of(runner.members)
    kept_span = Span(runner.bucket.kept_from, max(seen, next_edge(edges, seen - 1)), edges)
    stay = [k for k in range(len(runner.members)) if runner.chance.random() < 0.6]
    for k in set(range(len(runner.members))) - set(stay):
        runner.check(k, runner.watermark)
    kept, new = [runner.members[k] for k in stay], []
    for query in fresh:
        spec, made = tree([query], KEYS[:1])
        usable = [kept_span] if set(made) <= set(runner.made) else []
        start = valid_from(spec.queries[0], usable, kept_span.end)
        new.append(Query(query.range, query.slide, query.calls, start))
    runner.members = kept + new
    runner.since = [runner.since[k] for k in stay] + [runner.watermark for _ in new]
    runner.found = [runner.found[k] for k in stay] + [{} for _ in new]
    runner.spec, runner.made = tree(runner.members, runner.keys)
    runner.restore()


def run_of(members: list[Query], rows: list[Row], steps: list[int], restore_at: int | None) -> list[pa.Table]:
    """All batches, in order, of one run."""
    runner = Runner(members, rows, random.Random(0), KEYS[:1])
    tables = []
    for number, watermark in enumerate(steps):
        runner.bucket.push(runner.closed(watermark))
        tables += [(index, batch) for index, batch in runner.bucket.advance(watermark)]
        runner.save()
        if number == restore_at:
            runner.restore()
    return [sorted_rows([b for i, b in tables if i == k]) for k in range(len(members))]


def sorted_rows(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.sort_by([("window_start", "ascending"), ("k", "ascending")])


@given(sets, st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_batches_and_restores_change_no_bit(members: list[Query], seed: int) -> None:
    """Sums of floats too: the order of a fold depends on time alone."""
    chance = random.Random(seed)
    rows = random_rows(chance, 80, [n[:1] for n in NAMES], 2000, 0.0)
    end = rows[-1].time + 10**5
    whole = run_of(members, rows, [end], None)
    steps = [*marks(rows, chance, 7)[:-1], end]
    pieces = run_of(members, rows, steps, chance.randrange(len(steps)))
    for left, right in zip(whole, pieces, strict=True):
        # repr tells every bit of a float, and NaN from NaN it does not.
        assert repr(left.to_pydict()) == repr(right.to_pydict())


def at_five(rows: list[Row], spec: TreeSpec, made: dict[str, tuple[str, str]]) -> pa.Table:
    return fragments([(row.time // 5 * 5, row) for row in rows], spec, made)


def test_a_late_fragment_counts_in_the_windows_that_are_open() -> None:
    spec, made = tree([Query(10, 5, (call("count"),))], ())
    bucket = Bucket(spec)
    bucket.push(at_five([Row(96, (), {})], spec, made))
    list(bucket.advance(100))
    bucket.push(at_five([Row(94, (), {}), Row(95, (), {}), Row(99, (), {})], spec, made))
    ((_, batch),) = bucket.advance(110)
    assert batch["window_start"].cast(pa.int64()).to_pylist() == [95]
    assert batch["o0"].to_pylist() == [3]


def test_a_sum_that_does_not_fit_stops_the_job() -> None:
    spec, made = tree([Query(10, 5, (call("sum", "l"),))], ())
    rows = [Row(t, (), {"l": 2**62 if t else 2**62 - 1}) for t in (0, 5)]
    fits, overflows = Bucket(spec), Bucket(spec)
    fits.push(at_five([rows[0], Row(5, (), {"l": 2**61})], spec, made))
    assert [b["o0"].to_pylist() for _, b in fits.advance(20)] == [[2**62 - 1, 2**62 - 1 + 2**61, 2**61]]
    overflows.push(at_five(rows, spec, made))
    assert next(overflows.advance(5))[1]["o0"].to_pylist() == [2**62 - 1]
    overflows = Bucket(spec)
    overflows.push(at_five([*rows, Row(6, (), {"l": 2})], spec, made))
    with pytest.raises(EngineError, match="does not fit"):
        list(overflows.advance(20))


def test_an_empty_bucket_gives_nothing() -> None:
    bucket = Bucket(TreeSpec((), (), ()))
    assert list(bucket.advance(10)) == [] and bucket.next_due() is None
    assert list(bucket.changes()[0]) == ["marks"]
    assert bucket.changes() == ({}, [])
