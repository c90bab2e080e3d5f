"""The "Inserted" category (Algorithm 3) and the single-node Insert-then-Weave.

N queries open the N nodes (random ones by the prose, the first ones by the listing: `options.start`); the
others come in their order. Which tree takes the next query (`options.insert`):

prose    W_I: the node that is cheapest with the query woven in. WG_I: over all trees, the one that leaves its
         node cheapest; the query is woven there, or becomes a tree of the node that is cheapest now,
         whichever raises the total less (a tie weaves).
plan     the tree where weaving raises the cost of the whole plan least (the listing's comment says "plan
         cost").
literal  the listing to the letter compares that plan cost with the cost of one node with the query grouped.
         A plan of several nodes costs more than one of them, so WG_I hardly ever weaves. W_I has no such
         comparison and reads as `plan`. The listing never resets WeaveCost, and places the query inside
         the loop over trees: taken as slips, for otherwise a query is placed many times.

Nodes are gone through in order, and on each its trees: the first of equal candidates wins.
"""

from __future__ import annotations

import numpy as np

from headrace.planners.sharing.grouping import TIE, first_least
from headrace.planners.sharing.instance import Instance, assignment_of
from headrace.planners.sharing.problem import Assignment, Options
from headrace.planners.sharing.rates import Floats, Ints
from headrace.planners.sharing.weave import class_densities


class Forest:
    """Trees that grow by single queries. The rate of every (tree, class) is kept until the tree's edges
    change."""

    def __init__(self, instance: Instance, most: int) -> None:
        self.instance = instance
        self.count = 0
        self.trees: list[list[int]] = []
        self._rows = np.zeros((most, instance.rows.shape[1]), dtype=np.uint16)
        self.node = np.zeros(most, dtype=np.int64)
        self.edge_rate = np.zeros(most)
        self.overlap = np.zeros(most)
        self._with = np.full((instance.classes, most), np.nan)
        self.node_cost = np.zeros(instance.nodes)
        classes = 0 if instance.rates.tabled else instance.classes
        self._cross = np.zeros((instance.classes, 0)) if instance.rates.tabled else class_densities(instance)
        self._common = np.zeros((most, classes))

    def rises(self, query: int) -> Floats:
        """What weaving the query into each tree would add to the plan's cost."""
        n = self.count
        known = self._with[self.instance.klass[query], :n]
        self._read(query, np.flatnonzero(np.isnan(known)))
        return self._rises(query, known)

    def cheapest(self, query: int, *, by_load: bool) -> tuple[int, float]:
        """The tree where weaving gives the lowest load of its node (or the lowest rise), and that rise.

        A tree is read only if a lower bound of its rate does not rule it out: E + e - X, where e is the rate
        of the query and X the summed density of the edges it has in common with each of the tree's classes.
        """
        if self.instance.rates.tabled:
            rises = self.rises(query)
            tree = self._first(self.loads_with(rises) if by_load else rises)[0]
            return tree, float(rises[tree])
        c, n = self.instance.klass[query], self.count
        known = self._with[c, :n]
        alone = self.instance.single[c]
        edge = self.edge_rate[:n]
        bound = np.maximum(np.maximum(edge, alone), edge + alone - self._common[:n, c])
        while True:
            rises = self._rises(query, np.where(np.isnan(known), bound, known))
            tree, ties = self._first(self.loads_with(rises) if by_load else rises)
            unknown = ties[np.isnan(known[ties])]
            if not len(unknown):
                return tree, float(rises[tree])
            self._read(query, unknown[:1])

    def _first(self, values: Floats) -> tuple[int, Ints]:
        """The place of the least value, and of all that are as small: nodes are gone through in order, and
        on each its trees."""
        least = float(values.min())
        ties = np.flatnonzero(values <= least + TIE * max(abs(least), self.instance.rate))
        return int(ties[np.argmin(self.node[ties])]), ties

    def _read(self, query: int, trees: Ints) -> None:
        if len(trees):
            c = self.instance.klass[query]
            self._with[c, trees] = self.instance.rates.with_class(self._rows[trees], self.instance.rows[c])

    def _rises(self, query: int, rates: Floats) -> Floats:
        n = self.count
        rise: Floats = (
            rates * (self.overlap[:n] + self.instance.omega[query]) - self.edge_rate[:n] * self.overlap[:n]
        )
        return rise

    def weave(self, query: int, tree: int, rise: float) -> None:
        c = self.instance.klass[query]
        rate = self._with[c, tree]
        if rate > self.edge_rate[tree] or not self._has(tree, int(c)):
            self._rows[tree] |= self.instance.rows[c]
            self._with[:, tree] = np.nan
            self._common[tree] += self._cross[c]
            self.edge_rate[tree] = rate
        self.overlap[tree] += self.instance.omega[query]
        self.node_cost[self.node[tree]] += rise
        self.trees[tree].append(query)

    def open(self, query: int, node: int) -> None:
        """A new tree on a node."""
        c = self.instance.klass[query]
        i = self.count
        self._rows[i] = self.instance.rows[c]
        self._common[i] = self._cross[c]
        self.node[i], self.edge_rate[i], self.overlap[i] = (
            node,
            self.instance.single[c],
            self.instance.omega[query],
        )
        self.node_cost[node] += self.open_cost(query)
        self.trees.append([query])
        self.count += 1

    def open_cost(self, query: int) -> float:
        instance = self.instance
        return float(instance.rate + instance.single[instance.klass[query]] * instance.omega[query])

    def lowest_node(self) -> int:
        return first_least(self.node_cost / self.instance.capacity, self.instance.rate)

    def loads_with(self, rises: Floats) -> Floats:
        """The load that each tree's node would have."""
        at = self.node[: self.count]
        loads: Floats = (self.node_cost[at] + rises) / self.instance.capacity[at]
        return loads

    def assignment(self) -> Assignment:
        nodes: list[list[list[int]]] = [[] for _ in range(self.instance.nodes)]
        for tree, node in zip(self.trees, self.node.tolist(), strict=False):
            nodes[node].append(tree)
        return assignment_of(nodes)

    def _has(self, tree: int, c: int) -> bool:
        row = self.instance.rows[c]
        return bool(((self._rows[tree] & row) == row).all())


