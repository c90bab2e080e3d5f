"""`headrace experiment` with wrong names, options and files: exit 2, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.entry import call
from tests.unit.experiments.made_up import random_costs
from tests.unit.experiments.made_up import results as weaving_results
from tests.unit.experiments.placement.made_up import results

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["threading"], 'there is no experiment "threading"'),
        (["placement", "--repeats", "3"], "placement has no option --repeats"),
        (["placement", "--stop", "prose"], "placement has no option --stop"),
        (["placement", "--insert", "plan"], "placement has no option --insert"),
        (["placement", "--overlap", "real"], "placement has no option --overlap"),
        (["weaving", "--seeds", "20"], "weaving has no option --seeds"),
        (["weaving", "--deadline", "1"], "weaving has no option --deadline"),
        (["placement", "--milp-seeds", "1"], "placement has no option --milp-seeds"),
        (["admission", "--repeats", "3"], "admission has no option --repeats"),
        (["admission", "--seeds", "2", "--stop", "prose"], "admission has no option --stop"),
        (["admission", "--from", __file__], "not a results file"),
        (["distribution", "--repeats", "3"], "distribution has no option --repeats"),
        (["distribution", "--workers", "3"], "distribution has no option --workers"),
        (["placement", "--real", "5"], "placement has no option --real"),
        (["distribution", "--real", "5,6"], '"5,6" are no sizes of plans'),
        (["distribution", "--seconds", "1"], "a run of 1 s tells nothing"),
        (["distribution", "--from", __file__], "not a results file"),
        (["placement", "--from", "nowhere.json"], "cannot read nowhere.json"),
        (["placement", "--from", "."], "cannot read ."),
        (["placement", "--from", __file__], "not a results file"),
    ],
)
def test_wrong_arguments(
    args: list[str], says: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "experiment", *args)
    assert done.code == 2
    assert says in done.err
    assert list(tmp_path.iterdir()) == []


def test_all_experiments_are_named(capsys: Capture) -> None:
    said = call(capsys, "experiment", "threading").err
    assert "Experiments: admission, distribution, federation, placement, weaving." in said


@pytest.mark.parametrize("name", ["placement", "weaving", "admission"])
def test_results_of_the_other_experiment_are_refused(name: str, capsys: Capture, tmp_path: Path) -> None:
    other = weaving_results(random_costs(1), experiments=1) if name == "placement" else results()
    file = tmp_path / "results.json"
    file.write_text(other.to_json())
    done = call(capsys, "experiment", name, "--from", file)
    assert done.code == 2
    assert "not a results file of this experiment" in done.err
    assert list(tmp_path.iterdir()) == [file]
