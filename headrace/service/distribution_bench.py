"""Plans of paper 002 run on sites of this machine: Spark Connect servers, a core each, with channels between.

All sites share the cores that there are, so what is measured is what each site takes: CPU seconds of its
processes, and the rows that come out. Only where no more sites than cores are wanted, each is given a core
for itself (`pinned`), and throughput is what the clock says.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

import psutil

from headrace.catalog.model import Project, SinkKind
from headrace.errors import EngineError
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.planners.distribution.problem import Problem, Table
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import ENDED, JobState, Progress
from headrace.runtime.results import read_results
from headrace.runtime.sites import Unit
from headrace.runtime.spark.health import Checker
from headrace.runtime.spark.servers import Server, Starting, Wanted, free_ports, read
from headrace.runtime.spark.sites import SitesExecutor
from headrace.service.channel_layout import channel_context, enlist_readers, ports_of
from headrace.service.distribution_feed import Feeder
from headrace.service.distribution_jobs import Pace, channel_plan, project_of, whole_plans

_LOOK = 0.25
_START_SECONDS = 180.0
_BEGIN_SECONDS = 300.0
_DRAIN_SECONDS = 300.0
_STOP_SECONDS = 300.0
_AHEAD = 1.0
"""Windows of event time that are there before the first job starts."""
_IN_TIME = 1.2
"""Times the trigger: a job whose batches take longer has not caught up with what was there before it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What was seen at one time. `rows_in` is what was fed; CPU seconds are by site."""

    at: float
    rows_in: int
    rows_out: int
    cpu: Mapping[str, float]
    own_cpu: float
    """Of this process, which is the manager."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A plan that ran for a while."""

    moments: tuple[Moment, ...]
    progress: Mapping[str, Progress]
    """Of every job, at the end."""
    batches: Mapping[str, int]
    """That each job has done meanwhile."""

    @property
    def seconds(self) -> float:
        return self.moments[-1].at - self.moments[0].at

    @property
    def rows_in(self) -> int:
        return self.moments[-1].rows_in - self.moments[0].rows_in

    @property
    def rows_out(self) -> int:
        return self.moments[-1].rows_out - self.moments[0].rows_out

    @property
    def cpu(self) -> dict[str, float]:
        """CPU seconds of each site."""
        first, last = self.moments[0].cpu, self.moments[-1].cpu
        return {site: last[site] - first[site] for site in first}

    @property
    def state_rows(self) -> int:
        return sum(one.state_rows or 0 for one in self.progress.values())

    @property
    def batch_seconds(self) -> float:
        """Of the slowest job's last batch."""
        return max((one.batch_millis or 0) / 1000 for one in self.progress.values())


class Ground:
    """The sites, for one run after another. Sites have the names of the problems': s1, s2, ... They are never
    let go: whatever ends this process ends them (`runtime/spark/servers.py`)."""

    def __init__(self, folder: Path, sites: int, memory: str = "700m") -> None:
        self.folder, self._count, self._memory = folder, sites, memory
        self._runs = 0
        self._stack = contextlib.ExitStack()
        self.servers: dict[str, Server] = {}
        self.executor = SitesExecutor(os.environ, fresh=fresh)

    def __enter__(self) -> Ground:
        with contextlib.ExitStack() as stack:
            wanted = [
                Wanted(f"s{number}", self.sites_folder / f"s{number}", port, self._memory)
                for number, port in enumerate(free_ports(self._count), start=1)
            ]
            # Closed in reverse: sessions are ended before their servers.
            begun = [stack.enter_context(Starting(one, os.environ)) for one in wanted]
            stack.callback(self.executor.close)
            self.servers = {one.wanted.name: _answering(one) for one in begun}
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def sites_folder(self) -> Path:
        return self.folder / "sites"

    @property
    def endpoints(self) -> dict[str, str]:
        return {name: server.address for name, server in self.servers.items()}

    def begin(self, problem: Problem, pieces: Mapping[str, str], at: Table, pace: Pace) -> Running:
        """Feed and start the plan, in a folder of its own; returns once every job has done a batch."""
        self._runs += 1
        root = self.folder / f"run-{self._runs}"
        shutil.rmtree(root, ignore_errors=True)
        project = project_of(problem, root, self.endpoints, pace)
        running = Running(self, project, channel_plan(problem, pieces, at, pace), problem, pace)
        try:
            running.start_all()
        except BaseException:
            running.stop()
            raise
        return running

    @contextlib.contextmanager
    def pinned(self) -> Iterator[None]:
        """Each site has a core for itself, in turn, until the end."""
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        try:
            for number, server in enumerate(self.servers.values()):
                _pin(server, cores[number % len(cores) :][:1] if cores else [])
            yield
        finally:
            for server in self.servers.values():
                _pin(server, cores)


