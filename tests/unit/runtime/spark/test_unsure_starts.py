"""A start that failed says nothing of whether its query runs: what the run before it came to is no answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from headrace.catalog.model import Sink
from headrace.errors import EngineError
from headrace.plan.placed import Job
from headrace.runtime.executor import JobContext, JobState
from headrace.runtime.spark.executor import SparkExecutor
from headrace.runtime.spark.job import JobRun
from headrace.runtime.spark.sites import SitesExecutor
from tests.spark.plans import SHAPES

SITE = "sc://one:1"
JOB = Job("q", "q", "one", SHAPES["stateless"])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SitesExecutor:
    """Starts succeed, and have stopped at once, until `fails` is set."""
    made = SitesExecutor({}, fresh=lambda: "fresh")

    def start(self: SitesExecutor, job: Job, context: JobContext, *, drain: bool) -> None:
        if drain:
            raise EngineError("the reply was lost")
        self._jobs[job.id] = cast(JobRun, SimpleNamespace(state=JobState.STOPPED, ended=True))

    monkeypatch.setattr(SparkExecutor, "start", start)
    return made


def context(folder: Path) -> JobContext:
    return JobContext({}, {}, Sink(), folder, folder, folder, SITE)


def test_a_failed_start_after_one_that_stopped_is_not_known_to_have_stopped(
    engine: SitesExecutor, tmp_path: Path
) -> None:
    engine.start(JOB, context(tmp_path), drain=False)
    assert engine.has_stopped("q", SITE)
    with pytest.raises(EngineError, match="reply was lost"):
        engine.start(JOB, context(tmp_path), drain=True)
    assert not engine.has_stopped("q", SITE)
    engine.start(JOB, context(tmp_path), drain=False)
    assert engine.has_stopped("q", SITE)
