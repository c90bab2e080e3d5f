"""The file of results: it comes back as it was, and what is no such file is refused."""

from __future__ import annotations

import json

import pytest

from headrace.errors import UserError
from headrace.experiments.placement.results import read_results
from tests.unit.experiments.made_up import random_costs
from tests.unit.experiments.made_up import results as weaving_results
from tests.unit.experiments.placement.made_up import results


def test_results_come_back() -> None:
    made = results()
    assert read_results(made.to_json(), "x") == made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a results file"),
        ("[]", "not a results file"),
        ("{}", "not a results file"),
        ('{"experiment": "placement", "form": 9}', "form 9"),
        ('{"experiment": "placement", "form": 1, "made": {}, "rows": []}', "lacks runs of fig2"),
        ('{"experiment": "placement", "form": 1, "made": {}, "rows": [{}]}', "part"),
        (weaving_results(random_costs(1), experiments=1).to_json(), "not a results file"),
    ],
)
def test_other_files_are_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as told:
        read_results(text, "some.json")
    assert "some.json" in told.value.message


def test_a_missing_run_is_seen() -> None:
    data = json.loads(results().to_json())
    at = next(i for i, row in enumerate(data["rows"]) if (row["part"], row["planner"]) == ("airline", "npc"))
    del data["rows"][at]
    with pytest.raises(UserError, match="lacks runs of airline: npc, max_cs 32, seed 0"):
        read_results(json.dumps(data), "x")


def test_a_missing_query_is_seen() -> None:
    data = json.loads(results().to_json())
    del data["rows"][3]["plans"][0]
    with pytest.raises(UserError, match="different lengths"):
        read_results(json.dumps(data), "x")
