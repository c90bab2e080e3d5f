"""A calibration on a real Spark, as small as it can be: figures come out, are kept, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from headrace.catalog.model import Project, Site
from headrace.service.calibrate import QUICK, calibrate
from headrace.service.calibration_file import costs_of
from headrace.service.layout import own_folder

pytestmark = pytest.mark.spark


def site_project(root: Path) -> Project:
    site = Site(name="here", endpoint="local[2]")
    return Project(name="p", root=root, streams={}, tables={}, sites={"here": site}, links=(), queries={})


def measure(root: Path) -> None:
    """For a process of its own, because a calibration starts Spark and stops it."""
    told: list[tuple[str, int, int]] = []
    found = calibrate(
        site_project(root),
        "here",
        os.environ,
        datetime(2026, 11, 16, 5, 0),
        effort=replace(QUICK, scale=0.02),
        tell=lambda what, done, total: told.append((what, done, total)),
    )
    _, source = costs_of(site_project(root), "here")
    assert source == found
    assert told[0][1:] == (0, len(QUICK.cases) + 2) and told[-1][1] == told[-1][2]


def test_a_site_is_measured(tmp_path: Path) -> None:
    code = "import sys, pathlib; from tests.spark import test_calibrate; "
    code += "test_calibrate.measure(pathlib.Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    project = site_project(tmp_path)
    costs, found = costs_of(project, "here")
    assert found is not None and found.unit == "cpu" and found.date == "2026-11-16 05:00"
    assert costs.engine > 1.0, "Spark does not start in a second of CPU"
    assert costs.job + costs.batch > 0.05
    assert costs.engine_memory > 200e6 and costs.worker_memory > 20e6
    assert found.held_out.measured > 0.5
    assert [case.case for case in found.cases] == [case.name for case in QUICK.cases]
    left = {path.name for path in own_folder(project).iterdir()}
    assert "calibration.json" in left and "calibrating" not in left
