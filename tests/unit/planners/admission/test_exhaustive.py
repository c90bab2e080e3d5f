"""The oracle itself, on problems worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.errors import UserError
from headrace.planners.admission import exhaustive
from headrace.planners.admission.check import violations
from headrace.planners.admission.problem import HostLimits, Plan, operator
from tests.unit.planners.admission.tiny import ab_problem, crowded_problem, relay_problem

A, B = frozenset("a"), frozenset("b")
JOIN = operator(A, B)
WIDE = HostLimits("x", 8.0, 4.0, 5.0)


def test_the_cheapest_place_for_one_join() -> None:
    problem = ab_problem(WIDE, replace(WIDE, incoming=3.0))
    prices = exhaustive.Prices(network=1.0, cpu=0.0, balance=0.0)
    best = exhaustive.best_plan(problem, Plan(), problem.queries[0], prices)
    assert best == Plan(frozenset({(0, JOIN)}), frozenset({(1, 0, B)}), {A | B: 0})


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        (WIDE, 1),
        (replace(WIDE, cpu=7.9), 0),
        (replace(WIDE, incoming=3.9), 0),
        (replace(WIDE, outgoing=3.9), 0),
        (replace(WIDE, outgoing=4.0), 1),
    ],
)
def test_each_limit_decides(host: HostLimits, fits: int) -> None:
    # With 4.0 going out, one host sends its stream and the other delivers.
    assert exhaustive.most_admitted(ab_problem(host, host)) == fits


def test_a_link_decides() -> None:
    assert exhaustive.most_admitted(ab_problem(WIDE, WIDE, link=4.0)) == 1
    assert exhaustive.most_admitted(ab_problem(WIDE, WIDE, link=3.9)) == 0


def test_relays_are_found() -> None:
    assert exhaustive.most_admitted(relay_problem()) == 2


def test_what_runs_is_planned_anew_only_where_it_is_related() -> None:
    problem = crowded_problem()
    prices = exhaustive.Prices(network=1.0, cpu=0.0, balance=0.0)
    one = exhaustive.best_plan(problem, Plan(), problem.queries[0], prices)
    assert one is not None
    assert one.placements == {(0, JOIN)}
    two = exhaustive.best_plan(problem, one, problem.queries[1], prices)
    assert two is not None
    assert (1, JOIN) in two.placements
    assert violations(problem, two, ["first", "second"]) == []


def test_large_problems_are_refused() -> None:
    with pytest.raises(UserError, match="too many"):
        exhaustive.most_admitted(ab_problem(*[WIDE] * 4))