def fresh() -> str:
    return str(uuid.uuid4())


def _answering(begun: Starting) -> Server:
    """The server, once it answers. Raises EngineError."""
    address, deadline = f"sc://127.0.0.1:{begun.wanted.port}", time.monotonic() + _START_SECONDS
    ask = Checker(time.monotonic, fresh)
    while time.monotonic() < deadline:
        begun.check_alive()
        server = read(begun.wanted.folder)
        if server is not None and ask.check(address, _START_SECONDS).answers:
            return server
        time.sleep(_LOOK)
    raise EngineError(f"{begun.wanted.name} did not answer within {_START_SECONDS:.0f} s")


def _pin(server: Server, cores: Sequence[int]) -> None:
    """Threads that come later are made by these, and inherit it."""
    process = server.process()
    if process is None or not cores:
        return
    for thread in process.threads():
        with contextlib.suppress(OSError):
            os.sched_setaffinity(thread.id, cores)


@dataclass(slots=True)
class Running:
    """A plan that runs. `at` changes when jobs are moved."""

    ground: Ground
    project: Project
    plan: ChannelPlan
    problem: Problem
    pace: Pace
    feeder: Feeder = field(init=False)
    at: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        streams = [stream.id for stream in self.problem.streams]
        ahead = _AHEAD * self.pace.window
        self.feeder = Feeder(self.project.root / "in", streams, self.pace.rate, self.pace.trigger / 2, ahead)
        self.at = {job.id: job.site for job in self.plan.jobs}

    # -- start and stop -------------------------------------------------------------------------------

    def start_all(self) -> None:
        enlist_readers(self.project, self.plan)
        self.feeder.start()
        for job in self.plan.jobs:
            self.start(job.id, job.site)
        self.until(lambda: all(one.batch is not None for one in self.progress().values()), _BEGIN_SECONDS)

    def start(self, job: str, site: str, *, drain: bool = False) -> None:
        placed = replace(self.plan.job(job), site=site)
        context = channel_context(self.project, self.plan, placed)
        context.results.mkdir(parents=True, exist_ok=True)
        ports = ports_of(self.project, self.plan, placed)
        self.ground.executor.start_channel(placed, context, ports, drain=drain)
        self.at[job] = site

    def units(self) -> dict[str, Unit]:
        """The jobs as moves see them: the same at every site, but for its endpoint."""

        def unit(job: ChannelJob) -> Unit:
            return Unit(
                job,
                lambda site: channel_context(self.project, self.plan, replace(job, site=site)),
                ports=lambda: ports_of(self.project, self.plan, job),
            )

        return {job.id: unit(job) for job in self.plan.jobs}

    def progress(self) -> dict[str, Progress]:
        return {job.id: self.ground.executor.progress(job.id) for job in self.plan.jobs}

    def until(self, done: Callable[[], bool], seconds: float) -> None:
        """Raises EngineError where a job fails, or it takes longer."""
        deadline = time.monotonic() + seconds
        while not done():
            failed = [one for one in self.progress().values() if one.state is JobState.FAILED]
            if failed:
                raise EngineError(f"{failed[0].job} failed", detail=failed[0].error)
            if time.monotonic() > deadline:
                raise EngineError(f"the plan does not get on within {seconds:.0f} s")
            time.sleep(_LOOK)

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # it never began
            self.feeder.stop()
        # Readers first: a maker that ends while it is read would be waited for.
        for job in reversed(self.plan.jobs):
            with contextlib.suppress(KeyError):
                self._stop(job.id)
        shutil.rmtree(self.project.root, ignore_errors=True)

    def _stop(self, job: str) -> None:
        """Also one in the midst of a long batch: the next plan has jobs of the same names."""
        deadline = time.monotonic() + _STOP_SECONDS
        self.ground.executor.stop(job)
        while self.ground.executor.status(job) not in ENDED and time.monotonic() < deadline:
            self.ground.executor.stop(job)

    def settle(self, seconds: float, most: float) -> None:
        """Until every job has caught up with what came while it started, and so many seconds more; or until
        the most that is waited for, where one never does."""
        deadline = time.monotonic() + most
        while time.monotonic() < deadline and not self.in_time():
            self._check()
            time.sleep(_LOOK)
        self.watch(min(seconds, max(1.0, deadline - time.monotonic())))

    def in_time(self) -> bool:
        """Whether every job's last batch took no longer than there is until the next."""
        return all(map(self._in_time, self.progress().values()))

    def _in_time(self, seen: Progress) -> bool:
        millis = seen.batch_millis
        return (seen.batch or 0) > 0 and millis is not None and millis <= _IN_TIME * 1000 * self.pace.trigger

    # -- measuring ------------------------------------------------------------------------------------

    def watch(self, seconds: float, step: float = 0.5) -> Seen:
        """Look twice a second."""
        before = {name: one.batch or 0 for name, one in self.progress().items()}
        moments = [self.moment()]
        began = moments[0].at
        while moments[-1].at - began < seconds:
            time.sleep(max(0.0, began + step * len(moments) - time.monotonic()))
            self._check()
            moments.append(self.moment())
        after = self.progress()
        batches = {name: (one.batch or 0) - before[name] for name, one in after.items()}
        return Seen(tuple(moments), after, batches)

    def _check(self) -> None:
        failed = [one for one in self.progress().values() if one.state is JobState.FAILED]
        if failed:
            raise EngineError(f"{failed[0].job} failed", detail=failed[0].error)

    def moment(self) -> Moment:
        seen = self.progress()
        out = sum(seen[job.id].output_rows for job in self.plan.jobs if job.query is not None)
        fed = int(self.feeder.until * self.pace.rate) * len(self.problem.streams)
        used = {site: _cpu_of(self.ground.servers[site]) for site in (one.id for one in self.problem.sites)}
        own = psutil.Process().cpu_times()
        return Moment(time.monotonic(), fed, out, used, own.user + own.system)

    # -- the answer -----------------------------------------------------------------------------------

    def drained(self) -> tuple[int, int, int]:
        """Stop feeding and read to the end. Rows that are right, that are missing, and that are too many, by
        a batch evaluation of the same input."""
        self.feeder.stop()
        for job in reversed(self.plan.jobs):
            self.ground.executor.stop(job.id)
        for job in self.plan.jobs:
            self.start(job.id, self.at[job.id], drain=True)
        self.until(lambda: all(one.state in ENDED for one in self.progress().values()), _DRAIN_SECONDS)
        rows = self.feeder.tables()
        right = missing = extra = 0
        for query, plan in whole_plans(self.problem, self.pace).items():
            wanted = evaluate(plan, rows)
            found = read_results(self.project.root / "results" / query, SinkKind.PARQUET, plan.schema)
            differs = multiset_difference(wanted, found)
            right += wanted.num_rows - len(differs.missing)
            missing, extra = missing + len(differs.missing), extra + len(differs.extra)
        return right, missing, extra


def _cpu_of(server: Server) -> float:
    """CPU seconds of a server and its workers so far."""
    process = server.process()
    if process is None:
        raise EngineError(f"the server of {server.name} has died", detail=str(server.folder / "log"))
    total = 0.0
    with contextlib.suppress(psutil.Error):
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            total += times.user + times.system
    return total
