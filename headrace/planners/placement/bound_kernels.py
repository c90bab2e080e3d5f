"""What it must at least cost to bring a set of streams from a site to the sink, joined with all the others.

Let the terminals be the site n that has S, one for each other stream, and the sink t. In any deployment an
edge of length l that has the streams A behind it costs rate(A) * l, and lies on the way between every
terminal in A and every other one. So, if weights x of pairs of terminals obey, for every A that can be behind
an edge,

    sum of x[p, q] over p in A, q not in A   <=  rate(A)

then the sum of x[p, q] * distance(p, q) is at most the cost of the deployment: edge by edge, with the
triangle inequality. The best weights for one n are a linear programme; they hold at every n. A terminal that
is left out has weight 0 and may be on either side of an edge: then the smaller rate counts.

Any A at all can be behind an edge (`loose`), or, if the order of the joins is given, only the sets that it
makes: far fewer limits, and the least over all orders is a bound again (`orders`).
"""

from __future__ import annotations

import numpy as np

from headrace.planners.placement.jit import Floats, Small, inner

MOST_TERMINALS = 6
"""Without the sink: a loose programme has a row for every subset of them."""
MOST_ORDERED = 4
"""They can be joined in 15 orders."""
SAFE = 1 - 1e-12
"""Weights are scaled by it, so that no rounding makes them too large."""


@inner
def maximise(table: Floats, names: Small, pivots: int) -> None:
    """Simplex on a dictionary: the last row has the objective (negated as it falls), the last column what is
    left of each limit, never negative. names[i] of a row, names[rows + j] of a column. Every step leaves
    weights that obey all limits, so stopping early is safe."""
    rows, columns = table.shape[0] - 1, table.shape[1] - 1
    for _ in range(pivots):
        column = -1
        best = 1e-12
        for j in range(columns):
            if table[rows, j] > best:
                best = table[rows, j]
                column = j
        if column < 0:
            return
        row = -1
        least = np.inf
        for i in range(rows):
            if table[i, column] > 1e-12:
                ratio = table[i, columns] / table[i, column]
                if ratio < least:
                    least = ratio
                    row = i
        if row < 0:
            return
        _pivot(table, row, column)
        names[row], names[rows + column] = names[rows + column], names[row]


@inner
def _pivot(table: Floats, row: int, column: int) -> None:
    pivot = table[row, column]
    for j in range(table.shape[1]):
        table[row, j] /= pivot
    table[row, column] = 1.0 / pivot
    for i in range(table.shape[0]):
        factor = table[i, column]
        if i != row and factor != 0.0:
            for j in range(table.shape[1]):
                if j != column:
                    table[i, j] -= factor * table[row, j]
            table[i, column] = -factor / pivot


@inner
def least_rate(rate: Floats, inside: int, free: int) -> float:
    """Of `inside` with any part of `free`."""
    least: float = rate[inside]
    part = free
    while part > 0:
        least = min(least, rate[inside | part])
        part = (part - 1) & free
    return least


@inner
def forms_of(whole: int, rate: Floats, near: Floats, sites: Small, cross: Floats, both_ways: bool) -> Floats:
    """Bounds for a set, each one row: weight of the distance from each stream, of that to the sink, and a
    constant. First a loose one for each of `sites`, where it is best; then one for each order of the joins,
    best at the last of them.

    near[j, n]: least distance from where stream j can be had to n; the last row: from n to the sink.
    cross[j, k]: the same between terminals, the last one the sink. Where distances depend on the direction
    (not `both_ways`) only the ways to the sink count."""
    streams, loose = len(cross) - 1, len(sites)
    few = _terminals(whole, streams, MOST_TERMINALS)
    every = np.arange(1, 1 << len(few)).astype(np.int32)
    some = _terminals(whole, streams, MOST_ORDERED) if both_ways else few[:0]
    orders = _orders(len(some))
    found = np.empty((loose + len(orders), streams + 2))
    for k in range(loose):
        found[k] = _weights(few, every, rate, near, sites[k], cross, both_ways)
    for k in range(len(orders)):
        found[loose + k] = _weights(some, orders[k], rate, near, sites[loose - 1], cross, both_ways)
    return found


