"""`headrace experiment admission`, from the command line to its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from headrace.cli.commands_experiment import experiment
from headrace.experiments.admission import cases
from headrace.experiments.admission.cases import POINTS
from headrace.planners.admission.workload import Setup

FIGURES = ("4a", "4b", "4c", "5", "6", "7")
FILES = {"tables.json", "report.md"} | {f"admission-fig{n}.{end}" for n in FIGURES for end in ("png", "svg")}
app = typer.Typer()
app.command()(experiment)


def call(*args: str | Path) -> str:
    done = CliRunner().invoke(app, list(map(str, args)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def tiny(setup: Setup) -> Setup:
    """Three hosts or two, small ones, so that they fill up; a join of five would take SQPR seconds."""
    ways = tuple(min(way, 3) for way in setup.ways)
    return replace(setup, hosts=2 + setup.hosts // 40, streams=12, queries=8, cpu=60.0, ways=ways)


@dataclass(frozen=True)
class Made:
    folder: Path
    data: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Every point and every run, on tiny problems."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "_quick", tiny)
        told = call("admission", "--quick", "--workers", "0", "--out", folder, "--json")
    yield Made(folder, json.loads(told))


def test_a_run_writes_everything(made: Made) -> None:
    assert {path.name for path in made.folder.iterdir()} == FILES | {"results.json"}
    assert {Path(name).name for name in made.data["files"]} == FILES
    assert (made.data["experiment"], made.data["seeds"], made.data["passed"]) == ("admission", 1, 0)
    assert made.data["made"]["command"] == "headrace experiment admission --quick"
    assert {claim["verdict"] for claim in made.data["claims"]} <= {"holds", "partly", "does not hold"}
    assert {line["figure"] for line in made.data["lines"]} == {p.figure for p in POINTS} - {"6a", "6b"}


def test_the_report_holds_every_figure_with_whole_rows(made: Made) -> None:
    text = (made.folder / "report.md").read_text()
    assert all(f"](admission-fig{name}.png)" in text for name in FIGURES)
    width = 0
    for line in text.splitlines():
        cells = line.replace("\\|", "").count("|")
        assert cells in (0, width) or not width, line
        width = cells


def test_the_same_report_is_made_from_the_results(made: Made, tmp_path: Path) -> None:
    told = call("admission", "--from", made.folder / "results.json", "--out", tmp_path)
    for title in (
        "Claims",
        "The issue's bars",
        "Figure 4(a)",
        "Figure 4(b)",
        "Figure 5",
        "Figure 6",
        "Figure 7",
    ):
        assert title in told
    assert made.data["statement"] in told
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made.folder / name).read_bytes(), name
