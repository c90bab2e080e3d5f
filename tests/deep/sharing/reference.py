"""The paper's optimisers once more: slow, exhaustive, in exact fractions, straight from its prose.

No kernel, no bound, no cache of the planner is used; edges are counted on a bit set. A choice between values
that are exactly equal goes to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from headrace.planners.sharing.brute_force import bitset_edge_rate
from headrace.planners.sharing.problem import Assignment, Options, SharingProblem

Tree = tuple[int, ...]
Nodes = list[list[Tree]]
TIE = Fraction(1, 10**9)
"""Gains of WeaveShare this close, as a share of the rate, are equal."""


class Paper:
    """One problem, its starting trees (queries, or whole classes after preprocessing), and its costs."""

    def __init__(self, problem: SharingProblem, options: Options, order: Sequence[int] = ()) -> None:
        self.problem, self.options = problem, options
        self.rate = Fraction(problem.rate)
        self.capacity = [Fraction(c) for c in problem.capacities]
        self.units = classes(problem) if options.preprocess else [(q,) for q in range(len(problem.queries))]
        self.order = order or range(len(self.units))
        """Which units open the nodes in W_I and WG_I: chance, so an argument."""
        self._rates: dict[frozenset[tuple[int, int]], Fraction] = {}

    def cost(self, tree: Tree) -> Fraction:
        queries = [self.problem.queries[q] for q in tree]
        windows = frozenset((q.range, q.slide) for q in queries)
        if windows not in self._rates:
            self._rates[windows] = bitset_edge_rate(sorted(windows))
        return self.rate + self._rates[windows] * sum((q.overlap for q in queries), Fraction(0))

    def load(self, nodes: Nodes, node: int, more: Fraction = Fraction(0)) -> Fraction:
        return (sum(map(self.cost, nodes[node]), more)) / self.capacity[node]

    def first_least(self, values: Iterable[Fraction]) -> int:
        known = list(values)
        return known.index(min(known))

    def empty(self) -> Nodes:
        return [[] for _ in self.capacity]

    def strongest(self) -> int:
        return self.problem.capacities.index(max(self.problem.capacities))

    def dearest_first(self, trees: Sequence[Tree]) -> list[Tree]:
        return sorted(trees, key=self.cost, reverse=True)


def classes(problem: SharingProblem) -> list[Tree]:
    """Queries with the same edges, by their first query: the same slide and offset, or an offset of half a
    slide and no offset at half the slide."""
    found: dict[tuple[int, int], list[int]] = {}
    for i, query in enumerate(problem.queries):
        halved = 2 * query.offset == query.slide
        key = (query.slide // 2, 0) if halved else (query.slide, query.offset)
        found.setdefault(key, []).append(i)
    return [tuple(members) for members in found.values()]


# Section 5: no cost is looked at.


def g_rr(paper: Paper) -> Nodes:
    nodes = paper.empty()
    for i, unit in enumerate(paper.units):
        nodes[i % len(nodes)].append(unit)
    return nodes


def w_rr(paper: Paper) -> Nodes:
    return [[sum(trees, ())] if trees else [] for trees in g_rr(paper)]


def wg_rr(paper: Paper) -> Nodes:
    """On every node a new tree, a weave, a new tree, ...; the weaves go through its trees in turn."""
    nodes = paper.empty()
    for node, arrivals in enumerate(g_rr(paper)):
        for i, unit in enumerate(arrivals):
            if i % 2 == 0:
                nodes[node].append(unit)
            else:
                turn = (i // 2) % len(nodes[node])
                nodes[node][turn] += unit
    return nodes


# Section 6.1, "To Lowest".


def to_lowest(paper: Paper, trees: Sequence[Tree]) -> Nodes:
    """Dearest first, each to the node with the lowest cost; with unequal nodes, to the one it leaves least
    loaded."""
    nodes = paper.empty()
    for tree in paper.dearest_first(trees):
        more = Fraction(0) if paper.problem.uniform else paper.cost(tree)
        nodes[paper.first_least(paper.load(nodes, n, more) for n in range(len(nodes)))].append(tree)
    return nodes


def lowest(paper: Paper, nodes: Nodes) -> int:
    return paper.first_least(paper.load(nodes, n) for n in range(len(nodes)))


def g_tl(paper: Paper) -> Nodes:
    return to_lowest(paper, paper.units)


def w_tl(paper: Paper) -> Nodes:
    nodes = paper.empty()
    for unit in paper.dearest_first(paper.units):
        node = lowest(paper, nodes)
        nodes[node] = [nodes[node][0] + unit] if nodes[node] else [unit]
    return nodes


def wg_tl(paper: Paper) -> Nodes:
    nodes = paper.empty()
    for unit in paper.dearest_first(paper.units):
        trees = nodes[lowest(paper, nodes)]
        if not trees:
            trees.append(unit)
            continue
        place = paper.first_least(map(paper.cost, trees))
        weave_or_group(paper, unit, trees, place, trees)
    return nodes


def weave_or_group(paper: Paper, unit: Tree, trees: list[Tree], place: int, elsewhere: list[Tree]) -> None:
    """Whichever raises the total less; a tie weaves."""
    both = trees[place] + unit
    apart, rise = paper.cost(unit), paper.cost(both) - paper.cost(trees[place])
    if apart < rise:
        elsewhere.append(unit)
    else:
        trees[place] = both


# Section 6.2, "To Nodes".


def weave_share(paper: Paper, at_least: int = 1, down_to: int = 0) -> list[Tree]:
    """Merge the pair that saves most, first pair on a tie. `at_least`: never fewer trees. `down_to`: go on
    at a loss while there are more."""
    trees = list(paper.units)
    while len(trees) > at_least:
        gains = {
            (i, j): paper.cost(trees[i]) + paper.cost(trees[j]) - paper.cost(trees[i] + trees[j])
            for i, j in combinations(range(len(trees)), 2)
        }
        best = max(gains.values())
        if best <= TIE * paper.rate and (not down_to or len(trees) <= down_to):
            break
        i, j = next(pair for pair, gain in gains.items() if gain >= best - TIE * paper.rate)
        trees[i] += trees.pop(j)
    return trees


def w_tn(paper: Paper) -> Nodes:
    """ "assigns each tree to a different node": the dearest to the strongest."""
    count = len(paper.capacity)
    trees = weave_share(paper, count if paper.options.stop == "prose" else 1, count)
    nodes = paper.empty()
    strong_first = sorted(range(count), key=lambda n: -paper.capacity[n])
    for node, tree in zip(strong_first, paper.dearest_first(trees), strict=False):
        nodes[node].append(tree)
    return nodes


def wg_tn(paper: Paper) -> Nodes:
    """The trees of WeaveShare; W_TN's in the rare case that going on at a loss ended below."""
    least = len(paper.capacity) if paper.options.stop == "prose" else 1
    ends = [weave_share(paper, least), weave_share(paper, least, len(paper.capacity))]
    return to_lowest(paper, min(ends, key=lambda trees: sum(map(paper.cost, trees))))


