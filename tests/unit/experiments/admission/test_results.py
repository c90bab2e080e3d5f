"""The file of results: it comes back as it was, and what is no such file is refused."""

from __future__ import annotations

import json

import pytest

from headrace.errors import UserError
from headrace.experiments.admission.cases import Setting
from headrace.experiments.admission.results import read_results
from tests.unit.experiments.admission.made_up import results
from tests.unit.experiments.placement.made_up import results as placement_results


def test_results_come_back() -> None:
    made = results()
    assert read_results(made.to_json(), "x") == made


def test_results_without_sqpr_are_whole() -> None:
    made = results(setting=Setting(seeds=1, milp_seeds=0))
    assert read_results(made.to_json(), "x") == made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a results file"),
        ("[]", "not a results file"),
        ("{}", "not a results file"),
        ('{"experiment": "admission", "form": 9}', "form 9"),
        ('{"experiment": "admission", "form": 1, "made": {}, "rows": []}', "lacks runs of headrace"),
        ('{"experiment": "admission", "form": 1, "made": {}, "rows": [{}]}', "setup"),
        (placement_results().to_json(), "not a results file"),
    ],
)
def test_other_files_are_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as told:
        read_results(text, "some.json")
    assert "some.json" in told.value.message


def test_a_missing_run_is_seen() -> None:
    data = json.loads(results(setting=Setting(seeds=1)).to_json())
    data["rows"] = [row for row in data["rows"] if row["planner"] != "soda-named"]
    with pytest.raises(UserError, match="lacks runs of soda-named with 15 hosts"):
        read_results(json.dumps(data), "x")
