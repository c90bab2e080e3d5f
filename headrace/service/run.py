"""Run a placed plan: start its jobs, watch them, write down what was seen, stop them.

The steps are the ones `plan` prints: `diff` from nothing to the wanted plan. Without `drain` all jobs run
until `request_stop`. With it, at most `planner.parallel` jobs run at once, the next one starting as one
ends. A job that fails ends alone; the others go on, and the outcome names it.

    waiting -> started -> [executor's JobState ...] -> ended
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from headrace.catalog.model import FileSource, GeneratorSource, Project, RateSource, SinkKind, Stream, Table
from headrace.errors import HeadraceError, NotSupported, UserError
from headrace.ids import fingerprint
from headrace.plan.logical import streams_of, tables_of
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.steps import StartJob, diff
from headrace.runtime.executor import ENDED, Executor, JobContext, JobState, Progress
from headrace.service.folders import (
    check_orphans,
    check_owner,
    check_results,
    finish_removal,
    make_folders,
    remove_folders,
)
from headrace.service.layout import job_context, results_folder
from headrace.state.store import Store

__all__ = ["FILE_SINKS", "JobState", "Options", "Outcome", "Progress", "Runner", "Snapshot", "Watched"]

FILE_SINKS = frozenset({SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV})
POLL_SECONDS = 0.5
_STOP_AT_ONCE = 8


class Clock(Protocol):
    def __call__(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Watched:
    """One job as the watcher sees it. `progress` None: it waits for its turn."""

    job: str
    site: str
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All jobs at one moment."""

    jobs: tuple[Watched, ...]
    seconds: float
    """Since the run began."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    last: Snapshot
    failures: tuple[tuple[str, str], ...]
    """(job, reason)"""
    interrupted: bool
    drained: bool
    refused: int = 0
    """How many of the failures are jobs that cannot be run as the user asked."""

    @property
    def exit_code(self) -> int:
        """0: all fine. 1: a job failed. 2: jobs were refused, and no other failed. 130: a drain was
        stopped before the input was exhausted."""
        if self.failures:
            return 2 if len(self.failures) == self.refused else 1
        return 130 if self.interrupted and self.drained else 0


@dataclass(frozen=True, slots=True)
class Options:
    drain: bool = False
    fresh: bool = False
    master: str | None = None


class Runner:
    """Runs one PlacedPlan to its end. Touches nothing until `run`."""

    def __init__(
        self,
        project: Project,
        placed: PlacedPlan,
        executor: Executor,
        store: Store,
        clock: Clock,
        sleep: Callable[[float], None],
        options: Options,
        watch: Callable[[Snapshot], None] = lambda _: None,
    ) -> None:
        self._project = project
        self._executor = executor
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._options = options
        self._watch = watch
        starts = [step.job for step in diff(PlacedPlan(()), placed) if isinstance(step, StartJob)]
        self._jobs = {job.id: job for job in starts}
        self._waiting = list(starts)
        self._seen: dict[str, Progress] = {}
        self._stop = False
        self._refused = 0
        self._began = clock()

    def request_stop(self) -> None:
        """Ask for a clean end; may be called from a signal handler."""
        self._stop = True

    def run(self) -> Outcome:
        """Start, watch, stop. The executor is closed whatever happens."""
        self._began = self._clock()
        try:
            self._prepare()
            while not self._stop and self._unfinished():
                self._start_some()
                self._observe()
                self._watch(self.snapshot())
                if self._unfinished() and not self._stop:
                    self._sleep(POLL_SECONDS)
            interrupted = self._stop and self._unfinished()
            self._stop_all()
        finally:
            self._executor.close()
        last = self.snapshot()
        self._watch(last)
        failures = tuple((j, p.error) for j, p in self._seen.items() if p.state is JobState.FAILED)
        return Outcome(last, failures, interrupted, self._options.drain, self._refused)

    def snapshot(self) -> Snapshot:
        seconds = (self._clock() - self._began).total_seconds()
        jobs = (Watched(job.id, job.site, self._seen.get(job.id)) for job in self._jobs.values())
        return Snapshot(tuple(jobs), seconds)

    def _context(self, job: Job) -> JobContext:
        return job_context(self._project, job, self._options.master)

    def _writes_files(self, job: Job) -> bool:
        return self._project.queries[job.query].sink.kind in FILE_SINKS

    def _prepare(self) -> None:
        """Refuse what cannot go well before anything is started; then clear what `--fresh` clears."""
        refuse_results(self._project, PlacedPlan(tuple(self._jobs.values())))
        for job in self._jobs.values():
            if not self._options.fresh:
                self._check_fingerprint(job)
                if self._writes_files(job):
                    check_orphans(self._context(job))
        for job in self._jobs.values():
            clear = remove_folders if self._options.fresh else finish_removal
            clear(self._context(job), results=self._writes_files(job))
            if self._options.fresh:
                self._store.forget(job.id)

    def _check_fingerprint(self, job: Job) -> None:
        known = self._store.get(job.id)
        if known is None or not self._context(job).state.exists():
            return
        before, after = known.fingerprint.split("-"), job_fingerprint(self._project, job).split("-")
        names = ("plan", "input", "sink")
        changed = [n for n, old, new in zip(names, before, after, strict=False) if old != new]
        if changed:
            raise UserError(
                f'the {" and the ".join(changed)} of query "{job.query}" has changed since its last run',
                detail="Its checkpoint and results were made for what it was before.",
                hint=f"Run it from the beginning with: headrace run --fresh --only {job.query}",
            )

    def _alive(self) -> list[str]:
        return [job_id for job_id, progress in self._seen.items() if progress.state not in ENDED]

    def _unfinished(self) -> bool:
        return bool(self._waiting or self._alive())

    def _start_some(self) -> None:
        limit = self._project.planner.parallel if self._options.drain else len(self._jobs)
        while self._waiting and len(self._alive()) < limit and not self._stop:
            self._start(self._waiting.pop(0))

    def _start(self, job: Job) -> None:
        context, drain = self._context(job), self._options.drain
        self._store.want(
            job.id,
            job.query,
            job.site,
            job_fingerprint(self._project, job),
            "drained" if drain else "running",
            self._now(),
        )
        self._note(Progress(job.id, JobState.STARTING))
        self._watch(self.snapshot())
        try:
            make_folders(context, results=self._writes_files(job))
            self._executor.start(job, context, drain=drain)
        except HeadraceError as error:
            self._refused += isinstance(error, UserError)
            self._note(Progress(job.id, JobState.FAILED, error=error.render()))
        except Exception as error:  # A full disk, or what an engine throws: the other jobs go on.
            reason = f"{type(error).__name__}: {error}"
            self._note(Progress(job.id, JobState.FAILED, error=reason))

    def _observe(self) -> None:
        for job_id in self._alive():
            self._note(self._executor.progress(job_id))

    def _note(self, progress: Progress) -> None:
        """Remember what was seen; the store is written only when something changed."""
        before = self._seen.get(progress.job)
        self._seen[progress.job] = progress
        if progress != before:
            self._store.observe(
                progress.job,
                progress.state,
                progress.batch,
                progress.input_rows,
                progress.output_rows,
                progress.late_rows,
                progress.watermark,
                progress.error,
                self._now(),
            )

    def _stop_all(self) -> None:
        """Stop what still runs, several at once: each has to wait for the end of its own batch."""
        alive = self._alive()
        with ThreadPoolExecutor(_STOP_AT_ONCE) as pool:
            stopped = list(pool.map(self._stopped, alive))
        for progress in stopped:
            self._note(progress)

    def _stopped(self, job_id: str) -> Progress:
        """How a job stands after it was stopped; one that will not stop does not keep the others."""
        try:
            self._executor.stop(job_id)
            return self._executor.progress(job_id)
        except HeadraceError as error:
            return Progress(job_id, JobState.FAILED, error=error.render())

    def _now(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="milliseconds")


def job_fingerprint(project: Project, job: Job) -> str:
    """Of all that a checkpoint and the results beside it were made for: the plan, the input, the sink.
    Batch sizes are not in it: they may change between two runs."""
    streams = [_stream_text(project, project.streams[name]) for name in sorted(streams_of(job.plan))]
    tables = [_table_text(project, project.tables[name]) for name in sorted(tables_of(job.plan))]
    query = project.queries[job.query]
    sink = [query.sink.kind.value]
    if query.sink.kind in FILE_SINKS:
        sink.append(str(results_folder(project, query)))
    return "-".join(
        (job.fingerprint, fingerprint(json.dumps(streams + tables)), fingerprint(json.dumps(sink)))
    )


def _stream_text(project: Project, stream: Stream) -> str:
    """Where rows come from. The engine knows files it has read by their absolute names."""
    source = stream.source.model_dump(mode="json", exclude={"files_per_batch"})
    if isinstance(stream.source, FileSource):
        source["path"] = _absolute(project, stream.source.path)
    about: dict[str, object] = {"columns": [(n, str(t)) for n, t in stream.columns.items()], "source": source}
    if isinstance(stream.source, GeneratorSource):
        about |= {"rate": stream.rate, "root": str(project.root.resolve())}
    return json.dumps(about, sort_keys=True)


def _table_text(project: Project, table: Table) -> str:
    about = table.model_dump(mode="json")
    if table.source is not None:
        about["source"]["path"] = _absolute(project, table.source.path)
    return json.dumps(about, sort_keys=True)


def _absolute(project: Project, path: str) -> str:
    return path if "://" in path else os.path.normpath(project.root.resolve() / path)


def refuse_results(project: Project, placed: PlacedPlan) -> None:
    """Raises UserError for a results folder that holds what Headrace did not put there, or another job's
    results, and for a sink that would not keep all rows."""
    for job in placed.jobs:
        kind = project.queries[job.query].sink.kind
        if kind in FILE_SINKS:
            context = job_context(project, job)
            check_results(context.results)
            check_owner(context)
        if kind is SinkKind.CSV and len(job.plan.schema.names) == 1:
            raise NotSupported(
                f'query "{job.query}" gives one column, which a csv sink cannot keep: a line with nothing '
                "but NULL is not written",
                hint="Select a second column, such as the window's end, or choose a json or parquet sink.",
            )


def refuse_endless(project: Project, placed: PlacedPlan) -> None:
    """`--drain` needs an end: raises UserError for a query over Spark's rate source."""
    for job in placed.jobs:
        for name in streams_of(job.plan):
            if isinstance(project.streams[name].source, RateSource):
                raise UserError(
                    f'query "{job.query}" reads stream "{name}", which never ends: it cannot be drained',
                    hint="Run without --drain, or name the other queries with --only.",
                )
