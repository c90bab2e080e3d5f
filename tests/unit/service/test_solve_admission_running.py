"""A running plan in an admission problem, adapted to what was observed; and wrong ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.planners.admission.adaptive import adapt
from headrace.planners.admission.observed import Observed
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import Options, Plan, operator
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission import AdmissionAnswer, AdmittedData
from headrace.service.solve_admission_file import read_admission
from headrace.service.solve_admission_running import NOT_READ, QUERY_NOT_READ
from headrace.service.solve_request import Request
from tests.unit.service.admission_audit import Audit
from tests.unit.service.admission_problems import drawn
from tests.unit.service.admission_told import check_told, told
from tests.unit.service.test_solve_admission import TWO, solved

Json = Any

SMALL = """{
  "hosts": [{"id": "x", "cpu": 8, "in": 9, "out": 9}, {"id": 2, "cpu": 10, "in": 9, "out": 9}],
  "link_bandwidth": 100,
  "streams": [{"id": "a", "host": "x", "rate": 4}, {"id": 5, "host": 2, "rate": 4}],
  "rates": [[["a", 5], 1]],
  "queries": [{"id": "q", "streams": ["a", 5]}, {"id": 7, "streams": [5]}],
  "running": {
    "queries": [{"id": "q", "admitted": true}],
    "plan": {
      "operators": [{"host": "x", "inputs": [["a"], [5]], "output": [5, "a"]}],
      "flows": [{"from": 2, "to": "x", "stream": [5]}],
      "deliveries": [{"stream": ["a", 5], "host": "x"}]
    }
  },
  "observed": {"streams": [{"id": "a", "rate": 5}], "rates": [], "hosts": []}
}"""
"""a and 5 are joined at x for 8 CPU, all that it has. With a at 5 that is 9, which only host 2 has."""


def raised(problem: Json, by: float) -> Json:
    """The same problem with all rates so much higher; a composite one changes as its base streams do."""
    streams = [{**one, "rate": one["rate"] * by} for one in problem["streams"]]
    rates = {"rates": [[some, rate * by] for some, rate in problem["rates"]]} if "rates" in problem else {}
    return {**problem, "streams": streams, **rates}


def seen(problem: Json, by: float) -> Json:
    return {"streams": [{"id": one["id"], "rate": one["rate"] * by} for one in problem["streams"]]}


def test_worked_out_by_hand() -> None:
    answer = solved(SMALL)
    state = 9.0 * 60 * 125_000
    ms = answer["adapted"].pop("milliseconds")
    assert answer["adapted"] == {
        "picked": [{"query": "q", "reason": "starves", "detail": "cpu of host x: 9 needed of 8"}],
        "replanned": ["q"],
        "dropped": [],
        "steps": [
            {"step": "start flow", "stream": ["a"], "from": "x", "to": 2},
            {
                "step": "move operator",
                "stream": ["a", 5],
                "inputs": [[5], ["a"]],
                "from": "x",
                "to": 2,
                "bytes": state,
            },
            {"step": "deliver", "stream": ["a", 5], "from": "x", "to": 2},
            {"step": "stop operator", "stream": ["a", 5], "inputs": [[5], ["a"]], "from": "x"},
            {"step": "stop flow", "stream": [5], "from": 2, "to": "x"},
        ],
        "price": {
            "moved": 1,
            "started": 0,
            "stopped": 0,
            "flows": 2,
            "bytes": state,
            "seconds_to_fill": 0,
        },
    }
    assert ms == pytest.approx(answer["seconds"] * 1000)
    assert answer["plan"] == {
        "operators": [{"host": 2, "inputs": [["a"], [5]], "output": ["a", 5], "cpu": 9}],
        "flows": [{"from": "x", "to": 2, "stream": ["a"], "rate": 5}],
        "deliveries": [{"stream": ["a", 5], "host": 2}],
    }
    assert [(one["id"], one["admitted"]) for one in answer["queries"]] == [("q", True), (7, False)]
    assert "did not run" in answer["queries"][1]["why"]


@pytest.mark.parametrize("planner", ["headrace", "heuristic"])
@pytest.mark.parametrize("seed", range(12))
def test_limits_hold_again_when_all_rates_rise_by_a_fifth(seed: int, planner: str) -> None:
    problem = drawn(seed)
    before = solved(problem)
    after = solved({**problem, "running": before, "observed": seen(problem, 1.2)}, Request(planner))
    assert Audit(raised(problem, 1.2), after).wrong == []
    ran = [one["id"] for one in before["queries"] if one["admitted"]]
    dropped = [one["query"] for one in after["adapted"]["dropped"]]
    kept = [one["id"] for one in after["queries"] if one["admitted"]]
    assert sorted(map(str, kept + dropped)) == sorted(map(str, ran))
    assert all(one["why"] for one in after["adapted"]["dropped"])


def test_something_had_to_be_done_about_it() -> None:
    """Otherwise the audits above would say little."""
    problems = [drawn(seed) for seed in range(12)]
    done = [solved({**one, "running": solved(one), "observed": seen(one, 1.2)}) for one in problems]
    assert sum(any(one["reason"] == "starves" for one in after["adapted"]["picked"]) for after in done) > 3
    assert sum(len(after["adapted"]["steps"]) for after in done) > 10
    assert sum(after["admitted"] for after in done) > 10


@pytest.mark.parametrize("seed", range(6))
def test_the_same_as_adapt_itself(seed: int) -> None:
    text = json.dumps(drawn(seed))
    given = read_admission(ProblemFile("p", text))
    problem, planner = given.problem, Ours(given.problem, Options(), lambda: 0.0)
    admitted = [query.id for query in problem.queries if planner.submit(query).admitted]
    observed = Observed({frozenset({name}): base.rate * 1.5 for name, base in problem.streams.items()})
    plan, direct = adapt(problem, planner.plan, admitted, observed, lambda: 0.0)
    body = json.loads(text)
    answer = solved({**body, "running": solved(body), "observed": seen(body, 1.5)})
    done = answer["adapted"]
    picked = [(given.queries[one.query], one.reason, one.detail) for one in direct.picked]
    assert [(one["query"], one["reason"], one["detail"]) for one in done["picked"]] == picked
    assert [str(one["query"]) for one in done["dropped"]] == [one.query for one in direct.dropped]
    assert [one["step"] for one in done["steps"]] == [one.kind for one in direct.changes]
    assert done["price"] == asdict(direct.price)
    pasted = {**body, "running": answer, "observed": {}}
    running = read_admission(ProblemFile("p", json.dumps(pasted))).running
    assert running is not None
    assert (running.plan, running.admitted) == (plan, direct.kept)


def test_a_plan_is_read_as_it_was_told() -> None:
    pasted = {**json.loads(TWO), "running": solved(TWO), "observed": {"hosts": [{"id": 7, "cpu": 0}]}}
    running = read_admission(ProblemFile("p", json.dumps(pasted))).running
    o, two, c = (frozenset({name}) for name in "o2c")
    assert running is not None
    assert running.plan == Plan(
        frozenset({(0, operator(o, two)), (1, operator(o | two, c))}),
        frozenset({(0, 1, o | two), (0, 1, c), (1, 0, two)}),
        {o | two: running.plan.deliveries[o | two], o | two | c: 1},
    )
    assert running.admitted == ("pair", "q2", "9")
    assert running.observed == Observed(cpu={1: 0.0})


def test_nothing_observed_nothing_done() -> None:
    before = solved(TWO)
    after = solved({**json.loads(TWO), "running": before, "observed": {}})
    assert after["plan"] == before["plan"]
    assert after["adapted"]["picked"] == after["adapted"]["steps"] == []
    assert after["hosts"] == before["hosts"]


def test_a_host_that_takes_more_cpu_than_its_joins_explain_has_less() -> None:
    """12 CPU where 8 are explained: of its 8 there is work for 5 1/3."""
    body = json.loads(SMALL)
    body["observed"] = {"hosts": [{"id": "x", "cpu": 12}]}
    answer = solved(body)
    assert answer["hosts"][0]["cpu"] == pytest.approx(8 * 8 / 12)
    assert answer["adapted"]["picked"][0]["reason"] == "starves"
    assert answer["plan"]["operators"][0]["host"] == 2


def test_what_was_measured_of_a_join_counts() -> None:
    body = json.loads(SMALL)
    body["observed"] = {"rates": [[[5, "a"], 3]]}
    answer = solved(body)
    assert answer["adapted"]["picked"] == [
        {"query": "q", "reason": "deviates", "detail": "network: 7 where 5 was estimated"}
    ]
    assert answer["hosts"][0]["out_used"] == 3


@pytest.mark.parametrize("lost", [{"cpu": 0}, {"in": 0}, {"cpu": 0, "in": 0, "out": 0}])
def test_a_host_that_has_nothing_any_more(lost: dict[str, int]) -> None:
    """Three tenths and two: sums of which adding and taking back leaves a trace."""
    names = ["a", "b", "c", "d"]
    roomy = {"id": "x", "cpu": 9, "in": 9, "out": 9}
    problem = {
        "hosts": [roomy, {**roomy, "id": "y"}],
        "link_bandwidth": 9,
        "streams": [{"id": name, "host": "y", "rate": 0.1 * (i + 1)} for i, name in enumerate(names)],
        "selectivities": 0.3,
        "queries": [{"streams": [a, b]} for a, b in ("ab", "cd", "ad", "bc")],
    }
    plan = {
        "operators": [
            {"host": "x", "inputs": [[a], [b]], "output": [a, b]} for a, b in ("ab", "cd", "ad", "bc")
        ],
        "flows": [{"from": "y", "to": "x", "stream": [name]} for name in names],
        "deliveries": [{"stream": [a, b], "host": "x"} for a, b in ("ab", "cd", "ad", "bc")],
    }
    running = {"queries": [{"id": f"q{i}", "admitted": True} for i in (1, 2, 3, 4)], "plan": plan}
    now = {**problem, "hosts": [{**roomy, **lost}, {**roomy, "id": "y"}]}
    answer = solved({**now, "running": running, "observed": {}})
    assert Audit(now, answer).wrong == []
    assert answer["admitted"] == 4
    assert {one["host"] for one in answer["plan"]["operators"]} == {"y"}
    assert answer["adapted"]["price"]["moved"] == 4


def test_every_key_of_an_answer_may_be_pasted() -> None:
    assert {*NOT_READ, "queries", "plan"} == set(AdmissionAnswer.__annotations__)
    assert {*QUERY_NOT_READ, "id", "admitted", "removed"} == set(AdmittedData.__annotations__)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request("milp"), "milp cannot adapt a plan that runs"),
        (Request("soda"), "soda cannot adapt a plan that runs"),
        (Request("bound"), "bound cannot adapt a plan that runs"),
        (Request(choosy=True), "queries that run cannot be refused by choosy"),
        (Request(batch=2), "there are no batches of them"),
    ],
)
def test_who_cannot_adapt_says_so_with_the_place(request_: Request, says: str) -> None:
    with pytest.raises(UserError) as wrong:
        solved(SMALL, request_)
    assert says in wrong.value.message
    assert wrong.value.span is not None
    assert wrong.value.span.where() == "p.json:7:3"


OPERATOR = '{"host": "x", "inputs": [["a"], [5]], "output": [5, "a"]}'
FLOW = '{"from": 2, "to": "x", "stream": [5]}'
DELIVERY = '{"stream": ["a", 5], "host": "x"}'
QUERY = '{"id": "q", "admitted": true}'
SEEN = '{"id": "a", "rate": 5}'

BAD = [
    (f'"streams": [{SEEN}]', f'^"cpus": [{SEEN}]', 'unknown key "cpus" in observed'),
    (SEEN, "^5", "observed.streams[0] must be an object {...}, not 5"),
    (SEEN, '{"id": ^"b", "rate": 5}', 'observed.streams[0].id: there is no stream "b"'),
    (SEEN, '{"id": ^"5", "rate": 5}', 'observed.streams[0].id: there is no stream "5"'),
    (SEEN, '{"id": "a", "rate": ^-5}', "observed.streams[0].rate must be at least 0, not -5"),
    (SEEN, '{"id": "a", "rate": ^NaN}', "observed.streams[0].rate must be at least 0, not NaN"),
    (SEEN, '{"id": "a", "rate": ^1e13}', "observed.streams[0].rate must be at most 1e+12"),
    (SEEN, '{"id": "a", "rate": 5, ^"cpu": 3}', 'unknown key "cpu" in observed.streams[0]'),
    (SEEN, f'{SEEN}, {{"id": ^"a", "rate": 6}}', 'observed.streams[1].id: stream "a" is given twice'),
    ('"rates": [], "h', '"rates": [[["a", ^"z"], 2]], "h', 'observed.rates[0][0][1]: there is no stream "z"'),
    ('"rates": [], "h', '"rates": [[^["a"], 2]], "h', "observed.rates[0][0] must name at least two streams"),
    ('"rates": [], "h', '"rates": [[["a", 5], ^"2"]], "h', "observed.rates[0][1] must be a number"),
    ('"rates": [], "h', '"rates": ^{}, "h', "observed.rates must be a list"),
    ('"hosts": []}', '"hosts": [{"id": ^"y", "cpu": 2}]}', 'observed.hosts[0].id: there is no host "y"'),
    ('"hosts": []}', '"hosts": [{"id": "x", "cpu": ^true}]}', "observed.hosts[0].cpu must be a number"),
    ('"hosts": []}', '"hosts": [{"id": "x", "cpu": ^1e-300}]}', "must be 0 or at least 1e-100, not 1e-300"),
    (f'"queries": [{QUERY}]', f'^"query": [{QUERY}]', 'unknown key "query" in running'),
    (QUERY, '{"id": ^"r", "admitted": true}', 'running.queries[0].id: there is no query "r"'),
    (QUERY, '{"id": "q", "admitted": ^1}', "running.queries[0].admitted must be true or false, not 1"),
    (QUERY, f'{QUERY}, {{"id": ^"q", "admitted": true}}', 'running.queries[1].id: query "q" is given twice'),
    (QUERY, f'{QUERY}, {{"id": ^7, "admitted": true}}', "query 7 is admitted, and no host delivers 5"),
    (DELIVERY, f'{DELIVERY}, ^{{"stream": [5], "host": 2}}', "deliveries[1]: no admitted query wants 5"),
    (DELIVERY, f'{DELIVERY}, ^{{"stream": [5, "a"], "host": 2}}', "the stream is delivered twice"),
    (
        DELIVERY,
        '^{"stream": ["a", 5], "host": 2}',
        "running.plan.deliveries[0]: its host never has the stream",
    ),
    (DELIVERY, '{"stream": ["a", 5], "host": ^3}', "running.plan.deliveries[0].host: there is no host 3"),
    (FLOW, '{"from": 2, "to": ^2, "stream": [5]}', "running.plan.flows[0].to: host 2 sends to itself"),
    (
        FLOW,
        f'{FLOW}, ^{{"from": 2, "to": "x", "stream": ["a"]}}',
        "flows[1]: the sender never has the stream",
    ),
    (FLOW, f"{FLOW}, ^{FLOW}", "running.plan.flows[1]: it is given twice"),
    (FLOW, '{"from": 2, "to": "x", "stream": ^[]}', "running.plan.flows[0].stream is empty"),
    (OPERATOR, '{"host": "x", "inputs": ^[["a"]], "output": ["a"]}', "must be two lists of streams, not 1"),
    (OPERATOR, '{"host": "x", "inputs": ^[["a"], ["a"]], "output": ["a"]}', "inputs: a is in both"),
    (
        OPERATOR,
        '{"host": "x", "inputs": [["a"], [5]], "output": ^["a"]}',
        "must be all streams of its inputs",
    ),
    (OPERATOR, '^{"host": 2, "inputs": [["a"], [5]], "output": ["a", 5]}', "never has both inputs"),
    (OPERATOR, '{"host": "x", "inputs": [[^"b"], [5]], "output": [5, "b"]}', 'there is no stream "b"'),
    ('"flows": [', '^"flow": [', 'unknown key "flow" in running.plan'),
]
"""What is replaced, by what (^ marks the place that is told), and what is said."""


@pytest.mark.parametrize(("old", "new", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, says: str) -> None:
    check_told(SMALL, old, new, says)


def test_a_copy_that_is_missing_is_told_where_it_is_needed() -> None:
    where, message = told(SMALL.replace(FLOW, ""))
    assert (where, message) == (
        "p.json:10:21",
        "running.plan.operators[0]: its host never has both inputs",
    )


def test_a_set_without_a_rate_is_nobodys_stream() -> None:
    body = json.loads(SMALL)
    body["streams"].append({"id": "c", "host": 2, "rate": 1})
    flow = {"from": 2, "to": "x", "stream": ["c", 5]}
    plan = {**body["running"]["plan"], "flows": [*body["running"]["plan"]["flows"], flow]}
    _, message = told(json.dumps({**body, "running": {**body["running"], "plan": plan}}))
    assert message == "running.plan.flows[1].stream: the set 5*c has no rate"
    _, message = told(json.dumps({**body, "observed": {"rates": [[["c", 5], 1]]}}))
    assert message == "observed.rates[0][0]: the set 5*c has no rate in the problem"


def test_one_of_two_is_not_enough() -> None:
    head, tail = SMALL.index('  "running"'), SMALL.index('  "observed"')
    alone = SMALL[:tail].rstrip().removesuffix(",") + "\n}"
    assert told(alone) == ("p.json:7:3", "running is given and observed is not")
    assert told(SMALL[:head] + SMALL[tail:]) == ("p.json:7:3", "observed is given and running is not")
