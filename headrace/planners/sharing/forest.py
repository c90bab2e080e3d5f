"""The state of our local search: trees on nodes, with everything that makes a change cheap to judge.

Phi = total cost + price * (what every node costs above its limit); the limit is a load times the node's
capacity. A change of one or two trees changes Phi by terms of these trees and their nodes only. The rate of
a tree with one class more or less is kept until the tree's own edges change; most changes that balance nodes
move a query between trees that both have its edges already, and touch no rate at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.planners.sharing.jit import inner
from headrace.planners.sharing.rates import Floats, Ints, Rows, read


class Limit(NamedTuple):
    """What a node should not exceed, and what one unit above it costs against one unit of total."""

    load: float
    price: float


class Tables(NamedTuple):
    """What `rates.read` needs."""

    tabled: bool
    weights: Floats
    values: Floats
    groups: Ints
    start: Ints
    primes: Ints
    exponents: Ints
    residues: Ints


class Forest(NamedTuple):
    rate: float
    capacity: Floats
    klass: Ints
    omega: Floats
    class_rows: Rows
    single: Floats
    cross: Floats
    """cross[c, d]: density of the instants that are edges of both classes, summed over their edges."""
    tables: Tables
    tree_of: Ints
    rows: Rows
    edge: Floats
    overlap: Floats
    node: Ints
    size: Ints
    """Queries in the tree; 0: the slot is free."""
    count: Ints  # type: ignore[assignment]  # hides tuple.count, which nobody needs
    """count[tree, class]."""
    held: Floats
    """held[tree, class]: overlap of these queries."""
    shared: Floats
    """shared[tree, class]: sum of `cross` over the tree's classes; bounds the rate of the tree with that
    class."""
    more: Floats
    """more[tree, class]: the tree's rate with that class; nan: not known."""
    less: Floats
    """less[tree, class]: the tree's rate without that class; nan: not known."""
    cost: Floats
    """Of every node."""


@inner
def read_row(f: Forest, row: Rows) -> float:
    t = f.tables
    return read(row, t.tabled, t.weights, t.values, t.groups, t.start, t.primes, t.exponents, t.residues)


@inner
def tree_cost(f: Forest, tree: int) -> float:
    return f.rate + f.edge[tree] * f.overlap[tree] if f.size[tree] else 0.0


@inner
def change(f: Forest, node: int, by: float, limit: Limit) -> float:
    """The change of Phi when a node's cost changes."""
    top = limit.load * f.capacity[node]
    before = max(0.0, f.cost[node] - top)
    after = max(0.0, f.cost[node] + by - top)
    return by + limit.price * (after - before)


@inner
def lowest_node(f: Forest, extra: float) -> int:
    """The node that would be least loaded with `extra` more."""
    best = 0
    for n in range(1, len(f.cost)):
        if (f.cost[n] + extra) / f.capacity[n] < (f.cost[best] + extra) / f.capacity[best]:
            best = n
    return best


@inner
def free_slot(f: Forest) -> int:
    for tree in range(len(f.size)):
        if f.size[tree] == 0:
            return tree
    return -1


@inner
def rate_with_at_least(f: Forest, tree: int, c: int) -> float:
    """The tree's rate with a class more, or where that is not known a lower bound of it."""
    if f.count[tree, c] > 0:
        return f.edge[tree]
    known = f.more[tree, c]
    if not np.isnan(known):
        return known
    return max(f.edge[tree], f.single[c], f.edge[tree] + f.single[c] - f.shared[tree, c])


@inner
def row_without(f: Forest, tree: int, c: int) -> Rows:
    row = np.zeros(f.rows.shape[1], dtype=np.uint16)
    for d in range(f.count.shape[1]):
        if d != c and f.count[tree, d] > 0:
            row |= f.class_rows[d]
    return row


@inner
def rate_without(f: Forest, tree: int, c: int) -> float:
    if np.isnan(f.less[tree, c]):
        f.less[tree, c] = read_row(f, row_without(f, tree, c))
    return f.less[tree, c]


@inner
def _edges_changed(f: Forest, tree: int) -> None:
    f.more[tree, :] = np.nan
    f.less[tree, :] = np.nan


@inner
def put(f: Forest, tree: int, node: int, c: int, queries: int, overlap: float, rate: float) -> None:
    """Add queries of one class to a tree, whose rate is `rate` then; a free slot becomes a tree of `node`."""
    before = tree_cost(f, tree)
    if f.size[tree] == 0:
        f.node[tree] = node
        f.rows[tree] = f.class_rows[c]
        f.overlap[tree] = 0.0
        f.shared[tree] = f.cross[c]
        _edges_changed(f, tree)
    elif f.count[tree, c] == 0:
        f.rows[tree] |= f.class_rows[c]
        f.shared[tree] += f.cross[c]
        _edges_changed(f, tree)
    f.edge[tree] = rate
    f.size[tree] += queries
    f.count[tree, c] += queries
    f.held[tree, c] += overlap
    f.overlap[tree] += overlap
    f.cost[f.node[tree]] += tree_cost(f, tree) - before


@inner
def take(f: Forest, tree: int, c: int, queries: int, overlap: float, rate: float) -> None:
    """Remove queries of one class from a tree, whose rate is `rate` then; without queries it becomes a free
    slot."""
    before = tree_cost(f, tree)
    if f.count[tree, c] == queries:
        f.rows[tree] = row_without(f, tree, c)
        f.shared[tree] -= f.cross[c]
        f.overlap[tree] -= f.held[tree, c]
        f.held[tree, c] = 0.0
        _edges_changed(f, tree)
    else:
        f.overlap[tree] -= overlap
        f.held[tree, c] -= overlap
    f.edge[tree] = rate
    f.size[tree] -= queries
    f.count[tree, c] -= queries
    if f.size[tree] == 0:
        f.overlap[tree] = 0.0
    f.cost[f.node[tree]] += tree_cost(f, tree) - before


@inner
def relocate(f: Forest, tree: int, node: int) -> None:
    cost = tree_cost(f, tree)
    f.cost[f.node[tree]] -= cost
    f.cost[node] += cost
    f.node[tree] = node
