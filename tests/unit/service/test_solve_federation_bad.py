"""Wrong federation problems: what is said of each, and at which place."""

from __future__ import annotations

import re

import pytest

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_federation import solve_federation
from headrace.service.solve_federation_file import read_federation
from headrace.service.solve_request import Request

PLAN = """{
  "streams": [{"id": "s", "rate": 100}],
  "windows": [
    {"id": "w", "stream": "s", "range": 10, "slide": 2, "width": 4},
    {"id": "v", "stream": "s", "range": 50, "slide": 5, "unit": "rows"}
  ],
  "tables": [{"id": "t", "rows": 7}],
  "operators": [
    {"id": "f", "kind": "select", "inputs": ["w"], "selectivity": 0.5, "spark": 1},
    {"id": "a", "kind": "aggregate", "inputs": ["f"], "groups": 9, "duckdb": {"held": 1}},
    {"id": "j", "kind": "join", "inputs": ["a", "v"], "left": 0.1, "right": 0.2, "engine": "spark"}
  ],
  "prices": {"statement": 1},
  "costs": {"select": {"spark": 1}},
  "cores": 4
}"""
QUERY = """{
  "streams": [{"id": "s", "rate": 100}],
  "windows": [{"id": "w", "stream": "s", "range": 10, "slide": 2}],
  "tables": [{"id": "t", "rows": 7}],
  "relations": [
    {"id": "r", "reads": "w", "chain": [{"id": "f", "kind": "select", "selectivity": 0.5}]},
    {"id": "h", "reads": "t"}
  ],
  "joins": [{"left": "r", "right": "h", "selectivity": 0.1, "key": "k"}],
  "movable": [{"operator": {"id": "a", "kind": "aggregate", "groups": 3}, "over": ["r"], "beyond": ["h"]}],
  "top": [{"id": "p", "kind": "project"}]
}"""
MOVABLE = '{"operator": {"id": "a", "kind": "aggregate", "groups": 3}, "over": ["r"], "beyond": ["h"]}'
AGAIN = '{"operator": {"id": "b", "kind": "aggregate", "groups": 3}, "over": ^["r"]}'
LOOP = '"spark"}, {"id": "x", "kind": "project", "inputs": ^["x"]}'
LONG = ", ".join(f'{{"id": "x{i}", "reads": "w"}}' for i in range(13))

