"""Distribution problems read from JSON, solved, and given back in the public form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.planners.distribution.plans import paper_plan
from headrace.planners.distribution.problem import Operator, Query, Site, Stream
from headrace.planners.distribution.rules import History
from headrace.service.problem_file import ProblemFile
from headrace.service.solve import Request, list_optimisers, solve_file
from headrace.service.solve_distribution import problem_data, solve_distribution
from headrace.service.solve_distribution_file import read_distribution
from tests.unit.planners.distribution.drawn import drawn

Json = Any

PLAN: Json = {
    "sites": [{"id": "a", "cpu": 2, "memory": 1000}, {"id": "b", "cpu": 1, "connections": 9, "region": "r"}],
    "streams": [{"id": "s", "rate": 100, "site": "a"}, {"id": "t", "rate": 50}],
    "operators": [
        {"id": "f", "inputs": ["s"], "cpu": 0.5, "rate": 40},
        {"id": "j", "kind": "join", "inputs": ["f", "t"], "cpu": 1, "rate": 20, "state_bytes": 600},
        {"id": "k", "inputs": ["j"], "cpu": 0.25, "movable": False},
    ],
    "queries": [{"id": "q", "outputs": ["k"], "site": "b"}],
    "connection_cpu": 0.01,
}
RUNNING: Json = {
    **PLAN,
    "table": {"f": "a", "j": "b", "k": "b"},
    "observations": {"operators": {"j": {"cpu": 1.5}}, "sites": {"a": {"memory": 10}}, "streams": {"t": 60}},
    "rebalance": {"policy": "balance", "model": "cpu", "percent_difference": 20, "operators": ["j"]},
}


def solved(problem: Json, optimiser: str | None = None) -> Json:
    """The answer, as a program reads it."""
    text = problem if isinstance(problem, str) else json.dumps(problem)
    found = solve_distribution(ProblemFile("p.json", text), Request(optimiser=optimiser))
    return json.loads(json.dumps(found, allow_nan=False))


def test_a_problem_is_read() -> None:
    problem = read_distribution(ProblemFile("p", json.dumps(PLAN))).problem
    assert problem.sites == (Site("a", 2.0, 1000.0), Site("b", 1.0, connections=9.0, region="r"))
    assert problem.streams == (Stream("s", 100.0, "a"), Stream("t", 50.0))
    assert problem.operators[1:] == (
        Operator("j", ("f", "t"), 1.0, 20.0, 600.0, "join"),
        Operator("k", ("j",), 0.25, 0.0, movable=False),
    )
    assert problem.queries == (Query("q", ("k",), "b"),)
    assert (problem.connection_cpu, problem.row_cpu, problem.table) == (0.01, 0.0, {})


def test_a_question_about_what_runs_is_read() -> None:
    asked = {
        **RUNNING["rebalance"],
        "state_bytes": [10, None],
        "pauses": {"j": 3},
        "history": {"baseline": {"a": 0.5}, "moved": {"f": 4}, "uneven_since": None},
        "now": 7,
    }
    given = read_distribution(ProblemFile("p", json.dumps({**RUNNING, "rebalance": asked})))
    assert given.problem.operator["j"].cpu == 1.5
    assert given.problem.stream["t"].rate == 60.0
    assert given.problem.site["a"].memory_other == 10.0
    question = given.rebalance
    assert question is not None
    assert (question.policy, question.model, question.now) == ("balance", "cpu", 7.0)
    assert question.rules.percent_difference == 20.0
    assert question.rules.operators == frozenset({"j"})
    assert question.rules.state_bytes == (10.0, float("inf"))
    assert question.rules.pauses == {"j": 3.0}
    assert question.history == History({"a": 0.5}, {"f": 4.0})


@pytest.mark.parametrize("seed", range(8))
def test_problems_survive_as_json(seed: int) -> None:
    rng = Random(seed)
    problem = drawn(rng, 6, 3, limits=bool(seed % 2))
    table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
    problem = replace(problem, table=table)
    text = json.dumps(problem_data(problem), allow_nan=False)
    assert read_distribution(ProblemFile("p", text)).problem == problem


def test_an_answer_can_be_checked() -> None:
    answer = solved(PLAN)
    assert (answer["problem"], answer["question"], answer["planner"]) == (
        "distribution",
        "distribute",
        "balanced",
    )
    assert set(answer["table"]) == {"f", "j", "k"}
    by_site = {site["id"]: site for site in answer["sites"]}
    for name, site in answer["table"].items():
        assert name in by_site[site]["operators"]
    found = answer["connections"]
    assert found["total"] == found["between"] + found["streams"] + found["results"]
    assert answer["max_load"] == max(site["load"] for site in answer["sites"])
    assert (answer["beyond"], answer["overloaded"]) == ([], [])
    assert found["total"] <= answer["compared"]["grouping"]["connections"]


@pytest.mark.parametrize(
    "name", [n for n in list_optimisers("distribution") if n not in ("pays", "balance", "degradation")]
)
def test_every_pattern_solves(name: str) -> None:
    problem = problem_data(paper_plan(5, 3, Random(0)))
    answer = solved(problem, name)
    assert answer["planner"] == name
    assert len(answer["table"]) == 5
    assert ("regions" in answer) == (name == "tiers")


def test_a_rebalance_is_answered() -> None:
    answer = solved(RUNNING)
    assert answer["question"] == "rebalance"
    assert [(m["operators"], m["from"], m["to"]) for m in answer["moves"]] == [(["j"], "b", "a")]
    assert answer["table"] == {"f": "a", "j": "a", "k": "b"}
    costs = {site["id"]: (site["cost_before"], site["cost"]) for site in answer["sites"]}
    assert costs["b"][0] == pytest.approx(0.25 + 1.5 + 0.01 * 2)
    assert costs["a"][1] == pytest.approx((0.5 + 1.5 + 0.01 * 2) / 2)
    assert answer["costs"]["b"]["j"] == pytest.approx((1.5 + 0.02) / (1.75 + 0.02))
    again = {
        **RUNNING,
        "table": answer["table"],
        "rebalance": {**RUNNING["rebalance"], "history": answer["history"], "now": 5},
    }
    quiet = solved(again)
    assert quiet["moves"] == [] and quiet["why"]


def test_a_policy_may_be_named() -> None:
    assert solved(RUNNING, "degradation")["planner"] == "degradation"
    without = {key: value for key, value in RUNNING.items() if key != "rebalance"}
    assert solved(without, "pays")["planner"] == "pays"
    assert solved(without)["question"] == "distribute"
    assert solved(RUNNING, "ours")["question"] == "rebalance"
    with pytest.raises(UserError, match="grouping is a pattern"):
        solved(RUNNING, "grouping")
    with pytest.raises(UserError, match="there is no table"):
        solved(PLAN, "pays")


def changed(path: list[str | int], value: object) -> Json:
    problem = json.loads(json.dumps(RUNNING))
    at = problem
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return problem


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["sites"], [], "sites is empty"),
        (["sites", 0, "cpu"], 0, r"sites\[0\].cpu must be a finite number above 0"),
        (["sites", 0, "cpu"], 1e-300, r"sites\[0\].cpu must be at least 1e-12, not 1e-300"),
        (["sites", 0, "memory"], 5e-324, r"sites\[0\].memory must be at least 1e-12"),
        (["sites", 1, "id"], "a", 'two sites have the id "a"'),
        (["sites", 1, "id"], 3, r"sites\[1\].id must be a text, not 3"),
        (["sites", 0, "alive"], 1, r"sites\[0\].alive must be true or false"),
        (["sites", 0, "cpus"], 1, 'unknown key "cpus"'),
        (["streams", 0, "site"], "c", r'streams\[0\].site: there is no site "c"'),
        (["operators", 0, "id"], "s", '"s" is also the id of a stream'),
        (
            ["operators", 0, "inputs"],
            ["u"],
            r'operators\[0\].inputs\[0\]: there is no operator or stream "u"',
        ),
        (["operators", 0, "inputs"], ["k"], 'operator "f" reads itself, directly or not'),
        (["operators", 0, "cpu"], -1, r"operators\[0\].cpu must be at least 0"),
        (["operators", 0, "cpu"], "x", r"operators\[0\].cpu must be a number"),
        (["queries", 0, "outputs"], ["s"], r'queries\[0\].outputs\[0\]: there is no operator "s"'),
        (["links"], [{"from": "a", "to": "x", "bandwidth": 1}], r'links\[0\].to: there is no site "x"'),
        (["links"], [{"from": "a", "to": "a", "bandwidth": 1}], r"links\[0\] goes from a to itself"),
        (
            ["links"],
            [{"from": "a", "to": "b", "bandwidth": 1}, {"from": "a", "to": "b", "bandwidth": 2}],
            r"links\[1\] is a second link from a to b",
        ),
        (["table", "z"], "a", 'table: there is no operator "z"'),
        (["table", "f"], "z", 'table.f: there is no site "z"'),
        (["observations", "operators", "j", "cpu"], -2, "must be at least 0"),
        (["observations", "operators", "j", "speed"], 2, 'unknown key "speed"'),
        (["rebalance", "policy"], "best", 'rebalance.policy: there is no policy "best"'),
        (["rebalance", "model"], "best", 'rebalance.model: there is no model "best"'),
        (["rebalance", "percent_difference"], 101, "must be at most 100"),
        (["rebalance", "full"], 0, "rebalance.full must be above 0"),
        (["rebalance", "state_bytes"], [5, 2], "5 is more than 2"),
        (["rebalance", "state_bytes"], [5], "must be .least, most."),
        (["rebalance", "operators"], ["zz"], 'there is no operator "zz"'),
        (["rebalance", "history"], {"moved": {"zz": 1}}, 'there is no operator "zz"'),
    ],
)
def test_what_is_wrong_is_told_with_its_place(path: list[str | int], value: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        solved(changed(path, value))
    assert caught.value.exit_code == 2
    assert caught.value.span is not None


def test_the_command_reads_files(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(RUNNING), encoding="utf-8")
    assert solve_file("distribution", str(path), Request())["problem"] == "distribution"
    with pytest.raises(UserError, match="--seed is not an option of the planner distribution") as caught:
        solve_file("distribution", str(path), Request(seed=1))
    assert caught.value.hint == "It has none."


def test_operators_without_a_site_or_a_query_are_told_with_their_place() -> None:
    halfway = {**RUNNING, "table": {"f": "a", "j": "b"}}
    with pytest.raises(UserError, match='"k" runs nowhere yet') as caught:
        solved(halfway)
    assert caught.value.span is not None
    loose = {**PLAN, "operators": [*PLAN["operators"], {"id": "e", "inputs": ["s"], "cpu": 1}]}
    with pytest.raises(UserError, match='"e" belongs to no query') as caught:
        solved(loose, "tiers")
    assert caught.value.span is not None


@pytest.mark.parametrize("optimiser", ["balanced", "tiers", "pays"])
def test_sites_that_are_all_down_are_told_with_their_place(optimiser: str) -> None:
    down = [{"id": "a", "alive": False}, {"id": "b", "alive": False}]
    problem = {"operators": [{"id": "f", "inputs": [], "cpu": 1}], "table": {"f": "a"}, "sites": down}
    text = json.dumps(problem)
    with pytest.raises(UserError, match="no site is alive") as wrong:
        solve_distribution(ProblemFile("p.json", text), Request(optimiser=optimiser))
    assert wrong.value.span is not None
    assert wrong.value.span.column == text.index('[{"id": "a"') + 1


def test_limits_that_a_stream_passes_are_told() -> None:
    """f reads 1,000 rows a second from A, which may send 50: it stays there, or that is told."""
    problem: Json = {
        "sites": [{"id": "A", "cpu": 1, "network": 50}, {"id": "B", "cpu": 4}],
        "streams": [{"id": "s", "rate": 1000, "site": "A"}],
        "operators": [
            {"id": "f", "inputs": ["s"], "cpu": 0.5, "rate": 10},
            {"id": "g", "inputs": ["f"], "cpu": 0.5, "rate": 1},
        ],
        "links": [{"from": "A", "to": "B", "bandwidth": 10}],
    }
    answer = solved(problem)
    assert (answer["table"], answer["beyond"]) == ({"f": "A", "g": "B"}, [])
    sent = solved({**problem, "table": {"f": "B", "g": "B"}, "rebalance": {"operators": []}})
    assert sent["beyond"] == [
        "site A has 50 rows a second of network, and 1000 are taken",
        "the link from A to B takes 10, and 1000 are sent",
    ]
