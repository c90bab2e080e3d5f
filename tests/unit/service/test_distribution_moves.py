"""What a policy is told of jobs that run for an experiment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.rules import History
from headrace.runtime.executor import JobState, Progress
from headrace.service.distribution_bench import Moment, Running, Seen
from headrace.service.distribution_jobs import Pace
from headrace.service.distribution_moves import wanted_moves

SECONDS = 10.0
JOBS = Problem(
    (Site("s1"), Site("s2")),
    (Operator("low", ("a",), 0.2, 100.0), Operator("high", ("low",), 0.5, 100.0)),
    (Query("q", ("high",)),),
    (Stream("a", 100.0),),
    connection_cpu=0.01,
)


def running(**at: str) -> Running:
    made = SimpleNamespace(at=at, problem=JOBS, pace=Pace(100.0))
    return cast("Running", made)


def seen(rows: int, cores: float, **batches: int) -> Seen:
    first = Moment(0.0, 0, 0, {"s1": 0.0, "s2": 0.0}, 0.0)
    last = Moment(SECONDS, 1000, rows, {"s1": cores * SECONDS, "s2": 0.0}, 0.0)
    progress = {
        name: Progress(name, JobState.RUNNING, batch=count or None, batch_millis=900 if count else None)
        for name, count in batches.items()
    }
    return Seen((first, last), progress, batches)


@pytest.mark.parametrize("rows", [0, 300, 600])
def test_a_job_that_has_ended_no_batch_is_not_one_that_takes_nothing(rows: int) -> None:
    """All is at one full site, and the job that takes most has been at one batch all the time."""
    here = running(**{"job-low": "s1", "job-high": "s1"})
    told = seen(rows, 0.95, **{"job-low": 10, "job-high": 0})
    moves, history = wanted_moves(JOBS, here, told, "pays", History())
    assert len(moves) == 1 and set(moves.values()) == {"s2"}
    assert history.moved.keys() == {name.removeprefix("job-") for name in moves}


def test_a_job_that_was_just_moved_rests() -> None:
    here = running(**{"job-low": "s1", "job-high": "s1"})
    told = seen(500, 0.95, **{"job-low": 10, "job-high": 10})
    moves, history = wanted_moves(JOBS, here, told, "pays", History())
    (moved,) = moves
    back = running(**{"job-low": "s2", "job-high": "s2"} | {moved: "s1"})
    again, _ = wanted_moves(JOBS, back, told, "pays", history)
    assert moved not in again
