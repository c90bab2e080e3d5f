"""docs/solve.md tells the truth: its example gives its answer, and its tables are those of the program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.main import app
from headrace.planners.sharing.solve import OPTIMISERS
from headrace.service.solve import SharingAnswer
from tests.unit.cli.entry import call

Capture = pytest.CaptureFixture[str]
TEXT = (Path(__file__).parents[3] / "docs" / "solve.md").read_text()
_TIMES = ("seconds", "compile_seconds")


def block(info: str) -> str:
    found = re.search(rf"^```{info}\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def rows(heading: str) -> list[list[str]]:
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines[2:]]


def timeless(answer: Any) -> dict[str, object]:
    return {key: value for key, value in answer.items() if key not in _TIMES}


def test_the_example_gives_the_answer(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "problem.json").write_text(block("json problem"))
    answer = call(capsys, "solve", "sharing", tmp_path / "problem.json", "--json").json
    told = json.loads(block("json answer"))
    assert list(answer) == list(told)
    assert json.dumps(timeless(answer)) == json.dumps(timeless(told))


def test_the_error_is_the_one_that_is_shown(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = block("json problem").replace('"range": 100, "slide": 30', '"range": 100, "slide": 0')
    (tmp_path / "problem.json").write_text(wrong)
    monkeypatch.chdir(tmp_path)
    assert call(capsys, "solve", "sharing", "problem.json").err == block("text")


def test_every_key_of_the_answer_is_explained() -> None:
    told = set(re.findall(r"`(?:\w+\[\]\.)?(\w+)`", " ".join(row[0] for row in rows("The answer"))))
    assert told >= set(SharingAnswer.__annotations__) - {"problem", "optimiser", "cost"}


def test_every_option_is_explained() -> None:
    (command,) = [c for c in app.registered_commands if getattr(c.callback, "__name__", "") == "solve"]
    assert command.callback is not None
    named = {row[0].strip("`").split(" ")[0] for row in rows("Options")}
    hints = command.callback.__annotations__
    known = {f"--{name.replace('_', '-')}" for name in hints if name not in ("planner", "file", "return")}
    assert named == known - {"--optimiser", "--list-", "--to"} | {"--with", "--list", "--out"}


def test_every_optimiser_is_listed() -> None:
    assert {row[0].strip("`"): row[1] for row in rows("Optimisers")} == dict(OPTIMISERS)
