"""A tree's final level as its caller sees it: partials of micro-batches in, results and late rows out.

    weaver = Weaver(spec)                       # or Weaver.restore(spec, items of the store)
    for each micro-batch:
        weaver.take(partials)                   # any number of times
        advanced = weaver.advance(watermark)    # may be the one of the batch before
        puts, deletes = weaver.changes()

A row is late for a window when the watermark of the batch before had reached the window's end; it counts in
its other windows all the same. All rows of a fragment are in the same windows of a query, so this is decided
for whole partials. What no window can need any more is dropped. State names no queries, so it may be
restored with others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.runtime.windows.bucket import Bucket
from headrace.runtime.windows.lanes import Array
from headrace.runtime.windows.opening import ROWS
from headrace.runtime.windows.rows import ordered
from headrace.runtime.windows.runs import next_window
from headrace.runtime.windows.spec import FRAGMENT, QuerySpec, TreeSpec


@dataclass(frozen=True, slots=True)
class Advanced:
    """What one micro-batch gave, by QuerySpec.id."""

    results: list[tuple[str, pa.RecordBatch]]
    late: dict[str, int]
    """Rows that missed at least one window of the query. Queries that missed none are not in it."""


class Weaver:
    def __init__(self, spec: TreeSpec) -> None:
        self.spec = spec
        self._bucket = Bucket(spec)
        self._late: Counter[str] = Counter()

    @property
    def watermark(self) -> int | None:
        """All windows that end here or before have been given. None: it has never advanced, and nothing can
        be late."""
        return self._bucket.watermark

    def take(self, partials: pa.Table) -> None:
        """Partials of one micro-batch (opening.partial_table), in any order."""
        watermark = self.watermark
        starts = partials[FRAGMENT].to_numpy()
        if watermark is not None and len(starts):
            over = self._bucket.opening.ends(starts) <= watermark
            if bool(over.any()):
                self._take_late(partials.filter(pa.array(over)), watermark)
                partials = partials.filter(pa.array(~over))
        if partials.num_rows:
            self._bucket.opening.add(self._bucket.read(partials))

    def _take_late(self, partials: pa.Table, watermark: int) -> None:
        """Partials of fragments that are closed."""
        starts = partials[FRAGMENT].to_numpy()
        for query in self.spec.queries:
            missed = int(_counts(self.spec, query, partials)[_missed(query, starts, watermark)].sum())
            if missed:
                self._late[query.id] += missed
        useful = starts >= self._bucket.horizon(watermark)
        if bool(useful.any()):
            self._bucket.push_rows(ordered(self._bucket.read(partials.filter(pa.array(useful)))))

    def advance(self, watermark: int) -> Advanced:
        """What the watermark of this micro-batch closes."""
        results = [(self.spec.queries[k].id, batch) for k, batch in self._bucket.advance(watermark)]
        late, self._late = dict(self._late), Counter()
        return Advanced(results, late)

    def changes(self) -> tuple[dict[str, bytes], list[str]]:
        """What to put in the store and what to delete from it, since the last call."""
        return self._bucket.changes()

    @classmethod
    def restore(cls, spec: TreeSpec, items: Iterable[tuple[str, bytes]]) -> Weaver:
        """The weaver whose changes are in the store. `spec` may have other queries and partial columns."""
        weaver = cls(spec)
        weaver._bucket = Bucket.restore(spec, items)
        return weaver


def _counts(spec: TreeSpec, query: QuerySpec, partials: pa.Table) -> Array:
    """How many rows of each partial are the query's."""
    name = ROWS if query.present is None else spec.partials[query.present].name
    counts: Array = partials[name].to_numpy()
    return counts


def _missed(query: QuerySpec, starts: Array, watermark: int) -> Array:
    """Of which fragments the first window that the query gives ended at the watermark or before."""
    first = np.maximum((starts - query.range) // query.slide + 1, next_window(query, None))
    missed: Array = (first * query.slide <= starts) & (first * query.slide + query.range <= watermark)
    return missed
