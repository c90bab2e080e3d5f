"""Trees to nodes without weaving (the paper's G_TL step): dearest first, each to the node that it leaves
least loaded.

With equal capacities that is the node with the lowest cost so far. Longest processing time first: the
heaviest node is within 4/3 of the best assignment of the same trees (Graham).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from headrace.planners.sharing.rates import Floats, Ints

TIE = 1e-9
"""Costs this close, as a share of their size or of the rate, are equal."""


def to_lowest(costs: Sequence[float] | Floats, capacity: Floats) -> Ints:
    """The node of every tree."""
    order = dearest_first(np.asarray(costs))
    nodes = np.empty(len(order), dtype=np.int64)
    if len(set(capacity.tolist())) == 1:
        heap = [(0.0, n) for n in range(len(capacity))]
        for tree in order:
            load, node = heapq.heappop(heap)
            nodes[tree] = node
            heapq.heappush(heap, (load + float(costs[tree]), node))
        return nodes
    load_of = np.zeros(len(capacity))
    for tree in order:
        node = int(np.argmin((load_of + costs[tree]) / capacity))
        nodes[tree] = node
        load_of[node] += costs[tree]
    return nodes


def dearest_first(costs: Floats) -> list[int]:
    """Positions by falling cost; costs that are equal but for rounding keep their order."""
    rounded = np.array([float(f"{cost:.12g}") for cost in costs.tolist()])
    order: list[int] = np.argsort(-rounded, kind="stable").tolist()
    return order


def first_least(values: Floats, scale: float) -> int:
    """The first place of the least value; values closer than TIE * scale are equal, however they were
    rounded."""
    least = float(values.min())
    return int(np.flatnonzero(values <= least + TIE * max(abs(least), scale))[0])


def grouped(trees: Sequence[Sequence[int]], nodes: Ints, count: int) -> list[list[Sequence[int]]]:
    """The trees of every node."""
    lists: list[list[Sequence[int]]] = [[] for _ in range(count)]
    for tree, node in zip(trees, nodes.tolist(), strict=True):
        lists[node].append(tree)
    return lists
