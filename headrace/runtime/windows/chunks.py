"""State as a store of named byte strings: fragments in chunks of Arrow IPC, and one record of marks.

A chunk holds the rows of one or several neighbouring batches and is written once; eight chunks of a size
become one, so a row is written 1 + log8(batches in an eighth of the longest range) times at most. A chunk
goes when its last fragment is behind every window still to be given. A row takes 8 bytes (start) + 4 for
each key column + the width of its partial columns, before compression (LZ4).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headrace.errors import InternalError
from headrace.runtime.results import ARROW
from headrace.runtime.windows.finish import to_arrow
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.lanes import Array
from headrace.runtime.windows.rows import Rows, wire_type
from headrace.runtime.windows.spec import FRAGMENT, Partial, PartialKind, TreeSpec

MARKS = "marks"
_FAN = 8
_SPAN = 1 / 8
_MOST_ROWS = 1 << 20
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Marks:
    watermark: int | None
    pushes: int

    def encode(self) -> bytes:
        data = {"version": _VERSION, "watermark": self.watermark, "pushes": self.pushes}
        return json.dumps(data).encode()

    @classmethod
    def decode(cls, data: bytes) -> Marks:
        fields = json.loads(data)
        if fields["version"] != _VERSION:
            raise InternalError(f"state of version {fields['version']}, this is version {_VERSION}")
        return cls(fields["watermark"], fields["pushes"])


@dataclass(frozen=True, slots=True)
class Chunk:
    first: int
    last: int
    """The pushes whose rows it holds."""
    low: int
    high: int
    """The first and the last fragment start in it."""
    rows: int

    @property
    def name(self) -> str:
        return f"chunk-{self.first:010d}-{self.last:010d}"

    @property
    def level(self) -> int:
        """How often its rows have been written together with others."""
        level, size = 0, self.last - self.first + 1
        while size >= _FAN:
            level, size = level + 1, size // _FAN
        return level


def pushes_of(name: str) -> tuple[int, int]:
    _, first, last = name.split("-")
    return int(first), int(last)


def encode(rows: Rows, keys: Keys, spec: TreeSpec) -> bytes:
    codes = pa.array(rows.codes)
    columns = [pa.array(rows.starts)]
    columns += [pa.DictionaryArray.from_arrays(*_compact(codes, column)) for column in keys.columns()]
    columns += [
        _stored(values, valid, partial)
        for values, valid, partial in zip(rows.values, rows.valid, spec.partials, strict=True)
    ]
    names = [FRAGMENT, *(c.name for c in spec.keys), *(p.name for p in spec.partials)]
    batch = pa.record_batch(columns, names=names)
    sink = pa.BufferOutputStream()
    # Threads would cost more than they save: chunks are small.
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _stored(values: Array, valid: Array | None, partial: Partial) -> pa.Array:
    if partial.kind is PartialKind.SKETCH:
        return pa.array(values, wire_type(partial))
    return to_arrow(values, valid, partial.type)


def _compact(codes: pa.Array, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Indices and values of a dictionary that has only the keys in use."""
    used = codes.dictionary_encode()
    return used.indices, column.take(used.dictionary)


def decode(data: bytes, spec: TreeSpec) -> pa.Table:
    table = pa.ipc.open_stream(data).read_all()
    for position, column in enumerate(spec.keys, start=1):
        table = table.set_column(position, column.name, table[column.name].cast(ARROW[column.type]))
    return table


class Directory:
    """Which chunks there are, and what has changed since the store was last told."""

    def __init__(self, longest: int) -> None:
        self._chunks: list[Chunk] = []
        self._span = int(longest * _SPAN)
        self._deletes: list[str] = []

    def add(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self._chunks.sort(key=lambda c: c.first)

    def drop_before(self, instant: int) -> None:
        self._deletes += [c.name for c in self._chunks if c.high < instant]
        self._chunks = [c for c in self._chunks if c.high >= instant]

    def merge(self, rows_of: Callable[[Chunk], Rows]) -> dict[Chunk, Rows]:
        """Neighbouring small chunks as larger ones; the rows come from memory."""
        made: dict[Chunk, Rows] = {}
        while (run := self._mergeable()) is not None:
            low, high = min(c.low for c in run), max(c.high for c in run)
            joined = Chunk(run[0].first, run[-1].last, low, high, sum(c.rows for c in run))
            rows = rows_of(joined)
            for chunk in run:
                self._chunks.remove(chunk)
                # One that was made just now has never been stored.
                if made.pop(chunk, None) is None:
                    self._deletes.append(chunk.name)
            self.add(joined)
            made[joined] = rows
        return made

    def _mergeable(self) -> list[Chunk] | None:
        run = self._chunks[-_FAN:]
        if len(run) < _FAN or len({c.level for c in run}) != 1:
            return None
        wide = max(c.high for c in run) - min(c.low for c in run) > self._span
        return None if wide or sum(c.rows for c in run) > _MOST_ROWS else run

    def take_deletes(self) -> list[str]:
        deletes, self._deletes = self._deletes, []
        return deletes
