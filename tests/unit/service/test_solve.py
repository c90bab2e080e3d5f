"""Sharing problems read from JSON, solved, and given back in the public form."""

from __future__ import annotations

import gc
import json
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest

from headrace.catalog.model import Optimiser
from headrace.errors import UserError
from headrace.planners.sharing.brute_force import bitset_edge_rate, optimum, plan_costs
from headrace.planners.sharing.problem import (
    NodeReport,
    SharingPlan,
    SharingProblem,
    TreeReport,
    WindowQuery,
)
from headrace.planners.sharing.solve import DEFAULT_OPTIMISER, OPTIMISERS
from headrace.service.problem_file import ProblemFile
from headrace.service.solve import (
    Request,
    SharingAnswer,
    check_out,
    fraction_text,
    list_optimisers,
    optimiser_named,
    read_sharing,
    sharing_answer,
    solve_file,
    write_answer,
)

SMALL = """{
  "rate": 10,
  "nodes": [1, 2.5],
  "queries": [
    {"id": "a", "range": 6, "slide": 2},
    {"range": 8, "slide": 4},
    {"id": "odd", "range": 5, "slide": 3},
    {"id": "rare", "range": 2, "slide": 7}
  ]
}"""
WINDOWS = {"a": (6, 2), "q2": (8, 4), "odd": (5, 3), "rare": (2, 7)}


def test_a_problem_is_read() -> None:
    queries = tuple(WindowQuery(name, r, s) for name, (r, s) in WINDOWS.items())
    assert read_sharing(ProblemFile("p", SMALL)) == SharingProblem(10.0, (1.0, 2.5), queries, "paper")
    numbered = SMALL.replace("[1, 2.5]", "3").replace('"rate": 10', '"cost": "true", "rate": 0.5')
    assert read_sharing(ProblemFile("p", numbered)) == SharingProblem(0.5, (1.0,) * 3, queries, "true")


BAD = [
    ('"rate": 10,', "", 1, 1, '"rate" is missing in the problem'),
    ('"rate": 10', '"rate": 0', 2, 11, "rate must be a finite number above 0, not 0"),
    ('"rate": 10', '"rate": -1.5', 2, 11, "above 0, not -1.5"),
    ('"rate": 10', '"rate": NaN', 2, 11, "must be a finite number above 0, not NaN"),
    ('"rate": 10', '"rate": 1e999', 2, 11, "not Infinity"),
    ('"rate": 10', '"rate": 1e13', 2, 11, "rate must be at most 1e+12"),
    ('"rate": 10', '"rate": true', 2, 11, "rate must be a number, not true"),
    ('"rate": 10', '"rate": "10"', 2, 11, 'rate must be a number, not "10"'),
    ('"rate": 10', '"rate": null', 2, 11, "rate must be a number, not null"),
    ('"rate"', '"rat"', 2, 3, 'unknown key "rat" in the problem'),
    ("[1, 2.5]", "[]", 3, 12, "nodes is empty"),
    ("[1, 2.5]", "0", 3, 12, "nodes must be at least 1, not 0"),
    ("[1, 2.5]", "2.0", 3, 12, "nodes must be a whole number or a list of capacities, not 2.0"),
    ("[1, 2.5]", "true", 3, 12, "not true"),
    ("[1, 2.5]", "1000000000000", 3, 12, "nodes must be at most 100000"),
    ("[1, 2.5]", "[1, 0]", 3, 16, "nodes[1] must be a finite number above 0, not 0"),
    ("[1, 2.5]", "[1, -Infinity]", 3, 16, "nodes[1] must be a finite number above 0, not -Infinity"),
    ("[1, 2.5]", "[1, 1e-300]", 3, 16, "nodes[1] must be at least 1e-09"),
    ("[1, 2.5]", "[1, [2]]", 3, 16, "nodes[1] must be a number, not a list"),
    ('"range": 8', '"range": 0', 6, 15, "queries[1].range must be at least 1, not 0"),
    ('"slide": 4', '"slide": -4', 6, 27, "queries[1].slide must be at least 1, not -4"),
    ('"slide": 4', '"slide": 4.0', 6, 27, "queries[1].slide must be a whole number, not 4.0"),
    ('"slide": 4', '"slide": true', 6, 27, "queries[1].slide must be a whole number, not true"),
    ('"slide": 4', '"slide": 1000000000001', 6, 27, "queries[1].slide must be at most 1000000000000"),
    ('"slide": 4', '"slide": ' + "9" * 5000, 6, 27, "queries[1].slide must be at most 1000000000000"),
    ('"slide": 4', '"slyde": 4', 6, 18, 'unknown key "slyde" in queries[1]'),
    (', "slide": 4', "", 6, 5, '"slide" is missing in queries[1]'),
    ('{"range": 8, "slide": 4}', "8", 6, 5, "queries[1] must be an object {...}, not 8"),
    ('"id": "odd"', '"id": "a"', 7, 12, 'two queries have the id "a"'),
    ('"id": "a"', '"id": "q2"', 6, 5, 'two queries have the id "q2"'),
    ('"id": "odd"', '"id": 3', 7, 12, "the id of a query must be a text, not 3"),
    ('"id": "odd"', '"id": ""', 7, 12, "the id of a query must be a text, not an empty text"),
    ('"rate": 10', '"rate": 10, "cost": "papper"', 2, 23, 'cost must be "paper" or "true"'),
    ('"rate": 10', '"rate": 10, "cost": 1', 2, 23, "not 1"),
]


