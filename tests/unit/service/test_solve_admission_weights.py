"""Weights of O1-O4 in an admission problem: they reach the planners that choose by them, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.planners.admission.problem import Weights
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission_file import read_admission
from headrace.service.solve_request import Request
from tests.unit.service.admission_audit import Audit
from tests.unit.service.admission_problems import drawn
from tests.unit.service.test_solve_admission import solved

Json = Any

SMALL = """{
  "hosts": [{"id": "x", "cpu": 40, "in": 40, "out": 40}, {"id": "y", "cpu": 40, "in": 40, "out": 40}],
  "link_bandwidth": 100,
  "streams": [{"id": "a", "host": "x", "rate": 4}, {"id": "b", "host": "x", "rate": 4},
              {"id": "c", "host": "x", "rate": 4}, {"id": "d", "host": "x", "rate": 4}],
  "selectivities": 0.1,
  "queries": [{"streams": ["a", "b"]}, {"streams": ["c", "d"]}],
  "weights": {"network": 1, "cpu": 0, "balance": 0.1}
}"""
"""Two joins of 8 CPU each. All is at x; a join at y spares x 8 CPU and takes 8 of bandwidth."""


def weighing(weights: Json) -> Json:
    return {**json.loads(SMALL), "weights": weights}


@pytest.mark.parametrize("planner", ["milp", "heuristic"])
@pytest.mark.parametrize(
    ("weights", "hosts"), [({"network": 1, "balance": 0.1}, 1), ({"network": 0, "balance": 1}, 2)]
)
@pytest.mark.parametrize("unit", [1e-9, 1, 1e11])
def test_what_weighs_more_decides(planner: str, weights: dict[str, float], hosts: int, unit: float) -> None:
    """Only how they stand beside each other counts, whatever the unit."""
    problem = weighing({key: value * unit for key, value in {**weights, "cpu": 0}.items()})
    answer = solved(problem, Request(planner))
    assert answer["admitted"] == 2
    assert len({one["host"] for one in answer["plan"]["operators"]}) == hosts
    assert Audit(problem, answer).wrong == []


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("worth", "admitted"), [(7, 0), (9, 2)])
def test_a_query_that_costs_more_than_it_is_worth(worth: float, admitted: int, batch: int) -> None:
    """8 CPU at a price of 1."""
    problem = weighing({"admitted": worth, "network": 0, "cpu": 1, "balance": 0})
    answer = solved(problem, Request("milp", batch=batch))
    assert answer["admitted"] == admitted
    assert Audit(problem, answer).wrong == []
    if not admitted:
        assert {one["why"] for one in answer["queries"]} == {
            "it fits, and costs more than it is worth by the weights that are given"
        }


@pytest.mark.parametrize("seed", range(3))
def test_without_a_worth_of_their_own_all_that_fit_are_admitted(seed: int) -> None:
    """However dear the rest: lambda 1 is then more than all of it."""
    problem = drawn(seed, hosts=3, streams=4, queries=3)
    usual, other = (
        solved(one, Request("milp", deadline=2.0))
        for one in (problem, {**problem, "weights": {"network": 1e9, "cpu": 50}})
    )
    assert Audit(problem, other).wrong == []
    assert other["queries"][0]["admitted"] == usual["queries"][0]["admitted"]


def test_weights_are_read() -> None:
    given = read_admission(ProblemFile("p", json.dumps(weighing({"admitted": 3, "balance": 0}))))
    assert given.weights == Weights(admitted=3.0, balance=0.0)
    assert read_admission(ProblemFile("p", json.dumps(drawn(0)))).weights is None


@pytest.mark.parametrize(
    ("planner", "weights", "says"),
    [
        (None, {"cpu": 1}, "headrace does not weigh by O1-O4"),
        ("soda", {"cpu": 1}, "soda does not weigh by O1-O4"),
        ("bound", {"cpu": 1}, "bound does not weigh by O1-O4"),
        ("heuristic", {"admitted": 1}, "heuristic does not weigh admitted"),
    ],
)
def test_who_does_not_weigh_says_so_with_the_place(planner: str | None, weights: Json, says: str) -> None:
    text = SMALL.replace('{"network": 1, "cpu": 0, "balance": 0.1}', json.dumps(weights))
    with pytest.raises(UserError, match=says) as wrong:
        solved(text, Request(planner))
    assert wrong.value.span is not None
    assert wrong.value.span.where() == "p.json:8:3"


BAD = [
    (
        '{"network": 1, "cpu": 0, "balance": 0.1}',
        "^[1, 0, 0.1]",
        "weights must be an object {...}, not a list",
    ),
    ('"cpu": 0,', '^"cpus": 0,', 'unknown key "cpus" in weights'),
    ('"cpu": 0,', '"cpu": ^-1,', "weights.cpu must be at least 0, not -1"),
    ('"cpu": 0,', '"cpu": ^null,', "weights.cpu must be a number, not null"),
    ('"cpu": 0,', '"cpu": ^1e13,', "weights.cpu must be at most 1e+12"),
    ('"cpu": 0,', '"cpu": ^Infinity,', "weights.cpu must be a finite number"),
]


@pytest.mark.parametrize(("old", "new", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, says: str) -> None:
    assert SMALL.count(old) == 1
    before, after = SMALL.replace(old, new).split("^")
    with pytest.raises(UserError) as wrong:
        read_admission(ProblemFile("p.json", before + after))
    assert says in wrong.value.message
    assert wrong.value.span is not None
    place = f"p.json:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    assert wrong.value.span.where() == place
