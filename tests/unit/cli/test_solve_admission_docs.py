"""docs/solve.md tells the truth about admission: its example gives its answer, its tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headrace.planners.admission.solve import PLANNERS
from headrace.service.solve import AdaptedData, AdmissionAnswer, AdmittedData
from headrace.service.solve_admission import RunningData
from headrace.service.solve_admission_file import OPTIONAL, REQUIRED
from tests.unit.cli.entry import call
from tests.unit.cli.test_solve_docs import block, rows
from tests.unit.service.admission_audit import Audit

Capture = pytest.CaptureFixture[str]
_CHANGING = {"seconds", "milliseconds"}


def steady(answer: Any) -> Any:
    """The answer without what another machine changes."""
    if isinstance(answer, dict):
        return {key: steady(value) for key, value in answer.items() if key not in _CHANGING}
    return [steady(value) for value in answer] if isinstance(answer, list) else answer


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_text(block("json admission"))
    return Path("problem.json")


def test_the_example_gives_the_answer(problem: Path, capsys: Capture) -> None:
    answer = call(capsys, "solve", "admission", problem, "--json").json
    told = json.loads(block("json admission-answer"))
    assert list(answer) == list(told)
    assert json.dumps(steady(answer)) == json.dumps(steady(told))
    assert Audit(json.loads(problem.read_text()), told).wrong == []


@pytest.mark.parametrize("planner", ["milp", "heuristic", "soda"])
def test_others_admit_the_same(problem: Path, capsys: Capture, planner: str) -> None:
    """As the text beside the example says, there is one way only."""
    answer = call(capsys, "solve", "admission", problem, "--json", "--with", planner).json
    told = json.loads(block("json admission-answer"))
    assert [query["admitted"] for query in answer["queries"]] == [True, True, True, False]
    assert answer["plan"]["operators"] == told["plan"]["operators"]


def test_the_example_to_read(problem: Path, capsys: Capture) -> None:
    """All but the last line, which is the times."""
    shown, told = (
        [line.split() for line in text.splitlines()[:-1]]
        for text in (call(capsys, "solve", "admission", problem).out, block("text admission"))
    )
    assert shown == told


def test_the_error_is_the_one_that_is_shown(problem: Path, capsys: Capture) -> None:
    last = ',\n    [["orders", "payments", "clicks"], 1]'
    assert last in problem.read_text()
    problem.write_text(problem.read_text().replace(last, ""))
    assert call(capsys, "solve", "admission", problem).err == block("text admission-error")


def test_every_key_is_explained() -> None:
    assert {row[0].strip("`") for row in rows("The admission problem")} == {*REQUIRED, *OPTIONAL}
    told = set(
        re.findall(
            r"`(?:queries\[\]\.|plan\.)?(\w+)`", " ".join(row[0] for row in rows("The admission answer"))
        )
    )
    parts = {*AdmittedData.__annotations__, *RunningData.__annotations__} - {"id"}
    assert told == set(AdmissionAnswer.__annotations__) - {"problem"} | parts


def test_the_removal_to_read(problem: Path, capsys: Capture) -> None:
    body = json.loads(problem.read_text())
    body["queries"].insert(3, {"remove": "seen"})
    problem.write_text(json.dumps(body))
    answer = call(capsys, "solve", "admission", problem, "--json").json
    assert Audit(body, answer).wrong == []
    shown, told = (
        [line.split() for line in text.splitlines()[:-1]]
        for text in (call(capsys, "solve", "admission", problem).out, block("text admission-removed"))
    )
    assert shown == told


def test_the_weights_to_read(problem: Path, capsys: Capture) -> None:
    body = {**json.loads(problem.read_text()), "weights": {"admitted": 0.55, "balance": 0}}
    problem.write_text(json.dumps(body))
    shown, told = (
        [line.split() for line in text.splitlines()[:-1]]
        for text in (
            call(capsys, "solve", "admission", problem, "--with", "milp").out,
            block("text admission-weights"),
        )
    )
    assert shown == told


def test_the_running_plan_to_read(problem: Path, capsys: Capture) -> None:
    """The answer above as it was told, with the hosts that the text names. All but the time."""
    body = json.loads(problem.read_text())
    body["hosts"][1] |= {"cpu": 60, "in": 30}
    body["running"] = json.loads(block("json admission-answer"))
    body["observed"] = json.loads(block("json admission-observed"))
    problem.write_text(json.dumps(body))
    shown, told = (
        [line.split() for line in text.splitlines()[:-1]]
        for text in (call(capsys, "solve", "admission", problem).out, block("text admission-adapted"))
    )
    assert shown == told


def test_every_key_of_adapting_is_explained() -> None:
    told = {row[0].strip("`") for row in rows("A running plan")}
    assert told >= {*AdaptedData.__annotations__, "streams", "rates", "hosts"}


def test_every_planner_is_listed() -> None:
    assert {row[0].strip("`"): row[1] for row in rows("Admission planners")} == dict(PLANNERS)
