"""Queries that leave between others: what they used is free for those that follow."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.planners.admission.problem import Removal
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission_file import read_admission
from headrace.service.solve_request import Request
from tests.unit.service.admission_audit import Audit
from tests.unit.service.admission_problems import drawn
from tests.unit.service.admission_told import check_told, told
from tests.unit.service.test_solve_admission import TWO, solved

Json = Any
PLANNERS = ["headrace", "heuristic", "soda"]

SMALL = """{
  "hosts": [{"id": "x", "cpu": 8, "in": 9, "out": 9}],
  "link_bandwidth": 100,
  "streams": [{"id": "a", "host": "x", "rate": 4}, {"id": "b", "host": "x", "rate": 4},
              {"id": "c", "host": "x", "rate": 4}],
  "selectivities": 0.1,
  "queries": [
    {"id": "one", "streams": ["a", "b"]},
    {"id": 2, "streams": ["b", "c"]},
    {"remove": "one"},
    {"streams": ["c", "b"]},
    {"remove": 2},
    {"id": "last", "streams": ["a", "c"]}
  ]
}"""
"""A join takes all 8 CPU. The second query finds none left, the third does once the first has gone."""


def with_removals(problem: Json, seed: int, *, all_of_them: bool = False) -> Json:
    """Some queries leave at random places after they came; or all, at the end, in any order."""
    rng = random.Random(seed)
    ids = [query.get("id", f"q{i + 1}") for i, query in enumerate(problem["queries"])]
    events: list[Json] = [{**query, "id": name} for name, query in zip(ids, problem["queries"], strict=True)]
    for name in rng.sample(ids, len(ids) if all_of_them else len(ids) // 2):
        at = next(i for i, one in enumerate(events) if one.get("id") == name)
        place = len(events) if all_of_them else rng.randint(at + 1, len(events))
        events.insert(place, {"remove": name})
    return {**problem, "queries": events}


@pytest.mark.parametrize("planner", [*PLANNERS, "milp"])
def test_what_a_query_used_is_free_for_the_next(planner: str) -> None:
    answer = solved(SMALL, Request(planner))
    assert [(one["id"], one["admitted"], one.get("removed")) for one in answer["queries"]] == [
        ("one", True, True),
        (2, False, None),
        ("q4", True, None),
        ("last", False, None),
    ]
    first, second = answer["removals"]
    assert (first["id"], first["removed"], first["why"]) == ("one", True, "")
    assert (second["id"], second["removed"]) == (2, False)
    assert second["why"] == "it was not admitted, so there was nothing to remove"
    assert [one["output"] for one in answer["plan"]["operators"]] == [["b", "c"]]
    assert Audit(json.loads(SMALL), answer).wrong == []


def test_a_file_with_removals_is_read() -> None:
    given = read_admission(ProblemFile("p", SMALL))
    assert given.problem.removals == (Removal("one", 2), Removal("2", 3))
    assert given.queries == {"one": "one", "2": 2, "q4": "q4", "last": "last"}


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", range(12))
def test_plans_hold_without_those_that_left(seed: int, planner: str) -> None:
    problem = with_removals(drawn(seed), seed)
    batch = 3 if planner == "soda" and seed % 2 else None
    answer = solved(problem, Request(planner, batch=batch))
    assert Audit(problem, answer).wrong == []


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", range(8))
def test_when_all_have_left_everything_is_free(seed: int, planner: str) -> None:
    problem = with_removals(drawn(seed), seed, all_of_them=True)
    answer = solved(problem, Request(planner))
    assert answer["plan"] == {"operators": [], "flows": [], "deliveries": []}
    used = [host[key] for host in answer["hosts"] for key in ("cpu_used", "in_used", "out_used")]
    assert set(used) == {0}
    assert sum(one["removed"] for one in answer["removals"]) == answer["admitted"]
    assert Audit(problem, answer).wrong == []


@pytest.mark.parametrize("seed", range(2))
def test_the_milp_lets_them_go_too(seed: int) -> None:
    small = drawn(seed, hosts=3, streams=4, queries=3)
    for all_of_them in (False, True):
        problem = with_removals(small, seed, all_of_them=all_of_them)
        answer = solved(problem, Request("milp", deadline=2.0))
        assert Audit(problem, answer).wrong == []


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", [0, *range(2, 9)])
def test_a_query_after_all_others_have_left_is_as_one_alone(seed: int, planner: str) -> None:
    problem = drawn(seed)
    ids = [query.get("id", f"q{i + 1}") for i, query in enumerate(problem["queries"])]
    named = [{**query, "id": name} for name, query in zip(ids, problem["queries"], strict=True)]
    turns = [event for query in named for event in (query, {"remove": query["id"]})]
    together = solved({**problem, "queries": turns}, Request(planner))["queries"]
    alone = [solved({**problem, "queries": [query]}, Request(planner))["queries"][0] for query in named]
    assert [(one["id"], one["admitted"]) for one in together] == [
        (one["id"], one["admitted"]) for one in alone
    ]
    assert any(one["admitted"] for one in together)


@pytest.mark.parametrize("planner", ["headrace", "heuristic", "milp"])
def test_a_stream_stays_until_its_last_query_goes(planner: str) -> None:
    body = json.loads(TWO)
    body["queries"].append({"remove": "pair"})
    body["queries"].append({"remove": "q2"})
    answer = solved(body, Request(planner))
    assert [one["stream"] for one in answer["plan"]["deliveries"]] == [["o", 2]]
    assert [one["output"] for one in answer["plan"]["operators"]] == [["o", 2]]
    body["queries"].append({"remove": 9})
    assert solved(body, Request(planner))["plan"]["operators"] == []


@pytest.mark.parametrize(("batch", "admitted"), [(1, 3), (2, 3), (5, 3)])
def test_a_removal_ends_a_batch(batch: int, admitted: int) -> None:
    """However large batches are, q3 comes after a*b has gone, and has its CPU."""
    body = json.loads(SMALL)
    body["queries"] = [
        {"streams": ["a", "b"]},
        {"remove": "q1"},
        {"streams": ["b", "c"]},
        {"remove": "q3"},
        {"streams": ["a", "c"]},
    ]
    answer = solved(body, Request("soda", batch=batch))
    assert answer["admitted"] == admitted
    assert Audit(body, answer).wrong == []


def test_an_answer_with_removals_can_be_pasted() -> None:
    body = json.loads(SMALL)
    answer = solved(body)
    queries = [one for one in body["queries"] if "remove" not in one]
    queries[2]["id"] = "q4"
    adapted = solved({**body, "queries": queries, "running": answer, "observed": {}})
    assert adapted["plan"] == answer["plan"]
    assert [one["id"] for one in adapted["queries"] if one["admitted"]] == ["q4"]


def test_the_bound_keeps_all_it_admits_and_says_so_with_the_place() -> None:
    with pytest.raises(UserError, match="bound cannot remove queries") as wrong:
        solved(SMALL, Request("bound"))
    assert wrong.value.span is not None
    assert wrong.value.span.where() == "p.json:10:5"


BAD = [
    ('{"remove": "one"}', '{"remove": ^"two"}', 'queries[2].remove: there is no query "two"'),
    ('{"remove": "one"}', '{"remove": ^"2"}', 'queries[2].remove: there is no query "2"'),
    ('{"remove": "one"}', '{"remove": ^"last"}', 'queries[2].remove: query "last" has not arrived by then'),
    ('{"remove": "one"}', '{"remove": ^"q4"}', 'queries[2].remove: query "q4" has not arrived by then'),
    ('{"remove": "one"}', '{"remove": ^null}', "queries[2].remove must name a query"),
    ('{"remove": "one"}', '{"remove": ^["one"]}', "queries[2].remove must name a query"),
    ('{"remove": "one"}', '{"remove": ^true}', "queries[2].remove must name a query"),
    ('{"remove": "one"}', '{"remove": "one", ^"id": 3}', 'unknown key "id" in queries[2]'),
    ('{"remove": 2}', '{"remove": ^"one"}', 'queries[4].remove: query "one" has left already'),
    ('{"id": "last"', '{"id": ^"one"', 'two queries have the id "one"'),
    ('["a", "c"]', '["a", ^"d"]', 'queries[5].streams[1]: there is no stream "d"'),
]
"""What is replaced, by what (^ marks the place that is told), and what is said."""


@pytest.mark.parametrize(("old", "new", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, says: str) -> None:
    check_told(SMALL, old, new, says)


def test_a_query_behind_a_removal_is_told_at_its_own_place() -> None:
    text = SMALL.replace('"selectivities": 0.1', '"rates": [[["a", "b"], 1], [["b", "c"], 1]]')
    assert told(text) == ("p.json:13:31", "queries[5].streams: the set a*c has no rate")


def test_nobody_leaves_while_a_plan_is_adapted() -> None:
    text = SMALL[:-2] + f',\n"running": {json.dumps(solved(SMALL))}, "observed": {{}}}}'
    where, message = told(text)
    assert where == "p.json:10:16"
    assert message == "queries[2].remove: nobody arrives or leaves while a plan is adapted"
