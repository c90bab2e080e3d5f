"""Wrong placement problems: what is said of each, and at which place."""

from __future__ import annotations

import json

import pytest

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_placement import solve_placement
from headrace.service.solve_placement_file import read_placement
from headrace.service.solve_request import Request

SMALL = """{
  "sites": ["n1", "n2", 3, 4],
  "links": [["n1", "n2", 1], ["n2", 3, 2], [3, 4, 0]],
  "streams": {
    "A": {"site": "n1", "rate": 10, "width": 8},
    "B": {"site": 3, "rate": 20}
  },
  "selectivities": [["A", "B", 0.01]],
  "filters": {
    "few": {"stream": "A", "selectivity": 0.1, "within": ["half"]},
    "half": {"stream": "A", "selectivity": 0.5},
    "b": {"stream": "B", "selectivity": 0.5}
  },
  "queries": [
    {"id": "x", "streams": ["A", "B"], "sink": 4},
    {"streams": ["B", "A"], "sink": "n2", "filters": {"A": "few"}, "widths": {"A": 2}}
  ],
  "cpu": {"n1": 100, "3": 50},
  "forbidden": ["n2"],
  "reuse": true
}"""
MATRIX = """{
  "sites": [0, 1],
  "costs": [[0, 1.5], [null, 0]],
  "streams": {"A": {"site": 0, "rate": 10}, "B": {"site": 1, "rate": 5}},
  "queries": [{"streams": ["A"], "sink": 1}]
}"""
LINKS = '"links": [["n1", "n2", 1], ["n2", 3, 2], [3, 4, 0]]'

