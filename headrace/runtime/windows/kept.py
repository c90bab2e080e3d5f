"""From when on a new query's windows are right, given which edges cut the fragments that are kept.

A fragment is counted by its start, so a window is right when all of its rows are in kept fragments and
neither of its ends falls inside one. Fragments finer than a query needs do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.runtime.windows.spec import QuerySpec

_LOOK_BACK = 1_000_000
"""Windows of a new query that are looked at; earlier ones are not promised."""


@dataclass(frozen=True, slots=True)
class Span:
    """Fragments cut at the edges (slide, offset): every instant that is `offset` after a multiple of `slide`.
    All that start at `start` or later are kept; the last of them ends at `end`, even where its last row is
    earlier: it arrives only when the watermark is there. Spans may overlap."""

    start: int
    end: int
    edges: tuple[tuple[int, int], ...]

    def cuts(self, instants: np.ndarray) -> np.ndarray:
        """Of which instants it is known that no fragment of this span reaches over them."""
        outside = (instants <= self.start) | (instants >= self.end)
        for slide, offset in self.edges:
            outside |= instants % slide == offset % slide
        return outside


def covers(query: QuerySpec, kept: Sequence[Span], starts: Sequence[int]) -> list[bool]:
    """Whether the windows that start there are right. After the last span the query's own edges hold."""
    if not kept:
        return [False] * len(starts)
    first = np.asarray(starts, np.int64)
    right = first >= min(span.start for span in kept)
    for span in kept:
        right &= span.cuts(first) & span.cuts(first + query.range)
    return [bool(r) for r in right]


def valid_from(query: QuerySpec, kept: Sequence[Span], now: int, floor: int | None = None) -> int:
    """The earliest multiple of the slide, at `floor` or later, such that every window from there on is right;
    `now` is an instant from which the query's own edges hold, no earlier than the end of the last span."""
    slide, last = query.slide, -(-now // query.slide)
    begin = min((span.start for span in kept), default=now)
    instants = [begin, (last - _LOOK_BACK) * slide] + ([] if floor is None else [floor])
    first = -(-max(instants) // slide)
    opens = np.arange(first, last) * slide
    wrong = np.flatnonzero(~np.asarray(covers(query, kept, opens.tolist()), np.bool_))
    return int(opens[wrong[-1]]) + slide if len(wrong) else first * slide
