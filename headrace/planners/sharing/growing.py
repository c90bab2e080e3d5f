"""Trees that grow and shrink by single queries, and classes that can still be added.

Edge rates are read by the method without tables (rates.py): its rows are sets of classes, so a slide that was
never seen is a new bit and its prime powers, where a table would have to be built again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from headrace.planners.sharing.atoms import Event
from headrace.planners.sharing.instance import edges_of
from headrace.planners.sharing.primes import prime_powers
from headrace.planners.sharing.problem import WindowQuery
from headrace.planners.sharing.rates import Floats, Ints, Rates, Rows, rates_of

SPARE = 64
"""Classes that can be added, at the least, before the rows are laid out anew."""
WIDE = 510510
"""A slide of seven primes: room for the factors of slides to come. One with more has rows laid out anew."""


class Bundle(NamedTuple):
    """Queries on their way from one place to another."""

    queries: tuple[WindowQuery, ...]
    classes: tuple[int, ...]
    row: Rows
    edge: float
    overlap: float


class Classes:
    """The windows with equal edges, numbered as they come; rows and events have room for more."""

    def __init__(self, known: Iterable[tuple[int, int]]) -> None:
        self.index = {window: i for i, window in enumerate(dict.fromkeys(known))}
        self._lay_out()

    def _lay_out(self) -> None:
        events = [edges_of(*window) for window in self.index]
        room = max(SPARE, len(events) // 2)
        self.rates: Rates = rates_of([*events, *[((0, WIDE), (0, WIDE))] * room], most_cells=0)
        flat = [event for edges in events for event in edges]
        self.used = len(flat)
        self.rates.event_start[len(events) :] = self.used
        self._residue = np.zeros(self.rates.primes.shape[0], dtype=np.int64)
        self._slide = np.ones_like(self._residue)
        self._owner = np.zeros_like(self._residue)
        self._residue[: self.used] = [a for a, _ in flat]
        self._slide[: self.used] = [s for _, s in flat]
        self._owner[: self.used] = [c for c, edges in enumerate(events) for _ in edges]
        self.single = np.zeros(self.most)
        if events:
            self.single[: len(events)] = self.rates.of(self.rates.rows[: len(events)])

    @property
    def most(self) -> int:
        return len(self.rates.rows)

    def number(self, slide: int, offset: int) -> int:
        """The class of a window; a window with new edges gets a new one."""
        c = self.index.get((slide, offset))
        if c is not None:
            return c
        c = self.index[slide, offset] = len(self.index)
        powers = prime_powers(slide)
        if c >= self.most or len(powers) > self.rates.primes.shape[1]:
            self._lay_out()
        else:
            self._append(c, edges_of(slide, offset), powers)
        return c

    def _append(self, c: int, edges: Sequence[Event], powers: Sequence[tuple[int, int]]) -> None:
        r = self.rates
        for a, s in edges:
            e = self.used
            r.primes[e], r.exponents[e], r.residues[e] = 0, 0, 0
            for k, (p, x) in enumerate(powers):
                r.primes[e, k], r.exponents[e, k], r.residues[e, k] = p, x, a % p**x
            self._residue[e], self._slide[e], self._owner[e] = a, s, c
            self.used += 1
        r.event_start[c + 1 :] = self.used
        self.single[c] = r.of(r.rows[c])[0]

    def densities(self, c: int) -> Floats:
        """For every class, the summed density of the instants that are edges of it and of class c."""
        slide, n = self._slide, self.used
        found = np.zeros(n)
        for e in range(int(self.rates.event_start[c]), int(self.rates.event_start[c + 1])):
            common = np.gcd(slide[e], slide[:n])
            meet = (self._residue[:n] - self._residue[e]) % common == 0
            found += np.where(meet, common / (float(slide[e]) * slide[:n]), 0.0)
        sums: Floats = np.zeros(self.most)
        np.add.at(sums, self._owner[:n], found)
        return sums


class Grove:
    """Trees on nodes, in numbered slots. A tree keeps its number for as long as it has queries."""

    def __init__(self, rate: float, capacity: Floats, queries: Iterable[WindowQuery]) -> None:
        self.rate = rate
        self.capacity = capacity
        self.classes = Classes((q.slide, q.offset) for q in queries)
        self.members: list[dict[int, dict[str, WindowQuery]]] = []
        """Of every slot its queries, by class; none: the slot is free."""
        self.rows: Rows = np.zeros((0, self.classes.rates.rows.shape[1]), dtype=np.uint16)
        self.has = np.zeros((0, self.classes.most))
        """has[tree, class]: 1 where the tree has queries of the class."""
        self.edge: Floats = np.zeros(0)
        self.overlap: Floats = np.zeros(0)
        self.node: Ints = np.zeros(0, dtype=np.int64)

    def fork(self) -> Grove:
        """A copy to try changes on. The classes stay shared: they only grow, and a new one changes no row."""
        twin = object.__new__(Grove)
        twin.rate, twin.capacity, twin.classes = self.rate, self.capacity.copy(), self.classes
        twin.members = [{c: dict(held) for c, held in tree.items()} for tree in self.members]
        twin.rows, twin.has, twin.node = self.rows.copy(), self.has.copy(), self.node.copy()
        twin.edge, twin.overlap = self.edge.copy(), self.overlap.copy()
        return twin

    def alive(self) -> list[int]:
        return [tree for tree, members in enumerate(self.members) if members]

    def on(self, node: int) -> list[int]:
        """The trees of a node, dearest first."""
        return sorted((t for t in self.alive() if self.node[t] == node), key=lambda t: -self.cost(t))

    def queries(self, tree: int) -> list[WindowQuery]:
        return [query for held in self.members[tree].values() for query in held.values()]

    def cost(self, tree: int) -> float:
        return float(self.rate + self.edge[tree] * self.overlap[tree])

    def node_costs(self) -> Floats:
        alive = np.array(self.alive(), dtype=np.int64)
        weights = self.rate + self.edge[alive] * self.overlap[alive]
        costs: Floats = np.zeros(len(self.capacity))
        np.add.at(costs, self.node[alive], weights)
        return costs

    def without(self, tree: int, bundle: Bundle) -> Floats:
        """The nodes' costs without a part of a tree."""
        costs = self.node_costs()
        node = self.node[tree]
        costs[node] -= self.cost(tree)
        held = self.members[tree]
        leaving = {q.id for q in bundle.queries}
        left = [c for c, queries in held.items() if not queries.keys() <= leaving]
        if left:
            edge = self.edge[tree] if len(left) == len(held) else self._read(left)
            costs[node] += self.rate + edge * (self.overlap[tree] - bundle.overlap)
        return costs

    def bundle(self, queries: Sequence[WindowQuery]) -> Bundle:
        classes = tuple(dict.fromkeys(self.classes.number(q.slide, q.offset) for q in queries))
        self._fit()
        row = np.bitwise_or.reduce(self.classes.rates.rows[list(classes)], axis=0)
        edge = float(self.classes.single[classes[0]]) if len(classes) == 1 else self._read(classes)
        return Bundle(tuple(queries), classes, row, edge, math.fsum(q.range / q.slide for q in queries))

    def free(self) -> int:
        """The first free slot."""
        return next((i for i, members in enumerate(self.members) if not members), len(self.members))

    def join(self, node: int, tree: int, bundle: Bundle) -> None:
        """Add queries to a tree; a free slot becomes a tree of `node`."""
        while len(self.members) <= tree:
            self._grow()
        held = self.members[tree]
        if not held:
            self.node[tree] = node
        fresh = [c for c in bundle.classes if c not in held]
        for query in bundle.queries:
            held.setdefault(self.classes.index[query.slide, query.offset], {})[query.id] = query
        self._recount(tree, changed=bool(fresh))

    def leave(self, tree: int, queries: Iterable[WindowQuery]) -> None:
        """Take queries out of a tree; an edge goes with its last query."""
        held = self.members[tree]
        gone = False
        for query in queries:
            c = self.classes.index[query.slide, query.offset]
            del held[c][query.id]
            if not held[c]:
                del held[c]
                gone = True
        self._recount(tree, changed=gone)

    def _recount(self, tree: int, *, changed: bool) -> None:
        """Sums are made anew, not adjusted: years of small changes must not add up to an error."""
        held = self.members[tree]
        self.overlap[tree] = math.fsum(
            q.range / q.slide for queries in held.values() for q in queries.values()
        )
        if not changed:
            return
        classes = list(held)
        self.has[tree] = 0.0
        self.has[tree, classes] = 1.0
        self.rows[tree] = np.bitwise_or.reduce(self.classes.rates.rows[classes], axis=0) if classes else 0
        self.edge[tree] = self._read(classes) if classes else 0.0

    def _read(self, classes: Sequence[int]) -> float:
        row = np.bitwise_or.reduce(self.classes.rates.rows[list(classes)], axis=0)
        return float(self.classes.rates.of(row)[0])

    def _fit(self) -> None:
        """Widen the rows after classes were laid out anew: bits keep their places."""
        wide, most = self.classes.rates.rows.shape[1], self.classes.most
        if self.rows.shape[1] < wide or self.has.shape[1] < most:
            self.rows = np.pad(self.rows, ((0, 0), (0, wide - self.rows.shape[1])))
            self.has = np.pad(self.has, ((0, 0), (0, most - self.has.shape[1])))

    def _grow(self) -> None:
        more = max(16, len(self.members) // 2)
        self.members += [{} for _ in range(more)]
        self.rows = np.pad(self.rows, ((0, more), (0, 0)))
        self.has = np.pad(self.has, ((0, more), (0, 0)))
        self.edge, self.overlap = np.pad(self.edge, (0, more)), np.pad(self.overlap, (0, more))
        self.node = np.pad(self.node, (0, more))
