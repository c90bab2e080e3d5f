"""The dynamic programme over (subset of streams, site), with every way it is bent for planning together.

    made[S, n]  = cheapest way to have S made at n: an offer, or a join of A and S - A there
    here[S, n]  = cheapest way to have S come to n: made[S, a] + rate(S) * distance(a, n), over all a

`share[S]` scales what a join of S costs a query with all that is below it (1: all of it), for queries that
invest in what others may read. `opening` is what a join of a given split costs at a site besides its
inputs; inf: it must not run there.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from headrace.planners.placement.jit import Flags, Floats, Ints, kernel


@cache
def splits(streams: int) -> dict[tuple[int, int], int]:
    """The row of `opening` for each set and its part with the set's lowest stream, in the kernel's order."""
    found: dict[tuple[int, int], int] = {}
    for whole in range(1, 1 << streams):
        if whole & (whole - 1):
            low = whole & -whole
            part = (whole - 1) & whole
            while part:
                if part & low:
                    found[whole, part] = len(found)
                part = (part - 1) & whole
    return found


@kernel
def cheapest(
    rate: Floats,
    base: Ints,
    distance: Floats,
    allowed: Flags,
    offered: Floats,
    share: Floats,
    opening: Floats,
) -> tuple[Floats, Ints, Ints]:
    """(made, split, source): split[S, n] is the part of S with its lowest stream, 0: an offer or a base
    stream; source[S, n]: the site S comes to n from. O(3^K N + 2^K N^2), the second with most sites skipped.

    Ties: offers before joins, then the lowest site. Paths must be cheapest ones (triangle inequality)."""
    sets, sites = offered.shape
    made = np.full((sets, sites), np.inf)
    here = np.full((sets, sites), np.inf)
    split = np.zeros((sets, sites), dtype=np.int64)
    source = np.full((sets, sites), -1, dtype=np.int64)
    opens = opening.shape[0] > 0
    row = 0
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
                        cost = here[part, n] + here[rest, n]
                        if opens:
                            cost += opening[row, n]
                        if cost < made[whole, n] and allowed[n]:
                            made[whole, n] = cost
                            split[whole, n] = part
                    row += 1
                part = (part - 1) & whole
            for n in range(sites):
                made[whole, n] *= share[whole]
        for n in range(sites):
            if offered[whole, n] < np.inf and offered[whole, n] <= made[whole, n]:
                made[whole, n] = offered[whole, n]
                split[whole, n] = 0
        if whole == sets - 1:
            break
        first = np.argmin(made[whole])
        for k in range(sites + 1):
            # The cheapest site first: then most others are reached from it for less than they are made for,
            # and a site that is has nothing to give that would not come cheaper from there.
            a = first if k == 0 else k - 1
            start = made[whole, a]
            if start == np.inf or start >= here[whole, a]:
                continue
            for n in range(sites):
                cost = start + rate[whole] * distance[a, n]
                if cost < here[whole, n]:
                    here[whole, n] = cost
                    source[whole, n] = a
    return made, split, source
