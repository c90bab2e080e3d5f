"""PlacedPlan: which job runs where. At this stage a job is one query on its sink site."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import InternalError
from headrace.ids import fingerprint
from headrace.plan.logical import LogicalPlan
from headrace.plan.text import format_plan


@dataclass(frozen=True, slots=True)
class Job:
    """The operators that run as one Spark streaming query on one site, with one checkpoint."""

    id: str
    query: str
    site: str
    plan: LogicalPlan

    @property
    def fingerprint(self) -> str:
        """Changes exactly when the plan text does: a checkpoint belongs to one fingerprint."""
        return fingerprint(format_plan(self.plan))


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    jobs: tuple[Job, ...]

    def __post_init__(self) -> None:
        ids = [job.id for job in self.jobs]
        if len(set(ids)) != len(ids):
            raise InternalError("PlacedPlan: two jobs have the same id")

    def job(self, job_id: str) -> Job:
        return next(job for job in self.jobs if job.id == job_id)
