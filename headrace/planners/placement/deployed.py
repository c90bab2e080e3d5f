"""The table of advertisements: every join that runs is a derived stream, with who reads it.

    offers(query)      what of it a query could read, where, and what that adds upstream
    add(query, tree)   the query runs now; its joins are advertised
    remove(query)      it runs no more; what nobody reads is gone

An operator keeps of each stream the least that covers all queries reading it, directly or through other
operators. So a query with a weaker filter, or more columns, may still read a stream: `Offer.extra` is what
the wider edges above it then cost (the reader cuts its own part out at the operator's site, for nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.errors import InternalError
from headrace.planners.placement.problem import (
    Leaf,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    streams_of,
)
from headrace.planners.placement.rates import Held, Holding, data_rate, together, wanted

Distance = Callable[[Site, Site], float]
"""What a unit of data pays from one site to another."""


@dataclass(slots=True)
class Derived:
    """One advertised stream: a join that runs, or (with `problem.sinks`) the result at a query's sink."""

    number: int
    query: str
    """Who deployed it."""
    streams: frozenset[str]
    site: Site
    inputs: tuple[tuple[frozenset[str], Site, int | None], ...]
    """Streams, site and, if it is derived, the number of each input. A result at a sink has one."""
    at_sink: bool = False
    readers: set[str] = field(default_factory=set)
    """Queries that run and read it, directly or not."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A derived stream that a query could read."""

    number: int
    query: str
    streams: frozenset[str]
    site: Site
    extra: float

    def as_leaf(self) -> Reused:
        return Reused(self.number, self.query, self.streams, self.site, self.extra)


class Deployed:
    def __init__(self, problem: PlacementProblem, distance: Distance) -> None:
        self._problem = problem
        self._distance = distance
        self._wanted = {query.id: wanted(problem, query) for query in problem.queries}
        self._cut = bool(problem.filters) or any(query.widths for query in problem.queries)
        """Whether any query wants less than whole streams: if none does, every offer is free."""
        self._derived: dict[int, Derived] = {}
        self._by_streams: dict[frozenset[str], list[int]] = {}
        self._trees: dict[str, Tree] = {}
        self._next = 0

    @property
    def trees(self) -> Mapping[str, Tree]:
        """Of the queries that run."""
        return self._trees

    @property
    def derived(self) -> Mapping[int, Derived]:
        return self._derived

    def offers(self, query: Query) -> list[Offer]:
        """All derived streams the query could read, the cheapest for each set and site. Empty without
        `problem.reuse`."""
        if not self._problem.reuse:
            return []
        best: dict[tuple[frozenset[str], Site], Offer] = {}
        for names in _subsets(query.streams):
            for number in self._by_streams.get(names, ()):
                one = self._derived[number]
                extra = self._extra(one, query)
                seen = best.get((names, one.site))
                if extra is not None and (seen is None or extra < seen.extra):
                    best[names, one.site] = Offer(number, one.query, names, one.site, extra)
        return list(best.values())

    def add(self, query: Query, tree: Tree) -> None:
        if query.id in self._trees:
            raise InternalError(f"placement: {query.id} runs already")
        top = self._advertise(query, tree)
        self._trees[query.id] = tree
        if self._problem.sinks:
            self._new(query.id, streams_of(tree), query.sink, (_input(tree, top),), at_sink=True)
        self._read(top, query.id)

    def remove(self, query: str) -> None:
        del self._trees[query]
        for one in list(self._derived.values()):
            one.readers.discard(query)
            if not one.readers:
                self._by_streams[one.streams].remove(one.number)
                del self._derived[one.number]

    def total_cost(self) -> float:
        """Of all that runs."""
        queries = {query.id: query for query in self._problem.queries}
        # A query that runs pays for the way to its sink itself; one that is gone leaves it to its readers.
        paid = [d for d in self._derived.values() if not d.at_sink or d.query not in self._trees]
        total = sum(self._inflow(one) for one in paid)
        for name, tree in self._trees.items():
            query = queries[name]
            rate = data_rate(self._problem, self._wanted[name], query.streams)
            total += rate * self._distance(site_of(tree), query.sink)
        return total

    def _advertise(self, query: Query, tree: Tree) -> int | None:
        """The number of what the tree's top is read from; None: a base stream."""
        if isinstance(tree, Leaf):
            return None
        if isinstance(tree, Reused):
            return tree.derived
        left, right = self._advertise(query, tree.left), self._advertise(query, tree.right)
        return self._new(
            query.id, tree.streams, tree.site, (_input(tree.left, left), _input(tree.right, right))
        )

    def _new(
        self,
        query: str,
        streams: frozenset[str],
        site: Site,
        inputs: tuple[tuple[frozenset[str], Site, int | None], ...],
        *,
        at_sink: bool = False,
    ) -> int:
        number, self._next = self._next, self._next + 1
        self._derived[number] = Derived(number, query, streams, site, inputs, at_sink, {query})
        self._by_streams.setdefault(streams, []).append(number)
        return number

    def _read(self, number: int | None, query: str) -> None:
        """The query reads this stream, and so all that it is made from."""
        if number is None:
            return
        one = self._derived[number]
        one.readers.add(query)
        for _, _, source in one.inputs:
            self._read(source, query)

    def _holding(self, one: Derived, more: Query | None = None) -> dict[str, Held]:
        readers = [self._wanted[name] for name in one.readers if name in self._wanted]
        if more is not None:
            readers.append(self._wanted[more.id])
        return {name: together(self._problem, [holding[name] for holding in readers]) for name in one.streams}

    def _inflow(self, one: Derived, holding: Holding | None = None) -> float:
        """What the edges into an operator cost."""
        held = self._holding(one) if holding is None else holding
        return sum(
            data_rate(self._problem, held, streams) * self._distance(site, one.site)
            for streams, site, _ in one.inputs
        )

    def _extra(self, one: Derived, query: Query) -> float | None:
        """What it adds that the query reads this stream too; None: it cannot be had there."""
        if not self._cut:
            return 0.0
        now, then = self._holding(one), self._holding(one, query)
        if now == then:
            return 0.0
        if one.at_sink:
            return None
        added = self._inflow(one, then) - self._inflow(one, now)
        for _, _, source in one.inputs:
            if source is not None:
                above = self._extra(self._derived[source], query)
                if above is None:
                    return None
                added += above
        return added


def site_of(tree: Tree) -> Site:
    return tree.site


def _input(tree: Tree, number: int | None) -> tuple[frozenset[str], Site, int | None]:
    return streams_of(tree), site_of(tree), number


def _subsets(names: tuple[str, ...]) -> list[frozenset[str]]:
    """All that are not empty."""
    return [
        frozenset(name for i, name in enumerate(names) if mask >> i & 1) for mask in range(1, 1 << len(names))
    ]
