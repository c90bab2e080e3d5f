"""Names for the streams that queries join, such that equal names mean equal joins.

A join can be reused only where its conditions and its bounds in time are the same. So two queries call a pair
of streams by the same two names only if they join them the same way; a query that joins them in another way
reads one of them as `stream#2`. So does a query that reads a stream twice. Names are given greedily, in the
order of the queries and of their streams: a reuse may be missed, a wrong one cannot be made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from headrace.plan.expr import Call, ColumnRef, Expr, transform
from headrace.plan.logical import LogicalPlan, StreamScan, TableScan, nodes
from headrace.plan.text import format_expr, format_plan
from headrace.service.placing_part import JoinPart, Leaf, leaf_and_column, name_of


@dataclass(frozen=True, slots=True)
class Named:
    """The joins of one query, its leaves under names."""

    query: str
    site: str
    part: JoinPart
    names: tuple[str, ...]
    """Of the leaves, in their order."""

    def leaf(self, name: str) -> Leaf:
        return self.part.leaves[self.names.index(name)]

    def renamed(self, expr: Expr) -> Expr:
        """Over `name/column` instead of `number/column`."""
        return transform(expr, self._renamed)

    def filter(self, name: str) -> tuple[Expr, ...]:
        """Conditions on one leaf, over its own columns."""
        return tuple(_own(part) for part in self.part.conditions(self.names.index(name)))

    def between(self, one: str, other: str) -> tuple[Expr, ...]:
        """Conditions on two leaves."""
        found = self.part.conditions(self.names.index(one), self.names.index(other))
        return tuple(sorted((_one_way(self.renamed(part)) for part in found), key=format_expr))

    def bounds(self, one: str, other: str) -> tuple[int | None, int | None]:
        """How much later than that of `one` the event time of `other` can be at most, and the reverse."""
        x, y = self._times(one, other)
        return self.part.bounds.get((x, y)), self.part.bounds.get((y, x))

    def stated(self, one: str, other: str) -> bool:
        """Whether the query itself bounds these two, not only through others."""
        return frozenset(self._times(one, other)) in self.part.stated

    def way(self, one: str, other: str) -> tuple[str, ...]:
        """How the two are joined, the same texts for the same join."""
        first, second = sorted((one, other))
        return (*map(format_expr, self.between(first, second)), str(self.bounds(first, second)))

    def _times(self, one: str, other: str) -> tuple[str, str]:
        return self.part.time(self.names.index(one)), self.part.time(self.names.index(other))

    def _renamed(self, expr: Expr) -> Expr:
        if not isinstance(expr, ColumnRef):
            return expr
        leaf, column = leaf_and_column(expr.name)
        return ColumnRef(name_of(self.names[int(leaf)], column), expr.type)


def name_all(parts: Mapping[str, tuple[str, JoinPart]]) -> dict[str, Named]:
    """Query -> its joins with names. `parts` has the site and the joins of each query."""
    namer = _Namer()
    return {query: namer.name(query, site, part) for query, (site, part) in parts.items()}


@dataclass(slots=True)
class _Namer:
    ways: dict[frozenset[str], tuple[str, ...]] = field(default_factory=dict)
    """How each pair of names is joined."""
    bases: dict[str, str] = field(default_factory=dict)
    """Text of a leaf with static tables -> its name before any #."""

    def name(self, query: str, site: str, part: JoinPart) -> Named:
        found = Named(query, site, part, ())
        for leaf in part.leaves:
            found = self._with(found, self._base(leaf))
        for one, other in combinations(found.names, 2):
            self.ways[frozenset((one, other))] = found.way(one, other)
        return found

    def _with(self, found: Named, base: str) -> Named:
        """One leaf more, under the first name that fits."""
        number = 1
        while True:
            name = base if number == 1 else f"{base}#{number}"
            more = Named(found.query, found.site, found.part, (*found.names, name))
            if name not in found.names and self._fits(more, name, found.names):
                return more
            number += 1

    def _fits(self, found: Named, name: str, others: Sequence[str]) -> bool:
        pairs = ((frozenset((name, other)), other) for other in others)
        return all(
            pair not in self.ways or self.ways[pair] == found.way(name, other) for pair, other in pairs
        )

    def _base(self, leaf: Leaf) -> str:
        if isinstance(leaf, StreamScan):
            return leaf.stream
        text = format_plan(leaf)
        if text not in self.bases:
            first = "+".join(_sources(leaf))
            number = sum(name.partition("~")[0] == first for name in self.bases.values())
            self.bases[text] = first if not number else f"{first}~{number + 1}"
        return self.bases[text]


def _sources(leaf: LogicalPlan) -> list[str]:
    scans = [node for node in nodes(leaf) if isinstance(node, StreamScan | TableScan)]
    return [scan.stream if isinstance(scan, StreamScan) else scan.table for scan in scans]


def _own(expr: Expr) -> Expr:
    return transform(
        expr, lambda e: ColumnRef(leaf_and_column(e.name)[1], e.type) if isinstance(e, ColumnRef) else e
    )


def _one_way(expr: Expr) -> Expr:
    """An equality with its sides in the order of their texts: which names they have decides it."""
    if isinstance(expr, Call) and expr.function == "=":
        return Call("=", tuple(sorted(expr.args, key=format_expr)))
    return expr
