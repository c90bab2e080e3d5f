"""`headrace solve` from the command line: answers, lists, files, standard input, and wrong input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from headrace.planners.sharing.solve import DEFAULT_OPTIMISER, OPTIMISERS
from tests.unit.cli.entry import call, make_project

Capture = pytest.CaptureFixture[str]
PROBLEM = """{"rate": 10, "nodes": 2,
 "queries": [{"range": 6, "slide": 2}, {"range": 8, "slide": 4}, {"id": "odd", "range": 5, "slide": 3}]}"""
KEYS = (
    "problem optimiser cost nodes node_costs total_cost max_cost max_load unshared_cost lower_bound "
    "lower_bound_max seconds compile_seconds"
)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "p.json").write_text(PROBLEM)
    return tmp_path / "p.json"


def test_the_answer_as_data(problem: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "sharing", problem, "--with", "wg_tn", "--json")
    assert (done.code, done.err) == (0, "")
    assert list(done.json) == KEYS.split()
    # Two nodes, three queries: WeaveShare stops at two trees. 6/2 and 8/4 have the same edges.
    trees = [tree for node in done.json["nodes"] for tree in node["trees"]]
    assert sorted(tuple(tree["queries"]) for tree in trees) == [("odd",), ("q1", "q2")]
    woven = next(tree for tree in trees if len(tree["queries"]) == 2)
    assert (woven["edge_rate"], woven["overlap_exact"], woven["cost"]) == ("1/2", "5/1", 12.5)
    assert done.json["total_cost"] == pytest.approx(12.5 + 10 + 2 / 3 * 5 / 3)


def test_the_answer_to_read(problem: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "Sharing", problem, "--with", "WG_TN", "--front")
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "node capacity trees queries cost load" in lines
    assert any(line.endswith("1/2 5 12.5 q1, q2") for line in lines)
    assert "with a tree for each query the total is 33.1111: sharing saves 9.5 (28.7%)" in lines
    assert any(line.startswith("lower bound of the total") for line in lines)
    assert any("plans that no other beats" in line for line in lines)


def test_long_answers_are_cut(tmp_path: Path, capsys: Capture) -> None:
    queries = [{"range": n, "slide": n} for n in range(1, 60)]
    (tmp_path / "p.json").write_text(json.dumps({"rate": 1, "nodes": 50, "queries": queries}))
    done = call(capsys, "solve", "sharing", tmp_path / "p.json", "--with", "G_RR")
    assert "... and 10 more nodes; --json gives all" in done.out
    assert "... and 19 more trees; --json gives all" in done.out
    one = call(capsys, "solve", "sharing", tmp_path / "p.json", "--with", "WEAVE_SHARE")
    assert "more" in one.out


def test_the_default_is_ours(problem: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "sharing", problem, "--json", "--seed", "3", "--balance", "50")
    assert done.json["optimiser"] == DEFAULT_OPTIMISER
    # With a high balance the dearest node counts: one tree of all three would be 15.6.
    assert done.json["max_cost"] == pytest.approx(12.5)
    cheap = call(capsys, "solve", "sharing", problem, "--json", "--balance", "0").json
    assert cheap["total_cost"] == pytest.approx(10 + 5 / 6 * 20 / 3)


def test_the_list(capsys: Capture) -> None:
    done = call(capsys, "solve", "sharing", "--list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == list(OPTIMISERS)
    data = call(capsys, "solve", "sharing", "--list", "--json").json
    assert data == {"default": DEFAULT_OPTIMISER, "optimisers": dict(OPTIMISERS)}


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROBLEM.encode())))
    assert call(capsys, "solve", "sharing", "-", "--with", "G_TL", "--json").json["optimiser"] == "G_TL"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"rate": 0}')))
    done = call(capsys, "solve", "sharing", "-")
    assert done.err.startswith('user error: <standard input>:1:1: "nodes" is missing')


def test_the_answer_in_a_file(problem: Path, tmp_path: Path, capsys: Capture) -> None:
    shown = call(
        capsys, "solve", "sharing", problem, "--with", "W_TN", "--json", "--out", tmp_path / "a.json"
    )
    assert json.loads((tmp_path / "a.json").read_text()) == shown.json


BAD = [
    (["sharking", "{p}"], 'planner "sharking" does not exist'),
    (["sharing"], "which problem?"),
    (["sharing", "{p}x"], "there is no file {p}x"),
    (["sharing", "{d}"], "{d} is a folder, not a problem file"),
    (["sharing", "{p}", "--with", "WGTN"], 'Did you mean "WG_TN"?'),
    (["sharing", "{p}", "--balance", "-2"], "the balance must be from 0 to 100, not -2"),
    (["sharing", "{p}", "--balance", "nan"], "the balance must be from 0 to 100, not nan"),
    (["sharing", "{p}", "--seconds", "0"], "the seconds must be a number above 0"),
    (["sharing", "{p}", "--seconds", "inf"], "the seconds must be a number above 0"),
    (["sharing", "{p}", "--seed", "-1"], "Invalid value for '--seed'"),
    (["sharing", "{p}", "--stop", "never"], "Invalid value for '--stop'"),
    (["sharing", "{p}", "--out", "{d}/no/a.json"], "cannot write {d}/no/a.json: there is no such folder"),
    (["sharing", "{p}", "--out", "{d}"], "cannot write {d}: it is a folder"),
    (["sharing", "{d}/headrace.yaml"], "{d}/headrace.yaml:1:1: not valid JSON"),
]


@pytest.mark.parametrize(("args", "says"), BAD)
def test_wrong_input(tmp_path: Path, capsys: Capture, args: list[str], says: str) -> None:
    folder = make_project(tmp_path / "p")
    (folder / "p.json").write_text(PROBLEM)
    names = {"{p}": str(folder / "p.json"), "{d}": str(folder)}
    for short, full in names.items():
        args, says = [arg.replace(short, full) for arg in args], says.replace(short, full)
    before = sorted(p.name for p in folder.iterdir())
    done = call(capsys, "solve", *args)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert sorted(p.name for p in folder.iterdir()) == before


def test_plan_and_explain_show_the_trees(tmp_path: Path, capsys: Capture) -> None:
    text = """\
