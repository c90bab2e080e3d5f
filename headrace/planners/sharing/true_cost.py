"""Plans judged by the true number of final operations.

Searches are guided by E * Omega, which is the true number whenever ranges are multiples of slides. For other
ranges the true number of a tree is the sum over its queries of how many fragments fall into their windows,
and a tree that looks a little dearer may be a little cheaper. So here, and only here: take the best of the
plans that the search settled in, by true cost, then try every merge of two trees and every move of a class
to another tree or a new one, while that lowers the true cost. Trees are counted exactly and each set of
windows once; the work is bounded by a number of counted trees, so that the result does not depend on the
clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf, log

from headrace.planners.sharing.edges import EdgeCounter
from headrace.planners.sharing.operations import final_operations
from headrace.planners.sharing.problem import Assignment, SharingProblem

MOST_COUNTED = 300
"""Trees that a polish counts. One takes from 0.1 ms to some tens of ms."""

_FAR = 1000.0
"""Added to the score of a plan above the ceiling: behind every plan below it."""

Nodes = tuple[tuple[frozenset[int], ...], ...]


def needs_true_cost(problem: SharingProblem) -> bool:
    return problem.cost == "true" and any(query.offset for query in problem.queries)


class TruePlans:
    """Plans of one problem with their true costs."""

    def __init__(self, problem: SharingProblem, balance: float | None, budget: int = 3_000) -> None:
        self.problem = problem
        self.balance = balance
        self.ceiling = inf
        self.counter = EdgeCounter(budget=budget)
        self.costs: dict[frozenset[int], float] = {}

    def best(self, plans: Iterable[Assignment], reference: Assignment) -> Assignment:
        """The best of the plans, polished. Without a balance: the lowest maximum with no more total than
        `reference`, which is one of the plans."""
        self.ceiling = sum(self._costs(_frozen(reference))) * (1 + 1e-12)
        nodes = min((_frozen(plan) for plan in (*plans, reference)), key=self.score)
        score = self.score(nodes)
        improved = True
        while improved and len(self.costs) < MOST_COUNTED:
            improved = False
            for other in self._neighbours(nodes):
                if len(self.costs) >= MOST_COUNTED:
                    break
                if self.score(other) < score - 1e-12:
                    nodes, score, improved = other, self.score(other), True
                    break
        return tuple(tuple(sorted(tuple(sorted(tree)) for tree in trees)) for trees in nodes)

    def score(self, nodes: Nodes) -> float:
        """What is to be lowered: log total + balance * log maximum."""
        costs = self._costs(nodes)
        total = sum(costs)
        load = max(cost / capacity for cost, capacity in zip(costs, self.problem.capacities, strict=True))
        if self.balance is not None:
            return log(total) + self.balance * log(load)
        return log(load) if total <= self.ceiling else log(total) + _FAR

    def _costs(self, nodes: Nodes) -> list[float]:
        return [sum(map(self.cost, trees)) for trees in nodes]

    def cost(self, tree: frozenset[int]) -> float:
        if tree not in self.costs:
            windows = [(self.problem.queries[i].range, self.problem.queries[i].slide) for i in sorted(tree)]
            low, high = final_operations(windows, counter=self.counter)
            self.costs[tree] = self.problem.rate + float((low + high) / 2)
        return self.costs[tree]

    def _neighbours(self, nodes: Nodes) -> Iterator[Nodes]:
        places = [(n, t) for n, trees in enumerate(nodes) for t in range(len(trees))]
        for n, t in places:
            tree = nodes[n][t]
            for m, u in places:
                if (n, t) != (m, u):
                    yield _moved(nodes, tree, n, tree, m, nodes[m][u])
            for part in self._classes(tree):
                if part == tree:
                    continue
                for m, u in places:
                    if (n, t) != (m, u):
                        yield _moved(nodes, part, n, tree, m, nodes[m][u])
                for m in range(len(nodes)):
                    yield _moved(nodes, part, n, tree, m, frozenset())

    def _classes(self, tree: frozenset[int]) -> Sequence[frozenset[int]]:
        parts: dict[tuple[int, int], set[int]] = {}
        for i in tree:
            query = self.problem.queries[i]
            parts.setdefault((query.slide, query.offset), set()).add(i)
        return [frozenset(part) for _, part in sorted(parts.items())]


def _frozen(plan: Assignment) -> Nodes:
    return tuple(tuple(frozenset(tree) for tree in trees) for trees in plan)


def _moved(
    nodes: Nodes, part: frozenset[int], n: int, tree: frozenset[int], m: int, target: frozenset[int]
) -> Nodes:
    """The plan with `part` of a tree of node n moved into `target` of node m (empty: a new tree there)."""
    lists = [list(trees) for trees in nodes]
    lists[n].remove(tree)
    if target:
        lists[m].remove(target)
    if tree - part:
        lists[n].append(tree - part)
    lists[m].append(target | part)
    return tuple(tuple(trees) for trees in lists)
