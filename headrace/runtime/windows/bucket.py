"""One hash bucket of a tree: fragments of its keys in, finished windows of every query out.

    bucket = Bucket(spec)
    bucket.push(fragments)
    for query_index, batch in bucket.advance(watermark): ...
    puts, deletes = bucket.changes()

Holds when an end of a window never falls inside a fragment (for windows before a query's `valid_from` it
may). A (fragment, key) may be pushed again, and after the watermark has passed it: all windows that are not
given yet count it.

A window is given by the first `advance` whose watermark reaches its end, never again, and never by a restored
bucket whose state had passed it. What is kept depends on the queries only in how long it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from headrace.runtime.windows import chunks
from headrace.runtime.windows.levels import Coarse, Level
from headrace.runtime.windows.open_rows import OpenRows
from headrace.runtime.windows.open_store import OpenStore, is_open
from headrace.runtime.windows.rows import Rows, join, ordered, rows_of
from headrace.runtime.windows.runs import Horizon, first_window, next_window
from headrace.runtime.windows.spec import TreeSpec


class Bucket:
    def __init__(self, spec: TreeSpec) -> None:
        self.spec = spec
        everything = tuple(range(len(spec.keys)))
        self._finest = Level(spec, everything)
        fewer = dict.fromkeys(q.keys for q in spec.queries if q.keys is not None and q.keys != everything)
        self._coarse = [Coarse(spec, places) for places in fewer]
        self.opening, self._horizon = OpenRows(spec), Horizon(spec.queries)
        self._watermark: int | None = None
        self._pushes = 0
        self._fresh: list[Rows] = []
        self._directory = chunks.Directory(max((q.range for q in spec.queries), default=0))
        self._live_keys = 0
        self._stored: chunks.Marks | None = None
        self._open_store = OpenStore()

    # Fragments in, windows out.

    def read(self, table: pa.Table) -> Rows:
        """FRAGMENT (BIGINT micros), key and partial columns, as rows under the codes of this bucket."""
        return rows_of(table, self._finest.keys.encode(table), self._pushes, self.spec.partials)

    def push(self, table: pa.Table) -> None:
        """Take closed fragments."""
        if table.num_rows:
            self.push_rows(ordered(self.read(table)))

    def push_rows(self, rows: Rows) -> None:
        """Take closed fragments that are sorted."""
        rows.pushes = np.full(len(rows), self._pushes, np.int32)
        self._fresh.append(rows)
        self._keep(rows)

    def _keep(self, rows: Rows) -> None:
        self._finest.add(rows)
        for level in self._coarse:
            level.add_from(self._finest.keys, rows)

    @property
    def _levels(self) -> list[Level]:
        return [self._finest, *self._coarse]

    def advance(self, watermark: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The windows that end at the watermark or before and were not given yet, one batch a query. The
        bucket has advanced when the iterator is at its end."""
        if self._watermark is not None and watermark <= self._watermark:
            return
        closed = self.opening.closed(watermark)
        if closed is not None:
            self.push_rows(closed)
        for level in self._levels:
            yield from level.between(self._watermark, watermark)
        self._watermark = watermark
        self._forget(self.horizon(watermark))

    def horizon(self, watermark: int) -> int:
        """No window that is still to be given starts before this."""
        return self._horizon.at(watermark)

    @property
    def watermark(self) -> int | None:
        """All windows that end here or before have been given."""
        return self._watermark

    @property
    def known_keys(self) -> int:
        """At most twice the keys with a kept fragment, and 64 more."""
        return len(self._finest.keys)

    @property
    def kept_from(self) -> int | None:
        """Every fragment that starts here or later is kept. None: nothing was dropped yet."""
        return None if self._watermark is None else self.horizon(self._watermark)

    def _forget(self, horizon: int) -> None:
        for level in self._levels:
            level.forget(horizon)
        self._directory.drop_before(horizon)
        if len(self._finest.keys) > 2 * self._live_keys + 64:
            self._forget_keys()

    def _forget_keys(self) -> None:
        """Keys without a kept fragment. Looked for only when the number of keys has doubled, so that it
        costs O(1) for each key that came."""
        keys, held = self._finest.keys, self.opening.held()
        live = np.zeros(len(keys), np.bool_)
        live[self._finest.log.codes] = True
        for rows in self._fresh if held is None else [*self._fresh, held]:
            live[rows.codes] = True
        self._live_keys = int(live.sum())
        if self._live_keys == len(keys) or not self.spec.keys:
            return
        renamed = keys.keep(live)
        for rows in self._fresh:
            rows.codes = renamed[rows.codes]
        self.opening.rename(renamed)
        self._finest.log.rename(renamed)
        self._finest.plan()
        self._roll_up_again()

    def _roll_up_again(self) -> None:
        rows = self._finest.log.slice(0, len(self._finest.log))
        self._coarse = [Coarse(self.spec, level.places) for level in self._coarse]
        for level in self._coarse:
            level.add_from(self._finest.keys, rows)

    def next_due(self) -> int | None:
        """The earliest end of a window that is still to be given and has a closed fragment."""
        ends, starts = [], self._finest.log.starts
        for query in self.spec.queries:
            first = first_window(query, starts, next_window(query, self._watermark))
            ends += [] if first is None else [first * query.slide + query.range]
        return min(ends, default=None)

    # State.

    def changes(self) -> tuple[dict[str, bytes], list[str]]:
        """What to put in the store and what to delete from it, since the last call."""
        puts = self._new_chunk()
        unseen = set(puts)
        for chunk, rows in self._directory.merge(self._rows_of).items():
            puts.pop(f"chunk-{chunk.last:010d}-{chunk.last:010d}", None)
            puts[chunk.name] = chunks.encode(rows, self._finest.keys, self.spec)
        marks = chunks.Marks(self._watermark, self._pushes)
        if marks != self._stored:
            puts[chunks.MARKS], self._stored = marks.encode(), marks
        deletes = [name for name in self._directory.take_deletes() if name not in unseen]
        stretches, gone = self._open_store.changes(self.opening.held(), self.opening.touched())
        for name, rows in stretches.items():
            puts[name] = chunks.encode(rows, self._finest.keys, self.spec)
        return puts, deletes + gone

    def _new_chunk(self) -> dict[str, bytes]:
        """The rows pushed since the last call. Those that no window needs any more are not written."""
        if not self._fresh:
            return {}
        rows = ordered(join(self._fresh))
        self._fresh = []
        number, self._pushes = self._pushes, self._pushes + 1
        if self._watermark is not None:
            rows = rows.take(slice(int(np.searchsorted(rows.starts, self.horizon(self._watermark))), None))
        if not len(rows):
            return {}
        chunk = chunks.Chunk(number, number, int(rows.starts[0]), int(rows.starts[-1]), len(rows))
        self._directory.add(chunk)
        return {chunk.name: chunks.encode(rows, self._finest.keys, self.spec)}

    def _rows_of(self, chunk: chunks.Chunk) -> Rows:
        log = self._finest.log
        rows = log.slice(*log.between(chunk.low, chunk.high + 1))
        return rows.take(np.flatnonzero((rows.pushes >= chunk.first) & (rows.pushes <= chunk.last)))

    @classmethod
    def restore(cls, spec: TreeSpec, items: Iterable[tuple[str, bytes]]) -> Bucket:
        """The bucket whose changes are in the store; `spec` may have other queries than it had."""
        bucket, found = cls(spec), dict(items)
        marks, still_open = found.pop(chunks.MARKS, None), sorted(filter(is_open, found))
        if marks is not None:
            bucket._stored = chunks.Marks.decode(marks)
            bucket._watermark, bucket._pushes = bucket._stored.watermark, bucket._stored.pushes
        for name in still_open:
            bucket.opening.add(bucket.read(chunks.decode(found.pop(name), spec)))
        bucket.opening.touched()
        bucket._open_store = OpenStore(still_open)
        parts = [bucket._load(name, data) for name, data in sorted(found.items())]
        if parts:
            bucket._keep(ordered(join(parts)))
        if bucket._watermark is not None:
            bucket._forget(bucket.horizon(bucket._watermark))
        return bucket

    def _load(self, name: str, data: bytes) -> Rows:
        first, last = chunks.pushes_of(name)
        table = chunks.decode(data, self.spec)
        rows = ordered(rows_of(table, self._finest.keys.encode(table), last, self.spec.partials))
        self._directory.add(chunks.Chunk(first, last, int(rows.starts[0]), int(rows.starts[-1]), len(rows)))
        return rows
