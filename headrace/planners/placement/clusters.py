"""Sites that are near to each other, in groups of bounded size (K-Means, paper 001, sections 3.1.1 and 4.1).

K-Means needs points and means, and a network has only costs between sites. So a site's coordinates are its
traversal costs to a few landmarks, there and back: by the triangle inequality no coordinate of two sites
differs by more than what lies between them, so what is near in the network is near here. K-Means knows no
cap either: a group above it is parted again, by the same method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import Floats, Site

LANDMARKS = 64
ROUNDS = 50
"""Of K-Means at most; it has settled long before."""
STARTS = 4
"""Runs of K-Means from different first centres, of which the tightest is kept."""
MOST_PARTS = 32
"""At once: what is still too large is parted again, so that the work grows with sites * log(sites)."""

Ints = NDArray[np.int64]


def coordinates(prepared: Prepared, sites: Sequence[Site], rng: np.random.Generator) -> Floats:
    """One row for each site."""
    count = min(LANDMARKS, len(sites))
    landmarks = sorted(int(i) for i in rng.choice(np.asarray(sites), count, replace=False))
    costs = (prepared.between(landmarks, sites).T + prepared.between(sites, landmarks)) / 2
    return _with_finite(costs)


def capped_groups(points: Floats, cap: int, rng: np.random.Generator) -> list[list[int]]:
    """Rows of `points` in groups of at most `cap`, each row in exactly one."""
    groups: list[list[int]] = []
    waiting = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= cap:
            groups.append([int(row) for row in rows])
            continue
        parts = min(-(-len(rows) // cap), MOST_PARTS)
        of = k_means(points[rows], parts, rng)
        waiting += [rows[of == part] for part in range(parts) if (of == part).any()]
    return sorted(groups)


def k_means(points: Floats, count: int, rng: np.random.Generator) -> Ints:
    """The group of every point; at least two groups if `count` and the number of points allow it."""
    best, least = None, np.inf
    for _ in range(STARTS):
        of, spread = _lloyd(points, _first_centres(points, count, rng))
        if spread < least and len(np.unique(of)) > 1:
            best, least = of, spread
    if best is None:  # all points are the same: any even parts will do
        best = np.arange(len(points)) * count // len(points)
    return best


def _first_centres(points: Floats, count: int, rng: np.random.Generator) -> Floats:
    """k-means++: far points are likelier to be the next centre."""
    chosen = [int(rng.integers(len(points)))]
    nearest = _squares(points, points[chosen])[:, 0]
    while len(chosen) < count and nearest.sum() > 0:
        chosen.append(int(rng.choice(len(points), p=nearest / nearest.sum())))
        nearest = np.minimum(nearest, _squares(points, points[chosen[-1:]])[:, 0])
    return points[chosen]


def _lloyd(points: Floats, centres: Floats) -> tuple[Ints, float]:
    of = np.full(len(points), -1)
    for _ in range(ROUNDS):
        squares = _squares(points, centres)
        now = squares.argmin(axis=1)
        if (now == of).all():
            break
        of = now
        centres = _means(points, of, centres)
    return of, float(squares.min(axis=1).sum())


def _means(points: Floats, of: Ints, before: Floats) -> Floats:
    """Of each group; one that has lost all its points stays where it was."""
    sizes = np.bincount(of, minlength=len(before))[:, None]
    belongs = csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(len(before), len(of)))
    return np.where(sizes > 0, belongs @ points / np.maximum(sizes, 1), before)


def _squares(points: Floats, centres: Floats) -> Floats:
    """Squared Euclidean distances; rounding must not make one negative."""
    mixed = points @ centres.T
    squares: Floats = (points**2).sum(axis=1)[:, None] - 2 * mixed + (centres**2).sum(axis=1)
    return np.maximum(squares, 0.0)


def by_centrality(prepared: Prepared, sites: Sequence[Site]) -> list[Site]:
    """The medoid first: the site with the least total traversal cost to and from the others."""
    costs = _with_finite(prepared.between(sites, sites))
    totals = costs.sum(axis=0) + costs.sum(axis=1)
    return [site for _, site in sorted(zip(totals.tolist(), sites, strict=True))]


def _with_finite(costs: Floats) -> Floats:
    """No path becomes a very long one: sites without one belong apart, but infinity has no mean."""
    known = np.isfinite(costs)
    return np.where(known, costs, 4 * max(float(costs[known].max(initial=0.0)), 1.0))
