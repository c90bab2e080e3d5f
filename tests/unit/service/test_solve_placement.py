"""Placement problems read from JSON, solved, and given back in the public form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.planners.placement.problem import BaseStream, Filter, Network, PlacementProblem, Query
from headrace.service.problem_file import ProblemFile
from headrace.service.solve import Request, list_optimisers, solve_file
from headrace.service.solve_placement import PlacementAnswer, QueryData, solve_placement
from headrace.service.solve_placement_file import read_placement
from tests.unit.service.placement_count import Count
from tests.unit.service.placement_problems import drawn

Json = Any

ROW = """{
  "sites": ["a", "m", "b", 7],
  "links": [["a", "m", 1], ["m", "b", 2], ["m", 7, 5], ["b", "b", 9]],
  "streams": {"A": {"site": "a", "rate": 10}, "B": {"site": "b", "rate": 20}, "C": {"site": 7, "rate": 3}},
  "selectivities": [["A", "B", 0.01], ["C", "B", 0.1]],
  "queries": [
    {"id": "pair", "streams": ["A", "B"], "sink": 7},
    {"streams": ["C", "B", "A"], "sink": 7},
    {"id": 9, "streams": ["A"], "sink": "b"}
  ]
}"""
"""A and B are joined best at b: 10 * 3 for A, then 2 * 7 for the result to 7. At m it is 10 + 40 + 10, at a
60 + 12. The second query takes A*B from b to 7 for 2 * 7 and joins C there, where it is. The third sends A
alone over 3."""


def solved(problem: Json, request: Request | None = None) -> Json:
    """The answer, as a program reads it."""
    text = problem if isinstance(problem, str) else json.dumps(problem)
    found = solve_placement(ProblemFile("p.json", text), request or Request())
    return json.loads(json.dumps(found, allow_nan=False))


def test_a_problem_is_read() -> None:
    text = """{"sites": ["x", 2, "y"], "costs": [[9, 1, null], [0, 0, 2], [4.5, 1, 0]],
      "streams": {"A": {"site": 2, "rate": 3, "width": 8}, "B": {"site": "y", "rate": 1}},
      "selectivities": [["B", "A", 0.5]], "reuse": false, "sinks": true, "cpu": {"2": 5, "y": 1},
      "forbidden": ["x", "x"],
      "filters": {"f": {"stream": "A", "selectivity": 0.1, "within": ["g"]},
                  "g": {"stream": "A", "selectivity": 0.2, "within": ["h"]},
                  "h": {"stream": "A", "selectivity": 1}},
      "queries": [{"streams": ["A"], "sink": "x"},
                  {"id": 5, "streams": ["B", "A"], "sink": 2, "filters": {"A": "f"}, "widths": {"A": 2}}]}"""
    given = read_placement(ProblemFile("p", text))
    costs = given.problem.network.costs
    assert costs is not None
    assert costs.tolist() == [[0, 1, float("inf")], [0, 0, 2], [4.5, 1, 0]]
    assert given.ids == {"q1": "q1", "5": 5}
    expected = PlacementProblem(
        network=Network(("x", 2, "y"), costs=costs),
        streams={"A": BaseStream("A", 1, 3.0, 8.0), "B": BaseStream("B", 2, 1.0)},
        selectivities={frozenset("AB"): 0.5},
        queries=(Query("q1", ("A",), 0), Query("5", ("B", "A"), 1, {"A": "f"}, {"A": 2.0})),
        reuse=False,
        sinks=True,
        filters={
            "f": Filter("f", "A", 0.1, frozenset("gh")),
            "g": Filter("g", "A", 0.2, frozenset("h")),
            "h": Filter("h", "A", 1.0),
        },
        cpu={1: 5.0, 2: 1.0},
        forbidden=frozenset({0}),
    )
    assert vars(given.problem) == vars(expected)


def test_a_link_to_itself_is_left_out() -> None:
    links = read_placement(ProblemFile("p", ROW)).problem.network.links
    assert links == ((0, 1, 1.0), (1, 2, 2.0), (1, 3, 5.0))


def test_the_answer_worked_out_by_hand() -> None:
    answer = solved(ROW)
    pair, more, alone = answer["queries"]
    assert {leaf["stream"] for leaf in pair["tree"]["join"]} == {"A", "B"}
    assert (pair["tree"]["site"], pair["tree"]["rate"], pair["tree"]["streams"]) == ("b", 2.0, ["A", "B"])
    assert (pair["id"], pair["sink"], pair["added_cost"], pair["reused"], pair["joins"]) == (
        "pair",
        7,
        44,
        [],
        1,
    )
    assert more["reused"] == [{"streams": ["B", "A"], "site": "b", "query": "pair"}]
    assert {"reused": ["B", "A"], "site": "b", "query": "pair"} in more["tree"]["join"]
    assert {"stream": "C", "site": 7} in more["tree"]["join"]
    assert (more["id"], more["tree"]["site"], more["tree"]["rate"]) == ("q2", 7, pytest.approx(0.6))
    assert more["added_cost"] == pytest.approx(14)
    assert (alone["id"], alone["tree"], alone["sink"]) == (9, {"stream": "A", "site": "a"}, "b")
    assert (alone["added_cost"], alone["joins"]) == (30, 0)
    assert (answer["total_cost"], answer["operators"]) == (pytest.approx(88), 2)
    assert (answer["problem"], answer["planner"], answer["optimiser"]) == ("placement", "exact", "exact")
    assert all(query["certified"] for query in answer["queries"])


def test_without_reuse_everything_is_paid_again() -> None:
    answer = solved(ROW.replace('"sites"', '"reuse": false, "sites"', 1))
    assert [query["reused"] for query in answer["queries"]] == [[], [], []]
    # C goes to b for 21, C*B from there to a for 6 * 3, and the result to 7 for 0.6 * 6: less than 44.
    assert [query["added_cost"] for query in answer["queries"]] == pytest.approx([44, 42.6, 30])


def test_every_field_of_the_answer_is_there() -> None:
    answer = solved(ROW)
    optional = {"lower_bound", "notes"}
    assert list(answer) == [key for key in PlacementAnswer.__annotations__ if key not in optional]
    for query in answer["queries"]:
        assert [k for k in query if k != "notes"] == [k for k in QueryData.__annotations__ if k != "notes"]
        assert query["seconds"] >= 0
    assert all(query["plans_examined"] > 0 for query in answer["queries"][:2])
    assert answer["seconds"] >= sum(query["seconds"] for query in answer["queries"])


@pytest.mark.parametrize("planner", ["exact", "top-down"])
@pytest.mark.parametrize("seed", range(12))
def test_the_costs_are_what_a_count_from_the_answer_gives(seed: int, planner: str) -> None:
    problem = drawn(seed, plain=seed % 3 == 0)
    problem["sinks"] = seed % 5 == 0
    problem["forbidden"] = problem["sites"][: seed % 2]
    answer = solved(problem, Request(planner.upper()))
    assert answer["planner"] == planner
    told = [query["added_cost"] for query in answer["queries"]]
    assert told == pytest.approx(Count(problem, answer).added(), rel=1e-9, abs=1e-9)
    assert answer["total_cost"] == pytest.approx(sum(told), rel=1e-9)
    assert answer["operators"] == sum(query["joins"] for query in answer["queries"])


def test_a_wrong_answer_would_be_counted_wrong() -> None:
    """The count above can fail: it sees a join that is somewhere else."""
    answer = solved(ROW)
    answer["queries"][0]["tree"]["site"] = "m"
    answer["queries"][1]["reused"][0]["site"] = "m"
    tree = answer["queries"][1]["tree"]
    (leaf,) = (part for part in tree["join"] if "reused" in part)
    leaf["site"] = "m"
    assert Count(json.loads(ROW), answer).added() == pytest.approx([60, 10, 30])
    leaf["site"] = "a"
    with pytest.raises(AssertionError, match="nobody made"):
        Count(json.loads(ROW), answer).added()


def test_a_wider_stream_says_what_it_adds() -> None:
    """The first query wants a tenth of A; the second all of it, so A comes whole to where both read A*B."""
    problem = {
        "sites": [0, 1, 2],
        "links": [[0, 1, 1], [1, 2, 10]],
        "streams": {"A": {"site": 0, "rate": 10}, "B": {"site": 1, "rate": 100}},
        "selectivities": [["A", "B", 0.001]],
        "filters": {"few": {"stream": "A", "selectivity": 0.1}},
        "queries": [
            {"streams": ["A", "B"], "sink": 2, "filters": {"A": "few"}},
            {"streams": ["A", "B"], "sink": 2},
        ],
    }
    first, second = solved(problem)["queries"]
    assert (first["tree"]["site"], first["tree"]["rate"]) == (1, pytest.approx(0.1))
    assert first["added_cost"] == pytest.approx(1 * 1 + 0.1 * 10)
    # Nine tenths of A more over the first link, against ten tenths for a join of its own.
    assert second["tree"] == {"reused": ["A", "B"], "site": 1, "query": "q1", "extra_cost": pytest.approx(9)}
    assert second["added_cost"] == pytest.approx(9 + 1 * 10)


def test_limits_of_cpu_are_kept() -> None:
    """Without the limit both streams meet at 1; it can read 29 rows and they are 30."""
    problem = {
        "sites": [0, 1, 2],
        "links": [[0, 1, 1], [1, 2, 1]],
        "streams": {"A": {"site": 0, "rate": 10}, "B": {"site": 1, "rate": 20}},
        "selectivities": [["A", "B", 0.001]],
        "queries": [{"streams": ["A", "B"], "sink": 2}],
    }
    assert solved(problem)["queries"][0]["tree"]["site"] == 1
    limited = solved({**problem, "cpu": {"1": 29}})
    assert limited["queries"][0]["tree"]["site"] == 0
    assert limited["total_cost"] == pytest.approx(20 + 0.2 * 2)
    with pytest.raises(UserError, match="npc keeps no limits of cpu"):
        solved({**problem, "cpu": {"1": 29}}, Request("npc"))
    with pytest.raises(UserError):
        solved({**problem, "cpu": {"0": 1, "1": 1, "2": 1}})


def test_the_registry(tmp_path: Path) -> None:
    assert next(iter(list_optimisers("placement"))) == "exact"
    (tmp_path / "p.json").write_text(ROW)
    answer = solve_file("Placement", str(tmp_path / "p.json"), Request("bottom-up", max_cs=2))
    assert answer["optimiser"] == "bottom-up"


@pytest.mark.parametrize(
    ("planner", "request_", "says"),
    [
        ("placement", Request(balance=1.0), "--balance is not an option of the planner placement"),
        ("placement", Request(front=True), "--front is not an option"),
        ("placement", Request(preprocess=True), "--preprocess is not an option"),
        ("placement", Request(max_cs=1), "max-cs must be at least 2, not 1"),
        ("placement", Request(zones=0), "zones must be at least 1, not 0"),
        ("placement", Request(iterations=-3), "iterations must be at least 1, not -3"),
        ("placement", Request(seconds=float("nan")), "the seconds must be a number above 0"),
        ("placement", Request(picture=Path("map.png")), "neither an .svg nor an .html file"),
        ("placement", Request(picture=Path("/nowhere/map.svg")), "there is no such folder"),
        ("sharing", Request(max_cs=4), "--max-cs is not an option of the planner sharing"),
        ("sharing", Request(picture=Path("map.svg")), "--picture is not an option of the planner sharing"),
    ],
)
def test_options_of_another_planner(planner: str, request_: Request, says: str) -> None:
    """They are refused before the file is looked at."""
    with pytest.raises(UserError) as wrong:
        solve_file(planner, "there is no such file", request_)
    assert says in wrong.value.message


def test_the_map(tmp_path: Path) -> None:
    for name in ("map.svg", "map.html"):
        solved(ROW, Request(picture=tmp_path / name))
    drawn_map = (tmp_path / "map.svg").read_text()
    assert drawn_map.startswith("<svg")
    assert "3 queries placed by exact" in drawn_map
    assert "<table" in (tmp_path / "map.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.html", "map.svg"]
