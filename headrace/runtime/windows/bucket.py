"""One hash bucket of a tree: fragments of its keys in, finished windows of every query out.

    bucket = Bucket(spec)
    bucket.push(fragments)
    for query_index, batch in bucket.advance(watermark): ...
    puts, deletes = bucket.changes()

Holds when: each (fragment, key) is pushed once, no fragment is pushed after the watermark has passed its
end, and an end of a window never falls inside a fragment (for windows before a query's `valid_from` it may).

A window is given by the first `advance` whose watermark reaches its end, never again, and never by a restored
bucket whose state had passed it. What is kept depends on the queries only in how long it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from headrace.errors import InternalError
from headrace.plan.types import DataType
from headrace.runtime.windows import chunks
from headrace.runtime.windows.answers import Answers
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.log import Log, Rows, join, ordered, rows_of
from headrace.runtime.windows.runs import first_window, next_window
from headrace.runtime.windows.spec import QuerySpec, TreeSpec

_WIDE = 2.0**62


class Bucket:
    def __init__(self, spec: TreeSpec) -> None:
        self.spec = spec
        self._keys = Keys(spec.keys)
        self._log = Log(spec.partials)
        self._watermark: int | None = None
        self._pushes = 0
        self._fresh: list[Rows] = []
        self._directory = chunks.Directory(max((q.range for q in spec.queries), default=0))
        self._live_keys = 0
        self._stored: chunks.Marks | None = None
        self._wide = [False] * len(spec.partials)
        self._answers = self._plan()

    def _plan(self) -> Answers:
        return Answers(self.spec, self._log, self._keys, self._wide)

    # Fragments in, windows out.

    def push(self, table: pa.Table) -> None:
        """Take closed fragments: fragment_start (BIGINT micros), the key columns, the partial columns."""
        if not table.num_rows:
            return
        codes = self._keys.encode(table)
        rows = rows_of(table, codes, self._pushes, self.spec.partials)
        self._refuse_late(int(rows.starts[0]))
        self._fresh.append(rows)
        self._keep(rows)

    def _keep(self, rows: Rows) -> None:
        changed = self._log.add(rows)
        wide = [self._may_overflow(k) for k in range(len(self._wide))]
        if changed or wide != self._wide:
            self._wide = wide
            self._answers = self._plan()

    def _may_overflow(self, column: int) -> bool:
        """Whether a sum over all kept rows could leave BIGINT; once it could, it is watched for good."""
        if self._wide[column] or self.spec.partials[column].type is not DataType.BIGINT:
            return self._wide[column]
        return self._log.largest[column] * len(self._log) >= _WIDE

    def _refuse_late(self, start: int) -> None:
        for query in self.spec.queries:
            if self._watermark is None or start < _valid(query):
                continue
            if start < self._watermark // query.slide * query.slide:
                raise InternalError(
                    f"a fragment that starts at {start} came after the watermark {self._watermark}",
                    detail=f"query {query.id} has closed its windows there",
                )

    def advance(self, watermark: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The windows that end at the watermark or before and were not given yet, one batch a query. The
        bucket has advanced when the iterator is at its end."""
        if self._watermark is not None and watermark <= self._watermark:
            return
        yield from self._answers.between(self._watermark, watermark)
        self._watermark = watermark
        self._forget(self._horizon(watermark))

    def _horizon(self, watermark: int) -> int:
        """No window that is still to be given starts before this."""
        starts = [next_window(q, watermark) * q.slide for q in self.spec.queries]
        return min(starts, default=watermark)

    @property
    def watermark(self) -> int | None:
        """All windows that end here or before have been given."""
        return self._watermark

    @property
    def known_keys(self) -> int:
        """At most twice the keys with a kept fragment, and 64 more."""
        return len(self._keys)

    @property
    def kept_from(self) -> int | None:
        """Every fragment that starts here or later is kept. None: nothing was dropped yet."""
        return None if self._watermark is None else self._horizon(self._watermark)

    def _forget(self, horizon: int) -> None:
        self._log.drop_before(horizon)
        self._directory.drop_before(horizon)
        self._answers.forget(horizon)
        if len(self._keys) > 2 * self._live_keys + 64:
            self._forget_keys()

    def _forget_keys(self) -> None:
        """Keys without a kept fragment. Looked for only when the number of keys has doubled, so that it
        costs O(1) for each key that came."""
        live = np.zeros(len(self._keys), np.bool_)
        live[self._log.codes] = True
        for rows in self._fresh:
            live[rows.codes] = True
        self._live_keys = int(live.sum())
        if self._live_keys == len(self._keys) or not self.spec.keys:
            return
        renamed = self._keys.keep(live)
        for rows in self._fresh:
            rows.codes = renamed[rows.codes]
        self._log.rename(renamed)
        self._answers = self._plan()

    def next_due(self) -> int | None:
        """The earliest end of a window that is still to be given and has a row."""
        ends = []
        for query in self.spec.queries:
            first = first_window(query, self._log.starts, next_window(query, self._watermark))
            ends += [] if first is None else [first * query.slide + query.range]
        return min(ends, default=None)

    # State.

    def changes(self) -> tuple[dict[str, bytes], list[str]]:
        """What to put in the store and what to delete from it, since the last call."""
        puts = self._new_chunk()
        unseen = set(puts)
        for chunk, rows in self._directory.merge(self._rows_of).items():
            puts.pop(f"chunk-{chunk.last:010d}-{chunk.last:010d}", None)
            puts[chunk.name] = chunks.encode(rows, self._keys, self.spec)
        marks = chunks.Marks(self._watermark, self._pushes)
        if marks != self._stored:
            puts[chunks.MARKS], self._stored = marks.encode(), marks
        return puts, [name for name in self._directory.take_deletes() if name not in unseen]

    def _new_chunk(self) -> dict[str, bytes]:
        """The rows pushed since the last call. Those that no window needs any more are not written."""
        if not self._fresh:
            return {}
        rows = ordered(join(self._fresh))
        self._fresh = []
        number, self._pushes = self._pushes, self._pushes + 1
        if self._watermark is not None:
            rows = rows.take(slice(int(np.searchsorted(rows.starts, self._horizon(self._watermark))), None))
        if not len(rows):
            return {}
        chunk = chunks.Chunk(number, number, int(rows.starts[0]), int(rows.starts[-1]), len(rows))
        self._directory.add(chunk)
        return {chunk.name: chunks.encode(rows, self._keys, self.spec)}

    def _rows_of(self, chunk: chunks.Chunk) -> Rows:
        rows = self._log.slice(*self._log.between(chunk.low, chunk.high + 1))
        return rows.take(np.flatnonzero((rows.pushes >= chunk.first) & (rows.pushes <= chunk.last)))

    @classmethod
    def restore(cls, spec: TreeSpec, items: Iterable[tuple[str, bytes]]) -> Bucket:
        """The bucket whose changes are in the store; `spec` may have other queries than it had."""
        bucket, found = cls(spec), dict(items)
        marks = found.pop(chunks.MARKS, None)
        if marks is not None:
            bucket._stored = chunks.Marks.decode(marks)
            bucket._watermark, bucket._pushes = bucket._stored.watermark, bucket._stored.pushes
        parts = [bucket._load(name, data) for name, data in sorted(found.items())]
        if parts:
            bucket._keep(ordered(join(parts)))
        if bucket._watermark is not None:
            bucket._forget(bucket._horizon(bucket._watermark))
        return bucket

    def _load(self, name: str, data: bytes) -> Rows:
        first, last = chunks.pushes_of(name)
        table = chunks.decode(data, self.spec)
        rows = rows_of(table, self._keys.encode(table), last, self.spec.partials)
        self._directory.add(chunks.Chunk(first, last, int(rows.starts[0]), int(rows.starts[-1]), len(rows)))
        return rows


def _valid(query: QuerySpec) -> float:
    return float("-inf") if query.valid_from is None else query.valid_from
