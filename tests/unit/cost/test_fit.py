"""Prices are found again from made-up runs; the solver against a search over all sets of variables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headrace.cost.fit import KINDS, Run, cost, fit, non_negative, rescale
from headrace.cost.windows import DEFAULTS
from headrace.errors import InternalError
from headrace.service.calibration_cases import CASES, PLAIN, amounts, in_batches, rows_of

PRICES = {name: value for name, value in DEFAULTS.to_dict().items() if any(name in kind for kind in KINDS)}


def brute_force(a: np.ndarray, b: np.ndarray) -> float:
    """The least error of any set of variables whose best values are not negative."""
    best, count = float(b @ b), a.shape[1]
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            x = np.linalg.lstsq(a[:, chosen], b, rcond=None)[0]
            if (x >= -1e-9).all():
                rest = b - a[:, chosen] @ x
                best = min(best, float(rest @ rest))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_non_negative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(rng.integers(2, 9), rng.integers(1, 6)))
    b = rng.normal(size=(a.shape[0], 1))[:, 0]
    x = non_negative(a, b)
    rest = b - a @ x
    assert (x >= 0).all()
    assert float(rest @ rest) == pytest.approx(brute_force(a, b), abs=1e-9)


def test_equal_columns_do_not_hang_the_solver() -> None:
    a = np.array([[1.0, 1.0], [2.0, 2.0]])
    assert a @ non_negative(a, np.array([3.0, 6.0])) == pytest.approx([3.0, 6.0])


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """The cases of a calibration, small, with what they would take at PRICES."""
    made = []
    for case in (*CASES, *PLAIN):
        small = case.scaled(0.03)
        work = in_batches({n: a * 33 for n, a in amounts(small, rows_of(small)).items()}, case.batches + 2)
        made.append(Run(case.name, work, cost(work, PRICES)))
    return made


def test_the_cases_of_a_calibration_tell_all_prices_apart(runs: list[Run]) -> None:
    found = fit(runs)
    assert found.prices == pytest.approx(PRICES, rel=1e-6)
    assert found.worst < 1e-6


def test_noise_moves_predictions_little(runs: list[Run]) -> None:
    rng = np.random.default_rng(5)
    noisy = [Run(r.name, r.work, r.seconds * rng.normal(1, 0.03)) for r in runs]
    found = fit(noisy)
    assert found.typical < 0.05
    for run in runs:
        assert cost(run.work, found.prices) == pytest.approx(run.seconds, rel=0.15)


def test_a_quick_calibration_finds_the_speed_of_each_kind(runs: list[Run]) -> None:
    factors = {kind: 0.5 + number for number, kind in enumerate(KINDS)}
    faster = {name: PRICES[name] * factor for kind, factor in factors.items() for name in kind}
    told = [Run(r.name, r.work, cost(r.work, faster)) for r in runs]
    assert rescale(told, DEFAULTS.to_dict()).prices == pytest.approx(faster, rel=1e-6)


def test_known_prices_are_kept(runs: list[Run]) -> None:
    found = fit(runs, {"job": PRICES["job"]})
    assert found.prices == pytest.approx(PRICES, rel=1e-6)


def test_nothing_cannot_be_fitted() -> None:
    with pytest.raises(InternalError):
        fit([])
