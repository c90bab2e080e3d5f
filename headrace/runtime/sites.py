"""The sites of a move, over the executor protocol: what `relocate` asks for, by one executor for all of them.
Health, the fence and the rehearsal are given, so that tests need no engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import EngineError, InternalError
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.executor import ENDED, Executor, JobContext, Progress
from headrace.runtime.storage import keep_at

if TYPE_CHECKING:
    from headrace.runtime.channels.ports import Ports

REHEARSAL = ".rehearsal-"
"""How the folder begins in which a job is rehearsed: beside its own, and gone when that has ended."""
_NO_MEMBERS: Mapping[str, JobContext] = {}


class GivenUp(EngineError):
    """A rehearsal that was not wanted any more."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A job, a tree or a split job, with what it needs at each site."""

    job: Job | TreeJob | FederatedJob | ChannelJob
    context: Callable[[str], JobContext]
    """By site."""
    members: Callable[[str], Mapping[str, JobContext]] = lambda _: _NO_MEMBERS
    """Of a tree or a split job: the context of each query, by site."""
    drain: bool = False
    ports: Callable[[], Ports] | None = None
    """Of a job between channels: these, wherever it runs."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How sites are asked, cleared and made ready."""

    answers: Callable[[str], bool]
    clear: Callable[[str, str], None]
    """(job, site): the fence, as `relocate.Sites` has it."""
    prepare: Callable[[Unit, str], None] = lambda unit, site: None
    others: Callable[[str], Sequence[str]] = lambda job: ()
    last_resort: Callable[[str], bool] = lambda site: False
    """A site that takes jobs of a lost one only where no other can."""
    rehearse: Callable[[Unit, str, Callable[[], bool]], None] = lambda unit, site, wanted: None
    """As `prepare`, for as long as it is wanted. Raises GivenUp where it ended before its end."""
    is_dead: Callable[[str], bool] = lambda site: False
    """Whether a site that does not answer is known to have ended, so that it need not be asked again."""


class ExecutorSites:
    """Implements `relocate.Sites`. `at` says where the jobs of this process run."""

    def __init__(
        self, executor: Executor, units: Mapping[str, Unit], ways: Ways, at: Mapping[str, str] | None = None
    ) -> None:
        self._executor, self._units, self._ways = executor, units, ways
        self._at = dict(at or {})

    def answers(self, site: str) -> bool:
        return self._ways.answers(site)

    def others(self, job: str) -> Sequence[str]:
        return self._ways.others(job)

    def prepare(self, job: str, site: str) -> None:
        self._ways.prepare(self._unit(job), site)

    def runs(self, job: str, site: str) -> bool:
        return self._at.get(job) == site and self._executor.status(job) not in ENDED

    def stop(self, job: str, site: str) -> None:
        if self._at.get(job) == site:
            self._executor.stop(job)

    def clear(self, job: str, site: str) -> None:
        self._ways.clear(job, site)
        if self.runs(job, site):
            # Nothing of it is left there; what this process still has of it is told so.
            self._executor.stop(job)

    def state(self, job: str, site: str) -> Path:
        return self._unit(job).context(site).state

    def keeps(self, job: str, site: str) -> Path | None:
        return self._unit(job).context(site).keeps

    def start(self, job: str, site: str) -> None:
        unit = self._unit(job)
        context = unit.context(site)
        keep_at(context.state, context.keeps)
        if isinstance(unit.job, TreeJob):
            self._executor.start_tree(unit.job, context, unit.members(site), drain=unit.drain)
        elif isinstance(unit.job, FederatedJob):
            self._executor.start_federated(unit.job, context, unit.members(site), drain=unit.drain)
        elif isinstance(unit.job, ChannelJob):
            if unit.ports is None:
                raise InternalError(f"job {job} is between channels that nobody knows")
            self._executor.start_channel(unit.job, context, unit.ports(), drain=unit.drain)
        else:
            self._executor.start(unit.job, context, drain=unit.drain)
        # Not before: an executor knows nothing of a job whose start has failed.
        self._at[job] = site

    def progress(self, job: str) -> Progress:
        return self._executor.progress(job)

    def site_of(self, job: str) -> str | None:
        return self._at.get(job)

    def _unit(self, job: str) -> Unit:
        if job not in self._units:
            raise InternalError(f"job {job} is not among those that can be moved")
        return self._units[job]
