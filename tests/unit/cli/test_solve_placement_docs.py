"""docs/solve.md tells the truth about placement: its examples give its answers, its tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headrace.planners.placement.solve import PLANNERS
from headrace.service.solve import PlacementAnswer, QueryData
from headrace.service.solve_placement_file import OPTIONAL, REQUIRED
from tests.unit.cli.entry import call
from tests.unit.cli.test_solve_docs import block, rows

Capture = pytest.CaptureFixture[str]
_CHANGING = {"seconds", "prepare_seconds", "compile_seconds", "plans_examined", "notes"}


def steady(answer: Any) -> Any:
    """The answer without what another machine, or a better search, changes."""
    if isinstance(answer, dict):
        return {key: steady(value) for key, value in answer.items() if key not in _CHANGING}
    return [steady(value) for value in answer] if isinstance(answer, list) else answer


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_text(block("json placement"))
    return Path("problem.json")


def test_the_example_gives_the_answer(problem: Path, capsys: Capture) -> None:
    answer = call(capsys, "solve", "placement", problem, "--json").json
    told = json.loads(block("json placement-answer"))
    assert list(answer) == list(told)
    assert json.dumps(steady(answer)) == json.dumps(steady(told))


def test_the_example_to_read(problem: Path, capsys: Capture) -> None:
    """All but the plans and the times, which are the third and fourth word of a query."""
    shown, told = (
        [line.split() for line in text.splitlines()[:-1]]
        for text in (call(capsys, "solve", "placement", problem).out, block("text placement"))
    )
    for line in (*shown[1:3], *told[1:3]):
        del line[2:4]
    assert shown == told


def test_alone_it_is_what_is_told(problem: Path, capsys: Capture) -> None:
    data = json.loads(problem.read_text())
    problem.write_text(json.dumps({**data, "reuse": False}))
    assert [
        q["added_cost"] for q in call(capsys, "solve", "placement", problem, "--json").json["queries"]
    ] == [90, 84]


def test_the_error_is_the_one_that_is_shown(problem: Path, capsys: Capture) -> None:
    problem.write_text(problem.read_text().replace('["N3", "N4", 2], ', ""))
    assert call(capsys, "solve", "placement", problem).err == block("text placement-error")


def test_filters_cost_what_is_told(problem: Path, capsys: Capture) -> None:
    problem.write_text(block("json filters"))
    some, every = call(capsys, "solve", "placement", problem, "--json").json["queries"]
    assert (some["added_cost"], every["added_cost"]) == (pytest.approx(2), pytest.approx(19))
    assert every["tree"]["extra_cost"] == pytest.approx(9)


def test_every_key_is_explained() -> None:
    assert {row[0].strip("`") for row in rows("The placement problem")} == {*REQUIRED, *OPTIONAL}
    told = set(
        re.findall(r"`(?:queries\[\]\.)?(\w+)`", " ".join(row[0] for row in rows("The placement answer")))
    )
    assert told == set(PlacementAnswer.__annotations__) - {"problem"} | set(QueryData.__annotations__) - {
        "id"
    }


def test_every_planner_is_listed() -> None:
    assert {row[0].strip("`"): row[1] for row in rows("Placement planners")} == dict(PLANNERS)