BAD_PLAN = [
    ('"rate": 100', '"rate": ^-1', "streams[0].rate must be at least 0, not -1"),
    ('"rate": 100', '"rate": ^NaN', "streams[0].rate must be at least 0, not NaN"),
    ('"rate": 100', '"rate": ^1e13', "streams[0].rate must be at most 1e+12"),
    ('[{"id": "s", "rate": 100}]', "^[]", "streams is empty"),
    (
        '{"id": "s", "rate": 100}',
        '{"id": "s", "rate": 1}, {"id": ^"s", "rate": 2}',
        'two streams have the id "s"',
    ),
    ('"id": "w", "stream": "s"', '"id": "w", "stream": ^"x"', 'windows[0].stream: there is no stream "x"'),
    ('"id": "w"', '"id": ^3', "windows[0].id must be a text, not 3"),
    ('"id": "v"', '"id": ^"w"', 'windows[1].id: "w" is taken'),
    ('"range": 10', '"range": ^0', "windows[0].range must be a finite number above 0, not 0"),
    ('"slide": 2', '"slide": ^"2"', 'windows[0].slide must be a number, not "2"'),
    ('"unit": "rows"', '"unit": ^"days"', 'windows[1].unit: there is no unit "days"'),
    ('"width": 4', '^"wide": 4', 'unknown key "wide" in windows[0]'),
    ('"rows": 7', '"rows": ^true', "tables[0].rows must be a number, not true"),
    ('"kind": "select"', '"kind": ^"filter"', 'operators[0].kind: there is no kind "filter"'),
    ('"kind": "select"', '"kind": ^7', "operators[0].kind must be a text, not 7"),
    ('"selectivity": 0.5', '"selectivity": ^1.5', "operators[0].selectivity must be at most 1, not 1.5"),
    ('"selectivity": 0.5', '^"groups": 5', 'operators[0] has the key "groups", which no select has'),
    ('"inputs": ["w"]', '"inputs": ^["w", "v"]', "operators[0].inputs: a select has 1 input, not 2"),
    ('"inputs": ["a", "v"]', '"inputs": ^["a"]', "operators[2].inputs: a join has 2 inputs, not 1"),
    ('"inputs": ["a", "v"]', '"inputs": ["a", ^"x"]', 'operators[2].inputs[1]: there is no input "x"'),
    ('"inputs": ["a", "v"]', '"inputs": ["a", ^"f"]', '"f" is read already, by operators[1]'),
    ('"inputs": ["a", "v"]', '"inputs": ["a", ^null]', "operators[2].inputs[1] must be a text, not null"),
    ('"spark"}', LOOP, "operators[3] reads, in the end, itself"),
    ('"inputs": ["w"]', '"inputs": ["w"], ^"input": 3', 'unknown key "input" in operators[0]'),
    ('"spark": 1}', '"spark": ^[1, 2]}', "operators[0].spark must have one cost for each input, not 2"),
    ('"spark": 1}', '"spark": ^-1}', "operators[0].spark must be at least 0, not -1"),
    ('{"held": 1}', "^3", "operators[1].duckdb must be an object {...}, not 3"),
    ('{"held": 1}', '{"held": ^"x"}', 'operators[1].duckdb.held must be a number, not "x"'),
    ('"left": 0.1', '"left": ^0.1, "selectivity": 0.1', "operators[2].left is given beside selectivity"),
    ('"engine": "spark"', '"engine": ^"flink"', 'operators[2].engine: there is no engine "flink"'),
    ('{"statement": 1}', '{^"statements": 1}', 'unknown key "statements" in prices'),
    ('{"select": {', '{^"filter": {', 'unknown key "filter" in costs'),
    ('{"select": {"spark": 1}}', '{"select": {"spark": ^-1}}', "costs.select.spark must be at least 0"),
    ('"cores": 4', '"cores": ^0', "cores must be a finite number above 0, not 0"),
    ('"cores": 4', '"cores": 4, ^"joins": []', "joins is given beside operators"),
]
BAD_QUERY = [
    ('"reads": "w"', '"reads": ^"x"', 'relations[0].reads: there is no window or table "x"'),
    ('{"id": "h"', '{"id": ^"r"', 'two relations have the id "r"'),
    ('"kind": "select", "selectivity": 0.5', '"kind": ^"join"', "relations[0].chain[0] cannot be a join"),
    ('"kind": "project"', '"kind": "project", ^"inputs": ["w"]', "top[0] names inputs"),
    ('"left": "r"', '"left": ^"w"', 'joins[0].left: there is no relation "w"'),
    ('"right": "h"', '"right": ^"r"', "joins[0] joins r with itself"),
    ('"key": "k"', '"key": ^3', "joins[0].key must be a text, not 3"),
    ('"kind": "aggregate", "groups": 3', '"kind": ^"project"', "movable[0] must be an aggregate"),
    ('"over": ["r"]', '"over": ^[]', "movable[0].over is empty"),
    ('"over": ["r"]', '"over": [^"t"]', 'movable[0].over[0]: there is no relation "t"'),
    (MOVABLE, f"{MOVABLE}, {AGAIN}", "two movable aggregates are over r"),
    (
        '{"id": "h", "reads": "t"}',
        f'{{"id": "h", "reads": "t"}}, {LONG}',
        "relations must be at most 12, not 15",
    ),
]
ELSEWHERE = [
    (PLAN, ', "selectivity": 0.5', "", "9:5", '"selectivity" is missing in operators[0]'),
    (PLAN, ', "groups": 9', "", "10:5", '"groups" is missing in operators[1]'),
    (PLAN, ', "right": 0.2', "", "11:5", '"right" is missing in operators[2]'),
    (PLAN, '"inputs": ["w"], ', "", "9:5", '"inputs" is missing in operators[0]'),
    (PLAN, '"kind": "select", ', "", "9:5", '"kind" is missing in operators[0]'),
    (PLAN, '"operators"', '"top"', "1:1", "neither operators nor relations are given"),
    (PLAN, '"cores": 4', '"relations": []', "1:1", "both operators and relations are given"),
    (PLAN, '["a", "v"]', '["w", "v"]', "8:16", "exactly one operator must be read by no other"),
    (PLAN, '["w"]', '["j"]', "8:16", "exactly one operator must be read by no other"),
    (QUERY, ', "selectivity": 0.1', "", "9:13", '"selectivity" is missing in joins[0]'),
]


