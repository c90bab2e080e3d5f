"""`headrace experiment placement`, from the command line to its files."""

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
from headrace.experiments.placement import cases
from headrace.experiments.placement.cases import PARTS

FIGURES = ("02", "06-09", "10-11", "12-13", "14", "15", "16", "-rates")
FILES = {"tables.json", "report.md"} | {f"placement-fig{n}.{end}" for n in FIGURES for end in ("png", "svg")}
app = typer.Typer()
app.command()(experiment)


def call(*args: str | Path) -> str:
    done = CliRunner().invoke(app, list(map(str, args)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@dataclass(frozen=True)
class Made:
    folder: Path
    data: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Every part and every run, on tiny problems."""
    small = tuple(
        replace(part, queries=4, sites=min(part.sites, 40 + part.sites // 50), seeds=1) for part in PARTS
    )
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "PARTS", small)
        told = call("placement", "--seeds", "1", "--workers", "0", "--out", folder, "--json")
    yield Made(folder, json.loads(told))


def test_a_run_writes_everything(made: Made) -> None:
    assert {path.name for path in made.folder.iterdir()} == FILES | {"results.json"}
    assert {Path(name).name for name in made.data["files"]} == FILES
    assert (made.data["experiment"], made.data["seeds"], made.data["bound_broken"]) == ("placement", 1, 0)
    assert len(made.data["claims"]) > 40
    assert made.data["made"]["command"] == "headrace experiment placement --seeds 1"


def test_the_report_holds_every_figure_with_whole_rows(made: Made) -> None:
    text = (made.folder / "report.md").read_text()
    assert all(f"](placement-fig{name}.png)" in text for name in FIGURES)
    width = 0
    for line in text.splitlines():
        cells = line.replace("\\|", "").count("|")
        assert cells in (0, width) or not width, line
        width = cells


def test_the_same_report_is_made_from_the_results(made: Made, tmp_path: Path) -> None:
    told = call("placement", "--from", made.folder / "results.json", "--out", tmp_path)
    for title in ("Claims", "The issue's bars", "Figure 2", "Figures 6 to 11", "Figure 14", "Figure 16"):
        assert title in told
    assert made.data["statement"] in told
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made.folder / name).read_bytes(), name
