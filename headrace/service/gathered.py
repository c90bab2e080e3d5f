"""What is known of the jobs and sites of a run, as it is kept: plain facts, and beliefs with their age.

Written by the run that is on (gathering.py); read by it, by `status` and by `rebalance`, also when nothing
runs any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.runtime.executor import ENDED, JobState
from headrace.service.layout import own_folder
from headrace.state.statistics import Statistics
from headrace.stats.beliefs import Belief, Beliefs

STATISTICS = "statistics.db"
TEXT = "gathered"
ROW_BYTES = 100.0
"""Of state, where only its rows are known."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job, a tree or a split job, as the run has it."""

    kind: str
    """`job`, `tree`, `split` or `part`."""
    site: str
    queries: tuple[str, ...]
    streams: tuple[str, ...]
    """The base streams that it reads."""
    width: float
    """Bytes of a row that it gives, by its types."""
    state: str
    bound: str = ""
    """Why it cannot be moved; empty: it can."""
    reads: tuple[str, ...] = ()
    """Derived streams that it reads."""
    writes: str | None = None
    """The derived stream that it makes for others."""

    @property
    def runs(self) -> bool:
        return JobState(self.state) not in ENDED


_FACTS = tuple(one.name for one in fields(JobFacts))


@dataclass(frozen=True, slots=True)
class Gathered:
    at: float
    """Seconds since the epoch."""
    jobs: Mapping[str, JobFacts] = field(default_factory=dict)
    beliefs: Beliefs = field(default_factory=Beliefs)
    down: tuple[str, ...] = ()
    """Sites whose server was started here, and is dead; and those that the run has taken out."""

    def job(self, name: str) -> Belief | None:
        return self.beliefs.of(job_key(name))

    def site(self, name: str) -> Belief | None:
        return self.beliefs.of(site_key(name))

    def cores(self) -> dict[str, float]:
        """Of the jobs that run and have been seen. Their site was measured as a whole: each job has the part
        of it that its batches have of the time of all batches there. Where it was not, a batch is taken to
        use one core."""
        busy = {name: time for name in self.jobs if (time := self.busy(name)) is not None}
        total: dict[str, float] = {}
        for name, time in busy.items():
            total[self.jobs[name].site] = total.get(self.jobs[name].site, 0.0) + time
        return {name: self._part(time, self.jobs[name].site, total) for name, time in busy.items()}

    def _part(self, time: float, site: str, total: Mapping[str, float]) -> float:
        belief = self.site(site)
        measured = None if belief is None else belief["cpu"]
        if measured is None:
            return time
        return measured * time / total[site] if total[site] else 0.0

    def busy(self, name: str) -> float | None:
        """Which part of the time the job is in a batch."""
        facts, belief = self.jobs[name], self.job(name)
        if belief is None or not facts.runs:
            return None
        rate, seconds = belief["batches"], belief["batch_seconds"]
        return None if rate is None or seconds is None else min(1.0, rate * seconds)

    def state_bytes(self, name: str) -> float | None:
        belief = self.job(name)
        if belief is None:
            return None
        size, rows = belief["state_bytes"], belief["state_rows"]
        return size if size is not None else None if rows is None else rows * ROW_BYTES

    def to_text(self) -> str:
        # Not `asdict`: it copies every value, and this is done every few seconds for every job.
        jobs = {name: {key: getattr(one, key) for key in _FACTS} for name, one in self.jobs.items()}
        beliefs = self.beliefs.to_data()
        data = {"at": self.at, "jobs": jobs, "beliefs": beliefs, "down": self.down}
        return json.dumps(data, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` gave. Raises ValueError for anything else."""
        try:
            data = json.loads(text)
            jobs = {name: _facts(one) for name, one in data["jobs"].items()}
            beliefs, down = Beliefs.from_data(data["beliefs"]), tuple(map(str, data["down"]))
            return cls(float(data["at"]), jobs, beliefs, down)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this was not gathered: {error!r}") from error


def job_key(name: str) -> str:
    return f"job {name}"


def site_key(name: str) -> str:
    return f"site {name}"


def _facts(data: Mapping[str, Any]) -> JobFacts:
    if set(data) != set(_FACTS):
        raise ValueError(f"these are no facts of a job: {sorted(data)}")
    made = JobFacts(**{**data, **{name: tuple(data[name]) for name in ("queries", "streams", "reads")}})
    JobState(made.state)
    return made


def gathered_of(project: Project) -> Gathered | None:
    """What the last run has gathered; None: none has yet, or it cannot be read."""
    path = own_folder(project) / STATISTICS
    if not path.exists():
        return None
    try:
        # Not made anew where it is damaged: that is for the run, which may be writing it.
        with Statistics(path) as file:
            text = file.text(TEXT)
        return None if text is None else Gathered.from_text(text)
    except (UserError, ValueError):
        return None
