"""`headrace experiment distribution` without sites, from the command line to its files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from headrace.experiments.distribution import model
from headrace.experiments.distribution.results import read_results
from headrace.experiments.distribution.tables import make_tables
from headrace.service.experiment_distribution import report_from
from tests.deep.experiments.test_command import call
from tests.unit.experiments.distribution.made_up import results


def pictures(folder: Path) -> set[str]:
    """Those that are there; the report shows each once, and no other."""
    there = {path.name for path in folder.glob("*.png")}
    text = (folder / "report.md").read_text()
    assert all(text.count(f"({name})") == 1 for name in there)
    assert text.count(".png)") == len(there)
    return there


def test_a_quick_run_writes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One plan of each size: what is drawn does not matter here.
    monkeypatch.setattr(model, "POLICY_SEEDS", 1)
    folder = tmp_path / "a"
    data = json.loads(call("distribution", "--quick", "--seeds", "1", "--out", folder, "--json"))
    assert {"results.json", "tables.json", "report.md"} <= {path.name for path in folder.iterdir()}
    assert pictures(folder) == {f"distribution-fig{n}.png" for n in ("21-28", "29-33", "37-39")}
    assert not data["runs"]
    assert not data["measured"]
    patterns = [bar for bar in data["bars"] if "operators:" in bar["text"]]
    assert len(patterns) == 8
    assert all(bar["met"] for bar in patterns), patterns
    made = make_tables(read_results((folder / "results.json").read_text(), "a"))
    assert len(made.policies) == 3 * 3 * 3 * 4 * 2
    again = json.loads(json.dumps(asdict(made)))
    assert {name: data[name] for name in again} == again, "the file holds all that the tables need"


def test_measured_runs_have_pictures_too(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(results().to_json())
    report_from(file, tmp_path)
    assert len(pictures(tmp_path)) == 6
