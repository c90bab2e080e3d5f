"""The true number of final operations of a tree.

A window of q = (range r, slide s) is built from the fragments that start in [ks, ks + r): it always opens
on an edge. Averaged over k, and with 1/s windows a unit of time, that is

    floor(r / s) * E  +  density of the tree's edges t with t mod s < r mod s

operations a unit of time, where E is the tree's edge rate. With slide | range the second term is 0 and the
first is the paper's E * r / s; else the paper's term is only an estimate, since edges are not spread evenly
over the slide.

The second term conditions on b = t mod s. Given b, a class (m, a) is ruled out unless a = b mod gcd(m, s),
and with t = b + s u it becomes one class of u. Two classes that survive keep the distance of their residues
whatever b is, so the share covered depends on b only through which classes survive: one count for each
surviving set, not one for each b.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

import numpy as np

from headrace.planners.sharing.edges import EdgeCounter, EdgeRate, ResidueClass, Window, edge_classes


def final_operations(
    queries: Sequence[Window], *, counter: EdgeCounter | None = None
) -> tuple[Fraction, Fraction]:
    """How many fragments the windows of one tree's queries take in, a unit of time: [low, high], equal if
    exact."""
    counter = counter or EdgeCounter()
    classes = sorted(edge_classes(queries))
    whole = sum(r // s for r, s in queries)
    rate = counter.union(classes)
    low, high = whole * rate.low, whole * rate.high
    for (slide, offset), count in _offsets(queries).items():
        head = edges_in_head(classes, rate, slide, offset, counter)
        low, high = low + count * head.low, high + count * head.high
    return low, high


def _offsets(queries: Sequence[Window]) -> dict[tuple[int, int], int]:
    """How many queries have each (slide, offset); an offset of 0 adds nothing."""
    counts: dict[tuple[int, int], int] = {}
    for r, s in queries:
        if r % s:
            counts[s, r % s] = counts.get((s, r % s), 0) + 1
    return counts


def edges_in_head(
    classes: Sequence[ResidueClass], rate: EdgeRate, slide: int, offset: int, counter: EdgeCounter
) -> EdgeRate:
    """The density of the edges t with t mod slide < offset, counted on the shorter side of the slide."""
    if 2 * offset <= slide:
        return _edges_between(classes, slide, 0, offset, counter)
    tail = _edges_between(classes, slide, offset, slide, counter)
    low, high = rate.low - tail.high, rate.high - tail.low
    return EdgeRate(max(Fraction(0), low), min(high, Fraction(offset, slide)))


def _edges_between(
    classes: Sequence[ResidueClass], slide: int, start: int, stop: int, counter: EdgeCounter
) -> EdgeRate:
    low = high = Fraction(0)
    for first, count, alive in _survivors(classes, slide, start, stop):
        covered = counter.union(_given(classes[i], slide, first) for i in alive)
        low, high = low + count * covered.low, high + count * covered.high
    return EdgeRate(low / slide, high / slide)


def _survivors(
    classes: Sequence[ResidueClass], slide: int, start: int, stop: int
) -> list[tuple[int, int, list[int]]]:
    """For every set of classes that survives some b in [start, stop): its first b, for how many b, the
    classes."""
    common = [gcd(m, slide) for m, _ in classes]
    free = [i for i, g in enumerate(common) if g == 1]
    tied = [i for i, g in enumerate(common) if g > 1]
    if not tied:
        return [(start, stop - start, free)]
    moduli = np.array([common[i] for i in tied])
    residues = np.array([classes[i][1] % common[i] for i in tied])
    alive = np.arange(start, stop)[:, None] % moduli == residues
    _, first, counts = np.unique(np.packbits(alive, axis=1), axis=0, return_index=True, return_counts=True)
    return [
        (start + int(b), int(count), free + [tied[k] for k in np.flatnonzero(alive[b])])
        for b, count in zip(first, counts, strict=True)
    ]


def _given(c: ResidueClass, slide: int, b: int) -> ResidueClass:
    """The class of u when t = b + slide * u lies in c; b must agree with c modulo the common divisor."""
    m, a = c
    common = gcd(m, slide)
    rest = m // common
    return rest, (a - b) // common * pow(slide // common, -1, rest) % rest
