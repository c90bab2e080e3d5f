"""Find what units of work cost from runs whose work is known.

Each run gives one equation: the sum of (how much of a kind of work) x (its price) is the time it took. They
are solved by least squares over prices that are not negative, with errors relative to the size of a run: a
run of a minute shall not drown the ones of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from headrace.errors import InternalError

KINDS = (
    ("job", "batch", "query_batch"),
    ("row", "row_argument"),
    ("fragment", "fragment_slide", "cell", "cell_output"),
    ("plain_job", "plain_batch", "plain_row", "expanded_row", "plain_state"),
)
"""Prices that move together from machine to machine: starting things, the JVM's rows, numpy, Spark alone."""
Floats = NDArray[np.float64]
_SHORTEST = 0.5
"""Seconds. Shorter runs are mostly noise and count as if they had been so long."""


@dataclass(frozen=True, slots=True)
class Run:
    name: str
    work: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class Fitted:
    prices: dict[str, float]
    errors: dict[str, float]
    """By run: predicted / measured - 1."""

    @property
    def typical(self) -> float:
        """The middle one of the errors, without its sign."""
        return median(map(abs, self.errors.values()))

    @property
    def worst(self) -> float:
        return max(map(abs, self.errors.values()))


def fit(runs: Sequence[Run], known: Mapping[str, float] | None = None) -> Fitted:
    """Prices of all kinds of work in the runs. Those in `known` are taken as they are."""
    given = known or {}
    names = sorted({name for run in runs for name in run.work} - set(given))
    if not runs or not names:
        raise InternalError("nothing to fit")
    work = np.array([[run.work.get(name, 0.0) for name in names] for run in runs], dtype=np.float64)
    left = np.array([run.seconds - cost(run.work, given) for run in runs], dtype=np.float64)
    weight = 1 / np.array([max(run.seconds, _SHORTEST) for run in runs], dtype=np.float64)
    # Amounts differ by nine orders of magnitude; equal columns keep the solver's tolerances meaningful.
    size = np.maximum(np.abs(work * weight[:, None]).max(axis=0), 1e-300)
    found = non_negative(work * weight[:, None] / size, left * weight) / size
    prices = dict(zip(names, map(float, found), strict=True)) | dict(given)
    return Fitted(prices, {run.name: cost(run.work, prices) / run.seconds - 1 for run in runs})


def rescale(runs: Sequence[Run], prices: Mapping[str, float]) -> Fitted:
    """Prices in the proportions of those given, each kind as a whole made dearer or cheaper: for few runs."""
    grouped = [Run(run.name, _by_kind(run.work, prices), run.seconds) for run in runs]
    factors = fit(grouped)
    new = {name: prices[name] * factors.prices[kind[0]] for kind in KINDS for name in kind}
    return Fitted(new, factors.errors)


def _by_kind(work: Mapping[str, float], prices: Mapping[str, float]) -> dict[str, float]:
    """What the work of each kind costs at the given prices, under the kind's first name."""
    return {kind[0]: cost({name: work.get(name, 0.0) for name in kind}, prices) for kind in KINDS}


def cost(work: Mapping[str, float], prices: Mapping[str, float]) -> float:
    """What so much work costs; kinds without a price cost nothing."""
    return sum(amount * prices.get(name, 0.0) for name, amount in work.items())


def non_negative(a: Floats, b: Floats) -> Floats:
    """The x >= 0 with the least |a x - b|. Active set of Lawson and Hanson (1974), chapter 23: the error
    falls with every set tried, so none is tried twice; where rounding keeps it from that, it ends."""
    x, free, error = np.zeros(a.shape[1]), np.zeros(a.shape[1], dtype=np.bool_), float("inf")
    while True:
        rest = b - a @ x
        gain = np.where(free, -np.inf, a.T @ rest)
        if gain.max() <= 0 or not float(rest @ rest) < error:
            return x
        error = float(rest @ rest)
        free[gain.argmax()] = True
        x = _settle(a, b, x, free)


def _settle(a: Floats, b: Floats, x: Floats, free: NDArray[np.bool_]) -> Floats:
    """The least error over the free variables; those that would become negative are taken out of `free`."""
    while free.any():
        best = np.zeros_like(x)
        best[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
        below = free & (best <= 0)
        if not below.any():
            return best
        step = float((x[below] / (x[below] - best[below])).min(initial=1.0))
        x = x + step * (best - x)
        free &= x > 1e-15
        x = np.where(free, x, 0.0)
    return np.zeros_like(x)
