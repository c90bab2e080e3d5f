"""Problems with filters and group-bys, read from JSON and solved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile
from headrace.service.solve import Request, read_sharing, solve_file
from headrace.service.solve_families import read_families

TEXT = """{
  "rate": 100, "nodes": 2, "scan": 0.25,
  "columns": {"user": 1000, "shop": 10},
  "overlaps": {"eu&big": 0.05},
  "queries": [
    {"id": "all", "range": 60, "slide": 10},
    {"id": "eu", "range": 60, "slide": 10, "filter": "eu", "selectivity": 0.6, "keys": ["shop"]},
    {"id": "big", "range": 300, "slide": 30, "filter": "big", "selectivity": 0.1},
    {"id": "users", "range": 300, "slide": 60, "filter": "eu", "keys": ["user", "shop"]}
  ]
}"""


def solved(tmp_path: Path, text: str, request: Request | None = None) -> dict[str, object]:
    path = tmp_path / "p.json"
    path.write_text(text)
    answer: dict[str, object] = json.loads(json.dumps(solve_file("sharing", str(path), request or Request())))
    return answer


def test_it_is_read() -> None:
    file = ProblemFile("p", TEXT)
    problem = read_families(file, json.loads(TEXT), read_sharing(file))
    assert problem is not None
    assert [family.filter for family in problem.families] == ["", "eu", "big", "eu"]
    assert [sorted(family.keys) for family in problem.families] == [[], ["shop"], [], ["shop", "user"]]
    assert problem.selectivity == {"eu": 0.6, "big": 0.1}
    assert problem.overlaps == {frozenset({"eu", "big"}): 0.05}
    assert problem.columns == {"user": 1000, "shop": 10}
    assert (problem.rate, problem.capacities, problem.scan) == (100.0, (1.0, 1.0), 0.25)


BAD = [
    ('"scan": 0.25', '"scan": 2', 2, 36, "scan must be from 0 to 1, not 2"),
    ('"scan": 0.25', '"scan": true', 2, 36, "scan must be a number, not true"),
    ('"shop": 10', '"shop": 0', 3, 37, "columns.shop must be at least 1, not 0"),
    ('{"user": 1000, "shop": 10}', "[]", 3, 14, "columns must be an object {...}, not a list"),
    ('"eu&big": 0.05', '"eu&bug": 0.05', 4, 16, '"eu&bug" does not name two filters'),
    ('"eu&big": 0.05', '"eu&eu": 0.05', 4, 16, '"eu&eu" does not name two filters'),
    ('"eu&big": 0.05', '"eu&big": 0.2', 4, 26, "overlaps.eu&big must be from 0 to 0.1, not 0.2"),
    ('"eu&big": 0.05', '"eu&big": 0.05, "big&eu": 0.05', 4, 32, 'the overlap of "big&eu" is given twice'),
    (
        '"selectivity": 0.6',
        '"selectivity": 0',
        7,
        75,
        "queries[1].selectivity must be a finite number above 0",
    ),
    ('"selectivity": 0.6', '"selectivity": 1.5', 7, 75, "queries[1].selectivity must be at most 1"),
    (', "selectivity": 0.1', "", 8, 56, 'filter "big" has no selectivity'),
    (
        '"filter": "eu", "keys": ["user',
        '"filter": "eu", "selectivity": 0.5, "keys": ["user',
        9,
        79,
        "two sel",
    ),
    ('"filter": "big", ', "", 8, 61, "queries[2] has a selectivity and no filter"),
    ('"filter": "big"', '"filter": "b&g"', 8, 56, 'filter must be a text without "&"'),
    ('["shop"]', '["shup"]', 7, 89, '"shup" is not one of the columns'),
    ('["shop"]', '"shop"', 7, 88, "queries[1].keys must be a list [...]"),
    ('"rate": 100', '"rate": 100, "cost": "true"', 2, 24, 'cost "true" is not there'),
]


@pytest.mark.parametrize(("old", "new", "line", "column", "says"), BAD)
def test_what_is_wrong_and_where(old: str, new: str, line: int, column: int, says: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    file = ProblemFile("p.json", text)
    with pytest.raises(UserError) as wrong:
        read_families(file, json.loads(text), read_sharing(file))
    assert says in wrong.value.message
    assert wrong.value.span is not None
    assert wrong.value.span.where() == f"p.json:{line}:{column}"


def test_overlaps_that_no_rows_can_have_are_refused_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    queries = [{"range": 6, "slide": 2, "filter": name, "selectivity": 0.5} for name in "abc"]
    overlaps = {"a&b": 0, "a&c": 0.5, "b&c": 0.5}
    path.write_text(json.dumps({"rate": 2, "nodes": 2, "queries": queries, "overlaps": overlaps}, indent=1))
    with pytest.raises(UserError, match="contradict each other") as caught:
        solve_file("sharing", str(path), Request())
    line = path.read_text().splitlines().index(' "overlaps": {') + 1
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, 14)


def test_the_answer_says_how_partials_are_kept(tmp_path: Path) -> None:
    answer = solved(tmp_path, TEXT)
    nodes = answer["nodes"]
    assert isinstance(nodes, list)
    trees = [tree for node in nodes for tree in node["trees"]]
    assert sorted(name for tree in trees for name in tree["queries"]) == ["all", "big", "eu", "users"]
    for tree in trees:
        assert tree["form"] in ("separate", "combined") and tree["groups"] >= 1
        assert set(tree["keys"]) == {
            key
            for q in json.loads(TEXT)["queries"]
            if q["id"] in tree["queries"]
            for key in q.get("keys", [])
        }
    assert answer["total_cost"] == pytest.approx(sum(tree["cost"] for tree in trees))


def test_without_filters_and_keys_nothing_changes(tmp_path: Path) -> None:
    plain = {"rate": 10, "nodes": 2, "queries": [{"range": 6, "slide": 2}, {"range": 9, "slide": 3}]}
    extra = {**plain, "columns": {"user": 5}, "scan": 0.5}
    answers = [solved(tmp_path, json.dumps(p), Request(optimiser="WG_TN")) for p in (plain, extra)]
    for answer in answers:
        del answer["seconds"], answer["compile_seconds"]
    assert answers[0] == answers[1]
    assert "form" not in json.dumps(answers)


@pytest.mark.parametrize(
    ("request_", "says"),
    [(Request(optimiser="WG_TN"), "WG_TN knows no filters"), (Request(front=True), "there is no front")],
)
def test_what_is_not_there_is_refused(tmp_path: Path, request_: Request, says: str) -> None:
    with pytest.raises(UserError, match=says):
        solved(tmp_path, TEXT, request_)


def test_the_example_of_the_docs_gives_what_it_shows(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "solve.md").read_text()
    example, shown = (text.split(f"```{kind} families\n")[1].split("```")[0] for kind in ("json", "text"))
    nodes = solved(tmp_path, example)["nodes"]
    assert isinstance(nodes, list)
    told = [line.split(maxsplit=6) for line in shown.strip().splitlines()[1:]]
    trees = [(node["node"], tree) for node in nodes for tree in node["trees"]]
    assert len(told) == len(trees)
    for row, (node, tree) in zip(told, trees, strict=True):
        assert row[0] == str(node) and row[1] == tree["edge_rate"] and row[4] == tree["form"]
        assert float(row[2]) == tree["overlap"] and float(row[3]) == pytest.approx(tree["cost"], rel=1e-5)
        assert float(row[5].replace(",", "")) == pytest.approx(tree["groups"], rel=1e-5)
        assert row[6] == ", ".join(tree["queries"])
