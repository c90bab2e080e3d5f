"""The cheapest join order and assignment of joins to the members of a cluster.

    here[S, m]  = least cost to have the streams S at member m: read from a source, or made at some member and
                  sent on
    made[S, m]  = least cost to join S at m: min over parts A, B of S of here[A, m] + here[B, m]

The rate of a set of streams does not depend on how it was joined, so the best way to make a set is part of
the best way to make any larger one: this finds what comparing all join orders and placements would.
O(3^K n + 2^K n^2) for K streams and n members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from headrace.planners.placement.problem import Floats, Site


@dataclass(frozen=True, slots=True)
class Read:
    """A source, by its position."""

    source: int
    streams: int


@dataclass(frozen=True, slots=True)
class Make:
    """A join on a member of the cluster."""

    streams: int
    member: Site
    left: Draft
    right: Draft


Draft = Read | Make


@dataclass(frozen=True, slots=True)
class Input:
    """What a source is to a search: streams as bits, traversal costs to the members, extra cost."""

    streams: int
    ways: Floats
    extra: float


class Search:
    def __init__(
        self,
        members: Sequence[Site],
        costs: Floats,
        allowed: NDArray[np.bool_],
        rates: Floats,
        inputs: Sequence[Input],
    ) -> None:
        self._members, self._costs, self._allowed, self._rates = members, costs, allowed, rates
        self._inputs = inputs
        self._by_streams: dict[int, list[int]] = {}
        for i, one in enumerate(inputs):
            self._by_streams.setdefault(one.streams, []).append(i)
        self._here = np.full((len(rates), len(members)), np.inf)
        self._made = np.full((len(rates), len(members)), np.inf)
        self._pieces = np.zeros(len(rates), dtype=np.int64)
        self._fill()

    def pieces(self, streams: int) -> int:
        """The most sources that a plan for these streams could join; 0: they cannot be had."""
        return int(self._pieces[streams])

    def best(self, streams: int, reads: Sequence[float], ways: Floats) -> tuple[Draft, float] | None:
        """The cheapest draft that brings the streams to a target, and its cost. `reads` are the traversal
        costs to the target from the sources, `ways` from the members. None: there is no way."""
        (source, read), (member, joined) = self._read(streams, reads), self._join(streams, ways)
        if not np.isfinite(min(read, joined)):
            return None
        draft = Read(source, streams) if read <= joined else self._draft_of_join(streams, member)
        return draft, min(read, joined)

    def _fill(self) -> None:
        everything = 0
        for one in self._inputs:
            everything |= one.streams
        for streams in range(1, everything + 1):
            if streams & everything == streams:
                self._fill_one(streams)

    def _fill_one(self, streams: int) -> None:
        here = self._here[streams]
        for i in self._by_streams.get(streams, ()):
            one = self._inputs[i]
            np.minimum(here, one.extra + times(self._rates[streams], one.ways), out=here)
            self._pieces[streams] = 1
        parts = halves(streams)
        counts = self._pieces[parts] * self._pieces[streams ^ parts]
        if not counts.any():
            return
        self._pieces[streams] = (self._pieces[parts] + self._pieces[streams ^ parts])[counts > 0].max()
        made = (self._here[parts] + self._here[streams ^ parts]).min(axis=0)
        made[~self._allowed] = np.inf
        self._made[streams] = made
        sent = made[:, None] + times(self._rates[streams], self._costs)
        np.minimum(here, sent.min(axis=0), out=here)

    def _read(self, streams: int, reads: Sequence[float]) -> tuple[int, float]:
        """The cheapest source for a target, and its cost."""
        found, least = -1, np.inf
        for i in self._by_streams.get(streams, ()):
            cost = self._inputs[i].extra + float(self._rates[streams]) * reads[i]
            if cost < least:  # so not for 0 * inf, which is not a number
                found, least = i, cost
        return found, least

    def _join(self, streams: int, ways: Floats) -> tuple[int, float]:
        """The best member, by position, to join for a target, and the cost."""
        costs = self._made[streams] + times(self._rates[streams], ways)
        member = int(costs.argmin())
        return member, float(costs[member])

    def _draft_of_join(self, streams: int, member: int) -> Make:
        parts = halves(streams)
        part = int(parts[(self._here[parts, member] + self._here[streams ^ parts, member]).argmin()])
        left, right = (self._draft_at(one, member) for one in (part, streams ^ part))
        return Make(streams, self._members[member], left, right)

    def _draft_at(self, streams: int, member: int) -> Draft:
        (source, read), (maker, joined) = (
            self._read(streams, [float(one.ways[member]) for one in self._inputs]),
            self._join(streams, self._costs[:, member]),
        )
        return Read(source, streams) if read <= joined else self._draft_of_join(streams, maker)


def times(rate: float, costs: Floats) -> Floats:
    """Nothing at all over no path is still no way: 0 * inf is not a number."""
    return rate * costs if rate > 0 else np.where(np.isinf(costs), np.inf, 0.0)


@cache
def halves(streams: int) -> NDArray[np.int64]:
    """One part of every way to part a set in two, lowest first; the other is what is left of it."""
    rest = streams & (streams - 1)
    parts, part = [], rest
    while part:
        parts.append(part)
        part = part - 1 & rest
    return np.array(parts[::-1], dtype=np.int64)
