"""Sites for a join order that is already fixed.

    h(v, m) = min( what a ready stream for v costs at m,  f(left, m) + f(right, m) )
    f(v, n) = min over m of  h(v, m) + rate(v) * distance(m, n)

Exact for the given order, the sites that each join may use and the ready streams: the parts of a tree meet
only where one feeds the other. O(K * M^2) for M sites to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from headrace.errors import NotSupported, UserError
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.join_order import Order, smallest_intermediates
from headrace.planners.placement.network import MOST_DENSE, Prepared
from headrace.planners.placement.problem import (
    Floats,
    Join,
    Leaf,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    streams_of,
)
from headrace.planners.placement.rates import by_subset
from headrace.planners.placement.spread import Spread

Ints = NDArray[np.int64]
FEW = 8
"""Sites whose single rows of distances are found sooner than data is spread from all of them."""
Ready = Mapping[int, Sequence[tuple[Tree, float]]]
"""Set of streams -> trees that give it already, and what they cost so far."""


@dataclass(frozen=True)
class Fixed:
    """A query with the join order that the network had no say in."""

    query: Query
    rates: Floats
    order: Order
    leaves: Ready
    offers: Ready
    examined: int
    """Splits compared to find the order."""

    @property
    def ready(self) -> Ready:
        """A reused stream comes before a base stream, and so wins a tie."""
        masks = {*self.leaves, *self.offers}
        return {mask: [*self.offers.get(mask, ()), *self.leaves.get(mask, ())] for mask in masks}


def need_matrix(prepared: Prepared, planner: str) -> Floats:
    if not prepared.dense:
        raise NotSupported(
            f"{planner} needs the distances between all sites: {prepared.size} sites are too many",
            hint=f"At most {MOST_DENSE}, or another planner.",
        )
    return prepared.matrix()


def fix_order(problem: PlacementProblem, query: Query, deployed: Deployed) -> Fixed:
    rates = by_subset(problem, query)
    order, examined = smallest_intermediates(rates)
    leaves = {1 << i: [(_leaf(problem, name), 0.0)] for i, name in enumerate(query.streams)}
    offers: dict[int, list[tuple[Tree, float]]] = {}
    for offer in sorted(deployed.offers(query), key=lambda one: (one.site, one.number)):
        offers.setdefault(mask_of(query, offer.streams), []).append((offer.as_leaf(), offer.extra))
    return Fixed(query, rates, order, leaves, offers, examined)


def _leaf(problem: PlacementProblem, name: str) -> Tree:
    return Leaf(name, problem.streams[name].site)


def mask_of(query: Query, streams: frozenset[str]) -> int:
    return sum(1 << i for i, name in enumerate(query.streams) if name in streams)


def allowed_sites(problem: PlacementProblem) -> Ints:
    """Where a join may run, ascending."""
    every = np.arange(problem.network.size)
    return np.delete(every, sorted(problem.forbidden)) if problem.forbidden else every


def usable_sites(problem: PlacementProblem, prepared: Prepared, query: Query) -> Ints:
    """Sites where a join may run, that all streams of the query reach and that reach its sink, ascending. If
    there is a finite deployment, the last join of it runs at one of these."""
    names, sink = query.streams, query.sink
    for name in names:
        if not isfinite(prepared.distance(problem.streams[name].site, sink)):
            raise UserError(f'query "{query.id}": stream "{name}" cannot reach the sink')
    allowed = allowed_sites(problem)
    sources = sorted({problem.streams[name].site for name in names})
    reached = np.isfinite(prepared.between(sources, allowed.tolist())).all(axis=0)
    back = np.isfinite(prepared.between(allowed.tolist(), [sink])[:, 0])
    usable = allowed[reached & back]
    if len(names) > 1 and not len(usable):
        hint = "Every site that all of them reach, and that reaches the sink, is forbidden."
        raise UserError(
            f'query "{query.id}": streams {", ".join(names)} cannot reach the sink joined', hint=hint
        )
    return usable


@dataclass
class _Table:
    """What it costs to have a set of streams at each of these sites."""

    order: Order
    ready: list[Tree]
    sites: Ints
    """First those of `ready`, then those of new joins."""
    costs: Floats
    inputs: tuple[_Table, ...] = ()
    sources: tuple[Ints, ...] = ()
    """For each input and each new join: the position in the input's table that it is read from."""

    def tree(self, position: int) -> Tree:
        if position < len(self.ready):
            return self.ready[position]
        join = position - len(self.ready)
        left, right = (
            table.tree(int(source[join])) for table, source in zip(self.inputs, self.sources, strict=True)
        )
        return Join(left, right, int(self.sites[position]))


