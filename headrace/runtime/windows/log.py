"""The kept fragments of a bucket: rows (fragment start, key, partial values) in the order of time, then key.

One copy, whatever the number of queries. Memory per row: 8 (start) + 4 (key) + 4 (push) + the width of each
partial column; a column that has held a NULL adds one byte.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.plan.types import DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows.lanes import Array, Block, Fold, Lane, lane_of
from headrace.runtime.windows.spec import FRAGMENT, Partial


@dataclass(slots=True)
class Rows:
    """Columns of equal length: starts, codes, pushes, then values and validity of each partial column."""

    starts: Array
    codes: Array
    pushes: Array
    values: list[Array]
    valid: list[Array | None]

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, where: Array | slice) -> Rows:
        return Rows(
            self.starts[where],
            self.codes[where],
            self.pushes[where],
            [v[where] for v in self.values],
            [None if v is None else v[where] for v in self.valid],
        )


def join(parts: list[Rows]) -> Rows:
    first = parts[0]
    return Rows(
        np.concatenate([p.starts for p in parts]),
        np.concatenate([p.codes for p in parts]),
        np.concatenate([p.pushes for p in parts]),
        [np.concatenate([p.values[k] for p in parts]) for k in range(len(first.values))],
        [_join_valid(parts, k) for k in range(len(first.valid))],
    )


def _join_valid(parts: list[Rows], column: int) -> Array | None:
    marks = [p.valid[column] for p in parts]
    if all(m is None for m in marks):
        return None
    return np.concatenate(
        [np.ones(len(p), np.bool_) if m is None else m for p, m in zip(parts, marks, strict=True)]
    )


def rows_of(table: pa.Table, codes: Array, push: int, partials: tuple[Partial, ...]) -> Rows:
    """A pushed table in order. A partial column that the table does not have is NULL everywhere."""
    starts = table[FRAGMENT].combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    read = [_column(table, k, p) for k, p in enumerate(partials)]
    pushes = np.full(len(starts), push, np.int32)
    rows = Rows(starts, codes, pushes, [v for v, _ in read], [m for _, m in read])
    return ordered(rows)


def ordered(rows: Rows) -> Rows:
    """Sorted by start, then key."""
    order = np.lexsort((rows.codes, rows.starts))
    return rows.take(order)


def _column(table: pa.Table, position: int, partial: Partial) -> tuple[Array, Array | None]:
    """Values with the identity of their lane in place of NULL, and where there are values."""
    lane = lane_of(position, partial)
    if partial.name not in table.column_names:
        return lane.blank((table.num_rows,))[0], np.zeros(table.num_rows, np.bool_)
    column = table[partial.name].combine_chunks().cast(ARROW[partial.type])
    valid = None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)
    return _filled(column, partial.type, lane, valid), valid


def _filled(column: pa.Array, kind: DataType, lane: Lane, valid: Array | None) -> Array:
    if kind is DataType.STRING:
        values = np.array(column.to_pylist(), object)
    else:
        raw = column.cast(_PLAIN.get(kind, ARROW[kind]))
        values = pc.fill_null(raw, 0).to_numpy(zero_copy_only=False)
    if valid is None:
        return values
    return np.where(valid, values, lane.identity[0])


_PLAIN = {DataType.BOOLEAN: pa.uint8(), DataType.DATE: pa.int32(), DataType.TIMESTAMP: pa.int64()}


class Log:
    """All kept rows. Rows come at the end and go at the front; both cost amortised O(1) a row."""

    def __init__(self, partials: tuple[Partial, ...]) -> None:
        self.partials = partials
        empty = pa.table({FRAGMENT: pa.array([], pa.int64())})
        self._rows = rows_of(empty, np.zeros(0, np.int32), 0, partials)
        self._rows.valid = [None] * len(partials)
        self._capacity, self._first, self._size = 0, 0, 0
        self.nullable = [False] * len(partials)
        self.largest = [0.0] * len(partials)
        """The largest magnitude seen of each BIGINT sum: below a bound, no window can overflow."""

    def __len__(self) -> int:
        return self._size

    @property
    def starts(self) -> Array:
        return self._rows.starts[self._first : self._first + self._size]

    @property
    def codes(self) -> Array:
        return self._rows.codes[self._first : self._first + self._size]

    def slice(self, low: int, high: int) -> Rows:
        """Rows by their positions, as views."""
        return self._rows.take(slice(self._first + low, self._first + high))

    def between(self, low: int, high: int) -> tuple[int, int]:
        """The positions of the rows of fragments that start at `low` or later, and before `high`."""
        a, b = np.searchsorted(self.starts, [low, high])
        return int(a), int(b)

    def add(self, rows: Rows) -> bool:
        """Put rows in their place. Whether a column has met its first NULL by it."""
        before = list(self.nullable)
        for k, partial in enumerate(self.partials):
            self.nullable[k] |= rows.valid[k] is not None
            if partial.type is DataType.BIGINT and len(rows):
                peak = max(abs(float(rows.values[k].max())), abs(float(rows.values[k].min())))
                self.largest[k] = max(self.largest[k], peak)
        if self._size and len(rows) and rows.starts[0] <= self.starts[-1]:
            low = int(np.searchsorted(self.starts, rows.starts[0]))
            rows = ordered(join([self.slice(low, self._size), rows]))
            self._size = low
        self._append(rows)
        return before != self.nullable

    def _append(self, rows: Rows) -> None:
        if self._first + self._size + len(rows) > self._capacity or self.nullable != [
            v is not None for v in self._rows.valid
        ]:
            self._grow(rows)
            return
        mine, end = self._rows, self._first + self._size
        place = slice(end, end + len(rows))
        mine.starts[place], mine.codes[place], mine.pushes[place] = rows.starts, rows.codes, rows.pushes
        for k, values in enumerate(rows.values):
            mine.values[k][place] = values
            marks, own = rows.valid[k], mine.valid[k]
            if own is not None:
                own[place] = True if marks is None else marks
        self._size += len(rows)

    def _grow(self, rows: Rows) -> None:
        """Move to new arrays with room for as much again."""
        whole = join([self.slice(0, self._size), rows])
        room = len(whole) + 1024
        spare = Rows(
            np.empty(room, np.int64),
            np.empty(room, np.int32),
            np.empty(room, np.int32),
            [np.empty(room, v.dtype) for v in whole.values],
            [np.empty(room, np.bool_) if n else None for n in self.nullable],
        )
        self._size = len(whole)
        self._rows = join([whole, spare])
        self._first, self._capacity = 0, len(self._rows)

    def drop_before(self, instant: int) -> None:
        """Forget fragments that start earlier. Their place is used again when the arrays move."""
        gone = int(np.searchsorted(self.starts, instant))
        self._first += gone
        self._size -= gone

    def rename(self, renamed: Array) -> None:
        """New codes for all keys. The order inside a fragment is that of the codes, so it is made again."""
        rows = self.slice(0, self._size)
        rows.codes = renamed[rows.codes]
        self._rows = ordered(rows)
        self._first, self._capacity = 0, self._size

    def block(self, lane: Lane, low: int, high: int) -> Block:
        """A lane's values of the rows low..high - 1."""
        place = slice(self._first + low, self._first + high)
        if lane.fold is not Fold.ANY:
            pairs = zip(lane.columns, lane.dtypes, strict=True)
            return tuple(self._rows.values[c][place].astype(d, copy=False) for c, d in pairs)
        marks = self._rows.valid[lane.columns[0]] if lane.columns else None
        return (np.ones(high - low, np.bool_) if marks is None else marks[place],)
