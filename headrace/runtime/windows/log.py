"""The kept fragments of a bucket: rows (fragment start, key, partial values) in the order of time, then key.

One copy, whatever the number of queries. Memory per row: 8 (start) + 4 (key) + 4 (push) + the width of each
partial column; a column that has held a NULL adds one byte.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.plan.types import DataType
from headrace.runtime.windows.lanes import Array, Block, Fold, Lane
from headrace.runtime.windows.rows import Rows, join, ordered, rows_of
from headrace.runtime.windows.sketch import unpack
from headrace.runtime.windows.spec import FRAGMENT, Partial, PartialKind

_WIDE = 2.0**62


class Log:
    """All kept rows. Rows come at the end and go at the front; both cost amortised O(1) a row."""

    def __init__(self, partials: tuple[Partial, ...]) -> None:
        self.partials = partials
        empty = pa.table({FRAGMENT: pa.array([], pa.int64())})
        self._rows = rows_of(empty, np.zeros(0, np.int32), 0, partials)
        self._rows.valid = [None] * len(partials)
        self._capacity, self._first, self._size = 0, 0, 0
        self.nullable = [False] * len(partials)
        """Which columns have had a NULL."""
        self.wide = [False] * len(partials)
        """Of which a sum over all rows could have left BIGINT; they are watched for good."""
        self._largest = [0.0] * len(partials)
        self._sums = [
            k for k, p in enumerate(partials) if p.kind is PartialKind.SUM and p.type is DataType.BIGINT
        ]

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
        """Put sorted rows in their place. Whether `nullable` or `wide` has changed by it."""
        before = (list(self.nullable), list(self.wide))
        self._note(rows)
        if self._size and len(rows) and rows.starts[0] <= self.starts[-1]:
            low = int(np.searchsorted(self.starts, rows.starts[0]))
            rows = ordered(join([self.slice(low, self._size), rows]))
            self._size = low
        self._append(rows)
        return before != (self.nullable, self.wide)

    def _note(self, rows: Rows) -> None:
        for k, marks in enumerate(rows.valid):
            self.nullable[k] |= marks is not None
        for k in self._sums if len(rows) else ():
            peak = max(abs(float(rows.values[k].max())), abs(float(rows.values[k].min())))
            self._largest[k] = max(self._largest[k], peak)
            self.wide[k] |= self._largest[k] * (len(self) + len(rows)) >= _WIDE

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
        if lane.fold is Fold.SKETCH:
            return (unpack(self._rows.values[lane.columns[0]][place]),)
        if lane.fold is not Fold.ANY:
            pairs = zip(lane.columns, lane.dtypes, strict=True)
            return tuple(self._rows.values[c][place].astype(d, copy=False) for c, d in pairs)
        marks = self._rows.valid[lane.columns[0]] if lane.columns else None
        return (np.ones(high - low, np.bool_) if marks is None else marks[place],)
