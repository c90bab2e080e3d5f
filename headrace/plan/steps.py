"""Steps: the difference of two PlacedPlans. Building the list touches nothing; explain prints the same
list that apply runs."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.placed import Job, PlacedPlan


@dataclass(frozen=True, slots=True)
class StartJob:
    job: Job

    def __str__(self) -> str:
        return f"start {self.job.id} on {self.job.site}"


@dataclass(frozen=True, slots=True)
class StopJob:
    job: Job

    def __str__(self) -> str:
        return f"stop {self.job.id} on {self.job.site}"


Step = StartJob | StopJob


def diff(running: PlacedPlan, wanted: PlacedPlan) -> tuple[Step, ...]:
    """Stops first, so that a changed job never runs twice; then starts, each in plan order."""
    stops = [StopJob(job) for job in running.jobs if job not in wanted.jobs]
    starts = [StartJob(job) for job in wanted.jobs if job not in running.jobs]
    return (*stops, *starts)
