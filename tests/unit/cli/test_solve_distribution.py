"""`headrace solve distribution` from the command line: what is shown of answers that the docs do not show."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.planners.distribution.plans import fleet
from headrace.service.solve_distribution import problem_data
from tests.unit.cli.entry import call

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def written(folder: Path, problem: Any) -> Path:
    (folder / "p.json").write_text(json.dumps(problem))
    return folder / "p.json"


def test_regions_and_limits_are_told(tmp_path: Path, capsys: Capture) -> None:
    problem: Any = problem_data(fleet(2, 5, 2, Random(0)))
    for site, region in zip(problem["sites"], ("east", "west"), strict=True):
        site.update(region=region, connections=1, cpu=0.001)
    done = call(capsys, "solve", "distribution", written(tmp_path, problem), "--with", "tiers")
    assert done.code == 0
    assert "region east: q1" in done.out and "region west: q2" in done.out
    assert "site s1 has 1 connections, and 2 are taken" in done.out
    assert "overloaded: s1, s2" in done.out


def test_a_lost_site_and_long_lists(tmp_path: Path, capsys: Capture) -> None:
    problem: Any = problem_data(fleet(50, 5, 2, Random(0)))
    problem["sites"][0]["alive"] = False
    problem["table"] = {one["id"]: "s1" for one in problem["operators"]}
    problem["rebalance"] = {}
    path = written(tmp_path, problem)
    done = call(capsys, "solve", "distribution", path)
    assert "... and 10 more moves; --json gives all" in done.out
    assert done.out.count("s1 does not answer") == 40
    assert "o1, o2, o3, o4, o5, o6, o7, o8 and 242 more" in done.out
    problem["table"] = {one["id"]: "s2" for one in problem["operators"]}
    quiet = call(capsys, "solve", "distribution", written(tmp_path, problem)).out
    assert "nothing moves: the costs of the sites differ by 0.0% of a full site" in quiet


def test_wrong_input_ends_with_2(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "solve", "distribution", written(tmp_path, {"sites": [], "operators": []}))
    assert (done.code, done.out) == (2, "")
    assert "sites is empty" in done.err
    dead = {"sites": [{"id": "a", "alive": False}], "operators": [{"id": "o", "inputs": [], "cpu": 1}]}
    done = call(capsys, "solve", "distribution", written(tmp_path, dead))
    assert done.code == 2 and "p.json:1:11: no site is alive" in done.err
