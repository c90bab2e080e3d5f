"""Which windows of a query there are to give: only those that hold a fragment, in runs of neighbours.

Time without rows costs nothing, however long: the next fragment says where the next window is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.runtime.windows.lanes import Array
from headrace.runtime.windows.spec import QuerySpec

_MOSTLY = 0.25
"""A stretch of windows of which fewer have rows is given piece by piece."""
BEGINNING = -(2**62)
"""Before all time, and far enough from the end of int64."""


def next_window(query: QuerySpec, watermark: int | None) -> int:
    """The number of the first window that is still to be given when the watermark is there."""
    window = query.first_after(BEGINNING if watermark is None else watermark)
    return window if query.valid_from is None else max(window, -(-query.valid_from // query.slide))


class Horizon:
    """Where the first window starts that any query is still to give, for all queries at once."""

    def __init__(self, queries: tuple[QuerySpec, ...]) -> None:
        self._ranges = np.array([q.range for q in queries], np.int64)
        self._slides = np.array([q.slide for q in queries], np.int64)
        self._floors = np.array([next_window(q, None) for q in queries], np.int64)

    def at(self, watermark: int) -> int:
        """No window that is still to be given starts before this."""
        if not len(self._ranges):
            return watermark
        windows = np.maximum((watermark - self._ranges) // self._slides + 1, self._floors)
        return int((windows * self._slides).min())


def first_window(query: QuerySpec, starts: Array, window: int) -> int | None:
    """The first window from `window` on that holds a fragment; `starts` are ascending."""
    while True:
        place = int(np.searchsorted(starts, window * query.slide))
        if place == len(starts):
            return None
        start = int(starts[place])
        window = max(window, (start - query.range) // query.slide + 1)
        if window * query.slide <= start:
            return window


def runs(query: QuerySpec, starts: Array, first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """(first window, number of windows) of stretches inside first..last, at most `most` long, that between
    them have every window with a fragment."""
    window: int | None = first
    while window is not None and window <= last:
        window = first_window(query, starts, window)
        if window is None or window > last:
            return
        count = _stretch(query, starts, window, min(most, last - window + 1))
        yield window, count
        window += count


def _stretch(query: QuerySpec, starts: Array, window: int, most: int) -> int:
    opens = np.arange(window, window + most) * query.slide
    some = np.searchsorted(starts, opens) < np.searchsorted(starts, opens + query.range)
    if bool(some.all()):
        return most
    if some.mean() > _MOSTLY:
        return int(np.flatnonzero(some)[-1]) + 1
    return int(np.argmin(some))
