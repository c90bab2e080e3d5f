"""How far apart the event times of one joined row can be.

A bound says `later - earlier <= at_most` (microseconds, whole, so `<` is `<=` one less). A set of them is
a system of difference constraints; its closure under addition is all shortest paths, and tells for any
two event times of a row the most they can differ, even where the query bounds them only through a third.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from headrace.units import format_duration

Bounds = Mapping[tuple[str, str], int]
"""(earlier, later) -> the most that `later - earlier` can be."""


@dataclass(frozen=True, slots=True)
class TimeBound:
    """later - earlier <= at_most."""

    earlier: str
    later: str
    at_most: int

    def __str__(self) -> str:
        return f"{self.later} - {self.earlier} <= {format_duration(self.at_most)}"


def join_bounds(left: Bounds, right: Bounds, own: tuple[TimeBound, ...]) -> Bounds:
    """The bounds of both sides and of the join itself; the tighter where two say the same."""
    merged = {**left, **right}
    for bound in own:
        pair = (bound.earlier, bound.later)
        merged[pair] = min(merged.get(pair, bound.at_most), bound.at_most)
    return merged


def close(bounds: Bounds) -> Bounds:
    """All bounds that follow (Floyd-Warshall; a query has at most a handful of event times)."""
    names = sorted({name for pair in bounds for name in pair})
    best = dict(bounds)
    for middle, start, end in product(names, names, names):
        if start != end and (start, middle) in best and (middle, end) in best:
            through = best[start, middle] + best[middle, end]
            best[start, end] = min(best.get((start, end), through), through)
    return best


def rename(bounds: Bounds, names: Mapping[str, str]) -> Bounds:
    """The bounds between columns that are kept, under their new names."""
    return {(names[a], names[b]): d for (a, b), d in bounds.items() if a in names and b in names}
