"""Every join tree at every choice of sites: what the paper's exhaustive search does, for small problems.

**How plans are counted.** Lemma 1 counts K! (K-1)! / 2^(K-1) ways to merge K streams pair by pair, times
N^(K-1) placements. It so counts a bushy tree once for every order in which its joins can be made: four
streams have 18 such sequences, but 15 different trees. Here a tree is tried once, (2K-3)!! of them, and each
at every placement; with offers, every tree whose leaves are offers or base streams counts the same way.
`plans_examined` is the number of pairs of tree and placement that were priced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from headrace.errors import UserError
from headrace.planners.placement.deployed import Deployed, Offer
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import (
    Floats,
    Join,
    Leaf,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
)
from headrace.planners.placement.rates import by_subset

MOST_PLANS = 20_000_000
CHUNK = 1_000_000
"""Placements priced at once."""


def lemma1(streams: int, sites: int) -> int:
    """The paper's size of the search space without reuse."""
    orders: int = factorial(streams) * factorial(streams - 1) // 2 ** (streams - 1)
    placements: int = sites ** (streams - 1)
    return orders * placements


@dataclass(frozen=True)
class _Shape:
    """A tree without sites for its joins: a leaf, or two parts."""

    mask: int
    leaf: Leaf | Reused | None = None
    parts: tuple[_Shape, ...] = ()

    @cached_property
    def joins(self) -> int:
        return sum(part.joins for part in self.parts) + bool(self.parts)


class Exhaustive:
    name = "exhaustive"

    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._problem = problem
        self._sites = [site for site in range(prepared.size) if site not in problem.forbidden]
        self._prepared = prepared

    def place(self, query: Query, deployed: Deployed) -> Placed:
        leaves = _leaves(self._problem, query, deployed.offers(query))
        every = (1 << len(query.streams)) - 1
        plans = _count(every, leaves, len(self._sites))
        if plans > MOST_PLANS:
            raise UserError(
                f"query {query.id}: {plans:,} plans are too many to try them all",
                hint=f"At most {MOST_PLANS:,}; the planner exact finds the same optimum.",
            )
        rate, best = by_subset(self._problem, query), (np.inf, -1, _Shape(0))
        pricing = _Pricing(self._sites, self._prepared, rate, query.sink)
        for shape in _shapes(every, leaves):
            cost, placement = pricing.cheapest(shape, best[0])
            if cost < best[0]:
                best = cost, placement, shape
        if best[1] < 0:
            raise UserError(
                f"query {query.id}: no deployment of {', '.join(query.streams)} reaches the sink",
                detail="Between some of its sites there is no path, or no site on it may join.",
            )
        tree = pricing.tree(best[2], best[1])
        return Placed(query.id, tree, float(best[0]), plans_examined=plans, certified=True)


def _leaves(
    problem: PlacementProblem, query: Query, offers: list[Offer]
) -> Mapping[int, list[Leaf | Reused]]:
    """What can be read as it is, by set."""
    found: dict[int, list[Leaf | Reused]] = {}
    bit = {name: 1 << i for i, name in enumerate(query.streams)}
    for name in query.streams:
        found[bit[name]] = [Leaf(name, problem.streams[name].site)]
    for offer in offers:
        found.setdefault(sum(bit[name] for name in offer.streams), []).append(offer.as_leaf())
    return found


def _splits(mask: int) -> Iterator[tuple[int, int]]:
    """Every way to part a set in two, each once."""
    part = (mask - 1) & mask
    while 2 * part > mask:
        yield part, mask ^ part
        part = (part - 1) & mask


def _shapes(mask: int, leaves: Mapping[int, list[Leaf | Reused]]) -> Iterator[_Shape]:
    for leaf in leaves.get(mask, ()):
        yield _Shape(mask, leaf)
    for one, two in _splits(mask):
        for left in _shapes(one, leaves):
            for right in _shapes(two, leaves):
                yield _Shape(mask, None, (left, right))


def _count(every: int, leaves: Mapping[int, list[Leaf | Reused]], sites: int) -> int:
    """Shapes, each with all placements of its joins, without making them."""
    counts: dict[int, int] = {}
    for mask in range(1, every + 1):
        trees = sum(counts[one] * counts[two] for one, two in _splits(mask))
        counts[mask] = len(leaves.get(mask, ())) + trees * sites
    return counts[every]


@dataclass(frozen=True)
class _Pricing:
    """Prices of all placements of a tree at once: the site of its i-th join, inputs first, is digit i of the
    placement's number, written in base N."""

    sites: list[Site]
    prepared: Prepared
    rate: Floats
    sink: Site

    @cached_property
    def _within(self) -> Floats:
        return self.prepared.between(self.sites, self.sites)

    def cheapest(self, shape: _Shape, enough: float) -> tuple[float, int]:
        """The least cost below `enough` and its placement; -1: there is none."""
        total, best, where = len(self.sites) ** shape.joins, enough, -1
        for start in range(0, total, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, total))
            digits = [numbers // len(self.sites) ** i % len(self.sites) for i in range(shape.joins)]
            cost = self._cost(shape, digits, 0) + self._way(shape, digits, shape.joins - 1, None)
            least = int(np.argmin(cost))
            if cost[least] < best:
                best, where = float(cost[least]), start + least
        return best, where

    def _cost(self, shape: _Shape, digits: list[np.ndarray], first: int) -> Floats:
        """Of all edges below the top; the joins of the tree are the digits from `first` on."""
        if not shape.parts:
            price = shape.leaf.extra if isinstance(shape.leaf, Reused) else 0.0
            return np.full(len(digits[0]) if digits else 1, price)
        left, right = shape.parts
        own = digits[first + shape.joins - 1]
        below = self._cost(left, digits, first) + self._cost(right, digits, first + left.joins)
        left_way = self._way(left, digits, first + left.joins - 1, own)
        return below + left_way + self._way(right, digits, first + shape.joins - 2, own)

    def _way(self, shape: _Shape, digits: list[np.ndarray], top: int, to: np.ndarray | None) -> Floats:
        """From a tree, whose top join is the digit `top`, to a join's sites; None: to the sink."""
        if shape.leaf is not None:
            targets = [self.sink] if to is None else self.sites
            away = self.prepared.between([shape.leaf.site], targets)[0][0 if to is None else to]
        elif to is None:
            away = self.prepared.between(self.sites, [self.sink])[:, 0][digits[top]]
        else:
            away = self._within[digits[top], to]
        return np.where(np.isinf(away), np.inf, self.rate[shape.mask] * np.where(np.isinf(away), 0.0, away))

    def tree(self, shape: _Shape, placement: int) -> Tree:
        if shape.leaf is not None:
            return shape.leaf
        left, right = shape.parts
        count = len(self.sites)
        return Join(
            self.tree(left, placement),
            self.tree(right, placement // count**left.joins),
            self.sites[placement // count ** (shape.joins - 1) % count],
        )
