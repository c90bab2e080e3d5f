"""Which limits a table passes while it is being changed, kept up to date operator by operator.

What `usage` and `passed` work out of a whole table is kept here as parts: the operators of a site that count
for its memory, the flows of a way, the connections of a site. An operator that goes changes the parts of its
two sites and of those that it is connected with, and only their sums are taken again. Sums are exact
(`fsum`), so that an operator that went and came back has changed nothing, and "further than before" is never
a matter of rounding.

`lost`: sites that do not answer; what operators there are connected with is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum, isfinite
from typing import NamedTuple

from headrace.planners.distribution.problem import Edge, Problem, Table
from headrace.planners.distribution.usage import ROUNDING, ends, too_much

_WHAT = ("bytes of memory", "rows a second of network", "connections")
_MEMORY, _NETWORK, _CONNECTIONS = range(3)


class Limit(NamedTuple):
    """In the order in which they are told: sites as they are listed, then links."""

    place: tuple[int, int, int]
    """(0, site, what) or (1, link, 0)."""
    most: float
    name: str

    def text(self, value: float) -> str:
        taken = "are sent" if self.place[0] else "are taken"
        return f"{self.name}, and {value:.6g} {taken}"


class Limits:
    def __init__(self, problem: Problem, table: Table, lost: Collection[str] = ()) -> None:
        self._problem, self._table, self._lost = problem, table, lost
        self._limits: dict[object, list[Limit]] = {}
        """By what is summed up: (site, what) or (source, target)."""
        self._parts: defaultdict[object, dict[object, float]] = defaultdict(dict)
        self._flows: Counter[tuple[str, str, str | None]] = Counter()
        """(operator or stream, source, target) -> edges: it goes once to each site that reads it."""
        self._changed: set[object] = set()
        self._passed: dict[Limit, float] = {}
        for key, limit in _limits(problem):
            self._limits.setdefault(key, []).append(limit)
        for site in problem.sites:
            self._add((site.id, _MEMORY), None, site.memory_other)
        for operator in problem.operators:
            self._add((table[operator.id], _MEMORY), operator.id, operator.state_bytes)
        for edge in problem.edges:
            self._count(edge, 1)

    def take(self, names: Sequence[str]) -> None:
        """Before they leave their sites in the table."""
        for name in names:
            self._drop((self._table[name], _MEMORY), name)
        for edge in self._edges(names):
            self._count(edge, -1)

    def put(self, names: Sequence[str]) -> None:
        """When they have come to their sites in the table."""
        for name in names:
            self._add((self._table[name], _MEMORY), name, self._problem.operator[name].state_bytes)
        for edge in self._edges(names):
            self._count(edge, 1)

    def _edges(self, names: Sequence[str]) -> Iterable[Edge]:
        """Each once, also where both its ends go."""
        return {id(edge): edge for name in names for edge in self._problem.edges_of[name]}.values()

    def passed(self) -> Mapping[Limit, float]:
        """The limits that are passed, and what is taken of them."""
        for key in self._changed:
            value = fsum(self._parts[key].values())
            for limit in self._limits[key]:
                self._passed.pop(limit, None)
                if value > limit.most * (1 + ROUNDING):
                    self._passed[limit] = value
        self._changed.clear()
        return self._passed

    def _count(self, edge: Edge, sign: int) -> None:
        source, target = ends(edge, self._table)
        if source == target or (
            self._lost and any(self._table[name] in self._lost for name in edge.operators)
        ):
            return
        for end in (source, target):
            if end is not None and (end, _CONNECTIONS) in self._limits:
                served = end, _CONNECTIONS
                self._add(served, None, self._parts[served].get(None, 0.0) + sign)
        if source is None:
            return
        flow = edge.given, source, target
        before = self._flows[flow]
        self._flows[flow] += sign
        ways: tuple[object, object] = ((source, _NETWORK), (source, target))
        for key in ways:
            if before + sign == 0:
                self._drop(key, flow)
            elif before == 0:
                self._add(key, flow, edge.rate * edge.width)
        if not self._flows[flow]:
            del self._flows[flow]

    def _is_lost(self, edge: Edge) -> bool:
        return any(self._table[name] in self._lost for name in edge.operators)

    def _add(self, key: object, part: object, amount: float) -> None:
        if key in self._limits:
            self._parts[key][part] = amount
            self._changed.add(key)

    def _drop(self, key: object, part: object) -> None:
        if key in self._limits:
            del self._parts[key][part]
            self._changed.add(key)


def _limits(problem: Problem) -> Iterator[tuple[object, Limit]]:
    for i, site in enumerate(problem.sites):
        for what, most in enumerate((site.memory, site.network, site.connections)):
            if site.alive and isfinite(most):
                yield (
                    (site.id, what),
                    Limit((0, i, what), most, f"site {site.id} has {most:.6g} {_WHAT[what]}"),
                )
    for i, link in enumerate(problem.links):
        if problem.site[link.source].alive and problem.site[link.target].alive:
            name = f"the link from {link.source} to {link.target} takes {link.bandwidth:.6g}"
            yield (link.source, link.target), Limit((1, i, 0), link.bandwidth, name)


def first_passed_further(before: Mapping[Limit, float], after: Mapping[Limit, float]) -> str:
    """A limit that is passed now and was not, or not so far, in words; empty: none."""
    worse = (
        limit
        for limit, value in after.items()
        if limit not in before or share(limit, value) > share(limit, before[limit]) * (1 + ROUNDING)
    )
    limit = min(worse, default=None)
    return limit.text(after[limit]) if limit is not None else ""


def share(limit: Limit, value: float) -> float:
    return too_much(value, limit.most)