name: two
streams:
  s:
    columns: {ts: timestamp, k: int, v: double}
    time: ts
    rate: 100
    source: {kind: files, path: input, format: json}
queries:
  fast: {sql: "SELECT k, sum(v) AS x FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k"}
  slow: {sql: "SELECT k, max(v) AS x FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k"}
  raw: {sql: "SELECT ts, v FROM s"}
"""
    folder = make_project(tmp_path / "p", text)
    shown = call(capsys, "plan", folder, "--svg", tmp_path / "p.svg").out.splitlines()
    data = call(capsys, "plan", folder, "--json").json["sharing"]
    tree = data["trees"][0]["tree"]
    assert f"start {tree} on local for 2 queries  reads s" in shown
    assert "start raw on local  reads s, gives parquet" in shown
    head = "sharing: 2 queries in 1 tree, 0 with a tree of their own, 1 in none"
    assert any(line.startswith(f"{head}; {data['cost']:.3g} cores instead of") for line in shown)
    assert "    slow: range 300s, slide 60s give (max(v))" in shown
    assert "raw not shared: it has no window aggregate" in shown
    assert f"tree {tree} on local: 2 queries" in (tmp_path / "p.svg").read_text()
    told = call(capsys, "explain", "fast", folder).out
    assert f"tree {tree} on local, with slow" in told
    assert "scan: one read of s for 2 queries" in told
    assert "in the tree this query saves" in told
    assert "not shared: it has no window aggregate" in call(capsys, "explain", "raw", folder).out
    assert [q["query"] for q in data["trees"][0]["queries"]] == ["fast", "slow"]
    assert data["trees"][0]["edge_rate"] == "1/10"