@pytest.mark.parametrize(("old", "new", "line", "column", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, line: int, column: int, says: str) -> None:
    assert old in SMALL
    with pytest.raises(UserError) as wrong:
        read_sharing(ProblemFile("p.json", SMALL.replace(old, new, 1)))
    assert says in wrong.value.message
    assert wrong.value.span is not None
    assert wrong.value.span.where() == f"p.json:{line}:{column}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "the problem must be an object"),
        ('{"rate": 1, "nodes": 1, "queries": []}', "queries is empty"),
        ('{"rate": 1, "nodes": 1, "queries": {}}', "queries must be a list"),
    ],
)
def test_other_shapes(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as wrong:
        read_sharing(ProblemFile("p.json", text))
    assert wrong.value.span is not None


def test_ten_times_the_queries_load_in_some_ten_times_the_time() -> None:
    def took(count: int) -> float:
        text = json.dumps({"rate": 10, "nodes": 32, "queries": queries[:count]})
        gc.disable()  # a pass over all that the tests have loaded takes longer than what is timed
        started = time.process_time()
        assert len(read_sharing(ProblemFile("p.json", text)).queries) == count
        spent = time.process_time() - started
        gc.enable()
        return spent

    queries = [{"range": 3 * (i % 500 + 1), "slide": i % 500 + 1} for i in range(10_000)]
    # A search of the text for the place of every value while reading would make it a hundred times.
    assert min(took(10_000) for _ in range(3)) < 40 * min(took(1_000) for _ in range(3))
    queries[-1]["slide"] = 0
    with pytest.raises(UserError, match=r"queries\[9999\].slide must be at least 1"):
        read_sharing(ProblemFile("p.json", json.dumps({"rate": 10, "nodes": 32, "queries": queries})))


def _solved(tmp_path: Path, text: str, request: Request) -> SharingAnswer:
    (tmp_path / "p.json").write_text(text)
    answer = solve_file("sharing", str(tmp_path / "p.json"), request)
    assert answer["problem"] == "sharing"
    return answer


@pytest.mark.parametrize("cost", ["paper", "true"])
@pytest.mark.parametrize("optimiser", sorted(OPTIMISERS))
def test_the_answer_is_what_an_independent_count_gives(tmp_path: Path, optimiser: str, cost: str) -> None:
    text = SMALL.replace('"rate": 10', f'"rate": 10, "cost": "{cost}"')
    problem = read_sharing(ProblemFile("p", text))
    answer = _solved(tmp_path, text, Request(optimiser.lower(), seconds=0.02))
    position = {query.id: i for i, query in enumerate(problem.queries)}
    assignment = tuple(
        tuple(tuple(position[q] for q in tree["queries"]) for tree in node["trees"])
        for node in answer["nodes"]
    )
    assert sorted(q for trees in assignment for tree in trees for q in tree) == [0, 1, 2, 3]
    total, costs = plan_costs(problem, assignment)
    assert answer["node_costs"] == pytest.approx(list(costs))
    assert [node["cost"] for node in answer["nodes"]] == answer["node_costs"]
    assert answer["total_cost"] == pytest.approx(float(total))
    assert answer["max_cost"] == pytest.approx(max(costs))
    assert answer["max_load"] == pytest.approx(max(c / k for c, k in zip(costs, (1, 2.5), strict=True)))
    assert answer["unshared_cost"] == pytest.approx(
        plan_costs(replace(problem, capacities=(1.0,)), (tuple((i,) for i in range(4)),))[0]
    )
    best = optimum(problem)
    assert answer["lower_bound"] <= best.total + 1e-9 <= answer["total_cost"] + 2e-9
    assert answer["lower_bound_max"] <= best.max_load + 1e-9 <= answer["max_load"] + 2e-9
    assert (answer["problem"], answer["optimiser"], answer["cost"]) == ("sharing", optimiser, cost)


def test_every_tree_tells_its_rate_exactly(tmp_path: Path) -> None:
    answer = _solved(tmp_path, SMALL, Request("W_RR"))
    for node in answer["nodes"]:
        for tree in node["trees"]:
            windows = [WINDOWS[q] for q in tree["queries"]]
            rate = bitset_edge_rate(windows)
            assert tree["edge_rate"] == f"{rate.numerator}/{rate.denominator}"
            assert tree["edge_rate_float"] == pytest.approx(float(rate))
            overlap = sum((Fraction(r, s) for r, s in windows), Fraction(0))
            assert Fraction(tree["overlap_exact"]) == overlap
            assert tree["exact"] and "edge_rate_low" not in tree
            assert tree["cost"] == pytest.approx(10 + float(rate * overlap))


def test_a_rate_that_is_not_exact_says_so() -> None:
    tree = TreeReport(("a",), Fraction(1, 2), Fraction(1, 3), Fraction(3), 11.0)
    nodes = (NodeReport(1.0, 11.0, (tree,)),)
    problem = SharingProblem(10.0, (1.0,), (WindowQuery("a", 6, 2),))
    plan = SharingPlan("X", "paper", nodes, (((0,),),), 11.0, 11.0, 11.0, 11.0, 9.0, 9.0, 0.1, 0.0)
    (told,) = sharing_answer(problem, plan, front=False)["nodes"][0]["trees"]
    assert (told["exact"], told["edge_rate"], told.get("edge_rate_low")) == (False, "1/2", "1/3")


def test_the_front_is_given_when_asked_for(tmp_path: Path) -> None:
    assert "front" not in _solved(tmp_path, SMALL, Request(seconds=0.02))
    front = _solved(tmp_path, SMALL, Request(seconds=0.02, front=True)).get("front", [])
    assert front
    problem = read_sharing(ProblemFile("p", SMALL))
    position = {query.id: i for i, query in enumerate(problem.queries)}
    for point in front:
        trees = tuple(tuple(tuple(position[q] for q in t) for t in node) for node in point["nodes"])
        assert point["total_cost"] == pytest.approx(float(plan_costs(problem, trees)[0]))


def test_fractions_are_always_a_over_b() -> None:
    assert fraction_text(Fraction(1)) == "1/1"
    assert fraction_text(Fraction(7, 12)) == "7/12"
    # 2^-40000: more digits than Python converts by itself.
    text = fraction_text(Fraction(1, 2**40_000))
    assert len(text) > sys.get_int_max_str_digits()
    assert text.startswith("1/") and text.endswith(str(pow(2, 40_000, 10**12)).zfill(12))


def test_names_of_optimisers() -> None:
    listed = list_optimisers("SHARING")
    assert next(iter(listed)) == DEFAULT_OPTIMISER
    assert listed == dict(OPTIMISERS)
    assert optimiser_named(None, listed) == optimiser_named("ours", listed) == DEFAULT_OPTIMISER
    assert optimiser_named("wg_tn", listed) == "WG_TN"
    with pytest.raises(UserError, match='optimiser "WG_TM" does not exist') as wrong:
        optimiser_named("WG_TM", listed)
    assert wrong.value.hint == 'Did you mean "WG_TN"?'
    with pytest.raises(UserError, match='planner "sharking" does not exist') as wrong:
        list_optimisers("sharking")
    assert wrong.value.hint == 'Did you mean "sharing"?'


def test_the_project_file_knows_the_same_optimisers() -> None:
    assert set(get_args(Optimiser)) == set(OPTIMISERS)


@pytest.mark.parametrize(
    "request_", [Request(balance=-0.1), Request(balance=float("nan")), Request(seconds=0)]
)
def test_wrong_options(tmp_path: Path, request_: Request) -> None:
    with pytest.raises(UserError, match="must be"):
        _solved(tmp_path, SMALL, request_)


def test_the_answer_replaces_a_file_at_once(tmp_path: Path) -> None:
    answer = _solved(tmp_path, SMALL, Request("G_RR"))
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_answer(tmp_path / "link.json", answer)
    assert json.loads((tmp_path / "real.json").read_text()) == answer
    assert (tmp_path / "link.json").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "p.json", "real.json"]


def test_answers_that_cannot_be_written(tmp_path: Path) -> None:
    for path, says in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "a.json", "there is no such folder"),
        (Path("/dev/null"), "it is not a regular file"),
    ):
        with pytest.raises(UserError, match=says):
            check_out(path)
