"""The fake twin of the Spark executor: runs no data, follows a script.

Each look at a job's progress is one batch. A job ends after the batches of its script (with `drain`), or
goes on for ever (without). It can be told to refuse to start, or to fail at a batch. The rules of
`executor.JobState` hold: an ended job never changes state again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headrace.errors import EngineError, InternalError, UserError
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.executor import ENDED, JobContext, JobState, Progress

if TYPE_CHECKING:
    from headrace.runtime.channels.ports import Ports


@dataclass(frozen=True, slots=True)
class Script:
    """What one fake job does."""

    batches: int = 3
    rows: int = 100
    """Rows read by every batch."""
    results: int = 10
    """Rows given by every batch."""
    late: int = 0
    fail_at: int | None = None
    """The batch that fails."""
    reason: str = "told to fail"
    lost: bool = False
    """It fails because its engine is gone."""
    refuse: UserError | EngineError | None = None
    """Raised by `start`."""


@dataclass(slots=True)
class _Running:
    context: JobContext
    drain: bool
    script: Script
    progress: Progress
    ports: Ports | None = None


@dataclass(slots=True)
class FakeExecutor:
    """Implements runtime.executor.Executor. `calls` tells what was asked, in order."""

    scripts: Mapping[str, Script] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    closed: bool = False
    trees: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The members of every tree, as last started."""
    valid: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    federated: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The members of every federated job, as last started."""
    until: dict[tuple[str, str], int] = field(default_factory=dict)
    """The last window end of a member, by job and query, where it has one."""
    _jobs: dict[str, _Running] = field(default_factory=dict)

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        self._begin(job.id, context, drain=drain)
        self._leave({job.id})

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        """A tree does what its script says; each member is seen as the tree is. A member that was not there
        at the tree's first start is valid from `watermark`."""
        self._begin(tree.id, context, drain=drain)
        before = self.trees.get(tree.id)
        watermark = self.watermarks.get(tree.id, 0)
        for query in members:
            if before is not None and query not in before:
                self.valid[query] = watermark
        self.trees[tree.id] = tuple(members)

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        """A federated job does what its script says; each member is seen as the job is. It is finished, too,
        when the watermark has passed the `until` of every member."""
        self._begin(job.id, context, drain=drain)
        self._leave(set(members))
        self.federated.pop(job.id, None)
        self.federated[job.id] = tuple(members)
        for member in job.members:
            if member.until is not None:
                self.until[job.id, member.query] = member.until

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        """Moves no rows. Of its channels it knows whether they have ended: it does not end before those that
        it reads, and ends its own."""
        self._begin(job.id, context, drain=drain)
        self._leave({job.id})
        self._jobs[job.id].ports = ports
        if ports.output is not None:
            ports.output.reopen()

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        for query in queries:
            if query not in self.federated.get(job_id, ()):
                raise InternalError(f"job {job_id} has no member {query}")
        given = self._job(job_id).progress.watermark
        known = all(self.until.get((job_id, query)) == end for query in queries)
        if not known and given is not None and given > end:
            raise InternalError(f"job {job_id} may have given windows that end after {end}")
        self.until |= {(job_id, query): end for query in queries}

    def seen_until(self, job_id: str) -> int | None:
        return self._job(job_id).progress.watermark

    def _leave(self, queries: set[str]) -> None:
        """These queries are in no tree any more."""
        self.trees = {t: tuple(m for m in members if m not in queries) for t, members in self.trees.items()}

    def _begin(self, job_id: str, context: JobContext, *, drain: bool) -> None:
        self.calls.append(("start", job_id))
        if self.closed:
            raise InternalError("start after close")
        running = self._jobs.get(job_id)
        if running is not None and running.progress.state not in ENDED:
            raise InternalError(f"job {job_id} is running already")
        script = self.scripts.get(job_id, Script())
        if script.refuse is not None:
            raise script.refuse
        total = script.batches * script.rows if drain else None
        first = Progress(job_id, JobState.STARTING, input_total=total)
        self._jobs[job_id] = _Running(context, drain, script, first)
        alive = sum(r.progress.state not in ENDED for r in self._jobs.values())
        self.most_at_once = max(self.most_at_once, alive)

    def stop(self, job_id: str) -> None:
        self.calls.append(("stop", job_id))
        running = self._job(job_id)
        if running.progress.state not in ENDED:
            running.progress = replace(running.progress, state=JobState.STOPPED)

    def status(self, job_id: str) -> JobState:
        return self._job(job_id).progress.state

    def progress(self, job_id: str) -> Progress:
        tree = next((t for t, members in self.trees.items() if job_id in members), None)
        if tree is not None:
            seen = self._job(tree).progress
            return replace(seen, job=job_id, valid_from=self.valid.get(job_id))
        federated = [j for j, members in self.federated.items() if job_id in members]
        if federated and job_id not in self._jobs:
            return replace(self._job(federated[-1]).progress, job=job_id)
        running = self._job(job_id)
        running.progress = self._past_until(job_id, _advance(running))
        if running.progress.watermark is not None:
            self.watermarks[job_id] = running.progress.watermark
        return running.progress

    def _past_until(self, job_id: str, now: Progress) -> Progress:
        ends = [self.until.get((job_id, query)) for query in self.federated.get(job_id, ())]
        mark = now.watermark
        if not ends or mark is None or now.state in ENDED:
            return now
        past = all(end is not None and end <= mark for end in ends)
        return replace(now, state=JobState.FINISHED) if past else now

    def close(self) -> None:
        self.calls.append(("close", ""))
        for job_id, running in self._jobs.items():
            if running.progress.state not in ENDED:
                self.stop(job_id)
        self.closed = True

    def context(self, job_id: str) -> JobContext:
        """What the job was started with, for tests."""
        return self._job(job_id).context

    def _job(self, job_id: str) -> _Running:
        if job_id not in self._jobs:
            raise InternalError(f"job {job_id} was never started")
        return self._jobs[job_id]


def _advance(running: _Running) -> Progress:
    """The next state of a job: one more batch, its end, or nothing when it has ended."""
    now, script = running.progress, running.script
    if now.state in ENDED:
        return now
    if now.state is JobState.STARTING:
        return replace(now, state=JobState.RUNNING)
    if now.state is JobState.DRAINING:
        if running.ports is not None and running.ports.output is not None:
            running.ports.output.end()
        return replace(now, state=JobState.FINISHED)
    batch = 0 if now.batch is None else now.batch + 1
    if batch == script.fail_at:
        return replace(now, state=JobState.FAILED, error=script.reason, lost=script.lost)
    more = running.ports is not None and not all(one.ended() for one in running.ports.inputs.values())
    last = running.drain and batch + 1 >= script.batches and not more
    return replace(
        now,
        state=JobState.DRAINING if last else JobState.RUNNING,
        batch=batch,
        input_rows=now.input_rows + script.rows,
        output_rows=now.output_rows + script.results,
        late_rows=now.late_rows + script.late,
        rows_per_second=float(script.rows),
        batch_millis=1000,
        watermark=(batch + 1) * 1_000_000,
        lag=0,
    )
