"""Spark at several sites, for jobs that move between them: the executor, the rehearsal, and the fence.

The fence, for one site:

    it answers                      every session that Headrace has left there is taken over and ended
    it does not, and is ours        its process is dead, or is killed by its id once its lease is over
    it dies while it is asked to    as one that did not answer
    it does not, and is not ours    its lease is waited for: if it answers meanwhile, see above

A lease is a time, not a proof: a site that is cut off from us and not from the storage could go on after it.
Then it and the new copy are two drivers on one checkpoint, and Spark lets at most one of them have any batch:
entries of its logs (offsets, commits, and the sink's, by which output is published) are made only where there
is none, and the driver that finds one ends with an error. So answers stay right even then. A site
that is back counts as one that answers only once what it was left with is ended.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headrace.catalog.model import FileSource, Format, Source
from headrace.errors import EngineError, HeadraceError, NotSupported
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.ports import Ports
from headrace.runtime.executor import ENDED, JobContext, JobState, Progress
from headrace.runtime.sites import REHEARSAL, GivenUp, Unit
from headrace.runtime.spark.causes import cause_of, is_site_gone
from headrace.runtime.spark.channel_run import ChannelRun
from headrace.runtime.spark.executor import SparkExecutor
from headrace.runtime.spark.federated import FederatedRun
from headrace.runtime.spark.health import Checker, SiteDown, listens
from headrace.runtime.spark.job import JobRun
from headrace.runtime.spark.remote import Ledger, Left, address_of, stop_all, stop_named
from headrace.runtime.spark.servers import Server, kill
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.tree import TreeRun
from headrace.runtime.storage import keep_at

_REHEARSALS = itertools.count(1)
"""So that no two have a folder or a name in common."""
_REHEARSAL_SECONDS = 300.0
_LOOK_SECONDS = 0.05
_STOP_SECONDS = 60.0
_KNOCK_SECONDS = 1.0
_CLOCKS_APART = 2.0
"""Seconds by which the time of a file and that of a process may differ."""


class SitesExecutor(SparkExecutor):
    """A SparkExecutor that writes down which remote sessions it opens, before it opens them, so that the next
    process finds them. Jobs may be started and rehearsed by several threads."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        fresh: Callable[[], str],
        memory: str = "2g",
        on_rows: Callable[[str, Path], None] | None = None,
    ) -> None:
        super().__init__(environ, memory=memory, on_rows=on_rows)
        self._fresh = fresh
        self._lost: set[str] = set()
        """Jobs and queries that were given up with their site; one that was started again since is known."""
        self._endpoint_of: dict[str, str] = {}
        """Where each job was started last. A start that failed changes nothing: it says nothing for sure."""
        self._unsure: set[str] = set()
        """Jobs whose last start has not come back, or only with an error: a reply may have been lost, and its
        query may run, whatever the run before it has come to."""
        self._starting: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        """By endpoint: a session is set up for one start at a time, and a site that hangs holds no other."""

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        with self._begins(job.id, context.endpoint):
            super().start(job, context, drain=drain)

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        with self._begins(tree.id, context.endpoint):
            super().start_tree(tree, context, members, drain=drain)

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        with self._begins(job.id, context.endpoint):
            super().start_federated(job, context, members, drain=drain)

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        with self._begins(job.id, context.endpoint):
            super().start_channel(job, context, ports, drain=drain)

    @contextlib.contextmanager
    def _begins(self, job: str, endpoint: str) -> Iterator[None]:
        with self._starting[endpoint]:
            self._unsure.add(job)
            yield
        self._endpoint_of[job] = endpoint
        self._unsure.discard(job)

    def _session(self, context: JobContext) -> Session:
        endpoint, ledger = context.endpoint, Ledger(context.root / ".headrace", self._fresh)
        before = self.open_session(endpoint)
        self._sessions.get(endpoint, context.shuffle_partitions, ledger)
        if before is not None and self.open_session(endpoint) != before:
            # It was not usable, for whatever reason; what it runs must not meet its next copy.
            deadline = time.monotonic() + _STOP_SECONDS
            stop_all(endpoint, before, lambda: deadline - time.monotonic())
            ledger.end(before)
        return super()._session(context)

    def stop(self, job_id: str) -> None:
        if not self._is_lost(job_id):
            super().stop(job_id)

    def status(self, job_id: str) -> JobState:
        return JobState.FAILED if self._is_lost(job_id) else super().status(job_id)

    def progress(self, job_id: str) -> Progress:
        if self._is_lost(job_id):
            return Progress(job_id, JobState.FAILED, error="its site was lost")
        return super().progress(job_id)

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        if self._is_lost(job_id):
            raise EngineError(f"the site of {job_id} was lost, and nobody has taken it over yet")
        super().set_until(job_id, queries, end)

    def seen_until(self, job_id: str) -> int | None:
        return None if self._is_lost(job_id) else super().seen_until(job_id)

    def _is_lost(self, name: str) -> bool:
        known = name in self._jobs or name in self._trees or name in self._federated
        return name in self._lost and not known

    def open_session(self, endpoint: str) -> str | None:
        """The session of this process at a site: what runs in it is known."""
        return next(iter(self._sessions.sessions(endpoint)), None)

    def running_at(self, endpoint: str) -> list[str]:
        """The jobs that this process has there."""
        here = [name for name, where in self._endpoint_of.items() if where == endpoint]
        return [name for name in here if name in self._jobs and not self._jobs[name].ended]

    def has_stopped(self, job: str, endpoint: str) -> bool:
        """Whether this process started the job there last, and has seen it stop."""
        known = job not in self._unsure and self._endpoint_of.get(job) == endpoint
        run = self._jobs.get(job) if known else None
        return run is not None and run.state in (JobState.STOPPED, JobState.FINISHED)

    def leave(self, endpoint: str) -> None:
        """Give up a site that was lost: nobody waits any more for what its jobs would say."""
        for name in self.running_at(endpoint):
            run = self._jobs.pop(name)
            threading.Thread(target=run.stop, daemon=True).start()
            # A query of a split job that another one takes over from is that one's.
            self._lost |= {
                name,
                *(q for q, other in (*self._trees.items(), *self._federated.items()) if other is run),
            }
            self._trees = {query: tree for query, tree in self._trees.items() if tree is not run}
            self._federated = {query: job for query, job in self._federated.items() if job is not run}
        self._sessions.forget(endpoint)

    # -- rehearsal ----------------------------------------------------------------------------------

    def rehearse(self, unit: Unit, site: str, wanted: Callable[[], bool] = lambda: True) -> None:
        """Run the job at a site over no input, to its end, in a folder of its own. So its session is open,
        its plan is compiled, its Python workers are there with all their packages, and what it writes at the
        site is seen here: all that a start needs, before the job is stopped elsewhere. Raises EngineError or
        UserError where it does not come about, and GivenUp once it is not wanted any more."""
        context = unit.context(site)
        # One that nobody waits for may be on: a site is kept warm.
        number = next(_REHEARSALS)
        folder = context.state.with_name(f"{REHEARSAL}{context.state.name}-{number}")
        shutil.rmtree(folder, ignore_errors=True)
        kept = None if context.storage is None else context.storage / folder.name
        try:
            run = _rehearsal(unit, site, folder, f"-{number}")
            keep_at(folder / "job", kept)
            with self._starting[context.endpoint]:
                session = self._session(context)
                _check_version(session, site)
                if not wanted():
                    raise _given_up(run, site)
                run.begin(session, None)
            _wait(run, site, wanted)
        except HeadraceError:
            raise
        except Exception as error:
            # Spark's client has errors of its own for a server that dies.
            raise EngineError(f"{unit.job.id} cannot run at {site}", detail=cause_of(error)) from error
        finally:
            for left in (folder, *((kept,) if kept is not None else ())):
                shutil.rmtree(left, ignore_errors=True)


