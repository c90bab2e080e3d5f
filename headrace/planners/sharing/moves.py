"""The changes that our local search tries. Each one lowers Phi (see forest.py) or is left undone.

move      one query, or all queries of a class, from a tree to another tree or to a new tree
carry     a tree to another node
exchange  two trees between two nodes
merge     two trees into one, on either's node or on the least loaded one

Cuts are in cuts.py.
"""

from __future__ import annotations

import numpy as np

from headrace.planners.sharing.forest import (
    Forest,
    Limit,
    change,
    free_slot,
    lowest_node,
    put,
    rate_with_at_least,
    rate_without,
    read_row,
    relocate,
    take,
    tree_cost,
)
from headrace.planners.sharing.jit import NONE, ONE, inner, kernel
from headrace.planners.sharing.rates import Ints

EPS = 1e-7
"""Changes smaller than this are rounding."""


@inner
def _left_cost(f: Forest, tree: int, c: int, queries: int, overlap: float) -> float:
    """The cost of a tree without some of its queries of one class."""
    if f.size[tree] == queries:
        return 0.0
    rate = rate_without(f, tree, c) if f.count[tree, c] == queries else f.edge[tree]
    return f.rate + rate * (f.overlap[tree] - overlap)


@inner
def _least_left(f: Forest, tree: int, c: int, queries: int, overlap: float) -> float:
    """A lower bound of `_left_cost` that reads no row."""
    if f.size[tree] == queries:
        return 0.0
    rate = f.edge[tree]
    if f.count[tree, c] == queries:
        known = f.less[tree, c]
        rate = max(0.0, rate - f.single[c]) if np.isnan(known) else known
    return f.rate + rate * (f.overlap[tree] - overlap)


@inner
def _put_change(
    f: Forest, target: int, c: int, overlap: float, home: int, taken: float, limit: Limit
) -> float:
    """The change of Phi by adding to `target` what takes `taken` from node `home`; at least that, where the
    rate is not known."""
    rate = rate_with_at_least(f, target, c)
    by = rate * (f.overlap[target] + overlap) - f.edge[target] * f.overlap[target]
    node = f.node[target]
    if node == home:
        return change(f, home, taken + by, limit)
    return change(f, home, taken, limit) + change(f, node, by, limit)


@inner
def try_move(
    f: Forest, tree: int, c: int, queries: int, overlap: float, limit: Limit
) -> tuple[float, int, int]:
    """The best place for some queries of one class: (change of Phi, tree or -1 for a new one or -2 for none,
    node)."""
    home = f.node[tree]
    before = tree_cost(f, tree)
    taken = _least_left(f, tree, c, queries, overlap) - before
    exact = False
    best, place, node = -EPS, NONE - 1, NONE
    for target in range(len(f.size)):
        if f.size[target] == 0 or target == tree:
            continue
        if _put_change(f, target, c, overlap, home, taken, limit) >= best:
            continue
        if not exact:
            taken = _left_cost(f, tree, c, queries, overlap) - before
            exact = True
        if f.count[target, c] == 0 and np.isnan(f.more[target, c]):
            f.more[target, c] = read_row(f, f.rows[target] | f.class_rows[c])
        by = _put_change(f, target, c, overlap, home, taken, limit)
        if by < best:
            best, place, node = by, target, f.node[target]
    if f.size[tree] > queries:
        cost = f.rate + f.single[c] * overlap
        n = lowest_node(f, cost)
        by = _new_change(f, home, n, taken, cost, limit)
        if by < best and not exact:
            taken = _left_cost(f, tree, c, queries, overlap) - before
            by = _new_change(f, home, n, taken, cost, limit)
        if by < best:
            best, place, node = by, NONE, n
    return best, place, node


@inner
def _new_change(f: Forest, home: int, node: int, taken: float, cost: float, limit: Limit) -> float:
    if node == home:
        return change(f, home, taken + cost, limit)
    return change(f, home, taken, limit) + change(f, node, cost, limit)


@inner
def _apply(f: Forest, tree: int, target: int, node: int, c: int, queries: int, overlap: float) -> None:
    """Move queries that `try_move` has judged: every rate it needs is known by now."""
    there = f.single[c] if f.size[target] == 0 else rate_with_at_least(f, target, c)
    left = f.edge[tree]
    if f.size[tree] == queries:
        left = 0.0
    elif f.count[tree, c] == queries:
        left = f.less[tree, c]
    take(f, tree, c, queries, overlap, left)
    put(f, target, node, c, queries, overlap, there)


