"""A cost space: sites as points whose distances are close to what a unit of data pays between them.

Vivaldi (Dabek, Cox, Kaashoek, Morris): in every round each site looks at one random other site and moves
along the line between them, to where the spring of the wanted length has no force; by less, the surer it is
of its own place compared with the other's. O(sites) a round, and the matrix is only looked up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.planners.placement.problem import Floats

DIMENSIONS = 3
"""As in section 4.4."""
GAIN = 0.25
"""Share of an error that one step mends at most, and of the old certainty that a new sample replaces."""
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class CostSpace:
    points: Floats
    """One row per site."""
    error: float
    """Median over pairs of sites of |distance here - cost| / cost."""


def both_ways(matrix: Floats) -> Floats:
    """The mean of the directions that have a path; inf: none has."""
    there, back = np.isfinite(matrix), np.isfinite(matrix.T)
    total = np.where(there, matrix, 0.0) + np.where(back, matrix.T, 0.0)
    known = there.astype(int) + back
    return np.where(known > 0, total / np.maximum(known, 1), np.inf)


def embed(matrix: Floats, rng: np.random.Generator, rounds: int) -> CostSpace:
    """A space has one distance for both directions: see `both_ways`."""
    costs = both_ways(matrix)
    size = len(costs)
    scale = float(costs[np.isfinite(costs)].mean()) or 1.0
    points, unsure = rng.normal(0.0, scale, size=(size, DIMENSIONS)), np.ones(size)
    everyone = np.arange(size)
    for _ in range(rounds if size > 1 else 0):
        other = (everyone + rng.integers(1, size, size=size)) % size
        wanted = costs[everyone, other]
        line = points - points[other]
        length = np.sqrt((line * line).sum(axis=1)) + TINY
        # No path says nothing about the place of a site.
        wrong = np.where(np.isfinite(wanted), wanted - length, 0.0)
        weight = GAIN * unsure / (unsure + unsure[other] + TINY)
        missed = np.minimum(1.0, np.abs(wrong) / (np.abs(wrong) + length))
        points = points + (weight * wrong / length)[:, None] * line
        unsure = unsure * (1 - weight) + missed * weight
    return CostSpace(points, _median_error(points, costs))


def _median_error(points: Floats, costs: Floats) -> float:
    a, b = np.triu_indices(len(points), 1)
    a, b = a[:: 1 + len(a) // 100_000], b[:: 1 + len(b) // 100_000]
    wanted = costs[a, b]
    known = np.isfinite(wanted) & (wanted > 0)
    if not known.any():
        return 0.0
    length = np.sqrt(((points[a[known]] - points[b[known]]) ** 2).sum(axis=1))
    return float(np.median(np.abs(length - wanted[known]) / wanted[known]))
