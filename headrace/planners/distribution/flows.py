"""What a table that is being changed sends from each site and over each link, kept up to date edge by edge.

Something that has two readers at one site travels once, so edges are counted, and only the first and the last
of a way change what flows. Sites are numbers; a target that is none of them is below zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from headrace.planners.distribution.problem import Problem, Site
from headrace.planners.distribution.usage import ROUNDING, too_much

Way = tuple[int, ...]
"""(site,): all that leaves it; (site, site): the link between them."""


class Flows:
    def __init__(self, problem: Problem, sites: Sequence[Site]) -> None:
        place = {site.id: i for i, site in enumerate(sites)}
        self._limits: dict[Way, float] = {(i,): site.network for i, site in enumerate(sites)}
        for link in problem.links:
            if link.source in place and link.target in place:
                self._limits[place[link.source], place[link.target]] = link.bandwidth
        self._edges: Counter[tuple[str, int, int]] = Counter()
        self._amount: defaultdict[Way, float] = defaultdict(float)
        self._parts: Counter[Way] = Counter()
        """How many flows an amount is the sum of."""
        self._beyond: dict[Way, float] = {}

    def add(self, given: str, source: int, target: int, amount: float) -> None:
        """One more edge between two sites."""
        key = given, source, target
        self._edges[key] += 1
        if self._edges[key] == 1:
            self._change(source, target, amount, 1)

    def take(self, given: str, source: int, target: int, amount: float) -> None:
        """One edge less."""
        key = given, source, target
        self._edges[key] -= 1
        if not self._edges[key]:
            del self._edges[key]
            self._change(source, target, -amount, -1)

    @property
    def beyond(self) -> float:
        """By how much limits are passed, as shares of them."""
        return sum(self._beyond.values())

    def _change(self, source: int, target: int, amount: float, sign: int) -> None:
        for way in ((source,), (source, target)):
            limit = self._limits.get(way)
            if limit is None:
                continue
            self._parts[way] += sign
            # Where nothing is left, nothing must be left of rounding either: the limit may be zero.
            now = self._amount[way] = self._amount[way] + amount if self._parts[way] else 0.0
            if now > limit * (1 + ROUNDING):
                self._beyond[way] = too_much(now, limit)
            else:
                self._beyond.pop(way, None)
