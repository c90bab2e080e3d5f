"""Changes that make or unmake trees: cut one in two, fell one, insert queries that are in none.

A cut takes the tree's queries in the order of their own edge rates and parts them at the best place, so that
the slow half loses the fast edges.
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
    read_row,
    take,
    tree_cost,
)
from headrace.planners.sharing.jit import NONE, ONE, ZERO, Floats, Ints, inner, kernel
from headrace.planners.sharing.moves import EPS


@inner
def _split_rates(f: Forest, tree: int, classes: Ints, fast: Floats, slow: Floats) -> None:
    """fast[k]: rate of the first k classes; slow[k]: rate of the classes from k on."""
    row = np.zeros(f.rows.shape[1], dtype=np.uint16)
    fast[0] = 0.0
    for k in range(len(classes)):
        row |= f.class_rows[classes[k]]
        fast[k + 1] = f.edge[tree] if k + 1 == len(classes) else read_row(f, row)
    row[:] = 0
    slow[len(classes)] = 0.0
    for k in range(len(classes) - 1, -1, -1):
        row |= f.class_rows[classes[k]]
        slow[k] = f.edge[tree] if k == 0 else read_row(f, row)


@inner
def split_tree(f: Forest, tree: int, by_class: Ints, class_start: Ints, fastest: Ints, limit: Limit) -> float:
    """Cut a tree where it lowers Phi most; one half goes to the least loaded node."""
    slot = free_slot(f)
    if slot < 0 or f.size[tree] < 2:
        return 0.0
    classes = np.empty(f.count.shape[1], dtype=np.int64)
    n = ZERO
    for c in fastest:
        if f.count[tree, c] > 0:
            classes[n] = c
            n += 1
    classes = classes[:n]
    fast = np.empty(n + 1)
    slow = np.empty(n + 1)
    _split_rates(f, tree, classes, fast, slow)
    home = f.node[tree]
    before = tree_cost(f, tree)
    best, cut, inner_part, stay_fast, node = -EPS, NONE, ZERO, True, NONE
    done = 0.0
    taken = ZERO
    for k in range(n):
        c = classes[k]
        step = ZERO
        for position in range(class_start[c], class_start[c + 1]):
            query = by_class[position]
            if f.tree_of[query] != tree:
                continue
            done += f.omega[query]
            taken += 1
            step += 1
            if taken == f.size[tree]:
                break
            whole = step == f.count[tree, c]
            rate_fast = fast[k + 1]
            rate_slow = slow[k + 1] if whole else slow[k]
            cost_fast = f.rate + rate_fast * done
            cost_slow = f.rate + rate_slow * (f.overlap[tree] - done)
            for keep_fast in (True, False):
                kept, sent = (cost_fast, cost_slow) if keep_fast else (cost_slow, cost_fast)
                to = lowest_node(f, sent)
                if to == home:
                    total = change(f, home, kept + sent - before, limit)
                else:
                    total = change(f, home, kept - before, limit) + change(f, to, sent, limit)
                if total < best:
                    best, cut, inner_part, stay_fast, node = total, k, step, keep_fast, to
    if cut < 0:
        return 0.0
    whole = inner_part == f.count[tree, classes[cut]]
    rate_fast = fast[cut + 1]
    rate_slow = slow[cut + 1] if whole else slow[cut]
    kept, sent = (rate_fast, rate_slow) if stay_fast else (rate_slow, rate_fast)
    for k in range(n):
        c = classes[k]
        step = ZERO
        queries = ZERO
        overlap = 0.0
        for position in range(class_start[c], class_start[c + 1]):
            query = by_class[position]
            if f.tree_of[query] != tree:
                continue
            step += 1
            in_fast = k < cut or (k == cut and step <= inner_part)
            if in_fast != stay_fast:
                f.tree_of[query] = slot
                queries += 1
                overlap += f.omega[query]
        if queries > 0:
            take(f, tree, c, queries, overlap, kept)
            put(f, slot, node, c, queries, overlap, sent)
    return best


@kernel
def split_trees(f: Forest, by_class: Ints, class_start: Ints, fastest: Ints, limit: Limit) -> float:
    """Every tree, where cutting it pays. `fastest`: the classes by falling edge rate."""
    gained = 0.0
    for tree in range(len(f.size)):
        # Without a table a cut takes too many readings to be tried where nothing presses.
        if f.size[tree] > 1 and (
            f.tables.tabled or f.cost[f.node[tree]] > limit.load * f.capacity[f.node[tree]]
        ):
            gained += split_tree(f, tree, by_class, class_start, fastest, limit)
    return gained


@kernel
def fell(f: Forest, tree: int) -> None:
    """Take a tree away; its queries are in no tree until they are inserted again."""
    f.cost[f.node[tree]] -= tree_cost(f, tree)
    for i in range(len(f.klass)):
        if f.tree_of[i] == tree:
            f.tree_of[i] = NONE
    f.size[tree] = 0
    f.overlap[tree] = 0.0
    f.count[tree] = 0
    f.held[tree] = 0.0


@kernel
def insert_queries(f: Forest, queries: Ints, limit: Limit) -> None:
    """Put queries that are in no tree where they raise Phi least, one after the other."""
    for query in queries:
        c, overlap = f.klass[query], f.omega[query]
        cost = f.rate + f.single[c] * overlap
        node = lowest_node(f, cost)
        best, place, rate = change(f, node, cost, limit), NONE, f.single[c]
        slot = free_slot(f)
        if slot < 0:
            best = np.inf
        for target in range(len(f.size)):
            if f.size[target] == 0 or _added(f, target, c, overlap, limit) >= best:
                continue
            if f.count[target, c] == 0 and np.isnan(f.more[target, c]):
                f.more[target, c] = read_row(f, f.rows[target] | f.class_rows[c])
            by = _added(f, target, c, overlap, limit)
            if by < best:
                best, place, rate = by, target, rate_with_at_least(f, target, c)
        if place < 0:
            place = slot
        f.tree_of[query] = place
        put(f, place, node, c, ONE, overlap, rate)


@inner
def _added(f: Forest, target: int, c: int, overlap: float, limit: Limit) -> float:
    """The change of Phi by adding a query; at least that, where the rate is not known."""
    rate = rate_with_at_least(f, target, c)
    by = rate * (f.overlap[target] + overlap) - f.edge[target] * f.overlap[target]
    return change(f, f.node[target], by, limit)
