"""The true number of final operations against a walk over one composite slide."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from headrace.planners.sharing.brute_force import (
    composite_slide,
    counted_operations,
    simulated_operations,
)
from headrace.planners.sharing.edges import EdgeCounter, Window, edge_rate
from headrace.planners.sharing.operations import final_operations
from tests.edges_check import small_sets


@pytest.mark.parametrize("seed", [1, 2])
def test_equals_a_walk_over_the_composite_slide(seed: int) -> None:
    counter = EdgeCounter()
    for windows in small_sets(80, seed):
        walked = simulated_operations(windows)
        assert final_operations(windows, counter=counter) == (walked, walked), windows


def test_equals_inclusion_exclusion_where_nothing_can_be_walked() -> None:
    rng = random.Random(3)
    for _ in range(5):
        windows = [(rng.randint(1, 9 * s), s) for s in rng.sample(range(200, 3_000), 5)]
        assert composite_slide(windows) > 10**8
        counted = counted_operations(windows)
        assert final_operations(windows) == (counted, counted)


def test_is_the_papers_product_when_slides_divide_ranges() -> None:
    windows: list[Window] = [(6, 2), (8, 4), (30, 5), (9, 9)]
    overlap = sum(Fraction(r, s) for r, s in windows)
    assert final_operations(windows)[0] == edge_rate(windows).low * overlap


def test_differs_from_the_papers_product_otherwise() -> None:
    # Windows of 5 every 3 take in [0,2) [2,3) [3,5): 3 fragments every 3; the product says 2/3 * 5/3.
    assert final_operations([(5, 3)]) == (Fraction(1), Fraction(1))


def test_queries_of_one_slide_and_offset_are_counted_each() -> None:
    # The edges stay the same, so a query longer by one slide costs E more than its sibling.
    few, twice, more = ([(5, 3), (9, 7)], [(5, 3), (5, 3), (9, 7)], [(5, 3), (8, 3), (9, 7)])
    assert final_operations(more)[0] - final_operations(twice)[0] == edge_rate(few).low
    assert final_operations(twice)[0] == simulated_operations(twice) > final_operations(few)[0]


def test_a_spent_budget_gives_bounds_that_hold_the_truth() -> None:
    for windows in small_sets(60, seed=9):
        low, high = final_operations(windows, counter=EdgeCounter(budget=2))
        assert low <= simulated_operations(windows) <= high