def _check_version(session: Session, site: str) -> None:
    import pyspark

    here, there = (version.split(".")[:2] for version in (pyspark.__version__, str(session.version)))
    if here != there:
        raise NotSupported(
            f"site {site} runs Spark {session.version}, and this is {pyspark.__version__}",
            hint="A checkpoint is not handed from one version of Spark to another.",
        )


def _rehearsal(unit: Unit, site: str, folder: Path, number: str = "") -> JobRun:
    unit = replace(unit, job=replace(unit.job, id=f"{unit.job.id}-rehearsal{number}"))
    empty = folder / "nothing"
    empty.mkdir(parents=True)
    context = _over_nothing(unit.context(site), folder / "job", empty)
    if isinstance(unit.job, Job):
        return JobRun(unit.job, context, drain=True)
    if isinstance(unit.job, ChannelJob):
        return _channel_rehearsal(unit.job, context, folder)
    members = {
        name: _over_nothing(member, folder / f"member-{name}", empty)
        for name, member in unit.members(site).items()
    }
    if isinstance(unit.job, FederatedJob):
        return _split_rehearsal(unit.job, context, members)
    return TreeRun(unit.job, context, members, drain=True)


def _split_rehearsal(job: FederatedJob, context: JobContext, members: Mapping[str, JobContext]) -> JobRun:
    """For all windows: what a member hands over to another job says nothing of the site."""
    free = tuple(replace(member, after=None, until=None) for member in job.members)
    return FederatedRun(replace(job, members=free), context, members, drain=True)


