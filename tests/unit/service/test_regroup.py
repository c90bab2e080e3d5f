"""regroup against all set partitions, with prices that a tree could have and with any at all."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from headrace.service.regroup import Group, Price, regroup


def partitions(members: list[int]) -> Iterator[list[Group]]:
    if not members:
        yield []
        return
    first, *rest = members
    for trees in partitions(rest):
        yield [frozenset({first}), *trees]
        for i, tree in enumerate(trees):
            yield [*trees[:i], tree | {first}, *trees[i + 1 :]]


def like_trees(draw: random.Random, labels: list[int]) -> Price:
    """A fixed price, a price of what members differ in, and one that grows faster than the tree."""
    fixed, kind, square = draw.uniform(0, 2), draw.uniform(0, 2), draw.uniform(0, 0.5)
    weight = [draw.uniform(0, 1) for _ in labels]

    def price(group: Group) -> float:
        kinds = len({labels[i] for i in group})
        return float(fixed + kind * kinds**1.5 + square * sum(weight[i] for i in group) ** 2)

    return price


def cost(trees: list[Group], price: Price) -> float:
    return sum(map(price, trees))


@pytest.mark.parametrize("seed", range(40))
def test_near_the_best_of_all_partitions(seed: int) -> None:
    draw = random.Random(seed)
    members = list(range(draw.randint(2, 7)))
    kinds = [draw.randint(0, 2) for _ in members]
    price = like_trees(draw, kinds)
    singles = [frozenset({i}) for i in members]
    found = regroup([singles, [frozenset(members)]], [members, kinds], price)
    best = min(cost(trees, price) for trees in partitions(members))
    assert best - 1e-9 <= cost(found, price) <= 1.02 * best


@pytest.mark.parametrize("seed", range(40))
def test_a_partition_that_is_no_dearer_than_any_start(seed: int) -> None:
    """Prices without any sense: the search may fail to find the best, but never breaks anything."""
    draw = random.Random(seed)
    members = list(range(8))
    prices: dict[Group, float] = {}

    def price(group: Group) -> float:
        return prices.setdefault(group, draw.uniform(0.1, 5))

    starts = [
        [frozenset({i}) for i in members],
        [frozenset(members)],
        [frozenset({0, 1}), frozenset(range(2, 8))],
    ]
    found = regroup(starts, [members], price)
    assert sorted(i for tree in found for i in tree) == members
    assert cost(found, price) <= min(cost(start, price) for start in starts) + 1e-9


def test_what_is_never_parted_stays_together() -> None:
    blocks = [0, 0, 1, 1, 2, 2]
    whole = [frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})]
    found = regroup([[frozenset(range(6))]], [blocks], lambda group: len(group) ** 2.0)
    assert found == whole


def test_very_many_trees_come_together() -> None:
    """A fixed price alone: all in one, found without looking at all pairs."""
    singles = [frozenset({i}) for i in range(120)]
    looked_at: set[Group] = set()

    def price(group: Group) -> float:
        looked_at.add(group)
        return 1.0 + 0.001 * len(group)

    assert regroup([singles], [range(120)], price) == [frozenset(range(120))]
    assert len(looked_at) < 120**2 / 2
