"""Meter a run: looked at whenever its jobs are, and asked at its end for predicted beside measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.catalog.model import Project
from headrace.errors import HeadraceError
from headrace.plan.placed import PlacedPlan
from headrace.service.compared import SiteComparison, compared
from headrace.service.measured import Activity, Sampler, Usage
from headrace.service.run import Snapshot


class Meter:
    """From here on CPU time and memory of this process and all below it count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._sampler, self._activity = Sampler(clock), Activity()
        self.usage = Usage(0.0, 0.0, 0, 0)

    def see(self, snapshot: Snapshot) -> None:
        """Members of a tree all tell its rows and batches; one of them is enough."""
        told = {watched.tree or watched.job: watched.progress for watched in snapshot.jobs}
        for unit, progress in told.items():
            if progress is not None:
                self._activity.see(replace(progress, job=unit))
        self.usage = self._sampler.sample()

    def report(
        self, project: Project, placed: PlacedPlan, master: str | None = None
    ) -> tuple[SiteComparison, ...]:
        """Nothing where the prediction fails: a run that went well does not fail for a figure."""
        try:
            return tuple(compared(project, placed, self._activity.jobs, self.usage, master=master))
        except HeadraceError:
            return ()
