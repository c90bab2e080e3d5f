"""The edge rate of a set of events, by conditioning on the primes that their slides share.

An event "t = a mod s" is a condition on every prime power of s. Primes that no other event has are one
independent chance. On a shared prime the conditions are balls, and the atoms they cut are tried one after
the other (see atoms.py); in an atom an event is ruled out or loses that prime. What hangs together through
no shared prime multiplies.
"""

from __future__ import annotations

import numpy as np

from headrace.planners.sharing.jit import NONE, ZERO, Floats, Ints, Rows, inner

BRANCHES = 2_000
"""Atoms tried for one rate. Beyond that the events left are treated as independent: an estimate, for
searches only."""
MOST_SHARED = 60
"""Primes that one rate can condition on: they are the bits of a word."""


@inner
def _chances(
    events: Ints, done: int, local: Ints, exponents: Ints, alone: Floats, shared: Floats, uses: Ints
) -> Floats:
    """The chance of every event given the primes in `done`; counts in `uses` how many events need each other
    prime."""
    chance = np.empty(len(events))
    uses[:] = 0
    for i in range(len(events)):
        e = events[i]
        chance[i] = alone[e]
        for k in range(local.shape[1]):
            b = local[e, k]
            if b >= 0 and not (done >> b) & 1:
                uses[b] += 1
                chance[i] /= shared[b] ** exponents[e, k]
    return chance


@inner
def _connected(events: Ints, best: int, done: int, local: Ints, uses: Ints, marked: Ints) -> int:
    """Mark the events that hang together with prime `best` through shared primes; how many they are."""
    reach = 1 << best
    count = 0
    marked[:] = 0
    grown = True
    while grown:
        grown = False
        for i in range(len(events)):
            if marked[i]:
                continue
            mask = 0
            for k in range(local.shape[1]):
                b = local[events[i], k]
                if b >= 0 and not (done >> b) & 1 and uses[b] > 1:
                    mask |= 1 << b
            if mask & reach:
                marked[i] = 1
                reach |= mask
                count += 1
                grown = True
    return count


@inner
def _within(residue: int, exponent: int, outer: int, outer_exponent: int, prime: int) -> bool:
    """Whether the ball (residue mod prime^exponent) lies in the ball (outer mod prime^outer_exponent)."""
    return exponent >= outer_exponent and (residue - outer) % prime**outer_exponent == 0


@inner
def _balls(
    events: Ints,
    best: int,
    prime: int,
    local: Ints,
    exponents: Ints,
    residues: Ints,
    at: Ints,
    balls: Ints,
    weights: Floats,
) -> int:
    """The different conditions that events put on one prime, and the weight of each one's atom. Ball 0 is
    everything."""
    balls[0, 0] = 0
    balls[0, 1] = 0
    n = 1
    for i in range(len(events)):
        at[i] = -1
        for k in range(local.shape[1]):
            if local[events[i], k] == best:
                at[i] = k
        if at[i] < 0:
            continue
        e, r = exponents[events[i], at[i]], residues[events[i], at[i]]
        j = 1
        while j < n and not (balls[j, 0] == e and balls[j, 1] == r):
            j += 1
        if j == n:
            balls[n, 0] = e
            balls[n, 1] = r
            n += 1
    for j in range(n):
        weights[j] = float(prime) ** -float(balls[j, 0])
    for j in range(1, n):
        # An atom is a ball without the largest balls inside it: each takes its size from the smallest one
        # around it.
        parent = 0
        for other in range(1, n):
            inside = _within(balls[j, 1], balls[j, 0], balls[other, 1], balls[other, 0], prime)
            if other != j and inside and balls[other, 0] > balls[parent, 0]:
                parent = other
        weights[parent] -= float(prime) ** -float(balls[j, 0])
    return n


