"""Our optimiser: both costs at once.

Start: WeaveShare, its trees dearest first to the least loaded node. Then, for a falling series of limits on
a node's load, a local search (moves.py) that lowers the total while it keeps the limit. Every state it
settles in is a plan; those that no other beats on both costs are the Pareto front. The balance knob picks
one.

No guarantee beyond the start's: the answer is never worse than WeaveShare with balanced assignment in total
at balance 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.planners.sharing.cuts import fell, insert_queries, split_trees
from headrace.planners.sharing.forest import Forest, Limit, Tables
from headrace.planners.sharing.grouping import to_lowest
from headrace.planners.sharing.instance import Instance, assignment_of
from headrace.planners.sharing.moves import (
    carry_trees,
    exchange_trees,
    merge_trees,
    move_queries,
)
from headrace.planners.sharing.problem import Assignment, FrontPoint, Options
from headrace.planners.sharing.rates import Floats, Ints
from headrace.planners.sharing.weave import Woven, class_densities, weave_share

Clock = Callable[[], float]

LONG = 0.1
"""Seconds left after the first squeeze that are worth a search for a lower total."""
NEAR = 0.94
FAR = 0.25
"""From one limit to the next: this share of it, or this share of the way to the mean load, whichever is
lower."""


@dataclass(frozen=True)
class Settled:
    """A plan found on the way: where every query is, and what it costs."""

    total: float
    worst: float
    """The largest load."""
    tree_of: Ints
    node: Ints
    dearest: float = 0.0
    """The largest node cost."""


def ours(instance: Instance, options: Options, clock: Clock, started: float | None = None) -> Assignment:
    """One plan. `started`: when the time of `options.seconds` began, if it was before this call."""
    search = Search(instance, options, clock, started)
    search.run()
    return _assignment(instance, search.chosen())


def ours_front(
    instance: Instance, options: Options, clock: Clock, started: float | None = None
) -> tuple[FrontPoint, ...]:
    """All plans that no other found plan beats on both costs, the lowest total first."""
    search = Search(instance, options, clock, started)
    search.run()
    return tuple(FrontPoint(s.total, s.dearest, _assignment(instance, s), s.worst) for s in search.front)


class Search:
    """One run: squeeze the limit down, then spend the time that is left around the plan that the knob
    wants."""

    def __init__(
        self, instance: Instance, options: Options, clock: Clock, started: float | None = None
    ) -> None:
        self.instance = instance
        self.balance = options.balance
        self.clock = clock
        seconds = default_seconds(instance) if options.seconds is None else options.seconds
        self.until = (clock() if started is None else started) + seconds
        self.step = 0.0
        self.front: list[Settled] = []
        self.rng = np.random.default_rng([options.seed, 3])
        self.orders = _orders(instance)
        self.cross = class_densities(instance)
        self.reference = self.start()

    def start(self) -> float:
        """WeaveShare, and WeaveShare stopped at one tree a node (WG_TN), whose total is the reference."""
        instance = self.instance
        woven = weave_share(instance)
        self.plant(woven)
        if len(woven.trees) < instance.nodes:
            self.plant(weave_share(instance, at_least=instance.nodes))
        return _settled(self.forest).total

    def plant(self, woven: Woven) -> None:
        nodes = to_lowest(woven.costs(self.instance.rate), self.instance.capacity)
        self.forest = plant(self.instance, woven.trees, nodes, self.cross)
        self.record()

    def run(self) -> None:
        if self.instance.rates.tabled or self.balance == 0:
            self.settle(self.limit(np.inf))
            self.restart(self.front[-1])
        self.squeeze()
        if self.until - self.clock() > LONG:
            self._lower_total()
        self.polish()

    def _lower_total(self) -> None:
        """With time enough: look for a lower total first, which is then room for more trees, and squeeze
        that."""
        until, self.until = self.until, self.clock() + (self.until - self.clock()) * 0.3
        self._kick_around(self.front[0], lambda plan: np.inf, lambda: self.front[0])
        self.until = until
        self.restart(self.front[0])
        self.squeeze()

    def squeeze(self) -> None:
        """Lower the limit step by step, for as long as the nodes follow and the knob allows the total."""
        failed = 0
        load = self.worst()
        mean = 0.0
        while failed < 3 and load > mean and not self.late():
            mean = float(self.forest.cost.sum() / self.forest.capacity.sum())
            load = min(load * NEAR, load - (load - mean) * FAR)
            plan = self.settle(self.limit(load), rounds=3 if self.instance.rates.tabled else 1)
            failed = failed + 1 if plan.worst > load * 1.0001 else 0
            if plan.total > self.allowed() * 1.05:
                return

    def polish(self) -> None:
        """Spend what time is left around the plan that the knob wants."""

        def load(plan: Settled) -> float:
            near = 0.985 if self.rng.random() < 0.5 else 1.0
            return np.inf if self.balance == 0 else plan.worst * near

        self._kick_around(self.chosen(), load, self.chosen)

    def _kick_around(
        self, plan: Settled, load: Callable[[Settled], float], best: Callable[[], Settled]
    ) -> None:
        """Loosen some queries, insert them anew, settle; keep what is better."""
        self.restart(plan)
        while not self.late():
            began = self.clock()
            limit = self.limit(load(plan))
            before, forest, saved = self.phi(limit), self.forest, keep(self.forest)
            self.kick(limit)
            self.record()
            if self.phi(limit) > before + 1e-9:
                self.forest = forest
                restore(forest, saved)
            if best() is not plan:
                plan = best()
                self.restart(plan)
            self.step = self.clock() - began
        self.step = 0.0

    def limit(self, load: float) -> Limit:
        """A limit with a price at which a new tree pays once a node is a few per cent above."""
        return Limit(
            load, max(12.0, 60.0 * self.instance.rate / (load * float(self.instance.capacity.min())))
        )

    def kick(self, limit: Limit) -> None:
        """Loosen some queries, insert them where they raise Phi least, and go one round."""
        if self.rng.random() < 0.5:
            self._fell_some()
        else:
            self._loosen_slow()
        loose = self.orders[0][self.forest.tree_of[self.orders[0]] < 0]
        order = self.rng.permutation(loose) if self.rng.random() < 0.5 else loose
        insert_queries(self.forest, order, limit)
        improve(self.forest, *self.orders, limit, merge=True)

    def _fell_some(self) -> None:
        """One to three whole trees."""
        alive = np.flatnonzero(self.forest.size)
        count = min(len(alive), int(self.rng.integers(1, 4)))
        for tree in self.rng.choice(alive, size=count, replace=False):
            fell(self.forest, tree)

    def _loosen_slow(self) -> None:
        """The slow classes of a tree, from a random cut on: they pay for its fast edges, and may find a
        place in other trees where they pay less."""
        forest = self.forest
        several = np.flatnonzero((forest.count > 0).sum(axis=1) > 1)
        if not len(several):
            return self._fell_some()
        tree = int(self.rng.choice(several))
        classes = [c for c in self.orders[3].tolist() if forest.count[tree, c]]
        slow = classes[int(self.rng.integers(1, len(classes))) :]
        left = forest.tree_of.copy()
        left[(left == tree) & np.isin(forest.klass, slow)] = -1
        self.restart(Settled(0.0, 0.0, left, forest.node))
        return None

    def settle(self, limit: Limit, rounds: int = 12) -> Settled:
        for i in range(rounds):
            if self.late() or improve(self.forest, *self.orders, limit, merge=i == 0) > -1e-6:
                break
        return self.record()

    def record(self) -> Settled:
        plan = _settled(self.forest)
        self.front = front_of([*self.front, plan])
        return plan

    def restart(self, plan: Settled) -> None:
        trees: dict[int, list[int]] = {}
        for query, tree in enumerate(plan.tree_of.tolist()):
            if tree >= 0:
                trees.setdefault(tree, []).append(query)
        names = sorted(trees)
        self.forest = plant(self.instance, [trees[t] for t in names], plan.node[names], self.cross)

    def late(self) -> bool:
        """Whether there is no time for another step like the last one."""
        return self.clock() + self.step >= self.until

    def worst(self) -> float:
        return float((self.forest.cost / self.forest.capacity).max())

    def phi(self, limit: Limit) -> float:
        cost = self.forest.cost
        above = np.maximum(0.0, cost - limit.load * self.forest.capacity)
        return float(cost.sum() + limit.price * above.sum())

    def allowed(self) -> float:
        """The largest total that is worth looking at."""
        return self.reference if self.balance is None else float("inf")

    def chosen(self) -> Settled:
        """The plan that the knob wants."""
        if self.balance is None:
            top = self.allowed() * (1 + 1e-12)
            return min((s for s in self.front if s.total <= top), key=lambda s: s.worst)
        power = self.balance
        return min(self.front, key=lambda s: np.log(s.total) + power * np.log(s.worst))


def default_seconds(instance: Instance) -> float:
    return 0.028 if instance.queries <= 1000 else 0.4


def keep(forest: Forest) -> list[NDArray[Any]]:
    return [part.copy() for part in _parts(forest)]


def restore(forest: Forest, saved: list[NDArray[Any]]) -> None:
    for part, copy in zip(_parts(forest), saved, strict=True):
        part[...] = copy


def _parts(f: Forest) -> tuple[NDArray[Any], ...]:
    """What changes take place in."""
    return (
        f.tree_of,
        f.rows,
        f.edge,
        f.overlap,
        f.node,
        f.size,
        f.count,
        f.held,
        f.shared,
        f.more,
        f.less,
        f.cost,
    )


def front_of(found: list[Settled]) -> list[Settled]:
    """The plans that no other beats on both costs, the lowest total first."""
    front: list[Settled] = []
    for plan in sorted(found, key=lambda s: (s.total, s.worst)):
        if not front or plan.worst < front[-1].worst * (1 - 1e-12):
            front.append(plan)
    return front


def improve(
    f: Forest, order: Ints, by_class: Ints, class_start: Ints, fastest: Ints, limit: Limit, *, merge: bool
) -> float:
    """One round of every kind of change; the change of Phi.

    Single queries are moved only off nodes above their limit: elsewhere whole classes gain more.
    """
    gained = split_trees(f, by_class, class_start, fastest, limit)
    if merge:
        gained += merge_trees(f, limit)
    gained += carry_trees(f, limit)
    gained += exchange_trees(f, limit)
    pressed = f.cost > limit.load * f.capacity
    return gained + move_queries(f, order[pressed[f.node[f.tree_of[order]]]], limit)


def plant(instance: Instance, trees: list[list[int]], nodes: Ints, cross: Floats) -> Forest:
    """The state of a plan."""
    slots = min(instance.queries, len(trees) + 3 * instance.nodes + 16)
    classes = instance.classes
    forest = Forest(
        rate=instance.rate,
        capacity=instance.capacity,
        klass=instance.klass,
        omega=instance.omega,
        class_rows=instance.rows,
        single=instance.single,
        cross=cross,
        tables=Tables(*instance.rates.tables),
        tree_of=np.full(instance.queries, -1, dtype=np.int64),
        rows=np.zeros((slots, instance.rows.shape[1]), dtype=np.uint16),
        edge=np.zeros(slots),
        overlap=np.zeros(slots),
        node=np.zeros(slots, dtype=np.int64),
        size=np.zeros(slots, dtype=np.int64),
        count=np.zeros((slots, classes), dtype=np.int64),
        held=np.zeros((slots, classes)),
        shared=np.zeros((slots, classes)),
        more=np.full((slots, classes), np.nan),
        less=np.full((slots, classes), np.nan),
        cost=np.zeros(instance.nodes),
    )
    for tree, queries in enumerate(trees):
        members = np.array(queries)
        forest.tree_of[members] = tree
        forest.node[tree] = nodes[tree]
        forest.size[tree] = len(members)
        np.add.at(forest.count[tree], instance.klass[members], 1)
        np.add.at(forest.held[tree], instance.klass[members], instance.omega[members])
    here = slice(0, len(trees))
    present = forest.count[here] > 0
    for tree in range(len(trees)):
        forest.rows[tree] = np.bitwise_or.reduce(instance.rows[present[tree]], axis=0)
    forest.edge[here] = instance.rates.of(forest.rows[here])
    forest.overlap[here] = forest.held[here].sum(axis=1)
    for tree in range(len(trees)):
        # A matrix product would wake the threads of the linear algebra library, which takes milliseconds.
        forest.shared[tree] = forest.cross[present[tree]].sum(axis=0)
    np.add.at(forest.cost, forest.node[here], instance.rate + forest.edge[here] * forest.overlap[here])
    return forest


def _orders(instance: Instance) -> tuple[Ints, Ints, Ints, Ints]:
    """Queries by falling weight; queries by class, heavy first; where each class starts in that; classes by
    falling edge rate."""
    weight: Floats = instance.single[instance.klass] * instance.omega
    order = np.argsort(-weight, kind="stable")
    by_class = np.lexsort((-instance.omega, instance.klass))
    start = np.searchsorted(instance.klass[by_class], np.arange(instance.classes + 1))
    return order, by_class, start.astype(np.int64), np.argsort(-instance.single, kind="stable")


def _settled(forest: Forest) -> Settled:
    return Settled(
        float(forest.cost.sum()),
        float((forest.cost / forest.capacity).max()),
        forest.tree_of.copy(),
        forest.node.copy(),
        float(forest.cost.max()),
    )


def _assignment(instance: Instance, plan: Settled) -> Assignment:
    trees: dict[int, list[int]] = {}
    for query, tree in enumerate(plan.tree_of.tolist()):
        trees.setdefault(tree, []).append(query)
    nodes: list[list[list[int]]] = [[] for _ in range(instance.nodes)]
    for tree, queries in trees.items():
        nodes[int(plan.node[tree])].append(queries)
    return assignment_of(nodes)
