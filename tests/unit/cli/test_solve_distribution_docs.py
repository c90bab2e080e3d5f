"""docs/solve.md tells the truth about distribution: examples give their answers, tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headrace.planners.distribution.rules import Rules
from headrace.service.solve import list_optimisers
from headrace.service.solve_distribution import DistributionAnswer
from headrace.service.solve_distribution_file import OPTIONAL, OTHERS, REQUIRED, SCALARS
from tests.unit.cli.entry import call
from tests.unit.cli.test_solve_docs import block, rows

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    Path("problem.json").write_text(block("json distribution"))
    return Path("problem.json")


@pytest.fixture
def running(problem: Path) -> Path:
    body = {**json.loads(problem.read_text()), **json.loads(block("json distribution-running"))}
    Path("running.json").write_text(json.dumps(body))
    return Path("running.json")


def read(text: str) -> list[list[str]]:
    """All but the last line, which is the time."""
    return [line.split() for line in text.splitlines()[:-1]]


def test_the_examples_to_read(problem: Path, running: Path, capsys: Capture) -> None:
    for path, told in ((problem, "text distribution"), (running, "text distribution-running")):
        done = call(capsys, "solve", "distribution", path)
        assert (done.code, done.err) == (0, "")
        assert read(done.out) == read(block(told))


def test_the_example_gives_the_answer(running: Path, capsys: Capture) -> None:
    answer = call(capsys, "solve", "distribution", running, "--json").json
    told = json.loads(block("json distribution-answer"))
    assert list(answer) == list(told)
    assert {**answer, "seconds": 0} == {**told, "seconds": 0}


def test_every_key_is_explained() -> None:
    def named(heading: str) -> set[str]:
        return set(re.findall(r"`(\w+)`", " ".join(row[0] for row in rows(heading))))

    assert named("The distribution problem") == {*REQUIRED, *OPTIONAL}
    assert named("Moving what runs") == {*SCALARS, *OTHERS}
    assert named("The distribution answer") == set(DistributionAnswer.__annotations__) - {"problem"}


def test_the_defaults_are_the_ones_that_are_told() -> None:
    told = {}
    for row in rows("Moving what runs"):
        values = re.split(r", (?![^\[]*\])", row[1])
        for name, value in zip(re.findall(r"`(\w+)`", row[0]), values, strict=False):
            if re.fullmatch(r"[\d.]+", value):
                told[name] = float(value)
    rules = Rules()
    assert {name: getattr(rules, name) for name in told if name != "now"} == {
        name: value for name, value in told.items() if name != "now"
    }
    assert len(told) > 8


def test_every_planner_is_listed() -> None:
    assert {row[0].strip("`"): row[1] for row in rows("Distribution planners")} == list_optimisers(
        "distribution"
    )