@kernel
def move_queries(f: Forest, order: Ints, limit: Limit) -> float:
    """Every query to its best place, one after the other; then all queries of a class in a tree, together."""
    gained = 0.0
    classes = f.count.shape[1]
    for step in range(len(order) + len(f.size) * classes):
        if step < len(order):
            query = order[step]
            tree, c = f.tree_of[query], f.klass[query]
            queries, overlap = ONE, f.omega[query]
        else:
            query = NONE
            tree, c = (step - len(order)) // classes, (step - len(order)) % classes
            queries, overlap = f.count[tree, c], f.held[tree, c]
            if queries < 2:
                continue
        by, place, node = try_move(f, tree, c, queries, overlap, limit)
        if place == -1:
            place = free_slot(f)
        if place < 0:
            continue
        gained += by
        _apply(f, tree, place, node, c, queries, overlap)
        if query >= 0:
            f.tree_of[query] = place
        else:
            _renamed(f, tree, place, c)
    return gained


@inner
def _renamed(f: Forest, tree: int, target: int, c: int) -> None:
    for i in range(len(f.klass)):
        if f.tree_of[i] == tree and f.klass[i] == c:
            f.tree_of[i] = target


@kernel
def carry_trees(f: Forest, limit: Limit) -> float:
    gained = 0.0
    for tree in range(len(f.size)):
        if f.size[tree] == 0 or f.cost[f.node[tree]] <= limit.load * f.capacity[f.node[tree]]:
            continue
        cost = tree_cost(f, tree)
        node = lowest_node(f, cost)
        home = f.node[tree]
        if node == home:
            continue
        by = change(f, home, -cost, limit) + change(f, node, cost, limit)
        if by < -EPS:
            relocate(f, tree, node)
            gained += by
    return gained


@kernel
def exchange_trees(f: Forest, limit: Limit) -> float:
    """Swap a tree of a node above its limit with a cheaper one of a node below."""
    gained = 0.0
    for a in range(len(f.size)):
        if f.size[a] == 0 or f.cost[f.node[a]] <= limit.load * f.capacity[f.node[a]]:
            continue
        cost = tree_cost(f, a)
        best, mate = -EPS, NONE
        for b in range(len(f.size)):
            if f.size[b] == 0 or f.node[a] == f.node[b]:
                continue
            by = cost - tree_cost(f, b)
            if by <= 0.0:
                continue
            total = change(f, f.node[a], -by, limit) + change(f, f.node[b], by, limit)
            if total < best:
                best, mate = total, b
        if mate >= 0:
            here, there = f.node[a], f.node[mate]
            relocate(f, a, there)
            relocate(f, mate, here)
            gained += best
    return gained


@inner
def _union_at_least(f: Forest, a: int, b: int) -> float:
    overlap = 0.0
    for c in range(f.count.shape[1]):
        if f.count[b, c] > 0:
            overlap += f.shared[a, c]
    return max(f.edge[a], f.edge[b], f.edge[a] + f.edge[b] - overlap)


@inner
def _merge_change(f: Forest, a: int, b: int, rate: float, limit: Limit) -> tuple[float, int]:
    """The change of Phi by merging at this edge rate, and the node to put it on."""
    cost_a, cost_b = tree_cost(f, a), tree_cost(f, b)
    cost = f.rate + rate * (f.overlap[a] + f.overlap[b])
    na, nb = f.node[a], f.node[b]
    if na == nb:
        return change(f, na, cost - cost_a - cost_b, limit), na
    on_a = change(f, na, cost - cost_a, limit) + change(f, nb, -cost_b, limit)
    on_b = change(f, na, -cost_a, limit) + change(f, nb, cost - cost_b, limit)
    best, node = (on_a, na) if on_a <= on_b else (on_b, nb)
    n = lowest_node(f, cost)
    if n != na and n != nb:
        away = change(f, na, -cost_a, limit) + change(f, nb, -cost_b, limit) + change(f, n, cost, limit)
        if away < best:
            best, node = away, n
    return best, node


@inner
def merge_into(f: Forest, a: int, b: int, node: int, rate: float) -> None:
    """Merge tree b into tree a, on `node`; `rate` is their rate together."""
    for c in range(f.count.shape[1]):
        queries, overlap = f.count[b, c], f.held[b, c]
        if queries > 0:
            _renamed(f, b, a, c)
            take(f, b, c, queries, overlap, f.edge[b])
            put(f, a, f.node[a], c, queries, overlap, rate)
    if node != f.node[a]:
        relocate(f, a, node)


@kernel
def merge_trees(f: Forest, limit: Limit) -> float:
    """Every tree with its best partner."""
    gained = 0.0
    for a in range(len(f.size)):
        if f.size[a] == 0:
            continue
        best, mate, node, rate = -EPS, NONE, NONE, 0.0
        for b in range(len(f.size)):
            if b == a or f.size[b] == 0:
                continue
            quick, _ = _merge_change(f, a, b, max(f.edge[a], f.edge[b]), limit)
            if quick >= best:
                continue
            bound, _ = _merge_change(f, a, b, _union_at_least(f, a, b), limit)
            if bound >= best:
                continue
            both = read_row(f, f.rows[a] | f.rows[b])
            by, n = _merge_change(f, a, b, both, limit)
            if by < best:
                best, mate, node, rate = by, b, n, both
        if mate >= 0:
            merge_into(f, a, mate, node, rate)
            gained += best
    return gained
