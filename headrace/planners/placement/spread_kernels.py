"""How streams get from where they are to everywhere else: over links, or by a matrix of distances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.planners.placement.bound_kernels import bound_at
from headrace.planners.placement.graph_kernels import distance_row, drop_first, push, settle, spread
from headrace.planners.placement.jit import Flags, Floats, Small, inner, kernel

CLOSE = 1 - 1e-11
"""A state is dropped if it cannot lead to less than this part of the best known cost."""
LOOSE = 2
"""How many of a set's bounds are loose ones (bound_kernels)."""


class Ground(NamedTuple):
    """Sites and ways between them: distances are those of `matrix` if it has entries, else over links."""

    starts: Small
    indices: Small
    costs: Floats
    matrix: Floats
    both_ways: bool
    """Does a way cost the same in both directions?"""
    allowed: Flags
    """Where joins may run."""


class Offered(NamedTuple):
    """Offers of set S are first[S]:first[S + 1]."""

    first: Small
    sites: Small
    extra: Floats


@kernel
def rows(ground: Ground, base: Small, sink: int) -> Floats:
    """Distance from each base stream to every site; the last row: from every site to the sink."""
    streams = len(base)
    far = np.empty((streams + 1, len(ground.allowed)))
    for i in range(streams):
        far[i] = _row(ground, base[i])
    far[streams] = ground.matrix[:, sink] if len(ground.matrix) > 0 else _row(ground, sink)
    return far


@inner
def _row(ground: Ground, site: int) -> Floats:
    if len(ground.matrix) > 0:
        found: Floats = ground.matrix[site].copy()
        return found
    return distance_row(ground.starts, ground.indices, ground.costs, site)


@kernel
def meeting_places(rate: Floats, far: Floats, allowed: Flags, most: int) -> Small:
    """For sets of streams the site where they are best joined, all at once, on the way to the sink; for the
    first `most` sets."""
    streams, count = far.shape[0] - 1, far.shape[1]
    found, total = np.empty(most, dtype=np.int32), np.empty(count)
    size = 0
    for whole in range(len(rate) - 1, 0, -1):
        if whole & (whole - 1) == 0 or size == most:
            continue
        total[:] = rate[whole] * far[streams]
        for i in range(streams):
            if whole >> i & 1:
                for n in range(count):
                    total[n] += rate[1 << i] * far[i, n]
        least, spot = np.inf, -1
        for n in range(count):
            if total[n] < least and allowed[n]:
                least, spot = total[n], n
        if spot >= 0:
            found[size] = spot
            size += 1
    return found[:size]


@inner
def singles(
    ground: Ground, offered: Offered, base: Small, rate: Floats, far: Floats, here: Floats, origin: Small
) -> None:
    """Single streams come from their sites, or from where they are offered (results at sinks)."""
    for i in range(len(base)):
        one = 1 << i
        for n in range(far.shape[1]):
            # A rate of 0 must not make a missing path free.
            here[one, n] = rate[one] * far[i, n] if far[i, n] < np.inf else np.inf
            origin[one, n] = base[i]
        for at in range(offered.first[one], offered.first[one + 1]):
            site = offered.sites[at]
            if offered.extra[at] < here[one, site]:
                here[one, site] = offered.extra[at]
                origin[one, site] = site
                _from_site(ground, rate[one], here[one], origin[one], site)


@inner
def _from_site(ground: Ground, rate: float, label: Floats, origin: Small, site: int) -> None:
    if len(ground.matrix) > 0:
        for n in range(len(label)):
            there = label[site] + rate * ground.matrix[site, n]
            if there < label[n]:
                label[n] = there
                origin[n] = site
    else:
        first = np.full(1, site, dtype=np.int32)
        spread(ground.starts, ground.indices, ground.costs * rate, label, origin, first)


@inner
def nearest(ground: Ground, offered: Offered, far: Floats) -> Floats:
    """`far` for streams that can also be had, with others, where they are offered."""
    if len(offered.sites) == 0:
        return far
    near = far.copy()
    for i in range(len(far) - 1):
        first = np.empty(len(offered.sites), dtype=np.int32)
        size = 0
        for whole in range(1, len(offered.first) - 1):
            for at in range(offered.first[whole], offered.first[whole + 1]):
                if whole >> i & 1 and near[i, offered.sites[at]] > 0.0:
                    near[i, offered.sites[at]] = 0.0
                    first[size] = offered.sites[at]
                    size += 1
        if len(ground.matrix) > 0:
            for k in range(size):
                near[i] = np.minimum(near[i], ground.matrix[first[k]])
        else:
            settle(ground.starts, ground.indices, ground.costs, near[i], first[:size])
    return near


@inner
def between_terminals(offered: Offered, base: Small, near: Floats) -> Floats:
    """Least distance between where streams can be had, and, in the last column, from there to the sink."""
    streams = len(base)
    cross = np.zeros((streams + 1, streams + 1))
    for j in range(streams):
        cross[j] = near[:, base[j]]
    for whole in range(1, len(offered.first) - 1):
        for at in range(offered.first[whole], offered.first[whole + 1]):
            for j in range(streams):
                if whole >> j & 1:
                    cross[j] = np.minimum(cross[j], near[:, offered.sites[at]])
    return cross


@inner
def carry(
    matrix: Floats,
    rate: float,
    limit: float,
    label: Floats,
    origin: Small,
    listed: Small,
    size: int,
    forms: Floats,
    near: Floats,
    bound: Floats,
) -> int:
    """From every listed site to every site, by the matrix; how many are listed then."""
    made = np.empty(size)
    for k in range(size):
        made[k] = label[listed[k]]
    for k in range(size):
        m = listed[k]
        # What comes cheaper from elsewhere goes on from there.
        if made[k] <= label[m]:
            for n in range(len(label)):
                there = made[k] + rate * matrix[m, n]
                if there < label[n]:
                    label[n] = there
                    origin[n] = m
    size = 0
    for n in range(len(label)):
        if label[n] < np.inf:
            if bound[n] < 0.0:
                bound[n] = bound_at(forms, LOOSE, near, n)
            if label[n] + bound[n] < limit:
                listed[size] = n
                size += 1
            else:
                label[n] = np.inf
    return size


@inner
def flow(
    ground: Ground,
    rate: float,
    limit: float,
    label: Floats,
    origin: Small,
    listed: Small,
    size: int,
    forms: Floats,
    near: Floats,
    bound: Floats,
) -> int:
    """From every listed site over links, as far as the bound lets it; how many are listed then. Only sites
    that better a neighbour start: where rates grow with joining hardly any does."""
    starts, indices, costs = ground.starts, ground.indices, ground.costs
    keys = np.empty(len(indices) + size + 1)
    sites = np.empty(len(indices) + size + 1, dtype=np.int32)
    waiting = 0
    for k in range(size):
        u = listed[k]
        for at in range(starts[u], starts[u + 1]):
            if label[u] + rate * costs[at] < label[indices[at]]:
                waiting = push(keys, sites, waiting, label[u], u)
                break
    while waiting > 0:
        key, u = keys[0], sites[0]
        waiting = drop_first(keys, sites, waiting)
        if key > label[u]:
            continue
        for at in range(starts[u], starts[u + 1]):
            v, there = indices[at], key + rate * costs[at]
            if there < label[v]:
                if bound[v] < 0.0:
                    bound[v] = bound_at(forms, LOOSE, near, v)
                if there + bound[v] < limit:
                    if label[v] == np.inf:
                        listed[size] = v
                        size += 1
                    label[v] = there
                    origin[v] = origin[u]
                    waiting = push(keys, sites, waiting, there, v)
    return size
