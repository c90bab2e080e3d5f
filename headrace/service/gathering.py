"""Gathers statistics of a run: looked at once a round, it acts every few seconds.

    jobs    rows in and out, batches and their length, lag, state, from the progress that the fleet has
    sites   cores and memory, from the processes that this machine can see (probing.py)

What was seen goes into the statistics file with its time, what is believed of it beside it. A run never ends,
nor waits, for a figure: a file that cannot be written is told once, and gathering is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from headrace.catalog.model import Project, SinkKind
from headrace.errors import HeadraceError
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import LogicalPlan, streams_of
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.executor import ENDED, JobState, Progress
from headrace.service.fleet import Fleet, Unit, parts, queries
from headrace.service.gathered import STATISTICS, TEXT, Gathered, JobFacts, job_key, site_key
from headrace.service.layout import own_folder
from headrace.service.moments import Clock, now
from headrace.service.placing_problem import width_of
from headrace.service.probing import Probe, Processes, Seen, SiteUse, nothing
from headrace.state.statistics import Row, Statistics, open_statistics
from headrace.stats.beliefs import Beliefs
from headrace.stats.samples import Sample

INTERVAL = 5.0
EachRound = Callable[[Project, Fleet], None]
Note = Callable[[str], None]


class Gathering:
    """`seconds` never goes back, `clock` is the one on the wall."""

    def __init__(
        self,
        probe: Probe,
        note: Note = lambda _: None,
        seconds: Callable[[], float] = time.monotonic,
        clock: Clock = now,
        interval: float = INTERVAL,
    ) -> None:
        self._probe, self._note, self._seconds, self._clock = probe, note, seconds, clock
        self._interval = interval
        self._looked = float("-inf")
        self._facts: dict[str, tuple[Unit, JobFacts]] = {}
        self._broken = False
        self.file: Statistics | None = None
        self.latest = Gathered(0.0)
        """What was gathered last, by this run or, before its first look, by the one before."""

    def look(self, project: Project, fleet: Fleet) -> bool:
        """One round; whether it was time to look."""
        if self._broken or self._seconds() - self._looked < self._interval:
            return False
        self._looked = self._seconds()
        try:
            self._open(project)
            self._gather(project, fleet)
        except (HeadraceError, OSError) as error:
            self._broken = True
            text = error.message if isinstance(error, HeadraceError) else str(error)
            self._note(f"statistics are not gathered any more: {text}")
        return not self._broken

    def close(self) -> None:
        if self.file is not None:
            self.file.close()

    def _open(self, project: Project) -> None:
        if self.file is not None:
            return
        self.file = open_statistics(own_folder(project) / STATISTICS)
        text = self.file.text(TEXT)
        if text is not None:
            try:
                self.latest = Gathered.from_text(text)
            except ValueError:
                self._note("what an earlier run has gathered cannot be read, and is left out")

    def _gather(self, project: Project, fleet: Fleet) -> None:
        at = self._clock().timestamp()
        beliefs, seen = self.latest.beliefs, self._probe(project)
        jobs = {unit.id: self._fact(project, fleet, unit) for unit in fleet.units.values()}
        self._forget(beliefs, jobs)
        rows = [*self._of_jobs(at, fleet, beliefs, jobs), *_of_sites(at, beliefs, seen)]
        self.latest = Gathered(at, jobs, beliefs, tuple(sorted({*seen.down, *fleet.lost})))
        if self.file is not None:
            cores = self.latest.cores()
            self.file.add([_with_cores(row, cores) for row in rows], {TEXT: self.latest.to_text()})

    def _fact(self, project: Project, fleet: Fleet, unit: Unit) -> JobFacts:
        """Worked out once for each unit: only its state changes while it is the same."""
        progress = fleet.states.get(unit.id)
        state = str(JobState.STARTING if progress is None else progress.state)
        known = self._facts.get(unit.id)
        if known is None or known[0] is not unit:
            known = (unit, facts_of(project, unit))
        if known[1].state != state:
            known = (unit, replace(known[1], state=state))
        self._facts[unit.id] = known
        return known[1]

    def _forget(self, beliefs: Beliefs, jobs: Mapping[str, JobFacts]) -> None:
        """Jobs that are gone; and of sites that have other jobs than before, what they used then."""
        for name in (set(self._facts) | set(self.latest.jobs)) - set(jobs):
            self._facts.pop(name, None)
            beliefs.forget(job_key(name))
        before, there = _at_sites(self.latest.jobs), _at_sites(jobs)
        for site in before.keys() | there.keys():
            if before.get(site) != there.get(site):
                beliefs.forget(site_key(site))

    @staticmethod
    def _of_jobs(at: float, fleet: Fleet, beliefs: Beliefs, jobs: Mapping[str, JobFacts]) -> Iterator[Row]:
        for name, facts in jobs.items():
            progress = fleet.states.get(name)
            if progress is None or progress.state in ENDED:
                continue
            figures = beliefs.take(sample_of(name, progress, at))
            yield Row("job", name, facts.site, at, figures, progress.watermark)


def _at_sites(jobs: Mapping[str, JobFacts]) -> dict[str, set[str]]:
    """The jobs that run at each site."""
    found: dict[str, set[str]] = {}
    for name, facts in jobs.items():
        if facts.runs:
            found.setdefault(facts.site, set()).add(name)
    return found


def _with_cores(row: Row, cores: Mapping[str, float]) -> Row:
    if row.kind != "job" or row.name not in cores:
        return row
    figures = {**row.figures, "cpu": cores[row.name]}
    return Row("job", row.name, row.site, row.at, figures, row.watermark)


def _of_sites(at: float, beliefs: Beliefs, seen: Seen) -> Iterator[Row]:
    for name, use in seen.uses.items():
        gauges = _known(cpu=use.cpu, memory=use.memory)
        if gauges:
            yield Row("site", name, name, at, beliefs.take(Sample(site_key(name), at, gauges)))


def sample_of(name: str, progress: Progress, at: float) -> Sample:
    """What a look at a job tells. Rows that were read count from its start on, batches over all its lives."""
    millis, lag = progress.batch_millis, progress.lag
    gauges = _known(
        batch_seconds=None if millis is None else millis / 1e3,
        lag_seconds=None if lag is None else lag / 1e6,
        state_rows=progress.state_rows,
        state_bytes=progress.state_bytes,
    )
    totals = {"rows_in": progress.input_rows, "rows_out": progress.output_rows}
    totals |= {
        "late_rows": progress.late_rows,
        "batches": 0 if progress.batch is None else progress.batch + 1,
    }
    return Sample(job_key(name), at, gauges, totals)


def _known(**figures: float | None) -> dict[str, float]:
    return {name: value for name, value in figures.items() if value is not None}


def facts_of(project: Project, unit: Unit) -> JobFacts:
    plans = [unit.plan] if isinstance(unit, ChannelJob) else [part.plan for part in parts(unit)]
    read = dict.fromkeys(name for plan in plans for name in streams_of(plan))
    return JobFacts(
        kind=_kind(unit),
        site=unit.site,
        queries=queries(unit),
        streams=tuple(name for name in read if name in project.streams),
        reads=tuple(name for name in read if name not in project.streams),
        writes=unit.writes if isinstance(unit, ChannelJob) else None,
        width=sum(map(_width, plans)) / len(plans) if plans else 0.0,
        state=str(JobState.STARTING),
        bound=_bound(project, unit),
    )


def _kind(unit: Unit) -> str:
    if isinstance(unit, Job):
        return "job"
    return "tree" if isinstance(unit, TreeJob) else "split" if isinstance(unit, FederatedJob) else "part"


def _width(plan: LogicalPlan) -> float:
    return width_of(plan.schema)


def _bound(project: Project, unit: Unit) -> str:
    """As `headrace move` has it (moving.py)."""
    here = [project.queries[name] for name in queries(unit) if name in project.queries]
    volatile = [query.name for query in here if query.sink.kind is SinkKind.MEMORY]
    return f"{volatile[0]} keeps its results in memory" if volatile else ""


@contextmanager
def gathering(master: str | None, note: Note) -> Iterator[Gathering]:
    """For a run. With another `master` all jobs are in one Spark, of which nothing is known here."""
    made = Gathering(nothing if master is not None else Processes(time.monotonic), note)
    try:
        yield made
    finally:
        made.close()


__all__ = ["INTERVAL", "EachRound", "Gathering", "SiteUse", "facts_of", "gathering", "sample_of"]