@inner
def _silent(count: int, local: Ints, exponents: Ints, residues: Ints, alone: Floats, shared: Floats) -> float:
    """The chance that none of `count` events holds.

    local[e, k] is the number of the k-th prime of event e among the shared ones (-1: not shared), alone[e]
    the chance of the parts that no other event shares. A frame of the stack is a set of events given some
    primes: what does not hang together with the most used prime is a factor (one child frame), the rest is a
    sum over the atoms of that prime (a child frame each). Written as a loop, for a recursive kernel cannot
    be loaded from numba's cache.
    """
    deep = 2 * len(shared) + 3
    lists = np.empty((deep, count), dtype=np.int64)
    size = np.zeros(deep, dtype=np.int64)
    done = np.zeros(deep, dtype=np.int64)
    phase = np.zeros(deep, dtype=np.int64)
    best = np.zeros(deep, dtype=np.int64)
    total = np.zeros(deep)
    factor = np.ones(deep)
    at = np.empty((deep, count), dtype=np.int64)
    balls = np.empty((deep, count + 1, 2), dtype=np.int64)
    weights = np.empty((deep, count + 1))
    ball_count = np.zeros(deep, dtype=np.int64)
    uses = np.zeros(len(shared), dtype=np.int64)
    marked = np.zeros(count, dtype=np.int64)
    for i in range(count):
        lists[0, i] = i
    size[0] = count
    depth = 0
    spent = 0
    value = 1.0
    while depth >= 0:
        d = depth
        if phase[d] == 0:
            events = lists[d, : size[d]]
            chance = _chances(events, done[d], local, exponents, alone, shared, uses)
            top = NONE
            for b in range(len(uses)):
                if uses[b] > 1 and (top < 0 or uses[b] > uses[top]):
                    top = b
            sure = False
            product = 1.0
            for i in range(size[d]):
                sure = sure or chance[i] >= 1.0
                product *= 1.0 - chance[i]
            if sure or top < 0 or spent > BRANCHES:
                value = 0.0 if sure else product
                depth -= 1
                continue
            best[d] = top
            factor[d] = 1.0
            total[d] = 0.0
            inside = _connected(events, top, done[d], local, uses, marked)
            phase[d] = 2
            if inside < size[d]:
                a, b = 0, 0
                for i in range(size[d]):
                    if marked[i]:
                        lists[d, a] = lists[d, i]
                        a += 1
                    else:
                        lists[d + 1, b] = lists[d, i]
                        b += 1
                size[d] = inside
                size[d + 1] = b
                done[d + 1] = done[d]
                phase[d + 1] = 0
                phase[d] = 1
                depth += 1
                continue
        elif phase[d] == 1:
            factor[d] = value
            if value == 0.0:
                depth -= 1
                continue
            phase[d] = 2
        else:
            total[d] += value * weights[d, phase[d] - 3]
        if phase[d] == 2:
            ball_count[d] = _balls(
                lists[d, : size[d]],
                best[d],
                int(shared[best[d]]),
                local,
                exponents,
                residues,
                at[d],
                balls[d],
                weights[d],
            )
        # The next atom that has any weight: the events that still can hold there.
        j = phase[d] - 2
        while j < ball_count[d] and weights[d, j] <= 1e-18:
            j += 1
        if j >= ball_count[d]:
            value = factor[d] * total[d]
            depth -= 1
            continue
        prime = int(shared[best[d]])
        n = 0
        for i in range(size[d]):
            e, k = lists[d, i], at[d, i]
            if k < 0 or _within(balls[d, j, 1], balls[d, j, 0], residues[e, k], exponents[e, k], prime):
                lists[d + 1, n] = e
                n += 1
        phase[d] = j + 3
        spent += 1
        if n == 0:
            value = 1.0
            continue
        size[d + 1] = n
        done[d + 1] = done[d] | (1 << best[d])
        phase[d + 1] = 0
        depth += 1
    return value


@inner
def read_set(row: Rows, start: Ints, primes: Ints, exponents: Ints, residues: Ints) -> float:
    """The rate of a set of classes, by conditioning on the primes its events share."""
    count = ZERO
    for c in range(start.shape[0] - 1):
        if (row[c >> 4] >> (c & 15)) & 1:
            count += start[c + 1] - start[c]
    events = np.empty(count, dtype=np.int64)
    n = 0
    for c in range(start.shape[0] - 1):
        if (row[c >> 4] >> (c & 15)) & 1:
            for e in range(start[c], start[c + 1]):
                events[n] = e
                n += 1
    width = primes.shape[1]
    known = np.empty(count * width, dtype=np.int64)
    times = np.zeros(count * width, dtype=np.int64)
    found = 0
    for i in range(count):
        for k in range(width):
            p = primes[events[i], k]
            if p == 0:
                break
            j = 0
            while j < found and known[j] != p:
                j += 1
            if j == found:
                known[found] = p
                found += 1
            times[j] += 1
    bits = 0
    shared_primes = np.empty(MOST_SHARED, dtype=np.float64)
    bit = np.full(found, -1, dtype=np.int64)
    # More shared primes than bits: those that the fewest events share are treated as if they were not.
    wanted = 2
    over = MOST_SHARED + 1
    while over > MOST_SHARED:
        over = 0
        for j in range(found):
            if times[j] >= wanted:
                over += 1
        wanted += 1
    wanted -= 1
    for j in range(found):
        if times[j] >= wanted:
            bit[j] = bits
            shared_primes[bits] = known[j]
            bits += 1
    local = np.full((count, width), -1, dtype=np.int64)
    exps = np.zeros((count, width), dtype=np.int64)
    res = np.zeros((count, width), dtype=np.int64)
    alone = np.ones(count)
    for i in range(count):
        for k in range(width):
            p = primes[events[i], k]
            if p == 0:
                break
            exps[i, k] = exponents[events[i], k]
            res[i, k] = residues[events[i], k]
            j = 0
            while known[j] != p:
                j += 1
            local[i, k] = bit[j]
            if bit[j] < 0:
                alone[i] /= float(p) ** exps[i, k]
    return 1.0 - _silent(count, local, exps, res, alone, shared_primes[:bits].copy())
