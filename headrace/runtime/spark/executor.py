"""Runs jobs on Spark: the in-process session, another master, or Spark Connect, all the same way."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import SinkKind
from headrace.errors import InternalError
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.channels.ports import Ports
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.spark.channel_run import ChannelRun
from headrace.runtime.spark.federated import FederatedRun
from headrace.runtime.spark.fence import Fence
from headrace.runtime.spark.job import JobRun
from headrace.runtime.spark.session import Session, Sessions
from headrace.runtime.spark.tree import TreeRun


class SparkExecutor:
    """Implements `runtime.executor.Executor`. `on_rows(query, file)` gets each file of a console sink."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        memory: str = "2g",
        on_rows: Callable[[str, Path], None] | None = None,
    ) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="headrace-"))
        self._sessions = Sessions(environ, scratch=self._scratch, memory=memory)
        self._on_rows = on_rows
        self._jobs: dict[str, JobRun] = {}
        self._trees: dict[str, TreeRun] = {}
        self._federated: dict[str, FederatedRun] = {}
        """By query: the federated job that was last started with it."""
        self._fences: dict[Path, Fence] = {}

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        if job.id in self._jobs and not self._jobs[job.id].ended:
            raise InternalError(f"job {job.id} runs already")
        self._clear_fence(context.root)
        if context.sink.kind is SinkKind.MEMORY and context.state.exists():
            # What such a job gave lived in a process that is gone: there is nothing to go on from.
            shutil.rmtree(context.state)
        run = JobRun(job, context, drain=drain)
        if run.is_finished():
            run.finished_before()
        else:
            session = self._session(context)
            run.begin(session, self._taker(job, context))
        self._jobs[job.id] = run
        self._trees.pop(job.id, None)
        self._federated.pop(job.id, None)

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        """Start a tree; each member is then a job of its own to ask for."""
        if tree.id in self._jobs and not self._jobs[tree.id].ended:
            raise InternalError(f"tree {tree.id} runs already")
        for query in members:
            other = self._trees.get(query)
            if other is not None and other.tree.id != tree.id and not other.ended:
                raise InternalError(f"query {query} runs already, in tree {other.tree.id}")
        self._clear_fence(context.root)
        run = TreeRun(tree, context, members, drain=drain, on_rows=self._on_rows)
        if run.is_finished():
            run.finished_before()
        else:
            run.begin(self._session(context), None)
        self._jobs[tree.id] = run
        left = {query for query, other in self._trees.items() if other.tree.id == tree.id} - set(members)
        self._trees = {q: t for q, t in self._trees.items() if q not in left} | dict.fromkeys(members, run)
        self._federated = {q: f for q, f in self._federated.items() if q not in members}

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        """Start a federated job; each member is then a job of its own to ask for."""
        if job.id in self._jobs and not self._jobs[job.id].ended:
            raise InternalError(f"job {job.id} runs already")
        self._clear_fence(context.root)
        run = FederatedRun(job, context, members, drain=drain, on_rows=self._on_rows)
        if run.is_finished():
            run.finished_before()
        else:
            run.begin(self._session(context), None)
        self._jobs[job.id] = run
        self._trees = {q: t for q, t in self._trees.items() if q not in members}
        self._federated |= dict.fromkeys(members, run)

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        if job.id in self._jobs and not self._jobs[job.id].ended:
            raise InternalError(f"job {job.id} runs already")
        if context.sink.kind is SinkKind.MEMORY:
            raise InternalError(f"job {job.id} starts over with every run, and its channels do not")
        self._clear_fence(context.root)
        run = ChannelRun(job, context, ports, drain=drain)
        if run.is_finished():
            run.finished_before()
        else:
            run.begin(self._session(context), self._taker(run.job, context))
        self._jobs[job.id] = run
        self._trees.pop(job.id, None)
        self._federated.pop(job.id, None)

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        self._federated_job(job_id).set_until(queries, end)

    def seen_until(self, job_id: str) -> int | None:
        return self._federated_job(job_id).seen_until()

    def _federated_job(self, job_id: str) -> FederatedRun:
        run = self._jobs[job_id]
        if not isinstance(run, FederatedRun):
            raise InternalError(f"job {job_id} is not split between engines")
        return run

    def _clear_fence(self, root: Path) -> None:
        """The first job of a project waits for an engine that a crash left behind."""
        if root not in self._fences:
            fence = Fence(root / ".headrace")
            fence.clear()
            self._fences[root] = fence

    def _session(self, context: JobContext) -> Session:
        session = self._sessions.get(context.endpoint, context.shuffle_partitions)
        if self._sessions.engine_pid is not None:
            self._fences[context.root].raise_for(self._sessions.engine_pid)
        return session

    def _taker(self, job: Job, context: JobContext) -> Callable[[Path], None] | None:
        on_rows = self._on_rows
        if context.sink.kind is not SinkKind.CONSOLE or on_rows is None:
            return None
        return lambda path: on_rows(job.query, path)

    def stop(self, job_id: str) -> None:
        self._jobs[job_id].stop()

    def status(self, job_id: str) -> JobState:
        return self._jobs[job_id].state

    def progress(self, job_id: str) -> Progress:
        if job_id in self._trees:
            return self._trees[job_id].progress_of(job_id)
        if job_id in self._federated and job_id not in self._jobs:
            return self._federated[job_id].progress_of(job_id)
        return self._jobs[job_id].progress()

    def rows(self, job_id: str) -> list[pa.Table]:
        """What a memory sink holds."""
        if job_id in self._trees:
            return list(self._trees[job_id].tables[job_id])
        if job_id in self._federated:
            return list(self._federated[job_id].tables[job_id])
        return list(self._jobs[job_id].memory)

    def close(self) -> None:
        for run in self._jobs.values():
            if not run.ended:
                run.stop()
        self._sessions.close()
        for fence in self._fences.values():
            fence.lower()
        shutil.rmtree(self._scratch, ignore_errors=True)
