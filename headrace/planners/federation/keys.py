"""What the conditions of one key (a.k = b.k, b.k = c.k) leave of a join of several relations.

It depends on the set of relations alone, not on the order they are joined in: the product of the
selectivities along a tree over the set, the loosest tree there is. Two relations are as selective as the
strictest condition on the way from one to the other, and of several ways the loosest says so. That is what
columns do that are drawn from so many values each: with 10 values in a and b and 100 in c, a and c meet in
1 of 100 pairs, all three in 1 of 10 * 100. Relations that no way of the key connects are taken to meet as
rarely as its strictest condition says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import prod

Pair = tuple[int, int, float]
"""Two relations, each a bit, and the share of their pairs of rows that meet the condition."""


class KeyFactor:
    def __init__(self, conditions: Sequence[Pair]) -> None:
        self.members = 0
        strictest: dict[int, Pair] = {}
        for a, b, share in conditions:
            self.members |= a | b
            if a | b not in strictest or share < strictest[a | b][2]:
                strictest[a | b] = a, b, share
        tree = list(_tree(_loosest_first(strictest.values())))
        otherwise = min(share for _, _, share in conditions)
        bits = sorted({bit for a, b, _ in conditions for bit in (a, b)})
        pairs = [(a, b, _on_the_way(tree, a, b, otherwise)) for a, b in combinations(bits, 2)]
        self._pairs = _loosest_first(pairs)
        self._known: dict[int, float] = {}

    def of(self, relations: int) -> float:
        """The share of all combinations of rows that have one value of the key."""
        within = relations & self.members
        if within not in self._known:
            inside = (pair for pair in self._pairs if pair[0] & within and pair[1] & within)
            self._known[within] = prod(share for _, _, share in _tree(inside))
        return self._known[within]

    def between(self, left: int, right: int) -> float:
        """The share that a join of the two leaves. It can be above 1 where no columns could be as the
        conditions say; what is joined has the same size in every order all the same."""
        apart = self.of(left) * self.of(right)
        return self.of(left | right) / apart if apart else 0.0


def _loosest_first(pairs: Iterable[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: -pair[2])


def _on_the_way(tree: Sequence[Pair], start: int, end: int, otherwise: float) -> float:
    """The strictest condition on the way through the loosest tree: no other way is looser."""
    reached, left = {start: 1.0}, [start]
    while left:
        at = left.pop()
        for a, b, share in tree:
            if at in (a, b) and (other := a ^ b ^ at) not in reached:
                reached[other] = min(reached[at], share)
                left.append(other)
    return reached.get(end, otherwise)


def _tree(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Those that connect what none before them did."""
    groups: list[int] = []
    for pair in pairs:
        a, b, _ = pair
        touched = [group for group in groups if group & (a | b)]
        if not any(a & group and b & group for group in touched):
            groups = [group for group in groups if group not in touched]
            groups.append(a | b | sum(touched))
            yield pair
