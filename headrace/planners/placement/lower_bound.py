"""What no deployment of all queries together can beat.

Give every query a share of every operator it could read: share[q, S, n] >= 0 of the ways into a join of S at
n, where the shares of all queries whose streams include S add up to 1 at most. Then

    cost of any deployment >= sum over queries of the least that the query can pay at its shares

Proof: a way into an operator that runs is paid once, and its readers' shares of it add up to at most that.
So a deployment costs at least what its queries pay for the operators they read and, in full, for the ways of
their results to their sinks. What a query reads is a tree over its streams, each operator in it once; the
cheapest such tree costs no more.

With equal shares this is weak: most operators that could be shared are not. The bound is concave in the
shares, and its slope at a share is what the query pays in full for that operator in its cheapest tree. So
shares are raised where queries pay and lowered where they do not, and put back on the simplex (projected
subgradient, Polyak's step towards a total that is known to be reachable). A query that finds a join dearer at
one site goes next door, so a step moves the shares of sites nearby too, less and less far as the search goes
on. Any shares give a valid bound: the best one seen is kept.

No shares can give more than the linear relaxation of milp.py; sums are in
floats, and the last digits are given away. Not with filters or widths, results read
at sinks, or more than MOST_SITES sites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headrace.errors import NotSupported
from headrace.planners.placement.ground import MOST_SITES, WHOLE, Ground
from headrace.planners.placement.jit import Floats, Ints
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import PlacementProblem
from headrace.planners.placement.shares_kernels import cheapest_share

SAFE = 1 - 1e-9
WAIT = 10
"""The step is halved when the bound has not risen for so many rounds."""
NEAR, NEARER = 0.6, 0.98
"""How far a step reaches at first, in mean distances, and by what this shrinks every round."""


@dataclass(frozen=True, slots=True)
class Bound:
    value: float
    equal_shares: float
    """The bound before any share was moved."""
    rounds: int


def can_bound(problem: PlacementProblem, prepared: Prepared) -> bool:
    """A bound over some of the sites only would be none."""
    whole = not problem.filters and not any(query.widths for query in problem.queries)
    return whole and not problem.sinks and prepared.size <= MOST_SITES


def lower_bound(
    problem: PlacementProblem,
    prepared: Prepared,
    reachable: float,
    *,
    rounds: int = 100,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Bound:
    """`reachable` is the total of some deployment; it only steers the steps. O(rounds * queries * 3^K N^2).
    Raises NotSupported."""
    if not can_bound(problem, prepared):
        raise NotSupported(
            f"no lower bound with filters, widths, results read at sinks or more than {MOST_SITES} sites"
        )
    shares = _Shares(Ground(problem, prepared))
    first = best = shares.bound()
    step, stale, done = 1.0, 0, 1
    while done < rounds and not out_of_time() and reachable > best * (1 + 1e-6):
        shares.move(step * max(reachable - shares.value, 0.0), NEAR * NEARER**done)
        value = shares.bound()
        done += 1
        best, stale = (value, 0) if value > best else (best, stale + 1)
        if stale >= WAIT:
            step, stale = step / 2, 0
    return Bound(best * SAFE, first * SAFE, done)


@dataclass
class _Shares:
    ground: Ground
    value: float = 0.0
    rows: dict[int, Floats] = field(default_factory=dict)
    """Set -> (queries that include it, sites)."""
    members: dict[int, list[int]] = field(default_factory=dict)
    paid: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    """(set, site) -> query -> what the operator costs it in full, in the trees of the last bound."""
    where: list[list[tuple[int, int]]] = field(default_factory=list)
    """Query -> set and row of each of its subsets."""

    def __post_init__(self) -> None:
        masks = [self._masks(query) for query in range(len(self.ground.masks))]
        for query, subsets in enumerate(masks):
            here = []
            for mask in subsets:
                members = self.members.setdefault(mask, [])
                here.append((mask, len(members)))
                members.append(query)
            self.where.append(here)
        # Without reuse everybody pays for everything.
        alone = not self.ground.problem.reuse
        for mask, members in self.members.items():
            size = 1.0 if alone else 1.0 / len(members)
            self.rows[mask] = np.full((len(members), len(self.ground.sites)), size)

    def bound(self) -> float:
        self.paid.clear()
        self.value = sum(self._least(query) for query in range(len(self.where)))
        return self.value

    def move(self, ahead: float, reach: float) -> None:
        """One step, by so much of the bound's slope: raise what was paid for, and project on the simplex."""
        near = self._near(reach)
        steps: dict[int, Floats] = {}
        for (mask, site), slope in self._slopes().items():
            step = steps.setdefault(mask, np.zeros(self.rows[mask].shape))
            step += slope[:, None] * near[site]
        gain = sum(float(slope @ steps[mask][:, site]) for (mask, site), slope in self._slopes().items())
        if gain > 0:
            for mask, step in steps.items():
                self.rows[mask] = on_simplex(self.rows[mask] + ahead / gain * step)

    def _slopes(self) -> dict[tuple[int, int], Floats]:
        """Of the bound, for all operators that somebody pays for and others could. Without their means: what
        all pay alike would be projected away."""
        found = {}
        for (mask, site), paid in self.paid.items():
            members = self.members[mask]
            if len(members) > 1 and self.ground.problem.reuse:
                slope = np.array([paid.get(query, 0.0) for query in members])
                found[mask, site] = slope - slope.mean()
        return found

    def _near(self, reach: float) -> Floats:
        """How much a step at one site (row) is one at another, too."""
        distance = self.ground.distance
        mean = distance[np.isfinite(distance)].mean() or 1.0
        weights: Floats = np.exp(-distance / (max(reach, 1e-6) * mean))
        return weights

    def _least(self, query: int) -> float:
        ground = self.ground
        here = ground.local(ground.masks[query], WHOLE)
        share = np.stack([self.rows[mask][row] for mask, row in self.where[query]])
        used: Ints = np.full((len(here.masks), 2), -1)
        paid = np.zeros(len(here.masks))
        out = ground.outs[query]
        value = cheapest_share(here.rate, here.base, ground.distance, ground.allowed, share, out, used, paid)
        for (subset, site), cost in zip(used.tolist(), paid.tolist(), strict=True):
            if subset >= 0:
                self.paid.setdefault((here.masks[subset], site), {})[query] = cost
        return float(value)

    def _masks(self, query: int) -> tuple[int, ...]:
        return self.ground.local(self.ground.masks[query], WHOLE).masks


def on_simplex(points: Floats) -> Floats:
    """For each column the nearest one with entries >= 0 that add up to 1 (Held, Wolfe, Crowder 1974)."""
    ranked = -np.sort(-points, axis=0)
    excess = (np.cumsum(ranked, axis=0) - 1) / np.arange(1, len(points) + 1)[:, None]
    last = (ranked > excess).sum(axis=0) - 1
    found: Floats = np.maximum(points - np.take_along_axis(excess, last[None], axis=0), 0.0)
    return found
