"""Jobs, placed plans, and the difference of two of them."""

from __future__ import annotations

import pytest

from headrace.errors import InternalError
from headrace.plan.logical import LogicalPlan
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.steps import StartJob, StopJob, diff
from tests.unit.plan.building import READINGS, project


def job(name: str, plan: LogicalPlan = READINGS, site: str = "local") -> Job:
    return Job(name, name, site, plan)


def test_two_jobs_of_one_name_cannot_be_placed() -> None:
    with pytest.raises(InternalError, match="same id"):
        PlacedPlan((job("a"), job("b"), job("a", site="edge")))


def test_a_job_is_found_by_its_id() -> None:
    assert PlacedPlan((job("a"), job("b"))).job("b") == job("b")


def test_the_fingerprint_follows_the_plan_and_nothing_else() -> None:
    assert job("a").fingerprint == job("b", site="edge").fingerprint
    assert job("a").fingerprint != job("a", project(READINGS, "k")).fingerprint


def test_diff_stops_before_it_starts_and_leaves_the_rest_alone() -> None:
    running = PlacedPlan((job("stays"), job("goes"), job("changes")))
    changed = job("changes", project(READINGS, "k"))
    wanted = PlacedPlan((job("new"), changed, job("stays")))
    assert diff(running, wanted) == (
        StopJob(job("goes")),
        StopJob(job("changes")),
        StartJob(job("new")),
        StartJob(changed),
    )
    assert diff(wanted, wanted) == ()


def test_steps_as_text() -> None:
    assert str(StartJob(job("a"))) == "start a on local"
    assert str(StopJob(job("a", site="edge"))) == "stop a on edge"
