"""Merge and split trees while that makes them cheaper.

The optimisers of planners/sharing count operations of the paper's model. What a tree costs on Spark is mostly
other things: the fixed price of a micro-batch and of a read, predicate columns, roll-ups. So their trees are
only where the search starts, beside the simplest ones (all in one, one for each filter, one for each set of
keys). From the cheapest start every block of members (equal filter, keys and edges; then all of one filter,
of one set of keys, of one slide) is moved to the tree where it adds least, or to a new one, and trees are
merged in pairs, until nothing gets cheaper.

Local search: the plan is never dearer than any of the starts, and may miss the best one. The same input gives
the same plan: no clock, no chance. Each round costs (blocks x trees + pairs of trees) prices of trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations

Group = frozenset[int]
Price = Callable[[Group], float]
_ROUNDS = 6
_LESS = 1e-9
_MOST_PAIRS = 400


def regroup(
    starts: Iterable[Sequence[Group]], labels: Sequence[Sequence[Hashable]], price: Price
) -> list[Group]:
    """The cheapest trees found. `labels[k]` tells for every member which block of kind k it is in, from the
    finest kind to the coarsest; members with equal labels of the first kind are never parted."""
    known: dict[Group, float] = {}

    def cost(group: Group) -> float:
        if not group:
            return 0.0
        if group not in known:
            known[group] = price(group)
        return known[group]

    best = min((list(start) for start in starts), key=lambda start: sum(map(cost, start)))
    for _ in range(_ROUNDS):
        before = sum(map(cost, best))
        best = _merged(best, cost)
        for kind in labels:
            best = _moved(best, kind, cost)
        if sum(map(cost, best)) >= before * (1 - _LESS):
            break
    return sorted(best, key=min)


def _merged(trees: list[Group], cost: Price) -> list[Group]:
    """The best pair first, again and again. Where there are very many trees only the cheapest are looked at:
    those are what a fixed price weighs on."""
    while len(trees) > 1:
        looked_at = sorted(trees, key=lambda tree: (cost(tree), min(tree)))[: int((2 * _MOST_PAIRS) ** 0.5)]
        gains = [(cost(a) + cost(b) - cost(a | b), a, b) for a, b in combinations(looked_at, 2)]
        gain, a, b = max(gains, key=lambda found: found[0])
        if gain <= _LESS * (cost(a) + cost(b)):
            break
        trees = [tree for tree in trees if tree not in (a, b)] + [a | b]
    return trees


def _moved(trees: list[Group], kind: Sequence[Hashable], cost: Price) -> list[Group]:
    """Every block of every tree once, to where it adds least."""
    for label in dict.fromkeys(kind):
        block_all = frozenset(i for i, other in enumerate(kind) if other == label)
        for tree in list(trees):
            block = tree & block_all
            if block and tree in trees:
                trees = _placed(trees, tree, block, cost)
    return trees


def _placed(trees: list[Group], tree: Group, block: Group, cost: Price) -> list[Group]:
    rest = tree - block
    saved = cost(tree) - cost(rest)
    others = [other for other in trees if other != tree]
    choices = [(cost(other | block) - cost(other), other) for other in others]
    choices.append((cost(block), frozenset()))
    added, goal = min(choices, key=lambda choice: choice[0])
    if added >= saved - _LESS * cost(tree):
        return trees
    kept = [other for other in others if other != goal]
    return [*kept, *([rest] if rest else []), goal | block]
