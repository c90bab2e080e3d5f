"""Queries with filters and group-bys: when does it pay that they share their partial aggregates?

A query has a filter (the same name: the same predicate; s_f is the part of the rows that passes) and keys
(columns with a known number of distinct values). The model, per unit of time, for a tree of edge rate E:

    pass    rate * (scan + (1 - scan) * u)    u: partial aggregates that a row updates, on average
    final   sum over its queries of  E * range / slide * g    g: groups that it reads in one fragment

`scan` is the part of a row's price that is paid whether or not a filter takes the row (0 by default: a row
that no filter takes is free). A fragment has rate / E rows on average; n rows with D possible keys fall into

    groups(D, n) = D * (1 - exp(-n / D))      at most D, at most n; D = 1 without keys

which is the mean for rows that arrive at random with even keys; for uneven keys and fragments of unequal
lengths it is an upper bound (it is concave in n). g is at least 1, as in the paper's E * Omega.

A tree over one filter keeps partials at the union of its queries' keys; coarser keys are rolled up from them
at the end. A tree over several filters has two forms:

separate   one pass, partials for each filter f at the union K_f of the keys of its queries:
           u = sum of s_f; a query reads groups(K_f, rate * s_f / E)
combined   each row falls into exactly one combination c of the filters (which of them hold); partials for
           each combination at the union K of all keys: u = the part of the rows that any filter takes;
           a query reads the sum, over the combinations that imply its filter, of groups(K, rate * p_c / E)

Combinations need the chance that filters hold together: a pair's may be given, and what is not given follows
as the distribution with the most entropy (independent where nothing is given). Holds for aggregates that can
be merged from partials, and counts the paper's cost only.

Search: WeaveShare with this cost over the trees of all families, then dearest tree first to the least loaded
node. No query costs less final work in a larger tree, which gives the bounds that rule pairs out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, count
from math import expm1, prod
from typing import Literal, NamedTuple

import numpy as np

from headrace.errors import UserError
from headrace.planners.sharing.edges import EdgeCounter
from headrace.planners.sharing.grouping import grouped, to_lowest
from headrace.planners.sharing.instance import assignment_of, edges_of
from headrace.planners.sharing.problem import NodeReport, SharingPlan, TreeReport, WindowQuery
from headrace.planners.sharing.rates import Floats, Rows, rates_of

Form = Literal["separate", "combined"]

NO_FILTER = ""
MOST_COMBINED = 8
"""Filters in a combined tree: it has 2^8 combinations then. Beyond, only the separate form is looked at."""
_ROUNDS = 2000
_MANY = 1e300


class Family(NamedTuple):
    filter: str = NO_FILTER
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FamilyProblem:
    rate: float
    capacities: tuple[float, ...]
    queries: tuple[WindowQuery, ...]
    families: tuple[Family, ...]
    """Of every query."""
    selectivity: Mapping[str, float]
    overlaps: Mapping[frozenset[str], float]
    """For pairs of filters, the part of the rows that both take."""
    columns: Mapping[str, int]
    scan: float = 0.0

    @cached_property
    def chances(self) -> Chances:
        return Chances(self.selectivity, self.overlaps)


class Contradiction(UserError):
    """Overlaps of filters that no rows can have."""


class Chances:
    """How likely every combination of filters is."""

    def __init__(self, selectivity: Mapping[str, float], overlaps: Mapping[frozenset[str], float]) -> None:
        self._selectivity = selectivity
        self._overlaps = overlaps
        self._known: dict[tuple[str, ...], Floats] = {}

    def of(self, name: str) -> float:
        return 1.0 if name == NO_FILTER else self._selectivity[name]

    def combinations(self, names: tuple[str, ...]) -> Floats:
        """The chance that exactly the filters of a bit set hold, for every bit set."""
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = self._fitted(names)
        return found

    def _fitted(self, names: tuple[str, ...]) -> Floats:
        """Start with independent filters, and scale to the pairs that are given until all agree (iterative
        proportional fitting: the distribution with the most entropy)."""
        bits = np.arange(1 << len(names))[:, None] >> np.arange(len(names)) & 1
        single = np.array([self.of(name) for name in names])
        chance: Floats = np.where(bits == 1, single, 1.0 - single).prod(axis=1)
        pairs = [p for p in combinations(range(len(names)), 2) if self._pair(names, p) is not None]
        for _ in range(_ROUNDS):
            off = 0.0
            for i, j in pairs:
                cell = 2 * bits[:, i] + bits[:, j]
                have = np.zeros(4)
                np.add.at(have, cell, chance)
                wanted = self._cells(names, (i, j))
                off = max(off, float(np.abs(have - wanted).max()))
                chance = chance * np.divide(wanted, have, out=np.zeros(4), where=have > 0)[cell]
            if off < 1e-10:
                return chance
        raise Contradiction(
            f"the overlaps of the filters {', '.join(names)} contradict each other",
            hint="No rows can pass them in these shares.",
        )

    def _pair(self, names: Sequence[str], pair: tuple[int, int]) -> float | None:
        return self._overlaps.get(frozenset((names[pair[0]], names[pair[1]])))

    def _cells(self, names: Sequence[str], pair: tuple[int, int]) -> Floats:
        """The chances of (neither, only the second, only the first, both)."""
        first, second = self.of(names[pair[0]]), self.of(names[pair[1]])
        both = self._pair(names, pair) or 0.0
        return np.maximum(0.0, [1 - first - second + both, second - both, first - both, both])


class Shape(NamedTuple):
    """What of a tree matters beside its edges: overlap and keys of the queries of every filter."""

    overlap: Mapping[str, float]
    keys: Mapping[str, frozenset[str]]

    def with_(self, other: Shape) -> Shape:
        overlap, keys = dict(self.overlap), dict(self.keys)
        for name, value in other.overlap.items():
            overlap[name] = overlap.get(name, 0.0) + value
            keys[name] = keys.get(name, frozenset()) | other.keys[name]
        return Shape(overlap, keys)

    @property
    def all_keys(self) -> frozenset[str]:
        return frozenset[str]().union(*self.keys.values())


class Measured(NamedTuple):
    """A tree in one form."""

    cost: float
    final: float
    groups: float
    """That a fragment holds on average, over all partials."""
    form: Form


def groups(distinct: float, rows: float) -> float:
    return -distinct * expm1(-rows / distinct)


def _distinct(problem: FamilyProblem, keys: frozenset[str]) -> float:
    return min(_MANY, prod(float(problem.columns[key]) for key in keys))


def _passed(problem: FamilyProblem, updates: float) -> float:
    return problem.rate * (problem.scan + (1.0 - problem.scan) * updates)


def separate(problem: FamilyProblem, shape: Shape, edge: float) -> Measured:
    final = held = updates = 0.0
    for name, overlap in shape.overlap.items():
        chance = problem.chances.of(name)
        number = max(1.0, groups(_distinct(problem, shape.keys[name]), problem.rate * chance / edge))
        updates, held, final = updates + chance, held + number, final + edge * overlap * number
    return Measured(_passed(problem, updates) + final, final, held, "separate")


def combined(problem: FamilyProblem, shape: Shape, edge: float) -> Measured:
    names = tuple(sorted(shape.overlap.keys() - {NO_FILTER}))
    chance = problem.chances.combinations(names)
    distinct = _distinct(problem, shape.all_keys)
    # Rows that no filter takes are kept only where a query without a filter wants them.
    first = 0 if NO_FILTER in shape.overlap else 1
    counts = [groups(distinct, problem.rate * p / edge) for p in chance.tolist()]
    final = 0.0
    for name, overlap in shape.overlap.items():
        bit = 1 << names.index(name) if name else 0
        final += edge * overlap * max(1.0, sum(n for c, n in enumerate(counts) if c & bit == bit))
    updates = 1.0 if first == 0 else 1.0 - float(chance[0])
    return Measured(_passed(problem, updates) + final, final, max(1.0, sum(counts[first:])), "combined")


def cheapest(problem: FamilyProblem, shape: Shape, edge: float) -> Measured:
    apart = separate(problem, shape, edge)
    if not 1 < len(shape.overlap) <= MOST_COMBINED:
        return apart
    together = combined(problem, shape, edge)
    return together if together.cost < apart.cost else apart


def shape_of(problem: FamilyProblem, tree: Sequence[int]) -> Shape:
    shape = Shape({}, {})
    for i in tree:
        query, family = problem.queries[i], problem.families[i]
        shape = shape.with_(Shape({family.filter: query.range / query.slide}, {family.filter: family.keys}))
    return shape


@dataclass(frozen=True, slots=True)
class TreeForm:
    form: Form
    keys: tuple[str, ...]
    groups: float


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    plan: SharingPlan
    forms: tuple[tuple[TreeForm, ...], ...]
    """Of the trees of every node, in the order of the plan."""


@dataclass
class _Tree:
    queries: list[int]
    row: Rows
    edge: float
    shape: Shape
    cost: float
    slack: float
    """The most that weaving can save of this tree: all but its final operations."""


class _Weaver:
    """WeaveShare over families. Pairs wait in a heap with a bound of their gain: first a quick one, then one
    with an edge rate that is too low, then the gain itself. An exact gain on top is the best of all."""

    def __init__(self, problem: FamilyProblem) -> None:
        self.problem = problem
        windows = dict.fromkeys((q.slide, q.offset) for q in problem.queries)
        self.rates = rates_of([edges_of(*window) for window in windows])
        self.numbers = count()
        self.trees: dict[int, _Tree] = {}
        self.heap: list[tuple[float, int, int, int]] = []
        number = {window: c for c, window in enumerate(windows)}
        units: dict[tuple[int, Family], list[int]] = {}
        for i, (query, family) in enumerate(zip(problem.queries, problem.families, strict=True)):
            units.setdefault((number[query.slide, query.offset], family), []).append(i)
        for (c, _), members in units.items():
            self._add(members, self.rates.rows[c], shape_of(problem, members))

    def woven(self) -> list[_Tree]:
        while self.heap:
            _, level, a, b = heapq.heappop(self.heap)
            if a not in self.trees or b not in self.trees:
                continue
            if level == 0:
                first, second = self.trees.pop(a), self.trees.pop(b)
                self._add(
                    first.queries + second.queries, first.row | second.row, first.shape.with_(second.shape)
                )
            else:
                self._push(self._gain(a, b, exact=level == 1), level - 1, a, b)
        return list(self.trees.values())

    def _add(self, queries: list[int], row: Rows, shape: Shape) -> None:
        edge = float(self.rates.of(row)[0])
        cost = cheapest(self.problem, shape, edge).cost
        slack = cost - separate(self.problem, shape, edge).final
        number = next(self.numbers)
        for other, tree in self.trees.items():
            self._push(min(slack, tree.slack), 2, other, number)
        self.trees[number] = _Tree(queries, row, edge, shape, cost, slack)

    def _push(self, gain: float, level: int, a: int, b: int) -> None:
        if gain > 1e-9 * self.problem.rate:
            heapq.heappush(self.heap, (-gain, level, a, b))

    def _gain(self, a: int, b: int, *, exact: bool) -> float:
        first, second = self.trees[a], self.trees[b]
        edge = float(self.rates.of(first.row | second.row)[0]) if exact else max(first.edge, second.edge)
        return first.cost + second.cost - cheapest(self.problem, first.shape.with_(second.shape), edge).cost


def solve_families(problem: FamilyProblem, *, clock: Callable[[], float]) -> FamilyPlan:
    """A plan of all families together."""
    compiled = _loaded(clock)
    started = clock()
    trees = _Weaver(problem).woven()
    nodes = to_lowest([tree.cost for tree in trees], np.array(problem.capacities))
    assignment = assignment_of(grouped([tree.queries for tree in trees], nodes, len(problem.capacities)))
    seconds = clock() - started
    counter = EdgeCounter()
    told = [[_reported(problem, tree, counter) for tree in trees] for trees in assignment]
    reports = tuple(
        NodeReport(capacity, sum(tree.cost for tree, _ in node), tuple(tree for tree, _ in node))
        for capacity, node in zip(problem.capacities, told, strict=True)
    )
    alone = [_reported(problem, (i,), counter)[0].cost for i in range(len(problem.queries))]
    low, low_load = _bounds(problem, alone)
    plan = SharingPlan(
        optimiser="headrace",
        cost="paper",
        nodes=reports,
        assignment=assignment,
        total_cost=sum(node.cost for node in reports),
        max_cost=max(node.cost for node in reports),
        max_load=max(node.cost / node.capacity for node in reports),
        unshared_cost=sum(alone),
        lower_bound=low,
        lower_bound_max=low_load,
        seconds=seconds,
        compile_seconds=compiled,
    )
    return FamilyPlan(plan, tuple(tuple(form for _, form in node) for node in told))


def _loaded(clock: Callable[[], float]) -> float:
    """The seconds it takes to compile or load the kernel; next to nothing after the first time."""
    started = clock()
    for most_cells in (0, 100):
        rates = rates_of([((0, 2),)], most_cells=most_cells)
        rates.of(rates.rows)
    return clock() - started


def _reported(
    problem: FamilyProblem, tree: Sequence[int], counter: EdgeCounter
) -> tuple[TreeReport, TreeForm]:
    """A tree with its exact edge rate, and its costs from that."""
    queries = [problem.queries[i] for i in tree]
    rate = counter.rate({(query.range, query.slide) for query in queries})
    shape = shape_of(problem, tree)
    measured = cheapest(problem, shape, float((rate.low + rate.high) / 2))
    overlap = sum((query.overlap for query in queries), Fraction(0))
    names = tuple(query.id for query in queries)
    form = TreeForm(measured.form, tuple(sorted(shape.all_keys)), measured.groups)
    return TreeReport(names, rate.high, rate.low, overlap, measured.cost), form


def _bounds(problem: FamilyProblem, alone: Sequence[float]) -> tuple[float, float]:
    """No query has less final work than alone; the rows that the widest filter takes are aggregated at least
    once; and the dearest query runs somewhere."""
    passes = [_passed(problem, problem.chances.of(family.filter)) for family in problem.families]
    total = sum(alone) - sum(passes) + max(passes)
    load = max(total / sum(problem.capacities), max(alone) / max(problem.capacities))
    return total * (1 - 1e-9), load * (1 - 1e-9)