BAD = [
    ('["n1", "n2", 3, 4]', "^[]", "sites is empty"),
    ('["n1", "n2", 3, 4]', '^"n1"', 'sites must be a list [...], not "n1"'),
    ('"n2", 3, 4]', '"n2", ^"n1", 4]', 'site "n1" is given twice'),
    ('"n2", 3, 4]', '"n2", 4, ^"4"]', 'site "4" is given twice'),
    ('"n2", 3, 4]', '"n2", ^3.0, 4]', "sites[2] must be a text or a whole number, not 3.0"),
    ('"n2", 3, 4]', '"n2", ^true, 4]', "sites[2] must be a text or a whole number, not true"),
    ('"n2", 3, 4]', '"n2", ^"", 4]', "sites[2] must be a text or a whole number, not an empty text"),
    ('"n2", 3, 4]', '"n2", ^["x"], 4]', "sites[2] must be a text or a whole number, not a list"),
    ('"n2", 3, 4]', '"n2", ^1234567890123456, 4]', "whole number from -10000000"),
    (
        '"links": [["n1", "n2", 1], ["n2", 3, 2], [3, 4, 0]]',
        '"links": ^{}',
        "links must be a list [...], not an object",
    ),
    ('["n2", 3, 2]', "^3", "links[1] must be a list [site, site, cost], not 3"),
    ('["n2", 3, 2]', '^["n2", 3]', "links[1] must be [site, site, cost], not a list of 2 values"),
    ('["n2", 3, 2]', '[^"n5", 3, 2]', 'links[1][0]: there is no site "n5"'),
    ('["n2", 3, 2]', '["n2", ^"3", 2]', 'links[1][1]: there is no site "3"'),
    ('["n2", 3, 2]', '["n2", ^3.0, 2]', "links[1][1] must be a site, a text or a whole number, not 3.0"),
    ('["n2", 3, 2]', '["n2", ^true, 2]', "links[1][1] must be a site"),
    ('["n2", 3, 2]', '["n2", 3, ^-2]', "links[1][2] must be at least 0, not -2"),
    ('["n2", 3, 2]', '["n2", 3, ^NaN]', "links[1][2] must be at least 0, not NaN"),
    ('["n2", 3, 2]', '["n2", 3, ^Infinity]', "links[1][2] must be a finite number"),
    ('["n2", 3, 2]', '["n2", 3, ^1e13]', "links[1][2] must be at most 1e+12"),
    ('["n2", 3, 2]', '["n2", 3, ^"2"]', 'links[1][2] must be a number, not "2"'),
    ('["n2", 3, 2]', '["n2", 3, ^null]', "links[1][2] must be a number, not null"),
    ('["n2", 3, 2]', '["n2", 3, ^false]', "links[1][2] must be a number, not false"),
    ('"streams": {\n', '^"streems": {\n', 'unknown key "streems" in the problem'),
    ('"rate": 10, "width": 8', '"rate": ^0, "width": 8', "streams.A.rate must be a finite number above 0"),
    ('"rate": 10, "width": 8', '"rate": ^-1, "width": 8', "above 0, not -1"),
    ('"rate": 10, "width": 8', '"rate": 10, "width": ^0', "streams.A.width must be a finite number above 0"),
    ('"rate": 10, "width": 8', '"rate": 10, ^"with": 8', 'unknown key "with" in streams.A'),
    ('"site": "n1", "rate"', '"site": ^"n9", "rate"', 'streams.A.site: there is no site "n9"'),
    ('{"site": 3, "rate": 20}', "^20", "streams.B must be an object {...}, not 20"),
    ('"B": {"site"', '^"": {"site"', "a name in streams is empty"),
    ('["A", "B", 0.01]', '["A", "B", ^0]', "selectivities[0][2] must be a finite number above 0"),
    ('["A", "B", 0.01]', '["A", "B", ^-0.5]', "above 0, not -0.5"),
    ('["A", "B", 0.01]', '["A", ^"A", 0.5]', 'selectivities[0] names stream "A" twice'),
    ('["A", "B", 0.01]', '["A", ^"C", 0.5]', 'selectivities[0][1]: there is no stream "C"'),
    ('["A", "B", 0.01]', '["A", ^1, 0.5]', "selectivities[0][1] must be the name of a stream, not 1"),
    ('["A", "B", 0.01]', '["A", "B", 1], ^["B", "A", 1]', 'selectivity of "B" and "A" is given twice'),
    ('["A", "B", 0.01]', '^["A", "B"]', "selectivities[0] must be [stream, stream, selectivity]"),
    ('"within": ["half"]', '"within": [^"hlaf"]', 'filters.few.within[0]: there is no filter "hlaf"'),
    ('"within": ["half"]', '"within": ^"half"', "filters.few.within must be a list"),
    ('"within": ["half"]', '"within": ^["b"]', 'filter "few" of stream "A" cannot be within "b"'),
    ('"within": ["half"]', '"within": ^["few"]', 'filter "few" is within itself'),
    ('"selectivity": 0.1', '"selectivity": ^1.1', "filters.few.selectivity must be at most 1"),
    ('"selectivity": 0.1', '"selectivity": ^0', "filters.few.selectivity must be a finite number above 0"),
    ('{"stream": "B", ', '{"stream": ^"Z", ', 'filters.b.stream: there is no stream "Z"'),
    ('["A", "B"], "sink": 4', '^[], "sink": 4', "queries[0].streams is empty"),
    ('["A", "B"], "sink": 4', '["A", ^"A"], "sink": 4', 'queries[0].streams names stream "A" twice'),
    ('["A", "B"], "sink": 4', '["A", ^"D"], "sink": 4', 'queries[0].streams[1]: there is no stream "D"'),
    ('["A", "B"], "sink": 4', '^"A", "sink": 4', 'queries[0].streams must be a list [...], not "A"'),
    (
        '["A", "B"], "sink": 4',
        '^["A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A"], "sink": 4',
        "must be at most 12, not 13",
    ),
    ('"sink": 4', '"sink": ^"4"', 'queries[0].sink: there is no site "4"'),
    ('"sink": 4', '^"sync": 4', 'unknown key "sync" in queries[0]'),
    ('"id": "x"', '"id": ^""', "queries[0].id must be a text or a whole number, not an empty text"),
    ('"id": "x"', '"id": ^1.5', "queries[0].id must be a text or a whole number, not 1.5"),
    ('{"A": "few"}', '{"A": ^"fwe"}', 'queries[1].filters.A: there is no filter "fwe"'),
    ('{"A": "few"}', '{"A": ^"b"}', 'filter "b" is one of stream "B", not of "A"'),
    ('{"A": "few"}', '{^"C": "few"}', '"C" is not one of the streams of queries[1]'),
    ('{"A": "few"}', '^["few"]', "queries[1].filters must be an object {...}, not a list"),
    ('{"A": 2}', '{"A": ^9}', 'queries[1].widths.A is 9, more than the whole row of "A"'),
    ('{"A": 2}', '{"A": ^0}', "queries[1].widths.A must be a finite number above 0"),
    ('"cpu": {"n1"', '"cpu": {^"n7"', 'cpu.n7: there is no site "n7"'),
    ('"3": 50', '^"03": 50', 'cpu.03: there is no site "03"'),
    ('"3": 50', '"3": ^0', "cpu.3 must be above 0"),
    ('"3": 50', '"3": ^"fast"', 'cpu.3 must be a number, not "fast"'),
    ('["n2"],\n  "reuse"', '^"n2",\n  "reuse"', 'forbidden must be a list [...], not "n2"'),
    ('["n2"],\n  "reuse"', '[^"n0"],\n  "reuse"', 'forbidden[0]: there is no site "n0"'),
    ('"reuse": true', '"reuse": ^1', "reuse must be true or false, not 1"),
    ('"reuse": true', '"sinks": ^"no"', 'sinks must be true or false, not "no"'),
    ('"reuse": true', '"reuse": true, ^"reuse": true', 'the key "reuse" is given twice'),
]
"""What is replaced, by what (^ marks the place that is told), and what is said."""

