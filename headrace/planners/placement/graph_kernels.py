"""Cheapest paths and blocks of a sparse graph: links of site u are indices[starts[u]:starts[u + 1]].

Costs are not negative; a heap has its keys and sites side by side, four children to a node. An entry whose
key is no longer its site's label is old and is skipped.
"""

from __future__ import annotations

import numpy as np

from headrace.planners.placement.jit import Floats, Small, inner, kernel

MOST_BUCKETS = 1024
"""In `distance_row`; a power of 2."""


@inner
def push(keys: Floats, sites: Small, size: int, key: float, site: int) -> int:
    at = size
    while at > 0:
        above = (at - 1) >> 2
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        sites[at] = sites[above]
        at = above
    keys[at] = key
    sites[at] = site
    return size + 1


@inner
def drop_first(keys: Floats, sites: Small, size: int) -> int:
    size -= 1
    key, site = keys[size], sites[size]
    at = 0
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        least = child
        for other in range(child + 1, min(child + 4, size)):
            if keys[other] < keys[least]:
                least = other
        if keys[least] >= key:
            break
        keys[at] = keys[least]
        sites[at] = sites[least]
        at = least
    keys[at] = key
    sites[at] = site
    return size


@kernel
def spread(starts: Small, indices: Small, costs: Floats, label: Floats, origin: Small, first: Small) -> None:
    """Labels go down to the cheapest way from any site: label[v] <= label[u] + cost(u, v) afterwards.
    Only the sites in `first` may break this before. O(links * log sites)."""
    room = len(indices) + len(first) + 1
    keys, sites = np.empty(room), np.empty(room, dtype=np.int32)
    size = 0
    for site in first:
        size = push(keys, sites, size, label[site], site)
    while size > 0:
        key, u = keys[0], sites[0]
        size = drop_first(keys, sites, size)
        if key > label[u]:
            continue
        for at in range(starts[u], starts[u + 1]):
            v, there = indices[at], key + costs[at]
            if there < label[v]:
                label[v] = there
                origin[v] = origin[u]
                size = push(keys, sites, size, there, v)


@kernel
def distance_row(starts: Small, indices: Small, costs: Floats, source: int) -> Floats:
    """From one site to every site; inf: no path."""
    label = np.full(len(starts) - 1, np.inf)
    label[source] = 0.0
    settle(starts, indices, costs, label, np.full(1, source, dtype=np.int32))
    return label


@inner
def settle(starts: Small, indices: Small, costs: Floats, label: Floats, first: Small) -> None:
    """As `spread`, where all labels in `first` are 0. Sites wait in buckets by distance, four to the mean
    cost of a link, so that none has to be moved as in a heap; a site may be taken too early, and again later
    from the same bucket. Where costs are so uneven that buckets are no help, a heap is used."""
    width = costs.mean() / 4 if len(costs) > 0 else 0.0
    if width > 0.0 and costs.max() / width < MOST_BUCKETS - 2:
        if _by_buckets(starts, indices, costs, label, first, width):
            return
        first = np.flatnonzero(label < np.inf).astype(np.int32)
    spread(starts, indices, costs, label, np.empty(len(label), dtype=np.int32), first)


@inner
def _by_buckets(
    starts: Small, indices: Small, costs: Floats, label: Floats, first: Small, width: float
) -> bool:
    """False: too many sites were taken too early, so that there is no room left."""
    room = 2 * len(indices) + len(label) + len(first)
    head, following = np.full(MOST_BUCKETS, -1, dtype=np.int32), np.empty(room, dtype=np.int32)
    sites, keys = np.empty(room, dtype=np.int32), np.empty(room)
    for k in range(len(first)):
        sites[k], keys[k], following[k] = first[k], 0.0, head[0]
        head[0] = k
    used, waiting, bucket = len(first), len(first), 0
    while waiting > 0:
        entry = head[bucket]
        if entry < 0:
            bucket = (bucket + 1) % MOST_BUCKETS
            continue
        head[bucket] = following[entry]
        waiting -= 1
        u, key = sites[entry], keys[entry]
        if key > label[u]:
            continue
        if used + starts[u + 1] - starts[u] > room:
            return False
        for at in range(starts[u], starts[u + 1]):
            v, there = indices[at], key + costs[at]
            if there < label[v]:
                label[v] = there
                target = np.int64(there / width) % MOST_BUCKETS
                sites[used], keys[used], following[used] = v, there, head[target]
                head[target] = used
                used += 1
                waiting += 1
    return True


@kernel
def distance_to(starts: Small, indices: Small, costs: Floats, source: int, target: int) -> Floats:
    """One distance, as an array of one."""
    label = np.full(len(starts) - 1, np.inf)
    keys, sites = np.empty(len(indices) + 1), np.empty(len(indices) + 1, dtype=np.int32)
    label[source] = 0.0
    size = push(keys, sites, 0, 0.0, source)
    while size > 0:
        key, u = keys[0], sites[0]
        size = drop_first(keys, sites, size)
        if u == target:
            break
        if key > label[u]:
            continue
        for at in range(starts[u], starts[u + 1]):
            v, there = indices[at], key + costs[at]
            if there < label[v]:
                label[v] = there
                size = push(keys, sites, size, there, v)
    return label[target : target + 1]