def told(text: str) -> tuple[str, str]:
    with pytest.raises(UserError) as wrong:
        read_federation(ProblemFile("p.json", text))
    assert wrong.value.span is not None
    return wrong.value.span.where(), wrong.value.message


def check(text: str, old: str, new: str, says: str) -> None:
    assert text.count(old) >= 1
    marked = text.replace(old, new, 1)
    before = marked.partition("^")[0] if "^" in new else None
    where, message = told(marked.replace("^", ""))
    assert says in message
    if before is not None:
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        assert where == f"p.json:{line}:{column}"


@pytest.mark.parametrize(("old", "new", "says"), BAD_PLAN)
def test_wrong_plans_are_told_with_their_place(old: str, new: str, says: str) -> None:
    check(PLAN, old, new, says)


@pytest.mark.parametrize(("old", "new", "says"), BAD_QUERY)
def test_wrong_queries_are_told_with_their_place(old: str, new: str, says: str) -> None:
    check(QUERY, old, new, says)


@pytest.mark.parametrize(("text", "old", "new", "where", "says"), ELSEWHERE)
def test_what_is_missing_is_told_where_it_should_be(
    text: str, old: str, new: str, where: str, says: str
) -> None:
    assert text.count(old) == 1
    place, message = told(text.replace(old, new))
    assert (place, says in message) == (f"p.json:{where}", True), message


def test_the_right_ones_are_right() -> None:
    read_federation(ProblemFile("p.json", PLAN))
    read_federation(ProblemFile("p.json", QUERY))


def test_a_query_needs_an_operator() -> None:
    window = '{"id": "w", "stream": "s", "range": 1, "slide": 1}'
    bare = f'{{"streams": [{{"id": "s", "rate": 1}}], "windows": [{window}],'
    assert told(bare + ' "relations": [{"id": "r", "reads": "w"}]}')[1] == "the query has no operator"


def test_a_query_has_no_more_operators_than_a_plan() -> None:
    chain = ", ".join(f'{{"id": "x{i}", "kind": "project"}}' for i in range(198))
    long = QUERY.replace('"top": [', f'"top": [{chain}, ')
    where, message = told(long)
    says = "operators, with a join for each relation but one, must be at most 200, not 202"
    assert (where.rpartition(":")[0], message) == ("p.json:5", says)
    read_federation(
        ProblemFile(
            "p.json",
            long.replace('{"id": "x0", "kind": "project"}, ', "", 1).replace(
                '{"id": "x1", "kind": "project"}, ', "", 1
            ),
        )
    )


THROUGH_H = """{
  "streams": [{"id": "s", "rate": 100}],
  "windows": [{"id": "w", "stream": "s", "range": 10, "slide": 2}],
  "relations": [{"id": "r", "reads": "w"}, {"id": "h", "reads": "w"}, {"id": "g", "reads": "w"}],
  "joins": [
    {"left": "r", "right": "h", "selectivity": 0.1},
    {"left": "h", "right": "g", "selectivity": 0.1}
  ],
  "movable": [{"operator": {"id": "a", "kind": "aggregate", "groups": 3}, "over": ["r", "g"]}]
}"""


@pytest.mark.parametrize(
    ("text", "old", "new", "says"),
    [
        (
            QUERY,
            '"key": "k"}',
            '"engine": "spark"}, {"left": "h", "right": "r", "selectivity": 1, "engine": ^"duckdb"}',
            "joins[0] and joins[1] must run on different engines, and every order tests them in one join",
        ),
        (
            THROUGH_H,
            '{"operator": {"id": "a"',
            '^{"operator": {"id": "a"',
            "the aggregate a can stand nowhere",
        ),
    ],
)
def test_a_query_without_a_plan_is_told_with_its_place(text: str, old: str, new: str, says: str) -> None:
    marked = text.replace(old, new, 1)
    before = marked.partition("^")[0]
    with pytest.raises(UserError, match=re.escape(says)) as wrong:
        solve_federation(ProblemFile("p.json", marked.replace("^", "")), Request())
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert wrong.value.span is not None and wrong.value.span.where() == f"p.json:{line}:{column}"
