"""`headrace solve admission` from the command line: answers, lists, and wrong input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from headrace.cli import admission_text
from headrace.cli.admission_text import print_admission
from headrace.service.solve import Request, solve_file
from tests.unit.cli.entry import call

Capture = pytest.CaptureFixture[str]
PROBLEM = """{
  "hosts": [{"id": "east", "cpu": 30, "in": 10, "out": 20}, {"id": 2, "cpu": 0, "in": 0, "out": 16}],
  "link_bandwidth": 100,
  "streams": [{"id": "A", "host": "east", "rate": 8}, {"id": "B", "host": 2, "rate": 10},
              {"id": "C", "host": 2, "rate": 5}],
  "rates": [[["A", "B"], 1], [["A", "C"], 2]],
  "queries": [{"id": "one", "streams": ["A", "B"]}, {"streams": ["C", "A"]}, {"id": 3, "streams": ["B", "A"]}]
}"""
"""East joins A and B for 18 of its 30 CPU, and with B its 10 of incoming bandwidth are taken: no C."""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "p.json").write_text(PROBLEM)
    return tmp_path / "p.json"


def lines(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines()]


def test_the_answer_to_read(problem: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "admission", problem)
    assert (done.code, done.err) == (0, "")
    shown = lines(done.out)
    assert shown[0] == "refused why"
    assert shown[1].startswith("q2 binding: ")
    assert "incoming bandwidth of host east" in shown[1]
    assert shown[3:6] == [
        "host cpu in out",
        "east ####.... 60% ######## 100% ........ 5%",
        "2 #####... 62%",
    ]
    assert shown[7:9] == [
        "2 of 3 queries admitted, 1 refused",
        "1 join, 1 copy between hosts, 1 stream given; 60% of all CPU",
    ]
    assert re.fullmatch(r"headrace, [\d.]+ ms a query, 99 % within [\d.]+ ms, [\d.]+ s in all", shown[9])


def test_the_bound_to_read(problem: Path, capsys: Capture) -> None:
    shown = lines(call(capsys, "solve", "admission", problem, "--with", "bound").out)
    assert "no plan admits more than 2" in shown
    assert "host cpu in out" not in shown
    assert shown[-1].startswith("plan: none")


def test_the_answer_as_data(problem: Path, tmp_path: Path, capsys: Capture) -> None:
    done = call(
        capsys,
        "solve",
        "admission",
        problem,
        "--with",
        "milp",
        "--deadline",
        "1s",
        "--json",
        "--out",
        tmp_path / "a",
    )
    assert (done.code, done.err) == (0, "")
    assert [(query["id"], query["admitted"]) for query in done.json["queries"]] == [
        ("one", True),
        ("q2", False),
        (3, True),
    ]
    assert json.loads((tmp_path / "a").read_text()) == done.json


def test_it_fits_a_terminal(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"stream-{i}" for i in range(30)]
    hosts = [f"a-host-with-a-name-{i}" for i in range(60)]
    limits = {"cpu": 3, "in": 1, "out": 2.5, "memory": 2}
    problem = {
        "hosts": [{"id": name, **limits} for name in hosts],
        "link_bandwidth": 2,
        "memory_cost": 0.5,
        "streams": [{"id": name, "host": hosts[i], "rate": 1} for i, name in enumerate(names)],
        "selectivities": 0.1,
        "queries": [{"streams": [names[i], names[i + step]]} for step in (1, 2, 3, 4, 5) for i in range(25)],
    }
    (tmp_path / "p.json").write_text(json.dumps(problem))
    answer = solve_file("admission", str(tmp_path / "p.json"), Request("heuristic"))
    assert answer["problem"] == "admission"
    assert answer["refused"] > 20
    monkeypatch.setattr(admission_text, "out", lambda: Console(width=80, highlight=False, markup=False))
    print_admission(answer)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert f"... and {answer['refused'] - 20} more refusals; --json gives all" in out
    assert "... and 10 more hosts; --json gives all" in out
    assert "memory" in out


@pytest.mark.parametrize(("many", "within"), [(1, 1), (99, 99), (100, 99), (101, 100), (1000, 990)])
def test_what_99_of_100_stay_within(problem: Path, capsys: Capture, many: int, within: int) -> None:
    answer = solve_file("admission", str(problem), Request())
    assert answer["problem"] == "admission"
    one = answer["queries"][0]
    answer["queries"] = [{**one, "milliseconds": float(ms)} for ms in range(many, 0, -1)]
    print_admission(answer)
    assert f"{(many + 1) / 2:.2f} ms a query, 99 % within {within:.2f} ms" in capsys.readouterr().out


def test_a_removal_of_what_was_not_admitted(problem: Path, capsys: Capture) -> None:
    body = json.loads(problem.read_text())
    body["queries"] += [{"remove": "q2"}, {"remove": "one"}]
    problem.write_text(json.dumps(body))
    shown = lines(call(capsys, "solve", "admission", problem).out)
    assert "not removed why" in shown
    assert "q2 it was not admitted, so there was nothing to remove" in shown
    assert "2 of 3 queries admitted, 1 refused, 1 removed" in shown


def test_a_running_plan_with_much_to_say(tmp_path: Path, capsys: Capture) -> None:
    """Half the CPU that 25 joins were given: the rest is dropped, and tables are cut."""
    names = [f"s{i}" for i in range(50)]
    pairs = [names[i : i + 2] for i in range(0, 50, 2)]
    problem = {
        "hosts": [{"id": 0, "cpu": 50, "in": 1, "out": 1000}],
        "link_bandwidth": 1,
        "streams": [{"id": name, "host": 0, "rate": 1} for name in names],
        "selectivities": 0.1,
        "queries": [{"streams": pair} for pair in pairs],
    }
    (tmp_path / "p.json").write_text(json.dumps(problem))
    before = call(capsys, "solve", "admission", tmp_path / "p.json", "--json").json
    assert before["admitted"] == 25
    observed = {"hosts": [{"id": 0, "cpu": 100}]}
    (tmp_path / "p.json").write_text(json.dumps({**problem, "running": before, "observed": observed}))
    shown = lines(call(capsys, "solve", "admission", tmp_path / "p.json").out)
    assert "q1 starves cpu of host 0: 50 needed of 25" in shown
    assert "... and 5 more; --json gives all" in shown
    assert "25 queries ran: 25 starve, 0 deviate; 13 planned again, 13 dropped" in shown
    assert "joins moved 0, started 0, stopped 13; copies started or stopped 0; 0 B of state to move" in shown


def test_the_list(capsys: Capture) -> None:
    done = call(capsys, "solve", "admission", "--list")
    names = [line.split()[0] for line in done.out.splitlines()[1:]]
    assert names == ["headrace", "milp", "heuristic", "soda", "bound"]
    data = call(capsys, "solve", "admission", "--list", "--json").json
    assert (data["default"], list(data["optimisers"])) == ("headrace", names)


BAD = [
    (["admision", "{p}"], 'Did you mean "admission"?'),
    (["admission"], "which problem?"),
    (["admission", "{p}x"], "there is no file {p}x"),
    (["admission", "{p}", "--with", "sqpr"], 'optimiser "sqpr" does not exist'),
    (["admission", "{p}", "--deadline", "soon"], 'the deadline "soon" is not a duration'),
    (["admission", "{p}", "--deadline", "0"], "the deadline must be above 0"),
    (["admission", "{p}", "--deadline", "-1s"], "the deadline must be above 0"),
    (["admission", "{p}", "--batch", "0"], "batch must be at least 1, not 0"),
    (["admission", "{p}", "--batch", "two"], "Invalid value for '--batch'"),
    (["admission", "{p}", "--batch", "2"], "headrace takes queries one by one, not 2 together"),
    (["admission", "{p}", "--with", "milp", "--choosy"], "milp cannot be choosy"),
    (["admission", "{p}", "--seconds", "1"], "--seconds is not an option of the planner admission"),
    (["admission", "{p}", "--picture", "{d}/map.svg"], "--picture is not an option of the planner admission"),
    (["admission", "{p}", "--front"], "--front is not an option of the planner admission"),
    (["placement", "{p}", "--deadline", "1s"], "--deadline is not an option of the planner placement"),
    (["sharing", "{p}", "--choosy"], "--choosy is not an option of the planner sharing"),
    (["admission", "{p}", "--out", "{d}"], "cannot write {d}: it is a folder"),
    (["admission", "{d}/lost.json", "--out", "{d}/a.json"], "queries[0].streams: the set A*B has no rate"),
    (["admission", "{d}/cut.json"], "{d}/cut.json:2:90: not valid JSON"),
]


@pytest.mark.parametrize(("args", "says"), BAD)
def test_wrong_input(tmp_path: Path, capsys: Capture, args: list[str], says: str) -> None:
    (tmp_path / "p.json").write_text(PROBLEM)
    (tmp_path / "lost.json").write_text(PROBLEM.replace('[["A", "B"], 1], ', ""))
    (tmp_path / "cut.json").write_text(PROBLEM[:94])
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
    (tmp_path / "p.json").write_text(PROBLEM.replace('"host": 2, "rate": 5', '"host": 3, "rate": 5'))
    done = call(capsys, "solve", "admission", tmp_path / "p.json", "--json")
    assert (done.code, done.json["message"]) == (2, "streams[2].host: there is no host 3")
    assert done.json["place"]["line"] == 5