def _channel_rehearsal(job: ChannelJob, context: JobContext, folder: Path) -> JobRun:
    """Between channels of its own that have ended, and that nobody reads."""
    inputs = {scan.stream: FileChannel(folder / scan.stream, scan.times) for scan in job.scans}
    for channel in inputs.values():
        channel.end()
    output = None if job.writes is None else FileChannel(folder / job.writes, job.plan.times)
    return ChannelRun(job, context, Ports(inputs, output), drain=True)


def _over_nothing(context: JobContext, state: Path, empty: Path) -> JobContext:
    """The same, with folders of its own, and with streams that have no rows."""
    streams = {
        name: stream.model_copy(update={"source": _nothing(stream.source, empty)})
        for name, stream in context.streams.items()
    }
    return replace(context, streams=streams, state=state, results=state / "results", trigger=0, storage=None)


def _nothing(source: Source, empty: Path) -> Source:
    """Files are read as they will be; any other source as files."""
    if isinstance(source, FileSource):
        return source.model_copy(update={"path": str(empty)})
    return FileSource(path=str(empty), format=Format.PARQUET)


def _wait(run: JobRun, site: str, wanted: Callable[[], bool] = lambda: True) -> None:
    deadline = time.monotonic() + _REHEARSAL_SECONDS
    while run.state not in ENDED:
        if not wanted():
            run.stop()
            raise _given_up(run, site)
        if time.monotonic() > deadline:
            threading.Thread(target=run.stop, daemon=True).start()
            raise EngineError(f"{run.job.id} does not come to its end at {site}")
        time.sleep(_LOOK_SECONDS)
    if run.state is not JobState.FINISHED:
        raise EngineError(f"{run.job.query} cannot run at {site}", detail=run.progress().error)


def _given_up(run: JobRun, site: str) -> GivenUp:
    return GivenUp(f"{run.job.id} at {site} is not wanted any more")


@dataclass(frozen=True, slots=True)
class FenceTimes:
    """Seconds. `patience`: in which a site must answer; `lease`: after which a silent site that is not ours
    is taken for dead; `look`: between two looks at it."""

    patience: float = 10.0
    lease: float = 30.0
    look: float = 0.5


