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

_SAMPLES, _MOST_SECONDS = 50, 5.0
"""A sample misses less than a fiftieth of the run, and no more than so many seconds of it."""


class Meter:
    """From here on CPU time and memory of this process and all below it count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._sampler, self._activity, self._clock = Sampler(clock), Activity(), clock
        self.usage = Usage(0.0, 0.0, 0, 0)
        self._began, self._sampled = clock(), float("-inf")

    def see(self, snapshot: Snapshot) -> None:
        """Members of a tree all tell its rows and batches; one of them is enough."""
        told = {watched.tree or watched.job: watched.progress for watched in snapshot.jobs}
        for unit, progress in told.items():
            if progress is not None:
                self._activity.see(progress if progress.job == unit else replace(progress, job=unit))
        # Each sample asks every process of the machine who its parent is.
        now = self._clock()
        if now - self._sampled >= min(_MOST_SECONDS, (now - self._began) / _SAMPLES):
            self._sampled = now
            self.usage = self._sampler.sample()

    def report(
        self, project: Project, placed: PlacedPlan, master: str | None = None
    ) -> tuple[SiteComparison, ...]:
        """Nothing where the prediction fails: a run that went well does not fail for a figure."""
        try:
            return tuple(compared(project, placed, self._activity.jobs, self.usage, master=master))
        except HeadraceError:
            return ()
