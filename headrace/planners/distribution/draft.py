"""A distribution that is being changed: loads, connections and limits kept up to date, move by move.

Sites and operators are numbers here. What `usage` would say of the same table is what the figures
below are; tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from headrace.planners.distribution.flows import Flows
from headrace.planners.distribution.problem import Problem, Site
from headrace.planners.distribution.usage import ROUNDING, too_much

OUTSIDE = -1


class Allowed(NamedTuple):
    """Connections, in total and at any one site."""

    total: int
    site: int


@dataclass(frozen=True, slots=True)
class Score:
    """Compared in this order; less is better. The spread breaks ties of the highest load: it falls when any
    pair of sites gets more even, and so leads over plateaus."""

    beyond: float
    """By how much limits are passed, summed over sites and links as shares of the limit."""
    too_many: int
    """Connections above those allowed in total, and of the busiest site above those of one."""
    max_load: float
    spread: float
    """Sum of the squares of loads, weighted by the cpu they stand for."""
    connections: int
    busiest: int
    """Connections of the site that has most."""

    @property
    def tight(self) -> bool:
        """No limit is passed: what is left to win is load."""
        return self.beyond == 0 and self.too_many == 0

    def better(self, other: Score) -> bool:
        """By more than rounding."""
        for mine, theirs in zip(self.key(), other.key(), strict=True):
            if abs(mine - theirs) > 1e-12 + 1e-9 * max(abs(mine), abs(theirs)):
                return mine < theirs
        return False

    def key(self) -> tuple[float, ...]:
        return (self.beyond, self.too_many, self.max_load, self.spread, self.connections, self.busiest)


def least_load(problem: Problem) -> float:
    """No table has a lower maximum: all work spread evenly, or the heaviest operator on the fastest site."""
    cpu = [site.cpu for site in problem.alive]
    weights = [one.cpu for one in problem.operators]
    spread = (sum(weights) + sum(site.cpu_other for site in problem.alive)) / sum(cpu)
    return max(spread, max(weights, default=0.0) / max(cpu))


class Draft:
    def __init__(
        self,
        problem: Problem,
        sites: Sequence[Site],
        table: Mapping[str, str],
        allowed: Allowed | None = None,
    ) -> None:
        self.problem, self.sites, self.allowed = problem, tuple(sites), allowed
        self.names = [one.id for one in problem.operators]
        number = {name: i for i, name in enumerate(self.names)}
        place = {site.id: i for i, site in enumerate(sites)}
        self.at = [place[table[name]] for name in self.names]
        self.least_load = least_load(problem)
        self.weights = [one.cpu for one in problem.operators]
        self.cpu = [site.cpu_other for site in sites]
        self._memory = [site.memory_other for site in sites]
        self.connections = [0] * len(sites)
        self._loads = [0.0] * len(sites)
        self._squares = [0.0] * len(sites)
        self._passed: dict[int, list[float]] = {}
        """By which shares a site passes its own limits, where it does."""
        self._touched = set(range(len(sites)))
        """Sites of which the three above are of before."""
        self.total = 0
        # Sites that are not among `sites` are below OUTSIDE, each another number: what goes to two of them
        # travels twice.
        away = {site.id: OUTSIDE - 1 - i for i, site in enumerate(problem.sites) if site.id not in place}
        homes = {**away, **place}
        # (producer or -1, reader or -1, home of the fixed end, rate)
        self._edges = [
            (
                OUTSIDE if edge.producer is None else number[edge.producer],
                OUTSIDE if edge.reader is None else number[edge.reader],
                OUTSIDE if edge.fixed is None else homes.get(edge.fixed, OUTSIDE),
                edge.rate,
            )
            for edge in problem.edges
        ]
        self._given = [(edge.given, edge.rate * edge.width) for edge in problem.edges]
        self._touching: list[list[int]] = [[] for _ in self.names]
        for i, (producer, reader, _, _) in enumerate(self._edges):
            for end in {producer, reader} - {OUTSIDE}:
                self._touching[end].append(i)
        self.neighbours = [self._neighbours(i) for i in range(len(self.names))]
        limited = bool(problem.links) or any(isfinite(site.network) for site in sites)
        self._flows = Flows(problem, sites) if limited else None
        for i, operator in enumerate(problem.operators):
            self._weigh(self.at[i], operator.cpu, operator.state_bytes)
        for i in range(len(self._edges)):
            self._count(i, 1)

    def table(self) -> dict[str, str]:
        return {name: self.sites[at].id for name, at in zip(self.names, self.at, strict=True)}

    def move(self, operators: Iterable[int], target: int) -> None:
        for i in operators:
            source = self.at[i]
            if source == target:
                continue
            operator = self.problem.operators[i]
            for edge in self._touching[i]:
                self._count(edge, -1)
            self.at[i] = target
            for edge in self._touching[i]:
                self._count(edge, 1)
            self._weigh(source, -operator.cpu, -operator.state_bytes)
            self._weigh(target, operator.cpu, operator.state_bytes)

    def score(self) -> Score:
        self._settle()
        busiest = max(self.connections)
        return Score(
            self._beyond(),
            self._too_many(busiest),
            max(self._loads),
            sum(self._squares),
            self.total,
            busiest,
        )

    def piece(self, start: int, without: int = OUTSIDE) -> set[int]:
        """The operators at the site of `start` that hang together with it, `without` one of them."""
        found, left, site = {start}, [start], self.at[start]
        while left:
            for other in self.neighbours[left.pop()]:
                if other not in found and other != without and self.at[other] == site:
                    found.add(other)
                    left.append(other)
        return found

    def _neighbours(self, i: int) -> list[int]:
        found = [end for e in self._touching[i] for end in self._edges[e][:2] if end not in (i, OUTSIDE)]
        return list(dict.fromkeys(found))

    def _weigh(self, site: int, cpu: float, state: float) -> None:
        self.cpu[site] += cpu
        self._memory[site] += state
        self._touched.add(site)

    def _count(self, edge: int, sign: int) -> None:
        producer, reader, fixed, rate = self._edges[edge]
        source = fixed if producer == OUTSIDE else self.at[producer]
        target = fixed if reader == OUTSIDE else self.at[reader]
        if source == target:
            return
        self.total += sign
        price = sign * (self.problem.connection_cpu + self.problem.row_cpu * rate)
        for end in (source, target):
            if end >= 0:
                self.connections[end] += sign
                self.cpu[end] += price
                self._touched.add(end)
        if self._flows is not None and source >= 0:
            change = self._flows.add if sign > 0 else self._flows.take
            change(self._given[edge][0], source, target, self._given[edge][1])

    def _too_many(self, busiest: int) -> int:
        if self.allowed is None:
            return 0
        return max(0, self.total - self.allowed.total) + max(0, busiest - self.allowed.site)

    def _settle(self) -> None:
        for i in self._touched:
            site = self.sites[i]
            load = self._loads[i] = self.cpu[i] / site.cpu
            self._squares[i] = load * load * site.cpu
            pairs = (self._memory[i], site.memory), (self.connections[i], site.connections)
            found = [too_much(used, limit) for used, limit in pairs if used > limit * (1 + ROUNDING)]
            if found:
                self._passed[i] = found
            else:
                self._passed.pop(i, None)
        self._touched.clear()

    def _beyond(self) -> float:
        found = 0.0 if self._flows is None else self._flows.beyond
        for i in sorted(self._passed):
            for share in self._passed[i]:
                found += share
        return found
