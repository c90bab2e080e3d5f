"""The dynamic programme of the exact planner, pruned.

    made(S, n) = min over splits of S into A and B of here(A, n) + here(B, n), where n may join;
                 or what an offer of S at n adds
    here(S, n) = min over m of made(S, m) + rate(S) * distance(m, n)

`best` is the cost of a deployment that is known. A state whose cost, with the least that completing it costs
(bound_kernels), is not below it belongs to no better deployment, and is dropped with all that would grow from
it. When all sets are done, `best` is the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.planners.placement.bound_kernels import bound_at, forms_of
from headrace.planners.placement.jit import Floats, Small, inner, kernel
from headrace.planners.placement.spread_kernels import (
    CLOSE,
    LOOSE,
    Ground,
    Offered,
    between_terminals,
    carry,
    flow,
    nearest,
    singles,
)


class Table(NamedTuple):
    """States and what is known of them."""

    here: Floats
    """Of set and site; a row says something only if `length` is not 0."""
    origin: Small
    """Where what comes to a site is made."""
    alive: Small
    length: Small
    """The first length[S] entries of alive[S] are the sites where S can still matter."""
    near: Floats
    """Least distance from where a stream can be had to every site; the last row: to the sink."""
    cross: Floats
    bound: Floats
    """Of the set at hand; below 0: not yet known."""
    best: Floats
    """Cost of the best known deployment, comparisons and states so far."""
    found: Small
    """Its set and site: the set comes to the site as here and origin say, and the streams that are left are
    joined to it there. -1: none is known."""


@kernel
def plan(
    ground: Ground, offered: Offered, base: Small, sink: int, rate: Floats, far: Floats, limit: float
) -> Table:
    """The cheapest deployment that costs less than the limit, if there is one; `far` is made by rows."""
    sets, count = len(rate), len(ground.allowed)
    near = nearest(ground, offered, far)
    table = Table(
        np.empty((sets, count)),
        np.empty((sets, count), dtype=np.int32),
        np.empty((sets, count), dtype=np.int32),
        np.zeros(sets, dtype=np.int32),
        near,
        between_terminals(offered, base, near),
        np.empty(count),
        np.array([limit, 0.0, 0.0]),
        np.array([-1, -1], dtype=np.int32),
    )
    singles(ground, offered, base, rate, far, table.here, table.origin)
    _start(ground, offered, table, rate, sink)
    spot = table.found[1] if table.found[1] >= 0 else sink
    for whole in range(1, sets - 1):
        _layer(ground, offered, table, rate, whole, spot)
    _last(ground, table, rate)
    return table


@inner
def _know(table: Table, cost: float, whole: int, site: int) -> None:
    table.best[1] += 1.0
    if cost < table.best[0]:
        table.best[0] = cost
        table.found[0], table.found[1] = whole, site


@inner
def _start(ground: Ground, offered: Offered, table: Table, rate: Floats, sink: int) -> None:
    """The first known deployment: everything joined at one site, or offered already."""
    streams, full = len(table.near) - 1, len(rate) - 1
    to_sink = table.near[streams]
    if streams == 1:
        _know(table, table.here[1, sink], 1, sink)
        return
    # What runs already comes first: of two ways that cost the same it is the one without a new join.
    for at in range(offered.first[full], offered.first[full + 1]):
        site = offered.sites[at]
        _know(table, offered.extra[at] + rate[full] * to_sink[site], full, site)
    for n in range(len(ground.allowed)):
        if ground.allowed[n]:
            total = rate[full] * to_sink[n]
            for i in range(streams):
                total += table.here[1 << i, n]
            _know(table, total, 1, n)


@inner
def _layer(ground: Ground, offered: Offered, table: Table, rate: Floats, whole: int, spot: int) -> None:
    """All states of one set."""
    mine, listed, single = table.here[whole], table.alive[whole], whole & (whole - 1) == 0
    if single:
        size = _every(table, mine, listed)
    else:
        if not _some(table, whole) and offered.first[whole] == offered.first[whole + 1]:
            return
        mine[:] = np.inf
        size = _join(ground, table, whole, mine, listed)
        size = _take_offers(offered, table, whole, mine, listed, size)
    if size == 0:
        return
    forms = _forms(ground, table, rate, whole, mine, listed, size, spot)
    table.bound[:] = -1.0
    size = _keep(table, forms, mine, listed, size, single)
    if not single:
        limit = table.best[0] * CLOSE
        if len(ground.matrix) > 0:
            size = carry(
                ground.matrix, rate[whole], limit, mine, table.origin[whole], listed, size, forms, table.near,
                table.bound,
            )  # fmt: skip
        else:
            size = flow(
                ground, rate[whole], limit, mine, table.origin[whole], listed, size, forms, table.near,
                table.bound,
            )  # fmt: skip
        table.best[2] += size
        _complete(ground, table, rate, whole, listed, size)
        size = _keep(table, forms, mine, listed, size, single)
    table.length[whole] = size


@inner
def _every(table: Table, mine: Floats, listed: Small) -> int:
    size = 0
    for n in range(len(mine)):
        if mine[n] < table.best[0]:
            listed[size] = n
            size += 1
    return size


@inner
def _some(table: Table, whole: int) -> bool:
    """Is there a split of which both parts are somewhere?"""
    part = (whole - 1) & whole
    while 2 * part > whole:
        if table.length[part] > 0 and table.length[whole ^ part] > 0:
            return True
        part = (part - 1) & whole
    return False


@inner
def _join(ground: Ground, table: Table, whole: int, mine: Floats, listed: Small) -> int:
    """All splits at all sites where both parts are alive; how many sites are listed then."""
    size = 0
    part = (whole - 1) & whole
    while 2 * part > whole:
        other = whole ^ part
        few = part if table.length[part] < table.length[other] else other
        ours, theirs = table.here[few], table.here[whole ^ few]
        table.best[1] += table.length[few]
        for k in range(table.length[few]):
            n = table.alive[few, k]
            total = ours[n] + theirs[n]
            if total < mine[n] and ground.allowed[n] and total < table.best[0]:
                if mine[n] == np.inf:
                    listed[size] = n
                    size += 1
                mine[n] = total
                table.origin[whole, n] = n
        part = (part - 1) & whole
    return size


@inner
def _take_offers(offered: Offered, table: Table, whole: int, mine: Floats, listed: Small, size: int) -> int:
    for at in range(offered.first[whole], offered.first[whole + 1]):
        site = offered.sites[at]
        if offered.extra[at] < mine[site]:
            if mine[site] == np.inf:
                listed[size] = site
                size += 1
            mine[site] = offered.extra[at]
            table.origin[whole, site] = site
    return size


@inner
def _forms(
    ground: Ground, table: Table, rate: Floats, whole: int, mine: Floats, listed: Small, size: int, spot: int
) -> Floats:
    """Bounds that are best where all streams are best joined at once, and where this set looks best."""
    spots = np.full(LOOSE, spot, dtype=np.int32)
    rough = forms_of(whole, rate, table.near, spots[:1], table.cross, False)
    lowest = np.inf
    for k in range(size):
        n = listed[k]
        likely = mine[n] + bound_at(rough, 1, table.near, n)
        if likely < lowest:
            lowest, spots[1] = likely, n
    return forms_of(whole, rate, table.near, spots, table.cross, ground.both_ways)


@inner
def _keep(table: Table, forms: Floats, mine: Floats, listed: Small, size: int, single: bool) -> int:
    """Drop listed sites from which nothing better comes. Single streams keep their cost there: others may
    still be joined with them."""
    kept, limit = 0, table.best[0] * CLOSE
    for k in range(size):
        n = listed[k]
        if table.bound[n] < 0.0:
            table.bound[n] = bound_at(forms, LOOSE, table.near, n)
        if mine[n] + table.bound[n] < limit:
            listed[kept] = n
            kept += 1
        elif not single:
            mine[n] = np.inf
    return kept


@inner
def _complete(ground: Ground, table: Table, rate: Floats, whole: int, listed: Small, size: int) -> None:
    """Deployments that bring every other stream to where the set is and join all of them there."""
    streams, full = len(table.near) - 1, len(rate) - 1
    for k in range(size):
        n = listed[k]
        if ground.allowed[n]:
            total = table.here[whole, n] + rate[full] * table.near[streams, n]
            for j in range(streams):
                if not whole >> j & 1:
                    total += table.here[1 << j, n]
            _know(table, total, whole, n)


@inner
def _last(ground: Ground, table: Table, rate: Floats) -> None:
    """The last join of all."""
    streams, full = len(table.near) - 1, len(rate) - 1
    for part in range(full // 2 + 1, full):
        other = full ^ part
        few = part if table.length[part] < table.length[other] else other
        ours, theirs = table.here[few], table.here[full ^ few]
        for k in range(table.length[few]):
            n = table.alive[few, k]
            if ground.allowed[n]:
                _know(table, ours[n] + theirs[n] + rate[full] * table.near[streams, n], full, n)
