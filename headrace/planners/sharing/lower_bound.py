"""What no plan can beat: lower bounds on the total cost and on the heaviest load.

Total. Call queries with one (slide, offset) a class, and the class with the highest edge rate in a tree its
leader (of equals, any). Edge rates only grow with the tree, so a query q of class j in a tree led by i
costs at least Omega_q * K_ij, where K_ij = E_ij is the rate of the two classes' edges together. So a plan
costs at least what opening its leaders, `rate` each, and serving every query from its leader costs:
facility location. Any v >= 0 with

    sum over classes j of max(0, v_j - Omega_j * K_ij) <= rate          for every leader i

bounds it from below by sum(v). Proof: give q the share Omega_q / Omega_j of v_j. In a tree led by i the
shares exceed the Omega_q * K_ij by at most `rate`, because a part of a class exceeds its part of the cost
by no more than the whole class does; so the tree costs at least the shares of its queries. This also covers
plans that split a class over trees.

With few classes (`_PAIRED`) the facilities are the two leading classes of a tree instead, or the one class
of a tree that has no second: K is then the rate of three classes together, and the same proof holds.

True count. q costs F * E_T + D_T with F = floor(range / slide), D_T the edges in the head of its slide;
both grow with the tree. Divided by Omega_q = F + offset / slide this is monotone in F, so its least value
over the class is at the least or the greatest F: K_ij is that minimum, and the proof above holds word for
word.

Max load. A plan that uses k nodes has at least k trees, so with a price rate - u a tree its total is at
least sum(v of that price) + k * u, and its heaviest load at least that over the k largest capacities. Also
a node costs at least `rate` and what each of its queries costs alone, and some node has its share of the
dearest queries.

All is closed form in floats, with the last digits given away (`_SAFE`). Work: O(classes^2 log classes), and
O(classes^3 log classes) with few.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headrace.planners.sharing.jit import inner, kernel
from headrace.planners.sharing.problem import CostModel, SharingProblem

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

_SAFE = 1 - 1e-9
_PRICES = (0.5, 0.8)
"""Prices of a tree, as parts of the rate, tried for the max load besides 0 and the rate itself."""
_PAIRED = 50
"""Up to so many classes the two leading classes of a tree are looked at together."""
_MOST = 600
"""With more classes only the dearest are looked at together. The others count what they cost alone: a valid
v, because it leaves the leads' slack as it is, and a tree's leader is then its first class among those
looked at."""
_SWEEPS = 2
"""How often the dual is adjusted. It helps with pairs of leads only."""


@dataclass(frozen=True, slots=True)
class LowerBounds:
    total: float
    max_load: float


@dataclass(frozen=True)
class _Classes:
    """The classes by descending edge rate, so that a tree's leader is its first class."""

    slides: _Ints
    offsets: _Ints
    overlaps: _Floats
    """Omega: the sum of range / slide."""
    least: _Ints
    most: _Ints
    """The least and the greatest floor(range / slide)."""
    of_query: NDArray[np.intp]

    @property
    def rates(self) -> _Floats:
        rates: _Floats = (1 + (self.offsets > 0)) / self.slides
        return rates

    def only(self, kept: NDArray[np.intp]) -> _Classes:
        return _Classes(
            self.slides[kept],
            self.offsets[kept],
            self.overlaps[kept],
            self.least[kept],
            self.most[kept],
            self.of_query,
        )


def lower_bounds(problem: SharingProblem) -> LowerBounds:
    """Bounds for both costs under the problem's cost model; 0 when there is nothing to run."""
    if not problem.queries:
        return LowerBounds(0.0, 0.0)
    classes = _classes(problem)
    single = np.where(classes.offsets > 0, 1 / classes.slides, 0.0)
    unit = _a_unit(classes, classes.rates[:, None], single[:, None], problem.cost)[:, 0]
    alone = classes.overlaps * unit
    kept = np.sort(np.argsort(-alone, kind="stable")[:_MOST])
    duals = _duals(classes.only(kept), problem)
    priced = {0.0: 0.0} | {part: gain - alone[kept].sum() for part, gain in duals.items()}
    totals = {part: float(alone.sum() + gain) for part, gain in priced.items()}
    overlap = np.array([q.range / q.slide for q in problem.queries])
    dear = np.sort(overlap * unit[classes.of_query])[::-1]
    load = max(_spread(problem, totals), _crowded(problem, dear))
    return LowerBounds(totals[1.0] * _SAFE, load * _SAFE)


