"""docs/solve.md tells the truth about federation: its examples give their answers, its tables are
complete."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headrace.service.solve import FederationAnswer
from headrace.service.solve_federation import federation_planners
from headrace.service.solve_federation_file import OPTIONAL, REQUIRED
from headrace.service.solve_federation_operators import OPERATOR_KEYS
from tests.unit.cli.entry import call
from tests.unit.cli.test_solve_docs import TEXT, block, rows

Capture = pytest.CaptureFixture[str]


def steady(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if not key.endswith("seconds")}


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_text(block("json federation"))
    return Path("problem.json")


def test_the_example_gives_the_answer(problem: Path, capsys: Capture) -> None:
    answer = call(capsys, "solve", "federation", problem, "--json", "--runners", "1").json
    told = json.loads(block("json federation-answer"))
    assert list(answer) == list(told)
    assert steady(answer) == steady(told)


@pytest.mark.parametrize("planner", ["paper", "exhaustive"])
def test_all_planners_give_it(problem: Path, capsys: Capture, planner: str) -> None:
    answer = call(capsys, "solve", "federation", problem, "--json", "--with", planner).json
    assert answer["parts"] == json.loads(block("json federation-answer"))["parts"]


def test_the_example_to_read(problem: Path, capsys: Capture) -> None:
    """All but the last line, which has the times."""
    shown, told = (
        [line.split() for line in text.splitlines()[:-1]]
        for text in (call(capsys, "solve", "federation", problem).out, block("text federation"))
    )
    assert shown == told


def test_the_example_of_a_query(problem: Path, capsys: Capture) -> None:
    problem.write_text(block("json federation-query"))
    answer = call(capsys, "solve", "federation", problem, "--json").json
    names = [operator["id"] for operator in answer["operators"]]
    assert names[-1] == "show" and {"is_load", "peak", "join1", "join2"} < set(names)
    assert answer["joins_examined"] > 0


def test_the_error_is_the_one_that_is_shown(problem: Path, capsys: Capture) -> None:
    problem.write_text(problem.read_text().replace('["peak1", "peak5"]', '["peak1", "peek5"]'))
    told = call(capsys, "solve", "federation", problem)
    assert (told.code, told.err) == (2, block("text federation-error"))


def test_every_key_is_explained() -> None:
    given = [row[0].strip("`") for row in rows("The federation problem") if len(row) == 4]
    assert set(given) - {"key"} == {*REQUIRED, *OPTIONAL}
    section = TEXT.split("## The federation problem\n")[1].split("\n## ")[0]
    assert all(f"`{key}`" in section for key in OPERATOR_KEYS)
    told = set(re.findall(r"`(\w+)`", " ".join(row[0] for row in rows("The federation answer"))))
    assert told == set(FederationAnswer.__annotations__) - {"problem"}


def test_every_planner_is_listed() -> None:
    assert {row[0].strip("`"): row[1] for row in rows("Federation planners")} == dict(federation_planners())
