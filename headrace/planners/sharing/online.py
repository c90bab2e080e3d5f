"""A plan that runs while queries and nodes come and go: a change touches little, and says what it touched.

Worth of a plan = total cost + balance * (heaviest load * all capacity). The second term is what must be
provided when every node has to bear the heaviest load; in a perfectly balanced plan it equals the total.
Less is better. Every change is judged by it:

add          the query goes where the worth rises least: into a tree or a new tree; nothing else moves
remove       the query goes, and an edge with its last query; what is left of its tree goes elsewhere if that
             pays
add_node     bundles are moved off the heaviest nodes for as long as that pays
remove_node  what ran on it goes where the worth rises least, tree by tree or class by class
rebalance    any bundle (a tree, the queries of one class in it, half of them) to its best place, where that
             pays

"Pays": the fall of the worth, over the horizon, is more than the price of the queries that are moved
(MovePrice). The search counts the paper's costs, in floats; `problem()` and `assignment()` are what report.py
takes for exact costs of either model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.planners.sharing.growing import Bundle, Grove
from headrace.planners.sharing.instance import assignment_of
from headrace.planners.sharing.problem import Assignment, SharingProblem, WindowQuery
from headrace.planners.sharing.rates import Floats, Ints

EPS = 1e-9
"""A smaller part of the worth is rounding."""
CHUNK = 4
"""Trees whose exact rate is read at once; the bounds rule out most others."""
NEW = -1
"""Instead of a tree's number: a new tree."""
NO_NODE = -1
"""Where the trees of a node that has gone came from."""


class Costs(NamedTuple):
    total: float
    max_load: float
    worth: float


class Place(NamedTuple):
    node: int
    tree: int


@dataclass(frozen=True, slots=True)
class MovePrice:
    """What moving a query costs (its state is built again), and the time over which a gain is counted."""

    per_query: float = 0.0
    horizon: float = 1.0

    def spread(self, moved: int) -> float:
        """The price as a cost per unit of time, over the horizon."""
        return self.per_query * moved / self.horizon


FREE = MovePrice()


@dataclass(frozen=True, slots=True)
class Step:
    """Queries go from one place to another. No source: they are new. No target: they are gone."""

    queries: tuple[str, ...]
    source: Place | None
    target: Place | None


def moved_queries(steps: Iterable[Step]) -> int:
    """How many queries run on at another place."""
    return len({q for step in steps if step.source and step.target for q in step.queries})


@dataclass(frozen=True, slots=True)
class Change:
    """What a command did. Nodes are numbered as they are after it."""

    steps: tuple[Step, ...]
    before: Costs
    after: Costs

    @property
    def moved(self) -> int:
        return moved_queries(self.steps)

    @property
    def trees(self) -> frozenset[int]:
        """The trees that were touched."""
        return frozenset(p.tree for step in self.steps for p in (step.source, step.target) if p)


