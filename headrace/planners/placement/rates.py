"""How much data a set of joined streams is, for one query or for all queries that read an operator.

    rows(S)  = product of rate * share that passes the filter, and of the selectivities of all pairs in S
    data(S)  = rows(S) * wanted width of S / whole width of S

What an operator holds of a stream is the least that serves all its readers: the rows of any of their filters
and the widest of their widths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from headrace.planners.placement.problem import Filter, Floats, PlacementProblem, Query

Rows = frozenset[str] | None
"""Filters of which a row passes at least one, none within another; None: all rows."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is kept of one stream."""

    rows: Rows
    width: float

    def covers(self, other: Held, filters: Mapping[str, Filter]) -> bool:
        return self.width >= other.width and _covers(self.rows, other.rows, filters)


Holding = Mapping[str, Held]
"""Stream -> what is kept of it."""


def wanted(problem: PlacementProblem, query: Query) -> dict[str, Held]:
    """What a query wants of each of its streams."""
    found: dict[str, Held] = {}
    for name in query.streams:
        rows = frozenset({query.filters[name]}) if name in query.filters else None
        found[name] = Held(rows, query.widths.get(name, problem.streams[name].width))
    return found


def together(problem: PlacementProblem, held: Iterable[Held]) -> Held:
    """The least that covers all of them."""
    every = list(held)
    width = max(one.width for one in every)
    if any(one.rows is None for one in every):
        return Held(None, width)
    names = frozenset[str]().union(*(one.rows for one in every if one.rows is not None))
    return Held(_weakest(names, problem.filters), width)


def data_rate(problem: PlacementProblem, holding: Holding, streams: Iterable[str]) -> float:
    """The data rate of a joined set of streams, of which so much is kept."""
    names = sorted(streams)
    rows, kept, whole = 1.0, 0.0, 0.0
    for name in names:
        stream, held = problem.streams[name], holding[name]
        rows *= stream.rate * share(problem, held.rows)
        kept += held.width
        whole += stream.width
    for pair in combinations(names, 2):
        rows *= problem.selectivities.get(frozenset(pair), 1.0)
    return rows * (kept / whole)


def share(problem: PlacementProblem, rows: Rows) -> float:
    """The share of a stream's rows that is kept. Filters of which none is within another are taken to have
    no row in common, so that shares add up."""
    if rows is None:
        return 1.0
    return min(1.0, sum(problem.filters[name].selectivity for name in sorted(rows)))


def by_subset(problem: PlacementProblem, query: Query) -> Floats:
    """The data rate of every subset of a query's streams: bit i of the position is query.streams[i]. The
    empty set has 0. O(2^K * K)."""
    names, holding = query.streams, wanted(problem, query)
    size = len(names)
    base = [problem.streams[n].rate * share(problem, holding[n].rows) for n in names]
    pair = [[problem.selectivities.get(frozenset((a, b)), 1.0) for b in names] for a in names]
    rows = np.ones(1 << size)
    kept, whole = np.zeros(1 << size), np.zeros(1 << size)
    for mask in range(1, 1 << size):
        last = mask.bit_length() - 1
        rest = mask ^ (1 << last)
        value = rows[rest] * base[last]
        for i in range(last):
            if rest >> i & 1:
                value *= pair[i][last]
        rows[mask] = value
        kept[mask] = kept[rest] + holding[names[last]].width
        whole[mask] = whole[rest] + problem.streams[names[last]].width
    rows[0] = 0.0
    return rows if not query.widths else np.where(whole > 0, rows * kept / np.maximum(whole, 1e-300), 0.0)


def _covers(rows: Rows, other: Rows, filters: Mapping[str, Filter]) -> bool:
    if rows is None:
        return True
    if other is None:
        return False
    return all(name in rows or filters[name].within & rows for name in other)


def _weakest(names: frozenset[str], filters: Mapping[str, Filter]) -> frozenset[str]:
    return frozenset(name for name in names if not filters[name].within & names)
