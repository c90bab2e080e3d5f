"""Relaxation, after Pietzuch et al. (ICDE 2006): springs in a cost space.

Sites are points of a 3-D cost space. The joins of a fixed order are masses between springs, one for each edge
of the tree, whose strength is the edge's data rate; base streams and the sink are nailed to their sites. At
rest the sum of  rate * distance^2  is least. Then every join goes to the site nearest to its place of rest.

Reuse: the authors take a running operator within some radius of the place where the new one would be. No
radius fits all networks, so here it is read when that is cheaper by what the cost space says: the way from it
to the consumer's place of rest, and `extra`, against the springs of the part of the tree it replaces. Larger
parts are tried first, and the rest is relaxed again.

Only coordinates are looked at, never real costs: that is the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from headrace.planners.placement.cost_space import CostSpace, embed
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.fixed_order import (
    Fixed,
    Ints,
    added_cost,
    fix_order,
    need_matrix,
    usable_sites,
)
from headrace.planners.placement.join_order import Order
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import (
    Floats,
    Join,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Site,
    Tree,
)

AT_REST = 1e-6
"""Share of the size of the tree below which a step counts as no movement."""

Nailed = Mapping[int, tuple[Tree, float]]
"""Set of streams -> the stream it is read from, and what that costs."""


class Relaxation:
    name = "relaxation"

    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._problem = problem
        self._prepared = prepared
        self._iterations = options.iterations
        self._space = embed(
            need_matrix(prepared, self.name), np.random.default_rng(options.seed), options.iterations
        )

    def place(self, query: Query, deployed: Deployed) -> Placed:
        usable = usable_sites(self._problem, self._prepared, query)
        fixed = fix_order(self._problem, query, deployed)
        springs = _Springs(fixed, self._space, self._iterations)
        springs.relax_and_reuse()
        tree = springs.map_to(usable)
        if not isfinite(added_cost(tree, query, fixed.rates, self._prepared)):
            # One-way links can leave two sites apart that are near in the cost space; one site never is.
            tree = _moved(tree, tree.site)
        cost = added_cost(tree, query, fixed.rates, self._prepared)
        notes = {"iterations": str(springs.steps)}
        return Placed(query.id, tree, cost, fixed.examined + springs.examined, notes=notes)


def _moved(tree: Tree, site: Site) -> Tree:
    """All joins at one site."""
    if not isinstance(tree, Join):
        return tree
    return Join(_moved(tree.left, site), _moved(tree.right, site), site)


@dataclass
class _Springs:
    """One query in the cost space."""

    fixed: Fixed
    space: CostSpace
    iterations: int
    steps: int = 0
    examined: int = 0

    def relax_and_reuse(self) -> None:
        self.nailed: dict[int, tuple[Tree, float]] = {}
        for mask, ways in self.fixed.leaves.items():
            self.nailed[mask] = ways[0]
        self._relax()
        for order, consumer in _largest_first(self.fixed.order):
            if order.mask in self.places and self.fixed.offers.get(order.mask):
                self._reuse(order, consumer)

    def _reuse(self, order: Order, consumer: Order | None) -> None:
        goal = self.space.points[self.fixed.query.sink] if consumer is None else self.places[consumer.mask]
        rate = float(self.fixed.rates[order.mask])
        best, stream = self._below(order) + rate * _gap(self.places[order.mask], goal), None
        for tree, extra in self.fixed.offers[order.mask]:
            self.examined += 1
            price = extra + rate * _gap(self.space.points[tree.site], goal)
            if price < best:
                best, stream = price, (tree, extra)
        if stream is not None:
            self.nailed[order.mask] = stream
            self._relax()

    def _below(self, order: Order) -> float:
        """The springs of a part of the tree, as data in flight."""
        if order.mask in self.nailed:
            return self.nailed[order.mask][1]
        here = self.places[order.mask]
        return sum(
            self._below(part) + float(self.fixed.rates[part.mask]) * _gap(self.places[part.mask], here)
            for part in order.parts
        )

    def _relax(self) -> None:
        """Every mass to the weighted mean of what it hangs on, again and again until nothing moves: the
        places of everything that is left of the tree."""
        free = [join for join in self._left(self.fixed.order) if join.mask not in self.nailed]
        self.places = {
            order.mask: self.space.points[self.nailed[order.mask][0].site]
            for order in self._left(self.fixed.order)
            if order.mask in self.nailed
        }
        if not free:
            return
        pull, anchor = self._forces(free)
        at = np.repeat(anchor.mean(axis=0, keepdims=True), len(free), axis=0)
        still = AT_REST * (float(np.ptp(anchor, axis=0).max()) + 1e-9)
        for _ in range(self.iterations):
            then, at = at, pull @ at + anchor
            self.steps += 1
            if float(np.abs(at - then).max()) <= still:
                break
        self.places |= {join.mask: at[i] for i, join in enumerate(free)}

    def _left(self, order: Order) -> list[Order]:
        """What is left of the tree when a reused stream stands for all below it; inputs first."""
        if order.mask in self.nailed:
            return [order]
        return [one for part in order.parts for one in self._left(part)] + [order]

    def _forces(self, free: list[Order]) -> tuple[Floats, Floats]:
        """The mean as a matrix over the free masses and a part that comes from what is nailed."""
        number = {join.mask: i for i, join in enumerate(free)}
        pull = np.zeros((len(free), len(free)))
        anchor = np.zeros((len(free), self.space.points.shape[1]))
        weight = np.zeros(len(free))
        for i, join in enumerate(free):
            for part in join.parts:
                rate = max(float(self.fixed.rates[part.mask]), 1e-300)
                weight[i] += rate
                if part.mask in number:
                    pull[i, number[part.mask]] = pull[number[part.mask], i] = rate
                    weight[number[part.mask]] += rate
                else:
                    anchor[i] += rate * self.places[part.mask]
        to_sink = max(float(self.fixed.rates[free[-1].mask]), 1e-300)
        weight[-1] += to_sink
        anchor[-1] += to_sink * self.space.points[self.fixed.query.sink]
        return pull / weight[:, None], anchor / weight[:, None]

    def map_to(self, usable: Ints) -> Tree:
        return self._tree(self.fixed.order, usable)

    def _tree(self, order: Order, usable: Ints) -> Tree:
        if order.mask in self.nailed:
            return self.nailed[order.mask][0]
        left, right = (self._tree(part, usable) for part in order.parts)
        self.examined += len(usable)
        away = ((self.space.points[usable] - self.places[order.mask]) ** 2).sum(axis=1)
        return Join(left, right, int(usable[int(away.argmin())]))


def _gap(a: Floats, b: Floats) -> float:
    return float(np.sqrt(((a - b) ** 2).sum()))


def _largest_first(order: Order) -> list[tuple[Order, Order | None]]:
    """Every part of the tree with its consumer, before the parts it is made of."""
    found: list[tuple[Order, Order | None]] = [(order, None)]
    for one, _ in found:
        found += [(part, one) for part in one.parts]
    return found
