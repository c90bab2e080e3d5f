"""Prices from what sites took, and rates at which sites are full."""

from __future__ import annotations

from random import Random

import pytest

from headrace.experiments.distribution.cases import STREAM_RATE, plan_named
from headrace.experiments.distribution.prices import (
    Prices,
    Taken,
    capacity,
    counts,
    errors,
    fitted,
    loads,
    predicted,
    priced,
)
from headrace.experiments.distribution.real import overload_rate
from headrace.planners.distribution.problem import Problem, Table
from headrace.planners.distribution.usage import usage
from tests.unit.experiments.distribution.made_up import PRICES


def random_table(problem: Problem, rng: Random) -> dict[str, str]:
    return {name: rng.choice(problem.sites).id for name in problem.operator}


def taken(prices: Prices) -> list[Taken]:
    rng = Random(1)
    found: list[Taken] = []
    for _ in range(8):
        problem = plan_named("20", 3, rng.randrange(5))
        every = counts(problem, random_table(problem, rng)).values()
        found += [Taken(count, predicted(prices, count)) for count in every]
    return found


def test_prices_are_found_again_in_what_they_make() -> None:
    seen = taken(PRICES)
    found = fitted(seen)
    assert found.as_dict() == pytest.approx(PRICES.as_dict(), rel=1e-3)
    assert errors(found, seen).max() < 1e-6


def test_no_price_is_negative() -> None:
    rng = Random(2)
    noisy = [Taken(one.counts, one.cores * rng.uniform(0.3, 1.7)) for one in taken(PRICES)]
    assert min(fitted(noisy).as_dict().values()) >= 0


@pytest.mark.parametrize("rate", [STREAM_RATE, 3 * STREAM_RATE])
def test_priced_problems_have_the_loads_that_counts_tell(rate: float) -> None:
    """The planner's own loads are the independent side: they know nothing of `counts`."""
    rng = Random(3)
    problem = plan_named("20", 3, 0)
    table = random_table(problem, rng)
    known = usage(priced(problem, PRICES, rate), table)
    mine = loads(at_rate(problem, rate), table, PRICES)
    assert {site: one.load for site, one in known.sites.items()} == pytest.approx(mine)


def at_rate(problem: Problem, rate: float) -> Problem:
    """Only the rates."""
    return priced(problem, Prices(0, 0, 0, 0, 0, 0), rate)


def test_at_the_capacity_the_fullest_site_is_full() -> None:
    problem = plan_named("20", 3, 1)
    table: Table = random_table(problem, Random(4))
    for full in (1.0, 0.75):
        rate = capacity(problem, table, PRICES, full)
        assert usage(priced(problem, PRICES, rate), table).max_load == pytest.approx(full)


def test_a_site_that_is_full_without_rows_can_take_none() -> None:
    problem = plan_named("20", 1, 0)
    table = dict.fromkeys(problem.operator, "s1")
    assert capacity(problem, table, Prices(0.5, 0.1, 0, 0, 1e-5, 0)) == 0


def test_rows_that_cost_nothing_have_a_limit_all_the_same() -> None:
    problem = plan_named("5", 2, 0)
    table = dict.fromkeys(problem.operator, "s1")
    assert capacity(problem, table, Prices(0.1, 0.1, 0, 0, 1e-5, 0)) == 1e6


def test_one_site_takes_more_than_its_core_at_the_rate_for_that() -> None:
    problem = plan_named("20", 2, 0)
    table = dict.fromkeys(problem.operator, "s1")
    rate = overload_rate(problem, PRICES)
    assert usage(priced(problem, PRICES, rate), table).max_load == pytest.approx(1.5)