ELSEWHERE = [
    ('"links": [["n1", "n2", 1], ["n2", 3, 2], [3, 4, 0]],', "", "1:1", "neither links nor costs are given"),
    (
        '"links": [["n1", "n2", 1], ["n2", 3, 2], [3, 4, 0]]',
        '"links": [["n1", "n2", 1], ["n2", 3, 2], [3, 4, 0]], "costs": []',
        "1:1",
        "both links and costs are given",
    ),
    ('"site": "n1", "rate"', '"rate"', "5:10", '"site" is missing in streams.A'),
    (
        '{"stream": "A", "selectivity": 0.5}',
        '{"stream": "A", "selectivity": 0.1, "within": ["few"]}',
        "10:58",
        'filter "few" is within itself',
    ),
    ('"selectivity": 0.1', '"selectivity": 0.6', "10:58", 'filter "few" takes more rows than "half"'),
    (', "sink": 4', "", "15:5", '"sink" is missing in queries[0]'),
    ('"id": "x"', '"id": "q2"', "16:5", 'two queries have the id "q2"'),
]

BAD_MATRIX = [
    ("[[0, 1.5], [null, 0]]", "^[[0, 1.5]]", "costs must have one row for each of the 2 sites, not 1"),
    ("[0, 1.5]", "^[0, 1.5, 3]", "costs[0] must have one entry for each of the 2 sites, not 3"),
    ("[0, 1.5]", "^7", "costs[0] must be a list [...], not 7"),
    ("[0, 1.5]", "[0, ^-1]", "costs[0][1] must be at least 0, not -1"),
    ("[0, 1.5]", "[0, ^NaN]", "costs[0][1] must be at least 0, not NaN"),
    ("[0, 1.5]", '[0, ^"far"]', 'costs[0][1] must be a number, not "far"'),
    ("[0, 1.5]", "[0, ^Infinity]", "costs[0][1] must be a finite number"),
    ("[0, 1.5]", "[0, ^true]", "costs[0][1] must be a number, not true"),
    ('{"streams": ["A"], "sink": 1}', "^5", "queries[0] must be an object {...}, not 5"),
    ('[{"streams": ["A"], "sink": 1}]', "^[]", "queries is empty"),
]


def told(text: str) -> tuple[str, str]:
    with pytest.raises(UserError) as wrong:
        read_placement(ProblemFile("p.json", text))
    assert wrong.value.span is not None
    return wrong.value.span.where(), wrong.value.message


def marked(text: str, old: str, new: str) -> tuple[str, str]:
    """The text with its mistake, and the place of the mark."""
    assert text.count(old) == 1
    before, after = text.replace(old, new).split("^")
    return before + after, f"p.json:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


@pytest.mark.parametrize(("old", "new", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, says: str) -> None:
    text, place = marked(SMALL, old, new)
    where, message = told(text)
    assert says in message
    assert where == place


@pytest.mark.parametrize(("old", "new", "place", "says"), ELSEWHERE)
def test_what_is_wrong_elsewhere(old: str, new: str, place: str, says: str) -> None:
    assert SMALL.count(old) == 1
    where, message = told(SMALL.replace(old, new))
    assert says in message
    assert where == f"p.json:{place}"


@pytest.mark.parametrize(("old", "new", "says"), BAD_MATRIX)
def test_what_is_wrong_with_a_matrix(old: str, new: str, says: str) -> None:
    text, place = marked(MATRIX, old, new)
    where, message = told(text)
    assert says in message
    assert where == place


def test_both_samples_are_right() -> None:
    read_placement(ProblemFile("p.json", SMALL))
    read_placement(ProblemFile("p.json", MATRIX))


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"sites": [1], "links": []}'])
def test_no_problem_at_all(text: str) -> None:
    told(text)


def test_a_site_written_otherwise_is_offered() -> None:
    with pytest.raises(UserError) as wrong:
        read_placement(ProblemFile("p", SMALL.replace('"sink": 4', '"sink": "4"')))
    assert wrong.value.hint == "Write it as in sites: 4."
    with pytest.raises(UserError) as wrong:
        read_placement(ProblemFile("p", SMALL.replace('"sink": "n2"', '"sink": "n22"')))
    assert wrong.value.hint == 'Did you mean "n2"?'


