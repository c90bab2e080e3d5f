"""`headrace experiment weaving`, from the command line to its files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from headrace.cli.commands_experiment import experiment
from headrace.errors import UserError
from headrace.experiments.weaving import runs
from headrace.experiments.weaving.results import read_results
from headrace.experiments.weaving.tables import make_tables
from headrace.experiments.weaving.workload import EXPERIMENT_2
from tests.unit.experiments.made_up import random_costs, results

FILES = {"tables.json", "report.md", "fig2.png", "fig2.svg", "fig3.png", "fig3.svg"}
app = typer.Typer()
app.command()(experiment)


def call(*args: str | Path) -> str:
    done = CliRunner().invoke(app, list(map(str, args)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of made-up results."""
    file = tmp_path_factory.mktemp("kept") / "results.json"
    file.write_text(results(random_costs(7)).to_json())
    return file


def test_a_quick_run_writes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "quick_grid", lambda: (EXPERIMENT_2,))
    monkeypatch.setattr(runs, "FRONT_SECONDS", 0.05)
    data = json.loads(call("weaving", "--quick", "--workers", "0", "--out", tmp_path / "a", "--json"))
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES | {"results.json"}
    assert (data["experiments"], data["repeats"], data["checked"] > 0) == (1, 1, True)
    assert data["check_worst"] < 1e-9
    assert data["readings"] == {"stop": "prose", "insert": "prose", "overlap": "integer"}
    again = make_tables(read_results((tmp_path / "a" / "results.json").read_text(), "a"))
    kept = json.loads(json.dumps(asdict(again)))
    assert {name: data[name] for name in kept} == kept, "the file holds all that the tables need"


@pytest.fixture(scope="module")
def made(kept: Path) -> tuple[Path, str]:
    """The folder of a report from it, and what was printed. Without --out the files go beside the results."""
    return kept.parent, call("weaving", "--from", kept)


def test_tables_and_statement_are_printed(made: tuple[Path, str]) -> None:
    told = made[1]
    for title in ("Claims", "Table 3", "Table 4", "Figure 2", "Figure 3", "Ours against the issue's bars"):
        assert title in told
    assert "claims of the paper:" in told.splitlines()[-2]


def test_the_report_holds_every_table_with_whole_rows(made: tuple[Path, str]) -> None:
    text = (made[0] / "report.md").read_text()
    assert "![Figure 2" in text
    assert "![Figure 3" in text
    width = 0
    for line in text.splitlines():
        cells = line.replace("\\|", "").count("|")
        assert cells in (0, width) or not width, line
        width = cells


def test_files_are_the_same_each_time(made: tuple[Path, str], kept: Path, tmp_path: Path) -> None:
    call("weaving", "--from", kept, "--out", tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made[0] / name).read_bytes()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["threading"], 'no experiment "threading"'),
        (["weaving", "--from", "nowhere.json"], "cannot read nowhere.json"),
        (["weaving", "--from", "."], "cannot read ."),
        (["weaving", "--from", __file__], "not a results file"),
    ],
)
def test_wrong_arguments(args: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        call(*args)


def test_a_file_is_no_folder(tmp_path: Path, kept: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="as a folder"):
        call("weaving", "--from", kept, "--out", tmp_path / "file")