@dataclass
class Placer:
    """Places parts of one query; counts comparisons. `spread`: how to do without a matrix of distances."""

    prepared: Prepared
    rates: Floats
    spread: Spread | None = None
    examined: int = field(default=0)

    def place(
        self, order: Order, ready: Ready, sites: Mapping[int, Ints], target: Site
    ) -> tuple[Tree, float]:
        """The cheapest tree for this order with its result at `target`, and its cost without the way there.
        `sites`: where the join that makes a set may run; a set without any is only had ready."""
        table = self._table(order, ready, sites)
        there, source = self._carry(table, np.array([target]))
        best = int(source[0])
        if not isfinite(there[0]):
            raise UserError(f"nothing joined of this query can reach site {target}")
        return table.tree(best), float(table.costs[best])

    def _table(self, order: Order, ready: Ready, sites: Mapping[int, Ints]) -> _Table:
        given = ready.get(order.mask, ())
        trees = [tree for tree, _ in given]
        at = np.array([tree.site for tree in trees], dtype=np.int64)
        costs = np.array([cost for _, cost in given], dtype=float)
        joins = sites.get(order.mask)
        if joins is None or not order.parts:
            return _Table(order, trees, at, costs)
        inputs = tuple(self._table(part, ready, sites) for part in order.parts)
        carried = [self._carry(table, joins) for table in inputs]
        total = carried[0][0] + carried[1][0]
        sources = (carried[0][1], carried[1][1])
        return _Table(
            order, trees, np.concatenate((at, joins)), np.concatenate((costs, total)), inputs, sources
        )

    def _carry(self, table: _Table, targets: Ints) -> tuple[Floats, Ints]:
        """The cost of a set at each target, and the position in its table it comes from."""
        rate = float(self.rates[table.order.mask])
        if self.spread is not None and min(len(table.sites), len(targets)) > FEW:
            return self._carry_far(table, targets, rate, self.spread)
        self.examined += len(table.sites) * len(targets)
        ways = self._distances(table.sites, targets)
        moved = flow(rate, ways) + table.costs[:, None]
        best = moved.argmin(axis=0)
        return moved[best, np.arange(len(targets))], best

    def _carry_far(self, table: _Table, targets: Ints, rate: float, spread: Spread) -> tuple[Floats, Ints]:
        """The same over links, without a matrix."""
        self.examined += len(table.sites) + len(targets)
        start, position = np.full(self.prepared.size, inf), np.zeros(self.prepared.size, dtype=np.int64)
        # The first of equals at a site, as where a matrix is searched: so it is written last.
        order = np.lexsort((np.arange(len(table.sites)), table.costs))[::-1]
        start[table.sites[order]] = table.costs[order]
        position[table.sites[order]] = order
        costs, origin = spread.carry(start, rate)
        return costs[targets], position[origin[targets]]

    def _distances(self, sources: Ints, targets: Ints) -> Floats:
        size = self.prepared.size
        if len(sources) == size == len(targets):
            return self.prepared.matrix()
        return self.prepared.between(sources.tolist(), targets.tolist())


def flow(rate: float, ways: Floats) -> Floats:
    """No path stays no path, though nothing flows."""
    return rate * ways if rate > 0 else np.where(np.isfinite(ways), 0.0, inf)


def added_cost(tree: Tree, query: Query, rates: Floats, prepared: Prepared) -> float:
    """What the tree adds to the network."""
    to_sink = prepared.distance(tree.site, query.sink)
    return _inflow(tree, query, rates, prepared) + _price(rates[mask_of(query, streams_of(tree))], to_sink)


def _inflow(tree: Tree, query: Query, rates: Floats, prepared: Prepared) -> float:
    if not isinstance(tree, Join):
        return tree.extra if isinstance(tree, Reused) else 0.0
    total = 0.0
    for part in (tree.left, tree.right):
        way = prepared.distance(part.site, tree.site)
        rate = rates[mask_of(query, streams_of(part))]
        total += _inflow(part, query, rates, prepared) + _price(rate, way)
    return total


def _price(rate: float, way: float) -> float:
    return float(rate) * way if isfinite(way) else inf
