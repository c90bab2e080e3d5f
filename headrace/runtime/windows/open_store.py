"""Open fragments in the store: one item for each stretch of time that has any, of which a batch writes only
those that have changed.

With a watermark that is far behind, much is open, and a batch adds to its newest part and closes its oldest.
Stretches are as long as it takes for about 16 to 64 of them to hold all that is open."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headrace.runtime.windows.lanes import Array
from headrace.runtime.windows.rows import Rows

_PREFIX = "open"
_MOST, _LEAST = 64, 8
_SMALL = 1024
"""So few rows may stand together."""


def is_open(name: str) -> bool:
    return name.startswith(_PREFIX)


class OpenStore:
    def __init__(self, names: Iterable[str] = ()) -> None:
        """`names` are the items that are in the store."""
        self._names = set(names)
        self._width = max((int(name.split(":")[1]) for name in self._names), default=1 << 20)

    def changes(self, held: Rows | None, touched: Array) -> tuple[dict[str, Rows], list[str]]:
        """What to put and what to delete, when fragments that start at `touched` have come or gone."""
        if held is None:
            gone, self._names = sorted(self._names), set()
            return {}, gone
        self._fit(held)
        numbers, firsts = np.unique(held.starts // self._width, return_index=True)
        names = [f"{_PREFIX}:{self._width}:{number}" for number in numbers.tolist()]
        changed = np.isin(numbers, touched // self._width).tolist()
        ends = [*firsts[1:].tolist(), len(held)]
        puts = {
            name: held.take(slice(low, high))
            for name, low, high, new in zip(names, firsts.tolist(), ends, changed, strict=True)
            if new or name not in self._names
        }
        gone = sorted(self._names - set(names))
        self._names = set(names)
        return puts, gone

    def _fit(self, held: Rows) -> None:
        """Change the length of stretches where there are far too many or too few."""
        if _stretches(held.starts, self._width) > _MOST:
            while _stretches(held.starts, self._width) > _MOST // 2:
                self._width *= 2
        fewest = min(_LEAST, _stretches(held.starts, 1))
        if len(held) > _SMALL and _stretches(held.starts, self._width) < fewest:
            while self._width > 1 and _stretches(held.starts, self._width) < 2 * fewest:
                self._width //= 2


def _stretches(starts: Array, width: int) -> int:
    """How many stretches have a fragment; `starts` are ascending."""
    places = starts // width
    return 1 + int(np.count_nonzero(places[1:] != places[:-1]))