def _duals(classes: _Classes, problem: SharingProblem) -> dict[float, float]:
    """The dual's sum for every price of a tree that is tried, by its part of the rate."""
    costs = _unit_costs(classes, problem.cost) * classes.overlaps[:, None]
    order = np.argsort(costs, axis=1)
    ranked = np.take_along_axis(costs, order, axis=1)
    # Coarser steps make a looser bound, never a wrong one.
    steps, sweeps = (500, _SWEEPS) if len(classes.slides) <= _PAIRED else (10_000, 0)
    prices = {part: part * problem.rate for part in _PRICES} if problem.nodes > 1 else {}
    duals = {part: ascend(ranked, order, price, price / steps, 0) for part, price in prices.items()}
    return duals | {1.0: ascend(ranked, order, problem.rate, problem.rate / steps, sweeps)}


def _classes(problem: SharingProblem) -> _Classes:
    ranges = np.array([q.range for q in problem.queries], dtype=np.int64)
    slides = np.array([q.slide for q in problem.queries], dtype=np.int64)
    floors, offsets = np.divmod(ranges, slides)
    rates = (1 + (offsets > 0)) / slides
    order = np.lexsort((offsets, slides, -rates))
    fresh = (np.diff(slides[order], prepend=0) != 0) | (np.diff(offsets[order], prepend=-1) != 0)
    of_query = np.empty(len(order), dtype=np.intp)
    of_query[order] = np.cumsum(fresh) - 1
    first, starts = order[fresh], np.flatnonzero(fresh)
    return _Classes(
        slides[first],
        offsets[first],
        np.add.reduceat((ranges / slides)[order], starts),
        np.minimum.reduceat(floors[order], starts),
        np.maximum.reduceat(floors[order], starts),
        of_query,
    )


def _unit_costs(classes: _Classes, cost: CostModel) -> _Floats:
    """K: what a unit of Omega of class j (row) costs at least in a tree with this lead (column); inf: it
    cannot be.

    Exact for the classes named alone.

    Two edge classes of different slides meet once in the slides' lcm, or never; those of one slide never
    meet. So the union of two classes is a sum less the meetings, and of three the meetings of all three are
    added back.
    """
    s, g = classes.slides, classes.offsets
    common = np.gcd.outer(s, s)
    once = common / (s[:, None] * s[None, :].astype(np.float64))
    meets = _meets(g, common)
    rates = classes.rates
    union = rates[:, None] + rates[None, :] - sum(meets.values()) * once
    head = _heads(classes, common, once, meets) if cost == "true" else np.zeros_like(union)
    if len(s) <= _PAIRED:
        return _of_two(classes, common, meets, union, head, cost)
    return np.where(np.tri(len(s), dtype=np.bool_), _a_unit(classes, union, head, cost), np.inf)


_Meets = dict[tuple[int, int], NDArray[np.bool_]]


def _meets(g: _Ints, common: _Ints) -> _Meets:
    """meets[a, b][j, i]: does the opening (0) or closing (1) edge of j ever fall on that of i?"""
    closes, zero = g > 0, g[:, None] % common == 0
    closing = closes[:, None] & closes[None, :] & ((g[:, None] - g[None, :]) % common == 0)
    opening = closes[:, None] & zero
    return {(0, 0): np.ones_like(zero), (1, 0): opening, (0, 1): opening.T, (1, 1): closing}


