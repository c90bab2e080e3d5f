"""Admission problems read from JSON, solved, and given back in the public form."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.admission.problem import Base, HostLimits, Query
from headrace.planners.admission.workload import Setup, asked_rates, paper_problem
from headrace.service.problem_file import ProblemFile
from headrace.service.solve import Request, list_optimisers, read_deadline, solve_file
from headrace.service.solve_admission import AdmissionAnswer, AdmittedData, solve_admission
from headrace.service.solve_admission_file import read_admission
from tests.unit.service.admission_audit import Audit
from tests.unit.service.admission_problems import drawn

Json = Any

TWO = """{
  "hosts": [{"id": "east", "cpu": 30, "in": 15, "out": 20}, {"id": 7, "cpu": 30, "in": 15, "out": 20}],
  "link_bandwidth": [[0, 14], [8, 0]],
  "streams": [{"id": "o", "host": "east", "rate": 16}, {"id": 2, "host": 7, "rate": 8},
              {"id": "c", "host": "east", "rate": 12}],
  "rates": [[[2, "o"], 2], [["c", 2], 3], [["c", 2, "o"], 1]],
  "queries": [{"id": "pair", "streams": ["o", 2]}, {"streams": [2, "c", "o"]}, {"id": 9, "streams": [2, "o"]},
              {"id": "late", "streams": ["c", 2]}]
}"""
"""Host 7 cannot take o in, so o*2 is made at east for 24 CPU. With c that is 14 more, which only 7 has; the
link takes 2 + 12 = 14. The last query needs 20 CPU; east has 6 left, 7 has 16."""


def solved(problem: Json, request: Request | None = None) -> Json:
    """The answer, as a program reads it."""
    text = problem if isinstance(problem, str) else json.dumps(problem)
    found = solve_admission(ProblemFile("p.json", text), request or Request())
    return json.loads(json.dumps(found, allow_nan=False))


def test_a_problem_is_read() -> None:
    given = read_admission(
        ProblemFile("p", TWO.replace('"in": 15, "out": 20}]', '"in": 15, "out": 4, "memory": 3}]'))
    )
    problem = given.problem
    assert problem.hosts == (HostLimits("east", 30.0, 15.0, 20.0), HostLimits(7, 30.0, 15.0, 4.0, 3.0))
    assert isinstance(problem.link_bandwidth, np.ndarray)
    assert problem.link_bandwidth.tolist() == [[15, 14], [8, 4]]
    assert problem.streams == {"o": Base("o", 0, 16.0), "2": Base("2", 1, 8.0), "c": Base("c", 0, 12.0)}
    assert problem.rates == {frozenset("2o"): 2.0, frozenset("2c"): 3.0, frozenset("2co"): 1.0}
    assert problem.queries == (
        Query("pair", frozenset("2o")),
        Query("q2", frozenset("2co")),
        Query("9", frozenset("2o")),
        Query("late", frozenset("2c")),
    )
    assert (problem.operator_cost, problem.memory_cost) == (1.0, 0.0)
    assert given.streams == {"o": "o", "2": 2, "c": "c"}
    assert given.queries == {"pair": "pair", "q2": "q2", "9": 9, "late": "late"}


def test_selectivities_give_rates() -> None:
    body = json.loads(TWO)
    shares = [[["o", 2], 0.5], [["c", 2], 0.25], [[2, "c", "o"], 0.1]]
    del body["rates"]
    listed = read_admission(ProblemFile("p", json.dumps({**body, "selectivities": shares}))).problem
    assert listed.rates == pytest.approx({frozenset("2o"): 12, frozenset("2c"): 5, frozenset("2co"): 3.6})
    same = read_admission(
        ProblemFile("p", json.dumps({**body, "selectivities": 0.5, "operator_cost": 2}))
    ).problem
    # Also of o*c, which no query wants but one may be made of.
    sums = {frozenset("2o"): 24, frozenset("2c"): 20, frozenset("co"): 28, frozenset("2co"): 36}
    assert same.rates == pytest.approx({some: total / 2 for some, total in sums.items()})
    assert same.operator_cost == 2


@pytest.mark.parametrize("planner", ["headrace", "milp", "heuristic"])
def test_the_answer_worked_out_by_hand(planner: str) -> None:
    answer = solved(TWO, Request(planner))
    assert [(query["id"], query["admitted"]) for query in answer["queries"]] == [
        ("pair", True),
        ("q2", True),
        (9, True),
        ("late", False),
    ]
    assert "cpu" in answer["queries"][3]["why"]
    assert answer["plan"] == {
        "operators": [
            {"host": "east", "inputs": [["o"], [2]], "output": ["o", 2], "cpu": 24},
            {"host": 7, "inputs": [["o", 2], ["c"]], "output": ["o", 2, "c"], "cpu": 14},
        ],
        "flows": [
            {"from": "east", "to": 7, "stream": ["o", 2], "rate": 2},
            {"from": "east", "to": 7, "stream": ["c"], "rate": 12},
            {"from": 7, "to": "east", "stream": [2], "rate": 8},
        ],
        "deliveries": [
            {"stream": ["o", 2], "host": answer["plan"]["deliveries"][0]["host"]},
            {"stream": ["o", 2, "c"], "host": 7},
        ],
    }
    at_east = 2 * (answer["plan"]["deliveries"][0]["host"] == "east")
    limits = {"cpu": 30, "in": 15, "out": 20}
    assert answer["hosts"] == [
        {"id": "east", **limits, "cpu_used": 24, "in_used": 8, "out_used": 14 + at_east},
        {"id": 7, **limits, "cpu_used": 14, "in_used": 14, "out_used": 11 - at_east},
    ]
    assert answer["links"] == [
        {"from": "east", "to": 7, "bandwidth": 14, "used": 14},
        {"from": 7, "to": "east", "bandwidth": 8, "used": 8},
    ]
    assert (answer["admitted"], answer["refused"]) == (3, 1)
    assert (answer["problem"], answer["planner"], answer["optimiser"]) == ("admission", planner, planner)


def test_every_field_of_the_answer_is_there() -> None:
    answer = solved(TWO)
    sometimes = {"notes", "offline_bound", "adapted", "removals"}
    assert list(answer) == [key for key in AdmissionAnswer.__annotations__ if key not in sometimes]
    usual = [key for key in AdmittedData.__annotations__ if key != "removed"]
    assert all(list(query) == usual for query in answer["queries"])
    assert answer["seconds"] * 1000 >= sum(query["milliseconds"] for query in answer["queries"]) > 0


def test_memory_is_told_where_it_counts() -> None:
    problem = TWO.replace('"out": 20}, {"id": 7', '"out": 20, "memory": 12}, {"id": 7')
    plain = solved(problem)
    assert [host.get("memory_used") for host in plain["hosts"]] == [0, None]
    counted = solved(problem.replace('"link_b', '"memory_cost": 0.5, "link_b'))
    assert [host["memory_used"] for host in counted["hosts"]] == [12, 7]
    assert [host.get("memory") for host in counted["hosts"]] == [12, None]
    assert [one["memory"] for one in counted["plan"]["operators"]] == [12, 7]
    refused = solved(problem.replace('"link_b', '"memory_cost": 0.6, "link_b'))
    assert "memory" in refused["queries"][0]["why"]


def test_the_bound_says_that_it_has_no_plan() -> None:
    """All hosts together have 60 CPU; the queries take 24, 14, nothing, and 20."""
    answer = solved(TWO, Request("bound"))
    assert (answer["admitted"], answer["offline_bound"]) == (4, pytest.approx(4))
    assert answer["plan"] == {"operators": [], "flows": [], "deliveries": []}
    assert "none" in answer["notes"]["plan"]


@pytest.mark.parametrize("planner", ["headrace", "heuristic", "soda"])
@pytest.mark.parametrize("seed", range(15))
def test_an_answer_can_be_checked_by_anyone(seed: int, planner: str) -> None:
    problem = drawn(seed)
    batch = 3 if planner == "soda" and seed % 2 else None
    answer = solved(problem, Request(planner.upper(), batch=batch))
    assert Audit(problem, answer).wrong == []


@pytest.mark.parametrize("planner", ["headrace", "heuristic", "soda"])
@pytest.mark.parametrize("seed", range(6))
def test_rates_and_costs_may_be_zero(seed: int, planner: str) -> None:
    problem = drawn(seed, zeros=True)
    assert Audit(problem, solved(problem, Request(planner))).wrong == []


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_of_the_milp_too(seed: int) -> None:
    problem = drawn(seed, hosts=3, streams=4, queries=3)
    assert Audit(problem, solved(problem, Request("milp", deadline=2.0))).wrong == []


def test_some_are_refused_and_some_are_not() -> None:
    """Otherwise the audits above would say little."""
    answers = [solved(drawn(seed)) for seed in range(8)]
    assert sum(answer["admitted"] for answer in answers) > 10
    assert sum(answer["refused"] for answer in answers) > 10
    assert sum(len(answer["plan"]["flows"]) for answer in answers) > 10


def _more_cpu(answer: Json) -> None:
    answer["plan"]["operators"][0]["host"] = 7


def _no_source(answer: Json) -> None:
    del answer["plan"]["flows"][0]


def _narrow(answer: Json) -> None:
    answer["plan"]["flows"].append({"from": 7, "to": "east", "stream": ["o", 2], "rate": 2})


def _undelivered(answer: Json) -> None:
    del answer["plan"]["deliveries"][0]


def _loop(answer: Json) -> None:
    answer["plan"]["operators"] = []
    answer["plan"]["flows"] = [
        {"from": a, "to": b, "stream": some, "rate": rate}
        for a, b in (("east", 7), (7, "east"))
        for some, rate in ((["o", 2], 2), (["o", 2, "c"], 1))
    ]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_more_cpu, "too much cpu"),
        (_no_source, "no source"),
        (_narrow, "too much"),
        (_undelivered, "deliveries"),
        (_loop, "no source"),
    ],
)
def test_the_audit_can_fail(spoil: Any, says: str) -> None:
    answer = solved(TWO)
    assert Audit(json.loads(TWO), answer).wrong == []
    spoil(answer)
    assert any(one.startswith(says) for one in Audit(json.loads(TWO), answer).wrong)


def test_the_order_in_which_a_set_is_written_does_not_matter() -> None:
    problem = drawn(1)
    turned = {
        **problem,
        "rates": [[some[::-1], rate] for some, rate in problem["rates"]],
        "queries": [{**query, "streams": query["streams"][::-1]} for query in problem["queries"]],
    }
    one, other = solved(problem), solved(turned)
    assert one["plan"] == other["plan"]
    assert [query["why"] for query in one["queries"]] == [query["why"] for query in other["queries"]]


def as_json(setup: Setup) -> Json:
    problem = paper_problem(0, setup)
    return {
        "hosts": [
            {"id": host.id, "cpu": host.cpu, "in": host.incoming, "out": host.outgoing}
            for host in problem.hosts
        ],
        "link_bandwidth": problem.link_bandwidth,
        "streams": [{"id": s.id, "host": s.host, "rate": s.rate} for s in problem.streams.values()],
        "rates": [[sorted(some), rate] for some, rate in asked_rates(problem).items()],
        "queries": [{"id": query.id, "streams": sorted(query.streams)} for query in problem.queries],
    }


def test_the_simulation_of_the_paper_loads_at_once() -> None:
    """Ten times as long as it takes on a busy machine."""
    setup = Setup(queries=1000, ways=(2, 3, 4, 4))
    text = json.dumps(as_json(setup))
    started = time.process_time()
    read = read_admission(ProblemFile("p", text)).problem
    assert time.process_time() - started < 1.5
    assert read.rates == asked_rates(paper_problem(0, setup))
    assert read.queries == paper_problem(0, setup).queries


def test_deadline_and_seed_reach_the_planner() -> None:
    """Ours looks for room until the deadline where a query does not fit."""
    answer = solved(TWO, Request(deadline=0.05, seed=3))
    assert 50 <= answer["queries"][3]["milliseconds"] < 1000
    assert answer["queries"][0]["milliseconds"] < 50


def test_choosy_reaches_the_planner() -> None:
    """Nine queries of 10 CPU at a host of 91: all fit. The last brings next to nothing, and by then 80 of 91
    are in use."""
    names = [f"s{i}" for i in range(10)]
    problem = {
        "hosts": [{"id": 0, "cpu": 91, "in": 1, "out": 1000}],
        "link_bandwidth": 1,
        "streams": [{"id": name, "host": 0, "rate": 9 if i else 1} for i, name in enumerate(names)],
        "selectivities": 0.001,
        "queries": [{"streams": ["s0", name], "priority": 1} for name in names[1:]],
    }
    problem["queries"][-1]["priority"] = 0.001  # type: ignore[index]
    assert solved(problem)["admitted"] == 9
    choosy = solved(problem, Request(choosy=True))
    assert [query["admitted"] for query in choosy["queries"]] == [True] * 8 + [False]
    assert "choosy" in choosy["queries"][8]["why"]


def test_the_registry(tmp_path: Path) -> None:
    assert list(list_optimisers("admission")) == ["headrace", "milp", "heuristic", "soda", "bound"]
    (tmp_path / "p.json").write_text(TWO)
    answer = solve_file("Admission", str(tmp_path / "p.json"), Request("SODA", batch=2))
    assert answer["optimiser"] == "soda"


@pytest.mark.parametrize(
    ("planner", "request_", "says"),
    [
        ("admission", Request(balance=1.0), "--balance is not an option of the planner admission"),
        ("admission", Request(seconds=1.0), "--seconds is not an option of the planner admission"),
        ("admission", Request(zones=2), "--zones is not an option of the planner admission"),
        (
            "admission",
            Request(picture=Path("map.svg")),
            "--picture is not an option of the planner admission",
        ),
        ("admission", Request(batch=0), "batch must be at least 1, not 0"),
        ("admission", Request(deadline=0.0), "the deadline must be above 0"),
        ("admission", Request(deadline=float("nan")), "the deadline must be above 0"),
        ("placement", Request(deadline=1.0), "--deadline is not an option of the planner placement"),
        ("sharing", Request(batch=2), "--batch is not an option of the planner sharing"),
        ("placement", Request(choosy=True), "--choosy is not an option of the planner placement"),
    ],
)
def test_options_of_another_planner(planner: str, request_: Request, says: str) -> None:
    """They are refused before the file is looked at."""
    with pytest.raises(UserError) as wrong:
        solve_file(planner, "there is no such file", request_)
    assert says in wrong.value.message


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("500ms", 0.5), ("2", 2), ("0.25", 0.25), (".5", 0.5), ("1m 30s", 90)]
)
def test_deadlines(text: str, seconds: float) -> None:
    assert read_deadline(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "-1s", "soon", "1x", "inf", "nan", "2 days", "1e3"])
def test_no_deadlines(text: str) -> None:
    with pytest.raises(UserError, match="the deadline"):
        read_deadline(text)
