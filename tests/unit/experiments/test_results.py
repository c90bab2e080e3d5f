"""The file of results: it comes back as it was, and what is no such file is refused."""

from __future__ import annotations

import json

import pytest

from headrace.errors import UserError
from headrace.experiments.weaving.results import read_results
from tests.unit.experiments.made_up import random_costs, results


def test_results_come_back() -> None:
    made = results(random_costs(4), experiments=3)
    assert read_results(made.to_json(), "x") == made


def test_a_row_has_the_papers_names() -> None:
    row = json.loads(results(random_costs(4), experiments=1).to_json())["rows"][0]
    wanted = {"Qnum": 250, "Nnum": 4, "lambda": 100, "Smax": 25, "Zskew": 1, "Omega": 100, "Gen": "Nrm"}
    assert wanted.items() <= row.items()
    assert {"repeat", "optimiser", "reading", "total", "max", "seconds"} <= set(row)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a results file"),
        ("[]", "not a results file"),
        ("{}", "form"),
        ('{"form": 9}', "form 9"),
        ('{"form": 1, "readings": {}, "made": {}, "rows": []}', "lacks runs: 0"),
        ('{"form": 1, "readings": {}, "made": {}, "rows": [{"Qnum": 1}]}', "Nnum"),
    ],
)
def test_other_files_are_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as told:
        read_results(text, "some.json")
    assert "some.json" in told.value.message


def test_a_missing_run_is_seen() -> None:
    made = results(random_costs(4), experiments=3)
    data = json.loads(made.to_json())
    del data["rows"][5]
    with pytest.raises(UserError, match="lacks runs: 95 of 96"):
        read_results(json.dumps(data), "x")
