"""Random streams: rows out of order, never late; NULLs, duplicates, ties, rows exactly on window edges.

A row arrives at its event time plus a delay below the stream's watermark delay, so that at its arrival no
row has been seen that is later by the watermark delay or more. Numbers are multiples of 1/4: their sums are
exact in any order, so a condition on a sum or an average cannot hold in one engine and fail in the other.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa

from headrace.catalog.model import FileSource, Format, Stream, Table
from headrace.plan.types import DataType

SECOND = 1_000_000
ARROW = {
    DataType.STRING: pa.string(),
    DataType.INT: pa.int32(),
    DataType.BIGINT: pa.int64(),
    DataType.DOUBLE: pa.float64(),
    DataType.BOOLEAN: pa.bool_(),
    DataType.TIMESTAMP: pa.timestamp("us", "UTC"),
}
KEYS = ("red", "green", "it's", "")
LABELS = ("north", "south", "ünï", "a\\b")
STARTS = (1, int(datetime(2024, 2, 28, 23, 59, tzinfo=UTC).timestamp()), 1_000_000_007)
"""Just after the epoch, which Spark takes for the first watermark (windows reach back before it); shortly
before a leap day; and one that is no multiple of anything."""
OPTIONAL = {"n": DataType.INT, "x": DataType.BIGINT, "flag": DataType.BOOLEAN}


def random_stream(rng: random.Random, name: str) -> Stream:
    """Keys `k` and `g`, a value `v`, an event time `ts`, and some more columns, in any order."""
    columns = {"k": DataType.STRING, "g": DataType.INT, "v": DataType.DOUBLE, "ts": DataType.TIMESTAMP}
    columns |= {c: t for c, t in OPTIONAL.items() if rng.random() < 0.7}
    shuffled = dict(rng.sample(sorted(columns.items()), len(columns)))
    delay = rng.choice((1, 2, 5, 15)) * SECOND
    source = FileSource(path=f"in/{name}", format=Format.PARQUET)
    return Stream(name=name, columns=shuffled, time="ts", watermark=delay, source=source)


def random_table(rng: random.Random) -> Table:
    """Labels of `g`: not every g has one, some have two, one has a NULL for g."""
    rows: list[tuple[str | int | float | bool | None, ...]] = [
        (g, rng.choice(LABELS), rng.randrange(-8, 9) / 4) for g in rng.sample(range(5), rng.randrange(1, 5))
    ]
    rows += [(rng.randrange(5), rng.choice(LABELS), 0.5)] if rng.random() < 0.4 else []
    rows += [(None, None, 1.0)] if rng.random() < 0.4 else []
    columns = {"g": DataType.INT, "label": DataType.STRING, "weight": DataType.DOUBLE}
    return Table(name="dims", columns=columns, rows=tuple(rows))


def table_rows(table: Table) -> pa.Table:
    """The rows of an inline table as the reference takes them."""
    values = list(zip(*(table.rows or ()), strict=True)) or [()] * len(table.columns)
    arrays = {
        name: pa.array(column, ARROW[of])
        for (name, of), column in zip(table.columns.items(), values, strict=True)
    }
    return pa.table(arrays)


def random_batches(rng: random.Random, stream: Stream, count: int, start: int, length: int) -> list[pa.Table]:
    """`count` rows over `length` microseconds from `start`, in order of arrival, split into batches."""
    rows = [_row(rng, stream, start + offset(rng, length)) for _ in range(count)]
    rows += [dict(rng.choice(rows)) for _ in range(count // 12)]
    nameless = [_row(rng, stream, None) for _ in range(rng.choice((0, 0, 0, 3)))]
    arrivals = [(_arrival(rng, row, stream.watermark, start + length), k) for k, row in enumerate(rows)]
    ordered = [rows[k] for _, k in sorted(arrivals)]
    for row in nameless:
        ordered.insert(rng.randrange(len(ordered) + 1), row)
    return [_table(stream, part) for part in _split(rng, ordered)]


def _arrival(rng: random.Random, row: dict[str, object], watermark: int, end: int) -> int:
    time = row["ts"]
    assert isinstance(time, int) and time < end
    return time + (rng.randrange(watermark) if rng.random() < 0.5 else 0)


def offset(rng: random.Random, length: int) -> int:
    """Often a whole second (an edge of windows), sometimes one microsecond before it, else anything."""
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(length // SECOND) * SECOND
    if kind < 0.45:
        return rng.randrange(1, length // SECOND) * SECOND - 1
    return rng.randrange(length // 1000) * 1000 if kind < 0.9 else rng.randrange(length)


def _row(rng: random.Random, stream: Stream, time: int | None) -> dict[str, object]:
    return {c: time if c == "ts" else _value(rng, c) for c in stream.columns}


def _value(rng: random.Random, column: str) -> object:
    if rng.random() < 0.06:
        return None
    match column:
        case "k":
            return rng.choice(KEYS)
        case "g":
            return rng.randrange(4)
        case "v":
            return math.nan if rng.random() < 0.01 else rng.randrange(-200, 400) / 4
        case "n":
            return rng.choice((0, 1, 2, 3, 7, -5, 2**31 - 1))
        case "x":
            return rng.randrange(-(10**12), 10**12)
    return rng.random() < 0.5


def _split(rng: random.Random, rows: list[dict[str, object]]) -> list[list[dict[str, object]]]:
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(rng.randrange(6)))
    ends = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in pairwise(ends)]


def _table(stream: Stream, rows: list[dict[str, object]]) -> pa.Table:
    arrays = {c: pa.array([row[c] for row in rows], ARROW[t]) for c, t in stream.columns.items()}
    return pa.table(arrays)