class SparkFence:
    """Makes sure that nothing of a project runs at a site any more. Needs the project's run lock."""

    def __init__(
        self,
        executor: SitesExecutor,
        ledger: Ledger,
        endpoints: Mapping[str, str],
        ours: Callable[[], Iterable[Server]],
        checker: Checker,
        times: FenceTimes | None = None,
    ) -> None:
        """`endpoints` by site; `ours` are the servers that were started on this machine."""
        self._executor, self._ledger, self._endpoints = executor, ledger, endpoints
        self._ours, self._checker, self._times = ours, checker, times or FenceTimes()

    def answers(self, site: str) -> bool:
        endpoint = self._endpoints[site]
        return not is_remote(endpoint) or self._is_back(endpoint)

    def _is_back(self, endpoint: str) -> bool:
        """Whether it answers, and nothing runs there that a site which was only cut off has gone on with."""
        if not self._checker.check(endpoint, self._times.patience).answers:
            return False
        try:
            for left in self._at(endpoint, self._ledger.buried()):
                stop_all(endpoint, left.session, self._left())
                self._ledger.end(left.session)
        except EngineError:
            return False
        return True

    def clear(self, job: str, site: str) -> None:
        """Return once no copy of the job runs there. Raises EngineError where one does not stop."""
        endpoint = self._endpoints[site]
        if not is_remote(endpoint) or self._executor.has_stopped(job, endpoint):
            # This process has one engine of its own, and that of an earlier process has a fence of its own.
            return
        opened = self._executor.open_session(endpoint) or self._executor.running_at(endpoint)
        if not (opened or self._sessions_at(endpoint)):
            # Nothing of the project is there, so a site that is silent need not be waited for.
            return

        def stop() -> None:
            self._end_left(endpoint)
            if job in self._executor.running_at(endpoint):
                self._executor.stop(job)
            if not self._executor.has_stopped(job, endpoint):
                self._stop_own(job, endpoint)

        self._stop_or_bury(site, endpoint, stop)

    def clear_all(self) -> None:
        """No session of an earlier process is left, anywhere."""
        places = {address_of(left, self._endpoints.values()) for left in self._ledger.left()}
        names = {endpoint: site for site, endpoint in self._endpoints.items()}
        for endpoint in sorted(places):
            stop = partial(self._end_left, endpoint)
            self._stop_or_bury(names.get(endpoint, endpoint), endpoint, stop)
        known = self._endpoints.values()
        for endpoint in sorted({address_of(left, known) for left in self._ledger.buried()}):
            self._is_back(endpoint)

    def _stop_or_bury(self, site: str, endpoint: str, stop: Callable[[], None]) -> None:
        """Have it stopped by a site that answers. One that dies meanwhile is as dead as one that was before;
        one that is there again by then, as another process, is asked once more."""
        if not self._ask(endpoint):
            self._bury(site, endpoint)
            return
        try:
            stop()
        except EngineError as error:
            if not self._ask(endpoint):
                self._bury(site, endpoint)
            elif is_site_gone(error):
                stop()
            else:
                raise

    def _ask(self, endpoint: str) -> bool:
        """Whether the site answers. It has the time of its lease to do so, unless it is ours and its process
        is gone: a busy machine keeps servers from answering, and all that one runs dies with it."""
        deadline = self._checker.clock() + (0.0 if self._has_ended(endpoint) else self._times.lease)
        while not self._checker.check(endpoint, self._times.patience).answers:
            if self._checker.clock() >= deadline:
                return False
            time.sleep(self._times.look)
        return True

    def is_dead(self, site: str) -> bool:
        """Whether it is a server of ours whose process is gone. Of another nobody can tell."""
        return self._has_ended(self._endpoints[site])

    def _has_ended(self, endpoint: str) -> bool:
        server = self._server(endpoint)
        # A clock that was set makes a process that lives look like another one; its port does not.
        return server is not None and server.process() is None and not listens(endpoint, _KNOCK_SECONDS)

    def _server(self, endpoint: str) -> Server | None:
        return next((server for server in self._ours() if server.address == endpoint), None)

    def _end_left(self, endpoint: str) -> None:
        mine = self._executor.open_session(endpoint)
        for left in self._sessions_at(endpoint):
            if left.session != mine:
                stop_all(endpoint, left.session, self._left())
                self._ledger.end(left.session)

    def _stop_own(self, job: str, endpoint: str) -> None:
        """A start that failed half-way may have left its query in the session of this process."""
        session = self._executor.open_session(endpoint)
        if session is not None:
            stop_named(endpoint, session, job, self._left())

    def _bury(self, site: str, endpoint: str) -> None:
        """The site is dead, or is made to be. A server of ours that is younger than the sessions has none of
        them: it is one that is just being started again, and is left alone."""
        server, sessions = self._server(endpoint), self._sessions_at(endpoint)
        if server is not None and any(left.since > server.started - _CLOCKS_APART for left in sessions):
            kill(server)
            if server.process() is not None:
                raise SiteDown(site, endpoint, f"process {server.pid} does not end")
        self._executor.leave(endpoint)
        for left in sessions:
            if server is None:
                self._ledger.bury(left)
            else:
                self._ledger.end(left.session)

    def _sessions_at(self, endpoint: str) -> list[Left]:
        return self._at(endpoint, self._ledger.left())

    def _at(self, endpoint: str, sessions: Iterable[Left]) -> list[Left]:
        known = self._endpoints.values()
        return [left for left in sessions if address_of(left, known) == endpoint]

    def _left(self) -> Callable[[], float]:
        """What is left of the time to stop things in: a batch may have to be waited for."""
        deadline = self._checker.clock() + _STOP_SECONDS
        return lambda: deadline - self._checker.clock()


def is_remote(endpoint: str) -> bool:
    return endpoint.startswith("sc://")