@kernel
def close(matrix: Floats) -> None:
    """Turn costs of links into costs of cheapest paths (Floyd and Warshall); inf: no link. O(sites^3). Own
    code since scipy's takes a cost of 0 for no link."""
    count = len(matrix)
    for relay in range(count):
        onward = matrix[relay]
        for a in range(count):
            to_relay = matrix[a, relay]
            if to_relay < np.inf:
                row = matrix[a]
                for b in range(count):
                    row[b] = min(row[b], to_relay + onward[b])


@kernel
def blocks_of(starts: Small, indices: Small) -> tuple[Small, Small, Small, Small, Small]:
    """Biconnected components by depth-first search (Hopcroft and Tarjan), as a rooted tree:
    (home, top, component, first, members). home[v] is the block that v hangs in, -1 for the root of a
    component; top[b] is the site of b nearest to the root, whose home is another block; the sites of b
    without its top are members[first[b]:first[b + 1]]. No parallel links, no loops. O(sites + links)."""
    count = len(starts) - 1
    number, low = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=np.int32)
    parent, following = np.full(count, -1, dtype=np.int32), starts[:-1].copy()
    home, component = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=np.int32)
    top, first = np.zeros(count + 1, dtype=np.int32), np.zeros(count + 2, dtype=np.int32)
    members, waiting = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int32)
    path = np.zeros(count, dtype=np.int32)
    blocks, filled, seen, waits = 0, 0, 0, 0
    for root in range(count):
        if number[root] >= 0:
            continue
        number[root] = low[root] = seen
        component[root] = root
        seen += 1
        path[0] = root
        depth = 1
        while depth > 0:
            u = path[depth - 1]
            if following[u] < starts[u + 1]:
                v = indices[following[u]]
                following[u] += 1
                if number[v] < 0:
                    number[v] = low[v] = seen
                    component[v] = root
                    seen += 1
                    parent[v] = u
                    path[depth] = v
                    depth += 1
                    waiting[waits] = v
                    waits += 1
                elif v != parent[u]:
                    low[u] = min(low[u], number[v])
                continue
            depth -= 1
            if depth == 0:
                break
            above = parent[u]
            low[above] = min(low[above], low[u])
            if low[u] >= number[above]:
                # Nothing below u reaches past `above`: all that waits since u is one block.
                top[blocks] = above
                while True:
                    waits -= 1
                    v = waiting[waits]
                    home[v] = blocks
                    members[filled] = v
                    filled += 1
                    if v == u:
                        break
                blocks += 1
                first[blocks] = filled
    return home, top[:blocks], component, first[: blocks + 1], members[:filled]


@kernel
def region_of(terminals: Small, home: Small, top: Small, first: Small, members: Small, count: int) -> Small:
    """All sites of the blocks on paths between the terminals, which lie in one component, by rising number.
    O(sites), with a few bytes for each."""
    joints, blocks = np.full(count, -1, dtype=np.int32), np.full(len(top), -1, dtype=np.int32)
    fan_joint, fan_block = np.zeros(count, dtype=np.int32), np.zeros(len(top), dtype=np.int32)
    inside = np.zeros(count, dtype=np.bool_)
    root = _climb(terminals, home, top, joints, blocks, fan_joint, fan_block)
    for site in terminals:
        inside[site] = True
    # From the root down, as long as all terminals lie the same way: that part is on no path between them.
    while not inside[root] and fan_joint[root] == 1:
        block = joints[root]
        if fan_block[block] > 1:
            break
        fan_block[block] = 0
        root = blocks[block]
    inside[root] = True
    for block in range(len(top)):
        if fan_block[block] > 0:
            for at in range(first[block], first[block + 1]):
                inside[members[at]] = True
    return np.flatnonzero(inside).astype(np.int32)


@inner
def _climb(
    terminals: Small,
    home: Small,
    top: Small,
    joints: Small,
    blocks: Small,
    fan_joint: Small,
    fan_block: Small,
) -> int:
    """Count, for every site and block on the terminals' ways to the root, in how many of its children these
    ways come up, and keep the last of them; the root."""
    seen = np.zeros(len(home), dtype=np.bool_)
    root = -1
    for start in terminals:
        site = start
        while not seen[site]:
            seen[site] = True
            block = home[site]
            if block < 0:
                root = site
                break
            fan_block[block] += 1
            blocks[block] = site
            if fan_block[block] > 1:
                break
            site = top[block]
            fan_joint[site] += 1
            joints[site] = block
    return root


@kernel
def part_of(
    starts: Small, indices: Small, costs: Floats, sites: Small, place: Small
) -> tuple[Small, Small, Floats]:
    """The graph between some sites, which are numbered in the order given. `place` is scratch, one for each
    site of the whole graph, -1 before and after."""
    links = 0
    for i in range(len(sites)):
        place[sites[i]] = i
        links += starts[sites[i] + 1] - starts[sites[i]]
    ends, heads, prices = (
        np.zeros(len(sites) + 1, dtype=np.int32),
        np.empty(links, dtype=np.int32),
        np.empty(links),
    )
    filled = 0
    for i in range(len(sites)):
        for at in range(starts[sites[i]], starts[sites[i] + 1]):
            other = place[indices[at]]
            if other >= 0:
                heads[filled] = other
                prices[filled] = costs[at]
                filled += 1
        ends[i + 1] = filled
    for site in sites:
        place[site] = -1
    return ends, heads[:filled], prices[:filled]