class RunningPlan:
    """Trees on nodes. A tree keeps its number while it stays on its node."""

    def __init__(
        self,
        problem: SharingProblem,
        assignment: Assignment = (),
        *,
        balance: float = 1.0,
        price: MovePrice = FREE,
    ) -> None:
        self._problem = problem
        self.balance = balance
        self.price = price
        self.queries: dict[str, WindowQuery] = {q.id: q for q in problem.queries}
        self.tree_of: dict[str, int] = {}
        self.grove = Grove(
            float(problem.rate), np.array(problem.capacities, dtype=np.float64), problem.queries
        )
        for node, trees in enumerate(assignment):
            for tree in trees:
                self._put(self.grove.bundle([problem.queries[i] for i in tree]), Place(node, NEW))

    # Commands.

    def add(self, query: WindowQuery) -> Change:
        if query.id in self.queries:
            raise UserError(f'there is a query "{query.id}" already', hint="Remove it first.")
        before = self.costs()
        self.queries[query.id] = query
        place = self._settle([query])
        return Change((Step((query.id,), None, place),), before, self.costs())

    def remove(self, name: str) -> Change:
        if name not in self.queries:
            hint = did_you_mean(name, self.queries, "queries")
            raise UserError(f'query "{name}" does not exist', hint=hint)
        before = self.costs()
        place = self.place(name)
        self.grove.leave(place.tree, [self.queries.pop(name)])
        del self.tree_of[name]
        steps = [Step((name,), place, None)]
        if self.grove.members[place.tree]:
            steps += self._try(place.tree, self.grove.queries(place.tree), self.price)
        return Change(tuple(steps), before, self.costs())

    def add_node(self, capacity: float) -> Change:
        """A node more, with the highest number."""
        before = self.costs()
        self.grove.capacity = np.append(self.grove.capacity, float(capacity))
        return Change(tuple(self._level(self.price)), before, self.costs())

    def remove_node(self, node: int) -> Change:
        """A node less: those above it are renumbered. Only what ran on it moves."""
        nodes = len(self.grove.capacity)
        if nodes == 1 or not 0 <= node < nodes:
            hint = "It is the last one." if nodes == 1 else f"Nodes are numbered from 0 to {nodes - 1}."
            raise UserError(f"node {node} cannot be removed", hint=hint)
        before = self.costs()
        loose = [(tree, self.grove.queries(tree)) for tree in self.grove.on(node)]
        for tree, queries in loose:
            self.grove.leave(tree, queries)
        self.grove.capacity = np.delete(self.grove.capacity, node)
        self.grove.node[self.grove.node > node] -= 1
        return Change(tuple(self._settle_all(loose)), before, self.costs())

    def rebalance(self, price: MovePrice | None = None, rounds: int = 5) -> Change:
        """Every change that pays, one after the other, until none does."""
        price = price or self.price
        before = self.costs()
        steps: list[Step] = []
        for _ in range(rounds):
            found = self._sweep(price) + self._level(price)
            steps += found
            if not found:
                break
        return Change(tuple(steps), before, self.costs())

    def apply(self, steps: Iterable[Step]) -> None:
        """Do steps that were found on a fork, or by drift.py."""
        for step in steps:
            if step.source and step.target:
                bundle = self.grove.bundle([self.queries[name] for name in step.queries])
                if step.source.node != NO_NODE:
                    self.grove.leave(step.source.tree, bundle.queries)
                self._put(bundle, step.target)

    def set_rate(self, rate: float) -> None:
        self.grove.rate = float(rate)

    # What there is.

    @property
    def rate(self) -> float:
        return self.grove.rate

    def place(self, name: str) -> Place:
        tree = self.tree_of[name]
        return Place(int(self.grove.node[tree]), tree)

    def trees(self) -> dict[int, tuple[str, ...]]:
        """The queries of every tree."""
        return {t: tuple(q.id for q in self.grove.queries(t)) for t in self.grove.alive()}

    def costs(self) -> Costs:
        costs, capacity = self.grove.node_costs(), self.grove.capacity
        total, load = float(costs.sum()), float((costs / capacity).max())
        return Costs(total, load, total + self.balance * load * float(capacity.sum()))

    def problem(self) -> SharingProblem:
        """The problem as it is now."""
        capacities = tuple(self.grove.capacity.tolist())
        return SharingProblem(self.rate, capacities, tuple(self.queries.values()), self._problem.cost)

    def assignment(self) -> Assignment:
        """The plan, with positions in the queries of `problem()`."""
        at = {name: i for i, name in enumerate(self.queries)}
        nodes: list[list[list[int]]] = [[] for _ in self.grove.capacity]
        for tree, names in self.trees().items():
            nodes[int(self.grove.node[tree])].append([at[name] for name in names])
        return assignment_of(nodes)

    def fork(self) -> RunningPlan:
        """A copy to try changes on."""
        twin = copy(self)
        twin.queries, twin.tree_of, twin.grove = dict(self.queries), dict(self.tree_of), self.grove.fork()
        return twin

    # How a change is found.

    def _settle(self, queries: Sequence[WindowQuery]) -> Place:
        """Queries that are nowhere, to their best place."""
        bundle = self.grove.bundle(queries)
        return self._put(bundle, self._best(bundle, self.grove.node_costs())[1])

    def _settle_all(self, loose: list[tuple[int, list[WindowQuery]]]) -> list[Step]:
        """The trees of a node that has gone: as they are, or class by class, whichever is better. Either way
        every query of theirs moves once, so the finer way costs no more moves."""
        finer = [(tree, part) for tree, queries in loose for part in self._by_class(queries)]
        trials = [(self.fork(), parts) for parts in (loose, finer)]
        found = [
            [
                Step(tuple(q.id for q in part), Place(NO_NODE, tree), trial._settle(part))
                for tree, part in parts
            ]
            for trial, parts in trials
        ]
        steps = found[0] if trials[0][0].costs().worth <= trials[1][0].costs().worth else found[1]
        self.apply(steps)
        return steps

    def _by_class(self, queries: Sequence[WindowQuery]) -> list[list[WindowQuery]]:
        """The queries of each class, the dearest class first."""
        parts: dict[tuple[int, int], list[WindowQuery]] = {}
        for query in queries:
            parts.setdefault((query.slide, query.offset), []).append(query)
        return sorted(parts.values(), key=lambda part: -sum(q.overlap for q in part) / part[0].slide)

    def _sweep(self, price: MovePrice) -> list[Step]:
        """Whole trees, small ones first; then the queries of one class in a tree; then its slow part."""
        grove, steps = self.grove, list[Step]()
        for tree in sorted(grove.alive(), key=lambda t: len(grove.queries(t))):
            if grove.members[tree]:
                steps += self._try(tree, grove.queries(tree), price)
        for tree in grove.alive():
            for classes in self._selections(tree):
                if len(grove.members[tree]) > len(classes) and classes <= grove.members[tree].keys():
                    queries = [q for c in sorted(classes) for q in grove.members[tree][c].values()]
                    steps += self._try(tree, queries, price)
        return steps

    def _selections(self, tree: int) -> list[set[int]]:
        """Each class of a tree; and from every cut on, the slow ones, which fast edges make dear."""
        by_rate = sorted(self.grove.members[tree], key=lambda c: -self.grove.classes.single[c])
        cuts = [set(by_rate[k:]) for k in range(1, len(by_rate) - 1)]
        return [{c} for c in by_rate] + cuts

    def _try(self, tree: int, queries: Sequence[WindowQuery], price: MovePrice) -> list[Step]:
        """Move queries of a tree to their best place, if that pays."""
        now = self.costs().worth
        bundle = self.grove.bundle(queries)
        worth, target = self._best(bundle, self.grove.without(tree, bundle), leaving=tree)
        pays = now - worth > price.spread(len(queries)) + EPS * now
        return [self._move(tree, bundle, target)] if pays else []

    def _level(self, price: MovePrice) -> list[Step]:
        """Off the heaviest node, again and again. Where several nodes are as heavy, the first moves gain
        nothing; so it is the series that has to pay, and it is cut where it pays most."""
        trial = self.fork()
        start = trial.costs().worth
        steps: list[Step] = []
        best, cut = EPS * start, 0
        for _ in range(4 * len(self.grove.capacity)):
            step = trial._lighten()
            if step is None:
                break
            steps.append(step)
            gain = start - trial.costs().worth - price.spread(moved_queries(steps))
            if gain > best:
                best, cut = gain, len(steps)
        self.apply(steps[:cut])
        return steps[:cut]

    def _lighten(self) -> Step | None:
        """The best move off the heaviest node that leaves both nodes below its load."""
        loads = self.grove.node_costs() / self.grove.capacity
        heavy = int(np.argmax(loads))
        best, found = math.inf, None
        for tree in self.grove.on(heavy):
            for queries in self._parts(tree):
                bundle = self.grove.bundle(queries)
                left = self.grove.without(tree, bundle)
                worth, target = self._best(bundle, left, below=float(loads[heavy]), avoid=heavy)
                if worth < best and left[heavy] < loads[heavy] * self.grove.capacity[heavy]:
                    best, found = worth, (tree, bundle, target)
        return self._move(*found) if found else None

    def _parts(self, tree: int) -> Iterator[list[WindowQuery]]:
        """The bundles of a tree: all of it, each class, half of each class."""
        classes = list(self.grove.members[tree].values())
        yield self.grove.queries(tree)
        for held in classes:
            queries = sorted(held.values(), key=lambda q: -q.overlap)
            if len(classes) > 1:
                yield queries
            if len(queries) > 1:
                yield queries[::2]

    def _best(
        self,
        bundle: Bundle,
        costs: Floats,
        *,
        leaving: int = NEW,
        below: float = math.inf,
        avoid: int = NO_NODE,
    ) -> tuple[float, Place]:
        """Where the worth is least, and that worth. `costs`: of the nodes, without the bundle. Not into the
        tree `leaving`, not on the node `avoid`, and only where the load stays below `below`; inf: nowhere.

        E of two sets of edges is at least max(E_A, E_B, E_A + E_B - X), as in weave.py. Trees come in the
        order of what they are worth by that bound; the first with no better bound than the best ends it.
        """
        grove = self.grove
        alone = grove.rate + bundle.edge * bundle.overlap
        node = int(np.argmin((costs + alone) / grove.capacity))
        best, place = math.inf, Place(node, NEW)
        if node != avoid:
            best = float(self._worth(costs, np.array([node]), np.array([alone]), below)[0])
        alive = [t for t in grove.alive() if t != leaving and grove.node[t] != avoid]
        trees: Ints = np.array(alive, dtype=np.int64)
        edge, nodes = grove.edge[trees], grove.node[trees]
        overlap = grove.overlap[trees]
        rises = self._rates_at_least(bundle, trees) * (overlap + bundle.overlap) - edge * overlap
        bounds = self._worth(costs, nodes, rises, below)
        order = np.argsort(bounds, kind="stable")
        for some in (order[i : i + CHUNK] for i in range(0, len(order), CHUNK)):
            if bounds[some[0]] >= best:
                break
            rates = grove.classes.rates.with_class(grove.rows[trees[some]], bundle.row)
            rises = rates * (overlap[some] + bundle.overlap) - edge[some] * overlap[some]
            exact = self._worth(costs, nodes[some], rises, below)
            k = int(np.argmin(exact))
            if exact[k] < best:
                best, place = float(exact[k]), Place(int(nodes[some[k]]), int(trees[some[k]]))
        return best, place

    def _rates_at_least(self, bundle: Bundle, trees: Ints) -> Floats:
        """Lower bounds of the rates of trees with the bundle; exact where a tree has all its edges."""
        has, edge = self.grove.has[trees], self.grove.edge[trees]
        meeting = np.add.reduce([self.grove.classes.densities(c) for c in bundle.classes])
        # Not `has @ meeting`: that wakes the threads of the linear algebra, for milliseconds.
        together = np.einsum("tc,c->t", has, meeting)
        rates: Floats = np.maximum(np.maximum(edge, bundle.edge), edge + bundle.edge - together)
        return np.where(has[:, list(bundle.classes)].all(axis=1), edge, rates)

    def _worth(self, costs: Floats, nodes: Ints, rises: Floats, below: float) -> Floats:
        """For each of these nodes, the worth if it costs that much more; inf: not below `below`."""
        capacity = self.grove.capacity
        loads = (costs[nodes] + rises) / capacity[nodes]
        heaviest = np.maximum(loads, (costs / capacity).max())
        worth = costs.sum() + rises + self.balance * capacity.sum() * heaviest
        return np.where(loads < below, worth, math.inf)

    # How it is done.

    def _move(self, tree: int, bundle: Bundle, target: Place) -> Step:
        source = Place(int(self.grove.node[tree]), tree)
        self.grove.leave(tree, bundle.queries)
        return Step(tuple(q.id for q in bundle.queries), source, self._put(bundle, target))

    def _put(self, bundle: Bundle, place: Place) -> Place:
        tree = self.grove.free() if place.tree == NEW else place.tree
        self.grove.join(place.node, tree, bundle)
        self.tree_of.update((q.id, tree) for q in bundle.queries)
        return Place(place.node, tree)