@inner
def bound_at(forms: Floats, loose: int, near: Floats, n: int) -> float:
    """The best of the loose ones, or the least of the orders, whichever is more."""
    most, least = 0.0, np.inf
    last = forms.shape[1] - 1
    for k in range(len(forms)):
        total = forms[k, last]
        for j in range(last):
            if forms[k, j] > 0.0:
                total += forms[k, j] * near[j, n]
        if k < loose:
            most = max(most, total)
        else:
            least = min(least, total)
    return max(most, least) if len(forms) > loose else most


@inner
def _terminals(whole: int, streams: int, most: int) -> Small:
    """The set itself, then other streams one by one, as sets."""
    found = np.empty(most, dtype=np.int32)
    found[0] = whole
    count = 1
    for j in range(streams):
        if not whole >> j & 1 and count < most:
            found[count] = 1 << j
            count += 1
    return found[:count]


@inner
def _orders(terminals: int) -> Small:
    """All trees over up to four terminals; of each the sets of terminals behind its edges."""
    full = (1 << terminals) - 1
    found = np.zeros((15, max(1, 2 * terminals - 1)), dtype=np.int32)
    count = 0
    for one in range(1, full + 1):
        for two in range(1, full + 1):
            if not _tree_of(one, two, terminals):
                continue
            for p in range(terminals):
                found[count, p] = 1 << p
            if terminals > 1:
                found[count, terminals] = full
            if terminals > 2:
                found[count, terminals + 1] = one
            if terminals > 3:
                found[count, terminals + 2] = two
            count += 1
    return found[:count]


@inner
def _tree_of(one: int, two: int, terminals: int) -> bool:
    """Do these sets of terminals, besides single ones and all, make a tree, and are written in the one way
    that counts?"""
    size, more = _size(one), _size(two)
    if terminals < 3:
        return one == 1 and two == 1
    if terminals == 3:
        return size == 2 and two == 1
    if size != 2:
        return False
    return (more == 3 and one & two == one) or (more == 2 and one & two == 0 and one < two)


@inner
def _size(mask: int) -> int:
    count = 0
    while mask > 0:
        count += mask & 1
        mask >>= 1
    return count


@inner
def _weights(
    terminals: Small, limited: Small, rate: Floats, near: Floats, site: int, cross: Floats, both_ways: bool
) -> Floats:
    """The best weights at `site`, where only the sets in `limited` can be behind an edge."""
    streams, count, rows = len(cross) - 1, len(terminals), len(limited)
    pairs = count * (count + 1) // 2 if both_ways else count
    one, two = np.empty(pairs, dtype=np.int32), np.empty(pairs, dtype=np.int32)
    table = np.zeros((rows + 1, pairs + 1))
    at = 0
    for p in range(count):
        for q in range(p + 1 if both_ways else count, count + 1):
            one[at], two[at] = p, q
            other = streams if q == count else _lowest(terminals[q])
            gain = near[other, site] if p == 0 else cross[_lowest(terminals[p]), other]
            table[rows, at] = gain if gain < np.inf else 0.0
            at += 1
    _limits(table, terminals, limited, one, two, rate)
    names = np.arange(rows + pairs).astype(np.int32)
    maximise(table, names, 20 * (rows + pairs))
    found = np.zeros(streams + 2)
    for row in range(rows):
        k = names[row] - rows
        value = table[row, pairs] * SAFE
        if k >= 0 and value > 0.0:
            other = streams if two[k] == count else _lowest(terminals[two[k]])
            if one[k] == 0:
                found[other] += value
            elif cross[_lowest(terminals[one[k]]), other] < np.inf:
                found[streams + 1] += value * cross[_lowest(terminals[one[k]]), other]
    return found


@inner
def _limits(table: Floats, terminals: Small, limited: Small, one: Small, two: Small, rate: Floats) -> None:
    count, pairs = len(terminals), len(one)
    free = len(rate) - 1
    for p in range(count):
        free &= ~terminals[p]
    for row in range(len(limited)):
        inside, behind = limited[row], 0
        for p in range(count):
            if inside >> p & 1:
                behind |= terminals[p]
        table[row, pairs] = least_rate(rate, behind, free)
        for k in range(pairs):
            there = two[k] < count and (inside >> two[k] & 1) == 1
            table[row, k] = 1.0 if ((inside >> one[k] & 1) == 1) != there else 0.0


@inner
def _lowest(mask: int) -> int:
    """The number of a set's first stream."""
    j = 0
    while not mask >> j & 1:
        j += 1
    return j