def _heads(classes: _Classes, common: _Ints, once: _Floats, meets: _Meets) -> _Floats:
    """The edges in the head [0, g) of j's slide: its own at 0, and i's edges there that are not j's edge at
    0."""
    g = classes.offsets[:, None]
    opening = -(-g // common) - 1
    first = classes.offsets[None, :] % common
    closing = (classes.offsets > 0) * (np.maximum(0, -((first - g) // common)) - meets[0, 1])
    heads: _Floats = np.where(g > 0, 1 / classes.slides[:, None] + (opening + closing) * once, 0.0)
    return heads


def _of_two(
    classes: _Classes, common: _Ints, meets: _Meets, union: _Floats, head: _Floats, cost: CostModel
) -> _Floats:
    """One column for every pair of leading classes, then one for every class that has a tree to itself."""
    one, two = np.triu_indices(len(classes.slides), 1)
    rates, s = classes.rates, classes.slides.astype(np.float64)
    overlaps = rates[:, None] + rates[None, :] - union
    rows = np.arange(len(s))[:, None]
    # 1 / lcm of three slides, by their common divisors.
    triple = np.gcd(common[:, one], classes.slides[two])
    once = common[:, one] * (common[:, two] / s[:, None]) * (common[one, two] / (s[one] * s[two])) / triple
    times = sum(
        meets[a, b][one, two] * meets[c, a][:, one] * meets[c, b][:, two]
        for a, b, c in product((0, 1), repeat=3)
    )
    all_three = union[one, two] + rates[:, None] - overlaps[:, one] - overlaps[:, two] + times * once
    member = (rows == one) | (rows == two)
    rate = np.where(member, union[one, two], all_three)
    costs = _a_unit(classes, rate, np.maximum(head[:, one], head[:, two]), cost)
    single = np.where(np.eye(len(s), dtype=np.bool_), _a_unit(classes, union, head, cost), np.inf)
    return np.hstack([np.where(member | (rows > two), costs, np.inf), single])


def _a_unit(classes: _Classes, rate: _Floats, head: _Floats, cost: CostModel) -> _Floats:
    """The cost of a unit of Omega, least over the queries of the class."""
    if cost == "paper":
        return rate
    part = classes.offsets / classes.slides
    least, most = ((f[:, None] * rate + head) / (f + part)[:, None] for f in (classes.least, classes.most))
    return np.minimum(least, most)


def _spread(problem: SharingProblem, priced: dict[float, float]) -> float:
    """The least, over the number of nodes in use, of the total they then share over what they can carry."""
    capacities = np.cumsum(np.sort(np.array(problem.capacities))[::-1])[: len(problem.queries)]
    used = np.arange(1, len(capacities) + 1)
    totals = np.stack([bound + used * ((1 - part) * problem.rate) for part, bound in priced.items()])
    return float(np.min(np.max(totals, axis=0) / capacities))


def _crowded(problem: SharingProblem, dear: _Floats) -> float:
    """Of the k * nodes + 1 dearest queries some node has k + 1, at best the cheapest of them."""
    sums = np.concatenate(([0.0], np.cumsum(dear)))
    ends = np.arange(1, len(dear) + 1, problem.nodes)
    crowds = sums[ends] - sums[ends - np.arange(1, len(ends) + 1)]
    return (problem.rate + float(crowds.max())) / max(problem.capacities)


@inner
def raised(
    ranked: _Floats, order: NDArray[np.intp], v: _Floats, slack: _Floats, step: float, start: int
) -> None:
    """Erlenkotter's dual ascent: in turn raise every v[j] a step until a lead it pays has no slack."""
    n, leads = ranked.shape
    blocked = np.zeros(n, np.bool_)
    left = n
    while left:
        for turn in range(n):
            j = (start + turn) % n
            if blocked[j]:
                continue
            goal, above = np.inf, False
            for r in range(leads):
                cost = ranked[j, r]
                if cost > v[j] and not above:
                    above, goal = True, min(goal, max(cost, v[j] + step))
                if cost >= goal:
                    break
                goal = min(goal, max(v[j], cost) + slack[order[j, r]])
            if goal - v[j] <= step / 1000:
                blocked[j], left = True, left - 1
                continue
            for r in range(leads):
                if ranked[j, r] >= goal:
                    break
                slack[order[j, r]] -= goal - max(v[j], ranked[j, r])
            v[j] = goal


@kernel
def ascend(ranked: _Floats, order: NDArray[np.intp], price: float, step: float, sweeps: int) -> float:
    """Dual ascent, then his adjustment: lower one v a level and let the others use what it frees."""
    n, leads = ranked.shape
    v, slack = ranked[:, 0].copy(), np.full(leads, price)
    raised(ranked, order, v, slack, step, 0)
    for _ in range(sweeps):
        before = v.sum()
        for j in range(n):
            lower = np.searchsorted(ranked[j], v[j]) - 1
            if lower < 0:
                continue
            old_v, old_slack = v.copy(), slack.copy()
            for r in range(lower + 1):
                slack[order[j, r]] += v[j] - max(ranked[j, r], ranked[j, lower])
            v[j] = ranked[j, lower]
            raised(ranked, order, v, slack, step, (j + 1) % n)
            if v.sum() <= old_v.sum():
                v[:], slack[:] = old_v, old_slack
        if v.sum() <= before * (1 + 1e-6):
            break
    return float(v.sum())
