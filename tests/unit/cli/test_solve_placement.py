"""`headrace solve placement` from the command line: answers, lists, maps, and wrong input."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from headrace.cli import placement_text
from headrace.cli.placement_text import print_placement, tree_text
from headrace.service.solve import Request, TreeNode, solve_file
from tests.unit.cli.entry import call

Capture = pytest.CaptureFixture[str]
PROBLEM = """{
  "sites": ["gate", "hub", 3],
  "links": [["gate", "hub", 1], ["hub", 3, 2]],
  "streams": {"A": {"site": "gate", "rate": 10}, "B": {"site": "hub", "rate": 20}},
  "selectivities": [["A", "B", 0.01]],
  "queries": [{"id": "one", "streams": ["A", "B"], "sink": 3}, {"streams": ["B", "A"], "sink": "gate"}]
}"""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "p.json").write_text(PROBLEM)
    return tmp_path / "p.json"


def lines(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines()]


def test_the_answer_to_read(problem: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "placement", problem)
    assert (done.code, done.err) == (0, "")
    shown = lines(done.out)
    assert shown[0] == "query added cost plans ms deployment"
    assert shown[1].startswith("one 14 ") and shown[1].endswith(" (A*B)@hub -> 3")
    assert shown[2].startswith("q2 2 ") and shown[2].endswith(" [B*A]@hub -> gate")
    assert "total 16" in shown
    assert "1 new join, 1 reused stream, as [stream]@site" in shown
    assert "cheapest, given the queries above it: proven for every query" in shown
    assert any(line.startswith("exact, ") and "to prepare the network" in line for line in shown)


def test_the_answer_as_data(problem: Path, tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "placement", problem, "--json", "--out", tmp_path / "a.json")
    assert (done.code, done.err) == (0, "")
    assert done.json["total_cost"] == pytest.approx(16)
    assert [query["id"] for query in done.json["queries"]] == ["one", "q2"]
    assert done.json["queries"][0]["sink"] == 3
    assert json.loads((tmp_path / "a.json").read_text()) == done.json


def test_it_fits_a_terminal(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"stream-{i}" for i in range(6)]
    problem = {
        "sites": [f"site-{i}" for i in range(7)],
        "links": [[f"site-{i}", f"site-{i + 1}", 1] for i in range(6)],
        "streams": {name: {"site": f"site-{i}", "rate": 10} for i, name in enumerate(names)},
        "selectivities": [[a, b, 0.01] for a, b in pairwise(names)],
        "queries": [{"streams": names, "sink": "site-6"} for _ in range(50)],
    }
    (tmp_path / "p.json").write_text(json.dumps(problem))
    answer = solve_file("placement", str(tmp_path / "p.json"), Request("plan-then-deploy"))
    assert answer["problem"] == "placement"
    monkeypatch.setattr(placement_text, "out", lambda: Console(width=80, highlight=False, markup=False))
    print_placement(answer)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "... and 10 more queries; --json gives all" in out
    assert ("q40" in out, "q41" in out) == (True, False)
    assert "".join(part.strip() for part in out.split("q2")[0].splitlines()[1:]).count("stream-") == 6


def test_trees_as_text() -> None:
    inner: TreeNode = {
        "join": [{"stream": "C", "site": 4}, {"stream": "D", "site": 5}],
        "streams": ["C", "D"],
        "site": 2,
        "rate": 1.0,
    }
    outer: TreeNode = {
        "join": [{"reused": ["A", "B"], "site": 1, "query": "x"}, inner],
        "streams": ["A", "B", "C", "D"],
        "site": "n3",
        "rate": 2.0,
    }
    assert tree_text(outer) == "([A*B]@1*(C*D)@2)@n3"


def test_the_list(capsys: Capture) -> None:
    done = call(capsys, "solve", "placement", "--list")
    names = [line.split()[0] for line in done.out.splitlines()[1:]]
    paper = "top-down bottom-up npc relaxation in-network plan-then-deploy exhaustive"
    assert names == ["exact", "joint", *paper.split()]
    data = call(capsys, "solve", "placement", "--list", "--json").json
    assert (data["default"], list(data["optimisers"])) == ("exact", names)


@pytest.mark.parametrize("name", ["map.svg", "map.html"])
def test_the_map(problem: Path, tmp_path: Path, capsys: Capture, name: str) -> None:
    done = call(capsys, "solve", "placement", problem, "--picture", tmp_path / name)
    assert done.code == 0
    text = (tmp_path / name).read_text()
    assert "<svg" in text
    for site in ("gate", "hub", "3"):
        assert f">{site}<" in text


BAD = [
    (["placment", "{p}"], 'Did you mean "placement"?'),
    (["placement"], "which problem?"),
    (["placement", "{p}x"], "there is no file {p}x"),
    (["placement", "{p}", "--with", "topdown"], 'Did you mean "top-down"?'),
    (["placement", "{p}", "--balance", "1"], "--balance is not an option of the planner placement"),
    (["placement", "{p}", "--stop", "prose"], "--stop is not an option of the planner placement"),
    (["placement", "{p}", "--front"], "--front is not an option of the planner placement"),
    (["placement", "{p}", "--seed", "-1"], "Invalid value for '--seed'"),
    (["placement", "{p}", "--max-cs", "1"], "max-cs must be at least 2, not 1"),
    (["placement", "{p}", "--max-cs", "many"], "Invalid value for '--max-cs'"),
    (["placement", "{p}", "--zones", "0"], "zones must be at least 1, not 0"),
    (["placement", "{p}", "--seconds", "0"], "the seconds must be a number above 0"),
    (["placement", "{p}", "--picture", "{d}/map.png"], "neither an .svg nor an .html file"),
    (["placement", "{p}", "--picture", "{d}/no/map.svg"], "there is no such folder"),
    (["placement", "{p}", "--out", "{d}"], "cannot write {d}: it is a folder"),
    (["sharing", "{p}", "--zones", "3"], "--zones is not an option of the planner sharing"),
    (["placement", "{d}/lost.json", "--picture", "{d}/map.svg"], 'stream "A" cannot reach its sink'),
    (["placement", "{d}/cut.json"], "{d}/cut.json:4:20: not valid JSON: expecting value"),
]


@pytest.mark.parametrize(("args", "says"), BAD)
def test_wrong_input(tmp_path: Path, capsys: Capture, args: list[str], says: str) -> None:
    (tmp_path / "p.json").write_text(PROBLEM)
    (tmp_path / "lost.json").write_text(PROBLEM.replace('["gate", "hub", 1], ', ""))
    (tmp_path / "cut.json").write_text(PROBLEM[:100])
    names = {"{p}": str(tmp_path / "p.json"), "{d}": str(tmp_path)}
    for short, full in names.items():
        args, says = [arg.replace(short, full) for arg in args], says.replace(short, full)
    before = sorted(path.name for path in tmp_path.iterdir())
    done = call(capsys, "solve", *args)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_wrong_input_as_data(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "p.json").write_text(PROBLEM.replace('"sink": 3', '"sink": 4'))
    done = call(capsys, "solve", "placement", tmp_path / "p.json", "--json")
    assert (done.code, done.json["message"]) == (2, "queries[0].sink: there is no site 4")
    assert done.json["place"]["line"] == 6
