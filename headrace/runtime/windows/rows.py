"""Fragments as columns of numpy arrays: sorted, joined, and put together where start and key are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.plan.types import DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows import sketch
from headrace.runtime.windows.bigints import LIMIT, has_wrapped, refuse_part
from headrace.runtime.windows.lanes import Array, Fold, Lane, lane_of
from headrace.runtime.windows.spec import FRAGMENT, Partial, PartialKind, TreeSpec

_PACKED = 2**62
_PLAIN = {DataType.BOOLEAN: pa.uint8(), DataType.DATE: pa.int32(), DataType.TIMESTAMP: pa.int64()}


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


def wire_type(partial: Partial) -> pa.DataType:
    """How a partial column travels and is stored."""
    return pa.binary() if partial.kind is PartialKind.SKETCH else ARROW[partial.type]


def join(parts: list[Rows]) -> Rows:
    first = parts[0]
    if len(parts) == 1:
        return first
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
    """A table as it is. A partial column that it does not have is NULL everywhere."""
    starts = table[FRAGMENT].combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    read = [_column(table, k, p) for k, p in enumerate(partials)]
    pushes = np.full(len(starts), push, np.int32)
    return Rows(starts, codes, pushes, [v for v, _ in read], [m for _, m in read])


def _column(table: pa.Table, position: int, partial: Partial) -> tuple[Array, Array | None]:
    """Values with the identity of their lane in place of NULL, and where there are values."""
    if partial.name not in table.column_names:
        nothing = np.zeros(table.num_rows, np.bool_)
        return _nothing(position, partial, table.num_rows), nothing
    column = table[partial.name].combine_chunks().cast(wire_type(partial))
    if partial.kind is PartialKind.SKETCH:
        return np.array([v or sketch.EMPTY for v in column.to_pylist()], object), None
    valid = None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)
    return _filled(column, partial.type, lane_of(position, partial), valid), valid


def _nothing(position: int, partial: Partial, rows: int) -> Array:
    if partial.kind is PartialKind.SKETCH:
        return np.full(rows, sketch.EMPTY, object)
    return lane_of(position, partial).blank((rows,))[0]


def _filled(column: pa.Array, kind: DataType, lane: Lane, valid: Array | None) -> Array:
    if kind is DataType.STRING:
        values = np.array(column.to_pylist(), object)
    else:
        raw = column.cast(_PLAIN.get(kind, ARROW[kind]))
        values = pc.fill_null(raw, 0).to_numpy(zero_copy_only=False)
    if valid is None:
        return values
    return np.where(valid, values, lane.identity[0])


def ordered(rows: Rows) -> Rows:
    """Sorted by start, then key; equal ones stay in their order."""
    places = packed(rows)
    if places is None:
        return rows.take(np.lexsort((rows.codes, rows.starts)))
    if bool((places[1:] >= places[:-1]).all()):
        return rows
    return rows.take(np.argsort(places, kind="stable"))


def packed(rows: Rows) -> Array | None:
    """One number for (start, key) that sorts as they do: numpy sorts one column, of runs already in order,
    ten times faster than two. None where it would not fit."""
    if not len(rows):
        return rows.starts
    low, width = int(rows.starts.min()), int(rows.codes.max()) + 1
    if (int(rows.starts.max()) - low + 1) * width >= _PACKED:
        return None
    return (rows.starts - low) * width + rows.codes


def combined(rows: Rows, lanes: Sequence[Lane], spec: TreeSpec) -> Rows:
    """Sorted, and each (start, key) once; `lanes` are those of all partial columns (lanes.every_lane).
    A sum that does not fit is refused where a query of the spec reads it."""
    rows = ordered(rows)
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (rows.starts[1:] != rows.starts[:-1]) | (rows.codes[1:] != rows.codes[:-1])
    if bool(fresh.all()):
        return rows
    firsts = np.flatnonzero(fresh)
    values: dict[int, Array] = {}
    for lane in lanes:
        made = _folded(rows, lane, firsts)
        if lane.fold is Fold.ADD and lane.dtypes[0] == np.int64:
            _refuse_overflow(rows, lane.columns[0], made[lane.columns[0]], firsts, spec)
        values |= made
    marks = [None if v is None else np.logical_or.reduceat(v, firsts) for v in rows.valid]
    whole = [values[k] for k in range(len(rows.values))]
    return Rows(rows.starts[firsts], rows.codes[firsts], rows.pushes[firsts], whole, marks)


def _folded(rows: Rows, lane: Lane, firsts: Array) -> dict[int, Array]:
    """The columns of one lane. Of moments the mean and M2: the count is a column by itself."""
    block = tuple(rows.values[c] for c in lane.columns)
    if lane.fold is Fold.SKETCH:
        return {lane.columns[0]: sketch.grouped(block[0], firsts)}
    done = lane.grouped(
        tuple(a.astype(d, copy=False) for a, d in zip(block, lane.dtypes, strict=True)), firsts
    )
    found = dict(zip(lane.columns, done, strict=True))
    return dict(list(found.items())[1:]) if lane.fold is Fold.MOMENTS else found


def _refuse_overflow(rows: Rows, column: int, sums: Array, firsts: Array, spec: TreeSpec) -> None:
    """`sums` are those of the column, wrapped (bigints.py)."""
    real = rows.values[column].astype(np.float64)
    # Half of it: the product is rounded.
    if float(np.abs(real).max()) * len(real) < LIMIT / 2:
        return
    if has_wrapped(sums, np.add.reduceat(real, firsts)):
        refuse_part(spec.partials[column], spec)