def test_rates_that_no_float_holds() -> None:
    names = [f"s{i}" for i in range(12)]
    streams = {name: {"site": 0, "rate": 1} for name in names}
    pairs = [[a, b, 1e-9] for i, a in enumerate(names) for b in names[:i]]
    problem = {"sites": [0], "links": [], "streams": streams, "selectivities": pairs}
    text = json.dumps({**problem, "queries": [{"streams": names, "sink": 0}]})
    assert told(text)[1] == "the rates and selectivities of queries[0] multiply to too much or too little"
    # Very large and very small together are fine.
    fine = {name: {"site": 0, "rate": 1e11} for name in names}
    pairs = [[a, b, 1e-4] for i, a in enumerate(names) for b in names[:i]]
    problem |= {"streams": fine, "selectivities": pairs, "queries": [{"streams": names, "sink": 0}]}
    read_placement(ProblemFile("p", json.dumps(problem)))


UNREACHABLE = [
    ({"sink": 1}, "3:37", 'query "x" cannot be deployed: stream "A" cannot reach its sink', "from 0 to 1"),
    ({"sink": 0, "streams": ["A", "B"]}, "3:42", 'stream "B" cannot reach its sink', "from 1 to 0"),
]


@pytest.mark.parametrize(("query", "place", "says", "hint"), UNREACHABLE)
def test_a_stream_that_cannot_reach_the_sink(
    query: dict[str, object], place: str, says: str, hint: str
) -> None:
    text = (
        '{"sites": [0, 1, 2], "links": [[0, 2, 1]],\n'
        '"streams": {"A": {"site": 0, "rate": 1}, "B": {"site": 1, "rate": 2}},\n'
        '"queries": [' + json.dumps({"id": "x", "streams": ["A"], **query}) + "]}"
    )
    with pytest.raises(UserError) as wrong:
        solve_placement(ProblemFile("p.json", text), Request())
    assert says in wrong.value.message
    assert hint in wrong.value.hint
    assert wrong.value.span is not None
    assert wrong.value.span.where() == f"p.json:{place}"


def test_no_site_that_may_join() -> None:
    text = SMALL.replace('["n2"],\n', '["n1", "n2", 3, 4],\n').replace('"cpu": {"n1": 100, "3": 50},', "")
    with pytest.raises(UserError, match="no site that may join is on the way to its sink") as wrong:
        solve_placement(ProblemFile("p.json", text), Request())
    assert wrong.value.span is not None
    assert (wrong.value.span.line, wrong.value.hint) == (15, "Every such site is forbidden.")


def test_a_query_that_does_not_fit() -> None:
    text = SMALL.replace('{"n1": 100, "3": 50}', '{"n1": 29, "n2": 29, "3": 29, "4": 29}')
    with pytest.raises(UserError, match="query x does not fit") as wrong:
        solve_placement(ProblemFile("p.json", text), Request())
    assert wrong.value.span is not None
    assert wrong.value.span.where() == "p.json:15:5"
    assert "lacks 1 rows per unit of time" in wrong.value.detail
    assert "under cpu" in wrong.value.hint


@pytest.mark.parametrize("entry", ["-1", "null", "1e300", "NaN", '"x"', "true"])
def test_the_diagonal_is_not_looked_at(entry: str) -> None:
    text = MATRIX.replace("[[0, 1.5], [null, 0]]", f"[[{entry}, 1.5], [null, {entry}]]")
    costs = read_placement(ProblemFile("p.json", text)).problem.network.costs
    assert costs is not None
    assert costs.tolist() == [[0.0, 1.5], [float("inf"), 0.0]]


def test_products_that_no_float_holds_on_the_way() -> None:
    """Large and small ones cancel out, but not in every order in which they may be multiplied."""
    names = [f"s{i}" for i in range(12)]
    streams = {name: {"site": 0, "rate": 1} for name in names}
    both = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    pairs = [[a, b, 1e12 if number % 2 else 1e-12] for number, (a, b) in enumerate(both)]
    problem = {"sites": [0], "links": [], "streams": streams, "selectivities": pairs}
    text = json.dumps({**problem, "queries": [{"streams": names, "sink": 0}]})
    assert told(text)[1] == "the rates and selectivities of queries[0] multiply to too much or too little"


def test_half_a_character() -> None:
    place, message = told(SMALL.replace('"n2"', '"\\ud800"'))[:2]
    assert message == "this text has half of a character (a lone surrogate)"
    assert place
    # Both halves are one character.
    read_placement(ProblemFile("p", SMALL.replace('"n2"', '"\\ud83d\\ude00"')))


def test_a_number_of_thousands_of_digits_is_no_site() -> None:
    body = json.loads(SMALL)
    assert "there is no site" in told(json.dumps({**body, "cpu": {"9" * 5000: 1}}))[1]
