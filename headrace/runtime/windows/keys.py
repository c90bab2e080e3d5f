"""Keys as small numbers: a bucket's dictionary of group-by keys. NULL, and NaN, are values like any other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.plan.types import Column, DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows.lanes import Array

_NAN = object()


class Keys:
    """Key tuples <-> codes 0, 1, 2, ... in the order of their first appearance."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self.names = [c.name for c in columns]
        self._codes: dict[tuple[object, ...], int] = {}
        self._values: list[list[pa.Array]] = [[] for _ in columns]

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, table: pa.Table) -> Array:
        """The code of every row; keys not seen before are added."""
        if not self._columns:
            self._codes.setdefault((), 0)
            return np.zeros(table.num_rows, np.int32)
        columns = [_plain(table[c.name].combine_chunks(), c.type) for c in self._columns]
        local, firsts = _distinct(columns)
        return self._codes_of([c.take(pa.array(firsts)) for c in columns])[local]

    def _codes_of(self, distinct: list[pa.Array]) -> Array:
        """The codes of distinct keys. Python works once a key, not once a row."""
        lists = [_hashable(c, k.type) for c, k in zip(distinct, self._columns, strict=True)]
        known = len(self._codes)
        codes = [self._codes.setdefault(key, len(self._codes)) for key in zip(*lists, strict=True)]
        found = np.array(codes, np.int32)
        if len(self._codes) > known:
            # Arrow tells NaN from NaN where their bits differ; they are one key all the same.
            fresh = np.unique(found, return_index=True)[1][-(len(self._codes) - known) :]
            for values, column in zip(self._values, distinct, strict=True):
                values.append(column.take(pa.array(fresh)))
        return found

    def columns(self) -> list[pa.Array]:
        """The key columns, one row a code."""
        for position, (values, column) in enumerate(zip(self._values, self._columns, strict=True)):
            if len(values) != 1:
                self._values[position] = [pa.concat_arrays(values or [pa.nulls(0, ARROW[column.type])])]
        return [values[0] for values in self._values]

    def keep(self, live: Array) -> Array:
        """Forget the keys that are not live; gives the new code of every old one, -1 for the forgotten."""
        kept = np.flatnonzero(live)
        renamed = np.full(len(live), -1, np.int32)
        renamed[kept] = np.arange(len(kept), dtype=np.int32)
        self._values = [[c.take(pa.array(kept))] for c in self.columns()]
        self._codes = {k: int(renamed[code]) for k, code in self._codes.items() if renamed[code] >= 0}
        return renamed


def _plain(column: pa.Array, kind: DataType) -> pa.Array:
    """-0.0 is the key 0.0."""
    column = column.cast(ARROW[kind])
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def _distinct(columns: list[pa.Array]) -> tuple[Array, Array]:
    """For each row the number of its key among the distinct ones, and the first row of each of these."""
    codes, size = _hashed(columns[0])
    for column in columns[1:]:
        more, width = _hashed(column)
        codes, size = _hashed(pa.array(codes.astype(np.int64) * width + more))
    firsts = np.empty(size, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, firsts


def _hashed(column: pa.Array) -> tuple[Array, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def _hashable(column: pa.Array, kind: DataType) -> list[object]:
    values: list[object] = (
        column.cast(pa.int64()).to_pylist() if kind is DataType.TIMESTAMP else column.to_pylist()
    )
    if kind in (DataType.FLOAT, DataType.DOUBLE):
        return [_NAN if v != v else v for v in values]
    return values
