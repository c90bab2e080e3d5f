"""Exact edge rates against the bit set, inclusion-exclusion and hand-made cases."""

from __future__ import annotations

import random
from fractions import Fraction
from math import prod

import pytest

from headrace.planners.sharing import edges
from headrace.planners.sharing.brute_force import bitset_edge_rate, composite_slide, inclusion_exclusion
from headrace.planners.sharing.edges import EdgeCounter, Window, edge_rate
from tests.edges_check import differing, large_sets, small_sets


def primes_below(n: int) -> list[int]:
    return [p for p in range(2, n) if all(p % d for d in range(2, int(p**0.5) + 1))]


def random_windows(seed: int, count: int, lowest: int, highest: int) -> list[Window]:
    rng = random.Random(seed)
    return [(rng.randint(1, 9 * s), s) for s in rng.sample(range(lowest, highest), count)]


def test_a_slice_of_the_long_check_agrees() -> None:
    said: list[str] = []
    assert differing(500, 10, seed=1, say=said.append) == 0, said


def test_the_long_check_notices_a_wrong_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "_pair", lambda one, two: (0, 0, 1))
    assert differing(40, 0, seed=1, say=lambda line: None) > 0


@pytest.mark.parametrize(
    ("windows", "rate"),
    [
        (
            [(6, 2), (8, 4)],
            Fraction(1, 2),
        ),  # the paper's example 1: a partial aggregate every 2 s serves both
        ([(5, 3)], Fraction(2, 3)),
        ([(7, 1), (5, 3)], Fraction(1)),
        ([(4, 2), (6, 3)], Fraction(4, 6)),
        ([(3, 4), (2, 4)], Fraction(3, 4)),
        ([], Fraction(0)),
    ],
)
def test_known_rates(windows: list[Window], rate: Fraction) -> None:
    found = edge_rate(windows)
    assert found.exact
    assert found.low == rate


def test_primes_multiply_however_large_their_lcm() -> None:
    primes = primes_below(5_000)[-60:]
    assert len(str(prod(primes))) > 200
    found = edge_rate([(p + 1, p) for p in primes])
    assert found.exact
    assert found.low == 1 - prod((1 - Fraction(2, p) for p in primes), start=Fraction(1))


def test_many_small_slides_are_exact() -> None:
    windows = [(s, s) for s in range(12, 43)]
    assert edge_rate(windows, budget=1_000).low == inclusion_exclusion(windows)


def test_order_and_repetition_do_not_matter() -> None:
    windows = random_windows(3, 8, 2, 200)
    assert edge_rate(windows) == edge_rate(windows[::-1] + windows[:3])


def test_a_counter_agrees_with_fresh_counts_as_a_tree_grows() -> None:
    counter, windows = EdgeCounter(), random_windows(4, 25, 20, 3_000)
    for size in range(1, len(windows)):
        grown = counter.added(windows[:size], windows[size : size + 1])
        assert grown == counter.rate(windows[: size + 1]) == edge_rate(windows[: size + 1])


@pytest.mark.parametrize("budget", [0, 1, 3, 10, 40])
def test_a_spent_budget_gives_an_interval_that_holds_the_truth(budget: int) -> None:
    tried = [w for w in small_sets(80, seed=5) if len(w) > 3]
    tried += [[(s, s) for _, s in w] for w in tried] + list(large_sets(6, seed=6))
    wide = 0
    for windows in tried:
        found = edge_rate(windows, budget=budget)
        small = composite_slide(windows) <= 2_000_000
        truth = bitset_edge_rate(windows) if small else inclusion_exclusion(windows)
        assert 0 <= found.low <= truth <= found.high <= 1
        wide += not found.exact
    assert wide or budget == 40


def test_the_interval_narrows_with_the_budget() -> None:
    windows = random_windows(8, 40, 100, 5_000)
    found = [edge_rate(windows, budget=budget) for budget in (0, 200, 100_000)]
    widths = [rate.high - rate.low for rate in found]
    assert widths[0] > widths[1] > widths[2] == 0
    assert all(rate.low <= found[2].low <= rate.high for rate in found)


def test_few_cells_are_needed() -> None:
    """The work, not the time: a tree of ten slides in the thousands is settled with a few hundred cells."""
    for seed in range(20):
        assert edge_rate(random_windows(seed, 10, 2, 5_000), budget=1_000).exact
