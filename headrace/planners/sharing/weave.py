"""WeaveShare: merge the pair of trees that lowers the total cost most, until no pair does.

Merging trees A and B changes the cost by -gain, gain = rate + E_A O_A + E_B O_B - E_AB (O_A + O_B) (O:
overlap). The paper evaluates E_AB for every pair at every step. Here a pair gets an upper bound first:

    E_AB >= max(E_A, E_B, E_A + E_B - X_AB)    with X_AB = sum of the densities of a and b together, over the
    edges a of A and b of B

(the union bound on P(A and B)). X is additive, so after a merge one row is added to another and no set is
touched; only a pair whose bound reaches the best is evaluated. Choices are those of the exhaustive
algorithm, ties included: gains within TIE of each other are equal, and the first pair in the order of the
trees wins; a merged tree keeps the place of its first part.

Guarantee: the saving is at least a quarter of the best saving (Chung et al., cited by the paper).
Complexity: O(n^2) bounds and O(n) of work a merge, plus the evaluations that the bounds leave.

Queries of one class are merged first, without a search: their gain is the rate itself, and no other pair
reaches that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.planners.sharing.grouping import TIE
from headrace.planners.sharing.instance import Instance
from headrace.planners.sharing.jit import NONE, inner, kernel
from headrace.planners.sharing.rates import Floats, Ints, Rows, read


@dataclass(frozen=True)
class Woven:
    """Trees of queries, with their rates and overlaps, and how many pairs were evaluated."""

    trees: list[list[int]]
    edge_rate: Floats
    overlap: Floats
    evaluated: int
    paying: Woven | None = None
    """Where merging stopped to pay, if it went on from there at a loss."""

    def costs(self, rate: float) -> Floats:
        costs: Floats = rate + self.edge_rate * self.overlap
        return costs


def weave_share(instance: Instance, *, at_least: int = 1, down_to: int | None = None) -> Woven:
    """Merge while it pays, but never below `at_least` trees; then, if `down_to` is given, go on at a loss
    until that many are left."""
    starts = _class_trees(instance, at_least)
    if len(starts) == instance.classes:
        klass = np.arange(instance.classes)
        overlap: Floats = np.bincount(instance.klass, weights=instance.omega).astype(np.float64)
    else:
        klass = instance.klass[[tree[0] for tree in starts]]
        overlap = np.array([instance.omega[tree].sum() for tree in starts])
    if len(starts) <= at_least:
        return Woven(starts, instance.single[klass], overlap, 0)
    return _merged(instance, starts, klass, overlap, at_least, down_to or 0)


def _class_trees(instance: Instance, at_least: int) -> list[list[int]]:
    """One tree a class, in the order of their first queries; classes late in the order stay apart where that
    many merges would leave fewer than `at_least` trees."""
    merges = instance.queries - at_least
    trees: list[list[int]] = []
    for members in instance.members():
        here = max(0, min(len(members) - 1, merges))
        merges -= here
        trees.append(members[: here + 1])
        trees.extend([query] for query in members[here + 1 :])
    trees.sort(key=lambda tree: tree[0])
    return trees


def _merged(
    instance: Instance,
    starts: list[list[int]],
    klass: Ints,
    overlap: Floats,
    at_least: int,
    down_to: int,
) -> Woven:
    together = pair_densities(*_flat_events(instance, klass))
    rows = instance.rows[klass].copy()
    rate_of = instance.single[klass].copy()
    simple = np.array([len(instance.events[c]) == 1 for c in klass.tolist()])
    stop = (np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows)), np.zeros(len(rows)))
    into, evaluated, stopped = greedy(
        rows,
        rate_of,
        overlap,
        together,
        simple,
        instance.rate,
        at_least,
        down_to,
        *instance.rates.tables,
        *stop,
    )
    paying = _woven(starts, *stop, evaluated) if stopped else None
    return _woven(starts, into, rate_of, overlap, evaluated, paying)


def _woven(
    starts: list[list[int]],
    into: Ints,
    rate_of: Floats,
    overlap: Floats,
    evaluated: int,
    paying: Woven | None = None,
) -> Woven:
    trees: dict[int, list[int]] = {}
    for start, target in zip(starts, into.tolist(), strict=True):
        trees.setdefault(target, []).extend(start)
    kept = sorted(trees)
    return Woven([trees[k] for k in kept], rate_of[kept], overlap[kept], int(evaluated), paying)


def _flat_events(instance: Instance, klass: Ints) -> tuple[Ints, Ints, Ints]:
    """(start, residue, slide) of the events of every tree."""
    events = [event for c in klass.tolist() for event in instance.events[c]]
    start = np.cumsum([0, *(len(instance.events[c]) for c in klass.tolist())], dtype=np.int64)
    return (
        start,
        np.array([a for a, _ in events], dtype=np.int64),
        np.array([s for _, s in events], dtype=np.int64),
    )


@inner
def _gcd(a: int, b: int) -> int:
    """Euclid. 32-bit division takes half the time of 64-bit, and nearly all slides fit."""
    if a < 2**31 and b < 2**31:
        x, y = np.uint32(a), np.uint32(b)
        while y:
            x, y = y, x % y
        return int(x)
    while b:
        a, b = b, a % b
    return a


@kernel
def pair_densities(start: Ints, residue: Ints, slide: Ints) -> Floats:
    """X: for every two trees, the summed density of the instants that are edges of both."""
    n = start.shape[0] - 1
    together = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            total = 0.0
            for e in range(start[i], start[i + 1]):
                for f in range(start[j], start[j + 1]):
                    common = _gcd(slide[e], slide[f])
                    if residue[e] == residue[f] or (residue[e] - residue[f]) % common == 0:
                        total += float(common) / (float(slide[e]) * float(slide[f]))
            together[i, j] = total
            together[j, i] = total
    return together


@inner
def _bound(i: int, j: int, rate_of: Floats, overlap: Floats, together: Floats, rate: float) -> float:
    low = max(rate_of[i], rate_of[j], rate_of[i] + rate_of[j] - together[i, j])
    return rate + rate_of[i] * overlap[i] + rate_of[j] * overlap[j] - low * (overlap[i] + overlap[j])


@inner
def _best_of_row(i: int, gain: Floats, alive: NDArray[np.bool_], n: int) -> float:
    best = -np.inf
    for j in range(i + 1, n):
        if alive[j] and gain[i, j] > best:
            best = gain[i, j]
    return best


@kernel
def greedy(
    rows: Rows,
    rate_of: Floats,
    overlap: Floats,
    together: Floats,
    simple: Ints,
    rate: float,
    at_least: int,
    down_to: int,
    tabled: bool,
    weights: Floats,
    values: Floats,
    groups: Ints,
    start: Ints,
    primes: Ints,
    exponents: Ints,
    residues: Ints,
    stop_into: Ints,
    stop_rate: Floats,
    stop_overlap: Floats,
) -> tuple[Ints, int, bool]:
    """Merge in place. Returns the tree that every start tree ended in, the number of evaluations, and
    whether it went on at a loss; then the `stop_` arrays have what it was before."""
    n = rows.shape[0]
    tie = TIE * rate
    stopped = False
    alive = np.ones(n, dtype=np.bool_)
    into = np.arange(n)
    gain = np.full((n, n), -np.inf)
    known = np.zeros((n, n), dtype=np.bool_)
    best = np.full(n, -np.inf)
    evaluated = 0
    for i in range(n):
        for j in range(i + 1, n):
            gain[i, j] = _bound(i, j, rate_of, overlap, together, rate)
            # Two classes with one edge a slide each: the bound is the gain.
            known[i, j] = simple[i] and simple[j]
        best[i] = _best_of_row(i, gain, alive, n)
    trees = n
    while trees > max(at_least, 1):
        top = -np.inf
        first = NONE
        second = NONE
        settled = False
        while not settled:
            top = -np.inf
            for i in range(n):
                if alive[i] and best[i] > top:
                    top = best[i]
            settled = True
            first = NONE
            for i in range(n):
                if not alive[i] or best[i] < top - tie:
                    continue
                changed = False
                for j in range(i + 1, n):
                    if not alive[j] or gain[i, j] < top - tie:
                        continue
                    if not known[i, j]:
                        union = read(
                            rows[i] | rows[j],
                            tabled,
                            weights,
                            values,
                            groups,
                            start,
                            primes,
                            exponents,
                            residues,
                        )
                        gain[i, j] = (
                            rate
                            + rate_of[i] * overlap[i]
                            + rate_of[j] * overlap[j]
                            - union * (overlap[i] + overlap[j])
                        )
                        # What i and j have in common is now known, and tightens the bounds of whatever they
                        # merge into.
                        together[i, j] = rate_of[i] + rate_of[j] - union
                        together[j, i] = together[i, j]
                        known[i, j] = True
                        changed = True
                        evaluated += 1
                    elif first < 0:
                        first, second = i, j
                if changed:
                    best[i] = _best_of_row(i, gain, alive, n)
                    settled = False
        if first < 0 or (top <= tie and trees <= max(down_to, 1)) or (top <= tie and down_to == 0):
            break
        if top <= tie and not stopped:
            stopped = True
            stop_into[:] = into
            stop_rate[:] = rate_of
            stop_overlap[:] = overlap
        i, j = first, second
        rows[i] |= rows[j]
        overlap[i] += overlap[j]
        rate_of[i] = read(rows[i], tabled, weights, values, groups, start, primes, exponents, residues)
        simple[i] = False
        alive[j] = False
        trees -= 1
        for k in range(n):
            if into[k] == j:
                into[k] = i
            together[i, k] += together[j, k]
            together[k, i] = together[i, k]
        for k in range(n):
            if not alive[k] or k == i:
                continue
            a, b = min(i, k), max(i, k)
            before = gain[a, b]
            gain[a, b] = _bound(i, k, rate_of, overlap, together, rate)
            known[a, b] = False
            if k < i:
                if gain[k, i] > best[k]:
                    best[k] = gain[k, i]
                elif before >= best[k]:
                    best[k] = _best_of_row(k, gain, alive, n)
            if k < j and gain[k, j] >= best[k]:
                best[k] = _best_of_row(k, gain, alive, n)
        best[i] = _best_of_row(i, gain, alive, n)
    return into, evaluated, stopped


def class_densities(instance: Instance) -> Floats:
    """X of every two classes, and of a class with itself its own rate."""
    together = pair_densities(*_flat_events(instance, np.arange(instance.classes)))
    np.fill_diagonal(together, instance.single)
    return together
