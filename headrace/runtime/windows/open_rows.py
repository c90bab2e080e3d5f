"""Fragments that are still open: partials of successive batches, put together until the watermark has passed
a fragment's end.

Fragments that were opened under other edges are closed by the edges of now. That is right for every query
of now: its windows end at such edges, and what comes later for the same time is cut by them too."""

from __future__ import annotations

import numpy as np

from headrace.runtime.windows.lanes import Array, every_lane
from headrace.runtime.windows.opening import edge_classes, next_edges
from headrace.runtime.windows.rows import Rows, combined, join
from headrace.runtime.windows.spec import TreeSpec


class OpenRows:
    def __init__(self, spec: TreeSpec) -> None:
        self._edges = edge_classes(spec.queries)
        self._spec, self._lanes = spec, every_lane(spec)
        self._held: Rows | None = None
        self._more: list[Rows] = []
        self._touched: list[Array] = []

    def add(self, rows: Rows) -> None:
        if len(rows):
            self._more.append(rows)
            self._touched.append(rows.starts)

    def ends(self, starts: Array) -> Array:
        """Where the fragments end. Without queries nobody waits for them."""
        return next_edges(starts, self._edges) if self._edges else starts

    def closed(self, watermark: int) -> Rows | None:
        """The fragments that end at the watermark or before, each (fragment, key) once; no longer held."""
        rows = self.held()
        if rows is None:
            return None
        count = int(np.searchsorted(self.ends(rows.starts), watermark, "right"))
        if not count:
            return None
        self._held = rows.take(slice(count, None)) if count < len(rows) else None
        self._touched.append(rows.starts[:count])
        return rows.take(slice(count))

    def touched(self) -> Array:
        """The starts of the fragments that have come or gone since the last call."""
        found, self._touched = self._touched, []
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def held(self) -> Rows | None:
        """What is open, put together."""
        if self._more:
            parts = self._more if self._held is None else [self._held, *self._more]
            self._held, self._more = combined(join(parts), self._lanes, self._spec), []
        return self._held

    def rename(self, renamed: Array) -> None:
        """New codes for all keys."""
        rows = self.held()
        if rows is not None:
            rows.codes = renamed[rows.codes]
            self._held = combined(rows, self._lanes, self._spec)
