"""The dynamic programme of one query that pays a share of every operator it reads (see lower_bound.py)."""

from __future__ import annotations

import numpy as np

from headrace.planners.placement.jit import Flags, Floats, Ints, kernel


@kernel
def cheapest_share(
    rate: Floats,
    base: Ints,
    distance: Floats,
    allowed: Flags,
    share: Floats,
    out: Floats,
    used: Ints,
    paid: Floats,
) -> float:
    """The least that a query can pay: `share[S, n]` of the ways into a join of S at n, `out[n]` for its
    result from n. `used` (pairs set, site) and `paid` get the joins of such a tree and what their ways cost
    in full; the rest of `used` stays -1.

    O(3^K N^2), less the sites a that are never the best to fetch a set A from: with the largest share that
    anybody pays for a way of A, another site still gives A to a for no more than it is made for there."""
    sets, sites = share.shape
    made = np.full((sets, sites), np.inf)
    split = np.zeros((sets, sites), dtype=np.int64)
    source = np.zeros((sets, sites, 2), dtype=np.int64)
    good = np.zeros((sets, sites), dtype=np.int64)
    goods = np.zeros(sets, dtype=np.int64)
    way = np.empty(sites)
    from_part = np.empty(sites, dtype=np.int64)
    for whole in range(1, sets):
        low = whole & -whole
        if whole == low:
            stream = 0
            while (1 << stream) < whole:
                stream += 1
            made[whole, base[stream]] = 0.0
        else:
            part = (whole - 1) & whole
            while part:
                if part & low:
                    rest = whole ^ part
                    for n in range(sites):
                        way[n] = np.inf
                    for k in range(goods[part]):
                        a = good[part, k]
                        for n in range(sites):
                            cost = made[part, a] + share[whole, n] * (rate[part] * distance[a, n])
                            if cost < way[n]:
                                way[n] = cost
                                from_part[n] = a
                    for n in range(sites):
                        if not allowed[n] or way[n] >= made[whole, n]:
                            continue
                        other = np.inf
                        b = -1
                        for k in range(goods[rest]):
                            c = good[rest, k]
                            cost = made[rest, c] + share[whole, n] * (rate[rest] * distance[c, n])
                            if cost < other:
                                other = cost
                                b = c
                        if way[n] + other < made[whole, n]:
                            made[whole, n] = way[n] + other
                            split[whole, n] = part
                            source[whole, n, 0] = from_part[n]
                            source[whole, n, 1] = b
                part = (part - 1) & whole
        top = 0.0
        for other_set in range(whole + 1, sets):
            if other_set & whole == whole:
                for n in range(sites):
                    top = max(top, share[other_set, n])
        count = 0
        for a in range(sites):
            if made[whole, a] == np.inf:
                continue
            dominated = False
            for c in range(sites):
                reached = made[whole, c] + top * (rate[whole] * distance[c, a])
                if c != a and (reached < made[whole, a] or (reached == made[whole, a] and c < a)):
                    dominated = True
                    break
            if not dominated:
                good[whole, count] = a
                count += 1
        goods[whole] = count
    full = sets - 1
    best = 0
    for n in range(sites):
        if made[full, n] + out[n] < made[full, best] + out[best]:
            best = n
    todo = np.empty((sets, 2), dtype=np.int64)
    todo[0, 0], todo[0, 1] = full, best
    waiting, found = 1, 0
    while waiting:
        waiting -= 1
        whole, n = todo[waiting, 0], todo[waiting, 1]
        part = split[whole, n]
        if part == 0:
            continue
        rest = whole ^ part
        a, b = source[whole, n, 0], source[whole, n, 1]
        used[found, 0], used[found, 1] = whole, n
        paid[found] = rate[part] * distance[a, n] + rate[rest] * distance[b, n]
        found += 1
        todo[waiting, 0], todo[waiting, 1] = part, a
        todo[waiting + 1, 0], todo[waiting + 1, 1] = rest, b
        waiting += 2
    return float(made[full, best] + out[best])
