"""Wrong admission problems: what is said of each, and at which place."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission_file import read_admission
from tests.unit.service.admission_told import check_told, told

SMALL = """{
  "hosts": [
    {"id": "h1", "cpu": 30, "in": 15, "out": 20},
    {"id": 2, "cpu": 0, "in": 15.5, "out": 0, "memory": 8}
  ],
  "link_bandwidth": [[null, 10], [5, 0]],
  "operator_cost": 1.5,
  "memory_cost": 2,
  "streams": [
    {"id": "A", "host": "h1", "rate": 10},
    {"id": "B", "host": 2, "rate": 4.5},
    {"id": 7, "host": 2, "rate": 1}
  ],
  "rates": [
    [["A", "B"], 2],
    [["A", "B", 7], 0]
  ],
  "queries": [
    {"id": "x", "streams": ["B", "A"]},
    {"streams": ["A", 7, "B"], "priority": 3},
    {"id": 9, "streams": ["A"]}
  ]
}"""
RATES = '"rates": [\n    [["A", "B"], 2],\n    [["A", "B", 7], 0]\n  ]'
HOST = '{"id": 2, "cpu": 0, "in": 15.5, "out": 0, "memory": 8}'

BAD = [
    (HOST, "^3", "hosts[1] must be an object {...}, not 3"),
    ('"id": "h1"', '"id": ^""', "hosts[0].id must be a text or a whole number, not an empty text"),
    ('"id": "h1"', '"id": ^1.5', "hosts[0].id must be a text or a whole number, not 1.5"),
    ('"id": "h1"', '"id": ^true', "hosts[0].id must be a text or a whole number, not true"),
    ('{"id": 2,', '{"id": ^"h1",', 'two hosts have the id "h1"'),
    ('"cpu": 30', '"cpu": ^-30', "hosts[0].cpu must be at least 0, not -30"),
    ('"cpu": 30', '"cpu": ^"30"', 'hosts[0].cpu must be a number, not "30"'),
    ('"cpu": 30', '"cpu": ^NaN', "hosts[0].cpu must be at least 0, not NaN"),
    ('"cpu": 30', '"cpu": ^Infinity', "hosts[0].cpu must be a finite number"),
    ('"cpu": 30', '"cpu": ^null', "hosts[0].cpu must be a number, not null"),
    ('"cpu": 30', '"cpu": ^1e16', "hosts[0].cpu must be at most 1e+15"),
    ('"cpu": 30', '"cpu": ^1e-101', "hosts[0].cpu must be 0 or at least 1e-100, not 1e-101"),
    ('"memory": 8', '"memory": ^5e-324', "hosts[1].memory must be 0 or at least 1e-100"),
    ("[5, 0]", "[^1e-200, 0]", "link_bandwidth[1][0] must be 0 or at least 1e-100, not 1e-200"),
    ('"in": 15,', '"in": ^true,', "hosts[0].in must be a number, not true"),
    ('"in": 15,', '^"inn": 15,', 'unknown key "inn" in hosts[0]'),
    ('"out": 0', '"out": ^-0.5', "hosts[1].out must be at least 0, not -0.5"),
    ('"memory": 8', '"memory": ^[8]', "hosts[1].memory must be a number, not a list"),
    ('"memory": 8', '"memory": 8, ^"memory": 9', 'the key "memory" is given twice'),
    ("[[null, 10], [5, 0]]", '^"wide"', 'link_bandwidth must be a number or a matrix [[...]], not "wide"'),
    ("[[null, 10], [5, 0]]", "^null", "link_bandwidth must be a number or a matrix [[...]], not null"),
    ("[[null, 10], [5, 0]]", "^-1", "link_bandwidth must be at least 0, not -1"),
    ("[[null, 10], [5, 0]]", "^true", "link_bandwidth must be a number, not true"),
    ("[[null, 10], [5, 0]]", "^[[0, 10]]", "one row for each of the 2 hosts, not 1"),
    ("[[null, 10], [5, 0]]", "^[]", "one row for each of the 2 hosts, not 0"),
    ("[5, 0]", "^[5, 0, 1]", "link_bandwidth[1] must have one entry for each of the 2 hosts, not 3"),
    ("[5, 0]", "^5", "link_bandwidth[1] must be a list [...], not 5"),
    ("[5, 0]", "[^null, 0]", "link_bandwidth[1][0] must be a number, not null"),
    ("[5, 0]", "[^-5, 0]", "link_bandwidth[1][0] must be at least 0, not -5"),
    ("[5, 0]", '[^"x", 0]', 'link_bandwidth[1][0] must be a number, not "x"'),
    ("[5, 0]", "[^NaN, 0]", "link_bandwidth[1][0] must be at least 0, not NaN"),
    ("[5, 0]", "[^1e99, 0]", "link_bandwidth[1][0] must be at most 1e+15"),
    ('"operator_cost": 1.5', '"operator_cost": ^-1', "operator_cost must be at least 0, not -1"),
    ('"operator_cost": 1.5', '^"operator_costs": 1.5', 'unknown key "operator_costs" in the problem'),
    ('"memory_cost": 2', '"memory_cost": ^"2"', 'memory_cost must be a number, not "2"'),
    ('"host": "h1"', '"host": ^"h3"', 'streams[0].host: there is no host "h3"'),
    ('{"id": "B", "host": 2,', '{"id": "B", "host": ^"2",', 'streams[1].host: there is no host "2"'),
    ('{"id": "B", "host": 2,', '{"id": "B", "host": ^2.0,', "streams[1].host must name a host"),
    ('{"id": "B", "host": 2,', '{"id": "B", "host": ^["h1"],', "streams[1].host must name a host"),
    ('"id": 7', '"id": ^"A"', 'two streams have the id "A"'),
    ('"rate": 10', '"rate": ^-10', "streams[0].rate must be at least 0, not -10"),
    ('"rate": 10', '"rate": ^2e12', "streams[0].rate must be at most 1e+12"),
    ('"rate": 10', '"rate": 10, ^"width": 1', 'unknown key "width" in streams[0]'),
    ('[["A", "B"], 2]', "^5", "rates[0] must be [[streams], value], not 5"),
    ('[["A", "B"], 2]', '^["A", "B", 2]', "rates[0] must be [[streams], value], not a list of 3"),
    ('[["A", "B"], 2]', '[^"A*B", 2]', 'rates[0][0] must be a list [...], not "A*B"'),
    ('[["A", "B"], 2]', "[^[], 2]", "rates[0][0] is empty"),
    ('[["A", "B"], 2]', '[^["A"], 2]', "rates[0][0] must name at least two streams"),
    ('[["A", "B"], 2]', '[["A", ^"A"], 2]', 'rates[0][0] names stream "A" twice'),
    ('[["A", "B"], 2]', '[["A", ^"C"], 2]', 'rates[0][0][1]: there is no stream "C"'),
    ('[["A", "B"], 2]', '[["A", ^"7"], 2]', 'rates[0][0][1]: there is no stream "7"'),
    ('[["A", "B"], 2]', '[["A", ^7.0], 2]', "rates[0][0][1] must name a stream"),
    ('[["A", "B"], 2]', '[["A", ^null], 2]', "rates[0][0][1] must name a stream"),
    ('[["A", "B"], 2]', '[["A", "B"], ^-2]', "rates[0][1] must be at least 0, not -2"),
    ('[["A", "B"], 2]', '[["A", "B"], ^"2"]', 'rates[0][1] must be a number, not "2"'),
    ('[["A", "B"], 2]', '[["A", "B"], 2], ^[["B", "A"], 2]', "rates[1]: the set A*B is given twice"),
    (RATES, '"rates": ^{}', "rates must be a list [...], not an object"),
    (RATES, '"rates": ^0.5', "rates must be a list [...], not 0.5"),
    (RATES, '"selectivities": ^"few"', 'selectivities must be a number, not "few"'),
    (RATES, '"selectivities": ^-0.5', "selectivities must be at least 0, not -0.5"),
    (RATES, '"selectivities": [[["A", "B"], ^null]]', "selectivities[0][1] must be a number, not null"),
    ('"id": "x"', '"id": ^{}', "queries[0].id must be a text or a whole number, not an object"),
    ('"id": "x"', '"id": ^9.0', "queries[0].id must be a text or a whole number, not 9.0"),
    ('"id": 9', '"id": ^"x"', 'two queries have the id "x"'),
    ('["B", "A"]', "^[]", "queries[0].streams is empty"),
    ('["B", "A"]', '^"BA"', 'queries[0].streams must be a list [...], not "BA"'),
    ('["B", "A"]', '["B", ^"B"]', 'queries[0].streams names stream "B" twice'),
    ('["B", "A"]', '["B", ^"a"]', 'queries[0].streams[1]: there is no stream "a"'),
    ('["B", "A"]', '["B", ^true]', "queries[0].streams[1] must name a stream"),
    ('["B", "A"]', '["B", ^["A"]]', "queries[0].streams[1] must name a stream"),
    ('["B", "A"]', '^["B", 7]', "queries[0].streams: the set 7*B has no rate"),
    ('"priority": 3', '"priority": ^0', "queries[1].priority must be a finite number above 0, not 0"),
    ('"priority": 3', '^"prio": 3', 'unknown key "prio" in queries[1]'),
    ('{"id": 9, "streams": ["A"]}', "^null", "queries[2] must be an object {...}, not null"),
]
"""What is replaced, by what (^ marks the place that is told), and what is said."""

ELSEWHERE = [
    (f"{RATES},", "", "1:1", "neither rates nor selectivities are given"),
    (RATES, f'{RATES}, "selectivities": 1', "1:1", "both rates and selectivities are given"),
    ('"link_bandwidth": [[null, 10], [5, 0]],', "", "1:1", '"link_bandwidth" is missing in the problem'),
    ('"cpu": 30, ', "", "3:5", '"cpu" is missing in hosts[0]'),
    ('"host": "h1", ', "", "10:5", '"host" is missing in streams[0]'),
    ('{"id": "B"', '{"id": "7"', "12:12", "two streams have the id 7"),
    (', "streams": ["B", "A"]', "", "19:5", '"streams" is missing in queries[0]'),
    ('"id": "x"', '"id": "q2"', "20:5", 'two queries have the id "q2"'),
    ('[["A", "B", 7], 0]', '[["A", 7], 0]', "20:17", "queries[1].streams: the set 7*A*B has no rate"),
    (
        f'{RATES},\n  "queries": [\n    {{"id": "x", "streams": ["B", "A"]}},',
        '"rates": [[["A", "B", 7], 0]],\n  "queries": [',
        "16:17",
        "queries[0].streams: no chain of joins makes 7*A*B",
    ),
]


@pytest.mark.parametrize(("old", "new", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, says: str) -> None:
    check_told(SMALL, old, new, says)


@pytest.mark.parametrize(("old", "new", "place", "says"), ELSEWHERE)
def test_what_is_wrong_elsewhere(old: str, new: str, place: str, says: str) -> None:
    assert SMALL.count(old) == 1
    where, message = told(SMALL.replace(old, new))
    assert says in message
    assert where == f"p.json:{place}"


@pytest.mark.parametrize("entry", ["-1", "1e300", "NaN", '"x"', "true"])
def test_the_diagonal_is_not_looked_at(entry: str) -> None:
    usual, other = (
        read_admission(ProblemFile("p.json", SMALL.replace("[[null, 10], [5, 0]]", links))).problem
        for links in ("[[null, 10], [5, 0]]", f"[[{entry}, 10], [5, {entry}]]")
    )
    assert np.array_equal(other.link_bandwidth, usual.link_bandwidth)


def test_the_sample_is_right() -> None:
    read_admission(ProblemFile("p.json", SMALL))


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"hosts": []}', '{"hosts": [], "streams": []}'])
def test_no_problem_at_all(text: str) -> None:
    told(text)


@pytest.mark.parametrize("key", ["hosts", "streams", "queries"])
def test_nothing_of_something(key: str) -> None:
    text = json.dumps({**json.loads(SMALL), key: []})
    assert told(text)[1] == f"{key} is empty"


def test_names_written_otherwise_are_offered() -> None:
    offers = {
        ('"B", "host": 2,', '"B", "host": "2",'): "Write it as in hosts: 2.",
        ('["B", "A"]', '["B", "7"]'): "Write it as in streams: 7.",
        ('"host": "h1"', '"host": "h11"'): 'Did you mean "h1"?',
    }
    for (old, new), hint in offers.items():
        with pytest.raises(UserError) as wrong:
            read_admission(ProblemFile("p", SMALL.replace(old, new)))
        assert wrong.value.hint == hint


def many(size: int) -> str:
    names = [f"s{i}" for i in range(size)]
    streams = [{"id": name, "host": 0, "rate": 1} for name in names]
    host = {"id": 0, "cpu": 1, "in": 1, "out": 1}
    problem = {"hosts": [host], "link_bandwidth": 1, "streams": streams, "selectivities": 0.5}
    return json.dumps({**problem, "queries": [{"streams": names}]})


def test_eight_streams_and_no_more() -> None:
    assert len(read_admission(ProblemFile("p", many(8))).problem.rates) == 2**8 - 8 - 1
    assert told(many(9))[1] == "queries[0].streams must be at most 8, not 9"


def test_too_many_hosts() -> None:
    body = json.loads(SMALL)
    body["hosts"] = [{**body["hosts"][0], "id": i} for i in range(10_001)]
    assert told(json.dumps(body))[1] == "hosts must be at most 10,000, not 10,001"


@pytest.mark.parametrize(
    ("sets", "made"),
    [
        ([["A", "B", "C", "D"]], False),
        ([["A", "B"], ["A", "B", "C", "D"]], False),
        ([["A", "B"], ["C", "D"], ["A", "B", "C", "D"]], True),
        ([["A", "B", "C"], ["A", "B", "C", "D"]], False),
        ([["B", "C"], ["A", "B", "C"], ["A", "B", "C", "D"]], True),
        ([["A", "B"], ["C", "D"]], False),
    ],
)
def test_a_chain_of_joins_is_needed(sets: list[list[str]], made: bool) -> None:
    host = {"id": 0, "cpu": 1, "in": 1, "out": 1}
    problem = {
        "hosts": [host],
        "link_bandwidth": 1,
        "streams": [{"id": name, "host": 0, "rate": 1} for name in "ABCD"],
        "rates": [[some, 1] for some in sets],
        "queries": [{"streams": list("ABCD")}],
    }
    if made:
        read_admission(ProblemFile("p", json.dumps(problem)))
    else:
        assert told(json.dumps(problem))[1].startswith("queries[0].streams: ")
