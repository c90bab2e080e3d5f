"""Figures of a site are kept, found again, and refused where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Project
from headrace.cost.windows import DEFAULTS
from headrace.errors import UserError
from headrace.service.calibration_file import (
    Calibration,
    MeasuredCase,
    calibration_file,
    costs_of,
    load_calibrations,
    save_calibration,
)
from tests.unit.service.sample import project

COSTS = {name: value * 2 for name, value in DEFAULTS.to_dict().items()}


def calibration(**changed: Any) -> Calibration:
    cases = tuple(MeasuredCase(case=f"c{n}", measured=10, predicted=10 + n) for n in range(3))
    facts: dict[str, Any] = {
        "endpoint": "local[2]",
        "machine": "m",
        "date": "2026-11-16 05:00",
        "headrace": "0.1.0",
        "unit": "cpu",
        "seconds": 60.0,
        "cases": cases,
        "held_out": MeasuredCase(case="other", measured=10, predicted=8),
        "costs": COSTS,
    }
    return Calibration(**facts | changed)


@pytest.fixture
def found(tmp_path: Path) -> Project:
    return project(tmp_path)


def test_what_is_kept_is_found_again(found: Project) -> None:
    assert costs_of(found, "local") == (DEFAULTS, None)
    save_calibration(found, "local", calibration())
    costs, source = costs_of(found, "local")
    assert (costs.to_dict(), source) == (COSTS, calibration())
    assert source is not None and (source.typical_error, source.worst_error) == pytest.approx((0.1, 0.2))
    assert source.held_out.error == pytest.approx(-0.2)


def test_other_sites_stay(found: Project) -> None:
    save_calibration(found, "far", calibration(unit="wall"))
    save_calibration(found, "local", calibration())
    save_calibration(found, "local", calibration(machine="newer"))
    kept = load_calibrations(found)
    assert (kept["far"].unit, kept["local"].machine) == ("wall", "newer")


def test_another_endpoint_is_another_site(found: Project) -> None:
    save_calibration(found, "local", calibration(endpoint="sc://elsewhere:15002"))
    assert costs_of(found, "local") == (DEFAULTS, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "calibration.json"),
        ("[]", "dictionary"),
        ('{"format": 1}', "sites"),
        ('{"format": 2, "sites": {}}', "format 2"),
    ],
)
def test_a_file_that_is_not_ours(found: Project, text: str, told: str) -> None:
    path = calibration_file(found)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UserError) as error:
        costs_of(found, "local")
    assert told in error.value.render() and "headrace calibrate" in error.value.hint


@pytest.mark.parametrize(
    ("where", "value", "told"),
    [
        ("row", -1.0, "sites.local.costs.row"),
        ("row", "fast", "sites.local.costs.row"),
        ("rwo", 1.0, "rwo"),
    ],
)
def test_wrong_figures_are_named(found: Project, where: str, value: object, told: str) -> None:
    path = save_calibration(found, "local", calibration())
    data = json.loads(path.read_text())
    data["sites"]["local"]["costs"][where] = value
    path.write_text(json.dumps(data))
    with pytest.raises(UserError) as error:
        load_calibrations(found)
    assert told in error.value.render()