def weave_share_alone(paper: Paper) -> Nodes:
    nodes = paper.empty()
    nodes[paper.strongest()] = weave_share(paper)
    return nodes


# Section 6.3, "Inserted".


def w_i(paper: Paper) -> Nodes:
    nodes, left = opened(paper)
    for unit in left:
        node, place = best_tree(paper, nodes, unit)
        nodes[node][place] += unit
    return nodes


def wg_i(paper: Paper) -> Nodes:
    nodes, left = opened(paper)
    for unit in left:
        node, place = best_tree(paper, nodes, unit)
        target = lowest(paper, nodes)
        if paper.options.insert != "literal":
            weave_or_group(paper, unit, nodes[node], place, nodes[target])
        elif literal_groups(paper, nodes, unit, node, place, target):
            nodes[target].append(unit)
        else:
            nodes[node][place] += unit
    return nodes


def opened(paper: Paper) -> tuple[Nodes, list[Tree]]:
    """A unit on every node; the others in their order."""
    first = list(paper.order)[: len(paper.capacity)]
    nodes = paper.empty()
    for node, unit in enumerate(first):
        nodes[node].append(paper.units[unit])
    return nodes, [unit for i, unit in enumerate(paper.units) if i not in first]


def best_tree(paper: Paper, nodes: Nodes, unit: Tree) -> tuple[int, int]:
    """prose: the tree that leaves its node least loaded with the unit. Else: the one that raises the plan's
    cost least. On a tie the first, node by node and tree by tree as Algorithm 3 walks them."""
    places = [(n, k) for n, trees in enumerate(nodes) for k in range(len(trees))]

    def value(node: int, place: int) -> Fraction:
        tree = nodes[node][place]
        rise = paper.cost(tree + unit) - paper.cost(tree)
        return paper.load(nodes, node, rise) if paper.options.insert == "prose" else rise

    return places[paper.first_least(value(*place) for place in places)]


def literal_groups(paper: Paper, nodes: Nodes, unit: Tree, node: int, place: int, target: int) -> bool:
    """Algorithm 3 to the letter: the cost of MinNode with the query grouped, against that of the whole plan
    with it woven."""
    tree = nodes[node][place]
    plan = sum((paper.cost(t) for trees in nodes for t in trees), Fraction(0))
    woven = plan + paper.cost(tree + unit) - paper.cost(tree)
    grouped = sum(map(paper.cost, nodes[target]), paper.cost(unit))
    return grouped < woven


def insert_then_weave(paper: Paper) -> Nodes:
    """Each query into the tree that it raises least, or a tree of its own; all on one node."""
    nodes = paper.empty()
    trees = nodes[paper.strongest()]
    for unit in paper.units:
        if trees:
            rises = (paper.cost(tree + unit) - paper.cost(tree) for tree in trees)
            weave_or_group(paper, unit, trees, paper.first_least(rises), trees)
        else:
            trees.append(unit)
    return nodes


REFERENCE: dict[str, Callable[[Paper], Nodes]] = {
    "G_RR": g_rr,
    "G_TL": g_tl,
    "W_RR": w_rr,
    "W_TL": w_tl,
    "W_TN": w_tn,
    "W_I": w_i,
    "WG_RR": wg_rr,
    "WG_TL": wg_tl,
    "WG_TN": wg_tn,
    "WG_I": wg_i,
    "WEAVE_SHARE": weave_share_alone,
    "INSERT_THEN_WEAVE": insert_then_weave,
}
"""All but the three that toss coins."""


def as_assignment(nodes: Nodes) -> Assignment:
    return tuple(tuple(sorted(tuple(sorted(tree)) for tree in trees)) for trees in nodes)