def w_i(instance: Instance, options: Options) -> Assignment:
    forest = Forest(instance, instance.nodes)
    for query in _opened(instance, forest, options):
        tree, rise = forest.cheapest(query, by_load=options.insert == "prose")
        forest.weave(query, tree, rise)
    return forest.assignment()


def wg_i(instance: Instance, options: Options) -> Assignment:
    forest = Forest(instance, instance.queries)
    for query in _opened(instance, forest, options):
        tree, rise = forest.cheapest(query, by_load=options.insert == "prose")
        if _opens(forest, query, rise, options):
            forest.open(query, forest.lowest_node())
        else:
            forest.weave(query, tree, rise)
    return forest.assignment()


def _opens(forest: Forest, query: int, rise: float, options: Options) -> bool:
    """Whether the query gets a tree of its own."""
    if options.insert == "literal":
        node = forest.node_cost[forest.lowest_node()] + forest.open_cost(query)
        return bool(node < forest.node_cost.sum() + rise)
    return forest.open_cost(query) < rise - TIE * forest.instance.rate


def insert_then_weave(instance: Instance, options: Options) -> Assignment:
    """The single-node original: each query where it raises the total least, a new tree included; one node."""
    forest = Forest(instance, instance.queries)
    best = int(np.argmax(instance.capacity))
    for query in range(instance.queries):
        tree, rise = forest.cheapest(query, by_load=False) if forest.count else (-1, np.inf)
        if forest.open_cost(query) < rise - TIE * instance.rate:
            forest.open(query, best)
        else:
            forest.weave(query, tree, rise)
    return forest.assignment()


def _opened(instance: Instance, forest: Forest, options: Options) -> list[int]:
    """Open every node with one query; the queries that are left, in their order."""
    order = np.arange(instance.queries)
    if options.start == "random":
        order = np.random.default_rng([options.seed, 2]).permutation(instance.queries)
    for node, query in enumerate(order[: instance.nodes].tolist()):
        forest.open(query, node)
    left: list[int] = np.sort(order[instance.nodes :]).tolist()
    return left
