"""The same answers the plain way: every window by itself, over the raw rows, in Python."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.types import Column, DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows import Bucket, PartialKind, QuerySpec, TreeSpec, needs_of

T = DataType
COLUMNS = {
    "i": T.INT,
    "l": T.BIGINT,
    "x": T.DOUBLE,
    "f": T.FLOAT,
    "s": T.STRING,
    "b": T.BOOLEAN,
    "d": T.DATE,
    "t": T.TIMESTAMP,
}
NUMBERS = ("i", "l", "x", "f")
SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


def call(function: str, column: str | None = None) -> AggregateCall:
    return AggregateCall(function, None if column is None else ColumnRef(column, COLUMNS[column]))


CALLS = (
    call("count"),
    *(call("count", c) for c in ("x", "s")),
    *(call(f, c) for f in ("sum", "avg") for c in NUMBERS),
    *(call(f, c) for f in ("min", "max") for c in COLUMNS),
    *(call(f, c) for f in SPREADS for c in ("i", "x")),
)


@dataclass(frozen=True)
class Row:
    time: int
    key: tuple[object, ...]
    values: dict[str, object]


@dataclass(frozen=True)
class Query:
    range: int
    slide: int
    calls: tuple[AggregateCall, ...]
    valid_from: int | None = None


def edges_of(queries: Iterable[Query]) -> tuple[tuple[int, int], ...]:
    pairs = {(q.slide, 0) for q in queries} | {(q.slide, q.range % q.slide) for q in queries}
    return tuple(sorted(pairs))


def last_edge(edges: Sequence[tuple[int, int]], time: int) -> int:
    return max((time - offset) // slide * slide + offset for slide, offset in edges)


def next_edge(edges: Sequence[tuple[int, int]], time: int) -> int:
    """The first edge after an instant."""
    return min(((time - offset) // slide + 1) * slide + offset for slide, offset in edges)


def tree(queries: Sequence[Query], keys: tuple[Column, ...]) -> tuple[TreeSpec, dict[str, tuple[str, str]]]:
    """The tree, and for each partial column its kind and the column it is computed from."""
    needs = needs_of([[(f"o{k}", c) for k, c in enumerate(q.calls)] for q in queries])
    specs, made = [], dict[str, tuple[str, str]]()
    for number, (query, outputs) in enumerate(zip(queries, needs.outputs, strict=True)):
        specs.append(QuerySpec(f"q{number}", query.range, query.slide, outputs, query.valid_from))
        for output, one in zip(outputs, query.calls, strict=True):
            column = one.arg.name if isinstance(one.arg, ColumnRef) else ""
            for position in output.partials:
                made[needs.partials[position].name] = (needs.partials[position].kind, column)
    spec = TreeSpec(keys, needs.partials, tuple(specs))
    return TreeSpec.from_json(spec.to_json()), made


def evaluate(function: str, values: list[object], rows: int | None = None) -> object:
    """An aggregate of plan/functions.py over the values that are not NULL, in Python."""
    if function == "count":
        return len(values) if rows is None else rows
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=_nan_last)
    numbers = [v for v in values if isinstance(v, int | float)]
    if function == "sum":
        return sum(numbers) if isinstance(numbers[0], int) else _fsum(numbers)
    if function in ("avg", PartialKind.MEAN):
        return _fsum(numbers) / len(numbers)
    return _spread(function, [float(n) for n in numbers])


def _spread(function: str, numbers: list[float]) -> object:
    if function.endswith("_samp") and len(numbers) < 2:
        return None
    if not all(map(math.isfinite, numbers)):
        return math.nan
    mean = math.fsum(numbers) / len(numbers)
    m2 = math.fsum((n - mean) ** 2 for n in numbers)
    if function == PartialKind.M2:
        return m2
    spread = m2 / (len(numbers) - 1 if function.endswith("_samp") else len(numbers))
    return math.sqrt(spread) if function.startswith("stddev") else spread


def _nan_last(value: object) -> tuple[bool, object]:
    nan = isinstance(value, float) and math.isnan(value)
    return (nan, 0.0 if nan else value)


def _fsum(numbers: Sequence[float]) -> float:
    if not all(map(math.isfinite, numbers)):
        return sum(numbers)
    return math.fsum(numbers)


def fragments(rows: Iterable[tuple[int, Row]], spec: TreeSpec, made: dict[str, tuple[str, str]]) -> pa.Table:
    """Level 1: rows, each with the start of its fragment, as Spark would push them."""
    groups: dict[tuple[int, tuple[object, ...]], list[Row]] = {}
    for start, row in rows:
        groups.setdefault((start, row.key), []).append(row)
    columns: dict[str, pa.Array] = {"fragment_start": pa.array([start for start, _ in groups], pa.int64())}
    for position, column in enumerate(spec.keys):
        columns[column.name] = pa.array([key[position] for _, key in groups], ARROW[column.type])
    for partial in spec.partials:
        kind, source = made[partial.name]
        values = [_partial(kind, source, group) for group in groups.values()]
        columns[partial.name] = pa.array(values, ARROW[partial.type])
    return pa.table(columns)


def _partial(kind: str, source: str, group: list[Row]) -> object:
    there = [r.values[source] for r in group if r.values[source] is not None] if source else []
    return evaluate(kind, there, None if source else len(group))


def windows_of(row: Row, query: Query, after: int | None, upto: int) -> Iterator[int]:
    """The starts of the windows around a row that end later than `after` and by `upto`."""
    start = row.time // query.slide * query.slide
    while start + query.range > row.time:
        given = start + query.range <= upto and (after is None or start + query.range > after)
        if given and (query.valid_from is None or start >= query.valid_from):
            yield start
        start -= query.slide


def answers(rows: Sequence[Row], query: Query, *, after: int | None, upto: int) -> dict[object, list[object]]:
    """(window start, key) -> outputs, of the windows that end later than `after` and by `upto`."""
    groups: dict[tuple[int, tuple[object, ...]], list[Row]] = {}
    for row in rows:
        for start in windows_of(row, query, after, upto):
            groups.setdefault((start, row.key), []).append(row)
    return {at: [_answer(c, group) for c in query.calls] for at, group in groups.items()}


def _answer(one: AggregateCall, group: list[Row]) -> object:
    if not isinstance(one.arg, ColumnRef):
        return len(group)
    there = [r.values[one.arg.name] for r in group if r.values[one.arg.name] is not None]
    return evaluate(one.function, there)


def read(spec: QuerySpec, keys: int, batch: pa.RecordBatch) -> dict[object, list[object]]:
    """A batch in the form of `answers`; no (window, key) twice, windows in order, ends right."""
    columns = [_plain(c) for c in batch.columns]
    starts, ends = columns[0], columns[1]
    assert starts == sorted(starts)
    assert all(e - s == spec.range for s, e in zip(starts, ends, strict=True))
    found: dict[object, list[object]] = {}
    for row in zip(*columns, strict=True):
        at = (row[0], tuple(row[2 : 2 + keys]))
        assert at not in found
        found[at] = list(row[2 + keys :])
    return found


def _plain(column: pa.Array) -> list[Any]:
    return list((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


def same(found: object, expected: object, spread: bool) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        if math.isnan(expected) or math.isnan(found):
            return math.isnan(expected) and math.isnan(found)
        rel = 1e-7 if spread else 1e-9
        return math.isclose(found, expected, rel_tol=rel, abs_tol=rel)
    return found == expected and type(found) is type(expected)


def assert_same(
    found: dict[object, list[object]], expected: dict[object, list[object]], query: Query
) -> None:
    assert found.keys() == expected.keys()
    for at, values in expected.items():
        for one, got, want in zip(query.calls, found[at], values, strict=True):
            assert same(got, want, one.function in SPREADS), (at, one, got, want)


def random_rows(
    chance: random.Random, count: int, keys: list[tuple[object, ...]], span: int, null: float
) -> list[Row]:
    """Rows in order of time, in bursts, so that there are gaps and keys that come and go."""
    bursts = [(chance.randrange(span), chance.sample(keys, chance.randint(1, len(keys)))) for _ in range(4)]
    rows = []
    for _ in range(count):
        start, active = chance.choice(bursts)
        time = start + int(chance.expovariate(1 / (span / 30)))
        rows.append(Row(time, chance.choice(active), _values(chance, null)))
    return sorted(rows, key=lambda r: r.time)


def _values(chance: random.Random, null: float) -> dict[str, object]:
    odd = chance.choice([math.nan, math.inf, -0.0, 1e15]) if chance.random() < 0.05 else None
    real = odd if odd is not None else chance.uniform(-100, 100)
    drawn: dict[str, object] = {
        "i": chance.randrange(-50, 50),
        "l": chance.randrange(-(10**12), 10**12),
        "x": real,
        "f": float(chance.randrange(-100, 100)) / 4,
        "s": chance.choice(["", "a", "ab", "é", "\U0001f600", "z"]),
        "b": chance.random() < 0.5,
        "d": date(1969, 12, 31) + timedelta(days=chance.randrange(5)),
        "t": chance.randrange(-(10**6), 10**16),
    }
    return {k: None if chance.random() < null else v for k, v in drawn.items()}


def give(bucket: Bucket, upto: int, found: list[dict[object, list[object]]]) -> None:
    """Advance, and note what came."""
    keys = len(bucket.spec.keys)
    for index, batch in bucket.advance(upto):
        more = read(bucket.spec.queries[index], keys, batch)
        assert not found[index].keys() & more.keys(), "a window was given twice"
        found[index] |= more
