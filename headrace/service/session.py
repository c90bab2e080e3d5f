"""One `headrace run`, from the project to the outcome: plan, lock, data, engine, runner.

Order matters: wrong queries, endless streams and foreign results folders are found before anything is
written. What is deployed, and so what has changed, is known only from the state file, so it is found by the
runner, after the lock is taken. The engine, which takes seconds to start, comes last.
"""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import psutil
import pyarrow.parquet as pq

from headrace.catalog.model import Project, Site
from headrace.plan.logical import LogicalPlan
from headrace.plan.placed import PlacedPlan
from headrace.runtime.executor import Executor
from headrace.runtime.sites import Ways
from headrace.runtime.spark.fence import Fence
from headrace.runtime.spark.remote import Ledger
from headrace.service.admission import over_lines
from headrace.service.data import OnData, materialise_all
from headrace.service.distributing import units
from headrace.service.fleet import Fleet
from headrace.service.folders import remove_rehearsals
from headrace.service.gathering import EachRound, Gathering, gathering
from headrace.service.layout import jobs_folder, lock_file, own_folder, state_file
from headrace.service.meter import Meter
from headrace.service.moments import now
from headrace.service.moving import (
    disk_executor,
    moves_of,
    settle_asked,
    settle_open,
    spark_fence,
    spark_ways,
)
from headrace.service.planning import plan_jobs
from headrace.service.probing import REMOTE
from headrace.service.refusals import plans_of, refuse_endless, refuse_results
from headrace.service.rows import Rows, rows_of
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.service.spreading import used_sites
from headrace.service.storages import sweep_storages
from headrace.state.lock import DRAINING, RUNNING, RunLock
from headrace.state.moves import Moves
from headrace.state.store import Store

OnRows = Callable[[str, Rows], None]
"""(query, rows) of a console sink, as they are committed."""
PlanOf = Callable[[str], LogicalPlan]


def spark_executor(
    project: Project,
    placed: PlacedPlan,
    environ: Mapping[str, str],
    on_rows: OnRows,
    plan_of: PlanOf | None = None,
) -> Executor:
    """The real engine. Imported here, and only now: pyspark takes a second to import. `plan_of` knows also
    the queries that come later."""
    from headrace.runtime.spark.sites import SitesExecutor

    plan_of = plan_of or placed.plan_of

    def take(query: str, file: Path) -> None:
        table = pq.read_table(file)
        on_rows(query, rows_of(query, table, plan_of(query), limit=0))

    return SitesExecutor(environ, fresh=_fresh, memory=_memory(project, placed), on_rows=take)


def _fresh() -> str:
    return str(uuid.uuid4())


def site_ways(project: Project, executor: Executor, master: str | None) -> Ways | None:
    """How jobs are moved. None: not at all, since all of them run in one other Spark."""
    from headrace.runtime.spark.sites import SitesExecutor

    if master is not None or not isinstance(executor, SitesExecutor):
        return None
    return spark_ways(project, executor)


def clear_remote(project: Project, moves: Moves) -> None:
    """What a killed run has left at sites is ended, and its moves are settled. Raises where a job may still
    run there: then nothing may be started, nor removed."""
    ledger = Ledger(own_folder(project), _fresh)
    if not (moves.open_moves() or moves.any_asked() or ledger.left() or ledger.buried()):
        return
    with disk_executor() as executor:
        spark_fence(project, executor).clear_all()
        ways = spark_ways(project, executor)
        settle_open(project, moves, ways)
        settle_asked(project, moves, ways)


def _memory(project: Project, placed: PlacedPlan) -> str:
    """Memory for the in-process engine: what its site says, but at most half of what the machine has. Of
    several, the least; where no job is at one, jobs may be moved to any that there is."""
    names = [unit.site for unit in units(placed)]
    found = _in_process(project.sites[name] for name in names) or _in_process(used_sites(project))
    found = found or _in_process(project.sites.values())
    return f"{min((*found, psutil.virtual_memory().total // 2)) >> 20}m"


def _in_process(sites: Iterable[Site]) -> list[int]:
    return [site.memory for site in sites if not site.endpoint.startswith(REMOTE)]


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told what happens."""

    snapshot: Callable[[Snapshot], None] = lambda _: None
    data: OnData = lambda stream, done, total: None
    rows: OnRows = lambda query, rows: None
    note: Callable[[str], None] = lambda _: None


def run_project(
    project: Project,
    options: Options,
    environ: Mapping[str, str],
    only: Sequence[str] = (),
    watcher: Watcher | None = None,
    each_round: EachRound | None = None,
) -> Outcome:
    """Run the project's queries until they are drained or the process is told to stop. `each_round` is called
    once a round with what runs; without it, statistics are gathered."""
    watcher = watcher or Watcher()
    options = replace(options, only=(*options.only, *only))
    _refuse(project, options)
    own_folder(project).mkdir(parents=True, exist_ok=True)
    doing = DRAINING if options.drain else RUNNING
    with RunLock(lock_file(project), doing), Store(state_file(project)) as store, moves_of(project) as moves:
        # An engine that a killed run left behind may still write; nothing is made or removed beside it.
        Fence(own_folder(project)).clear()
        clear_remote(project, moves)
        remove_rehearsals(jobs_folder(project))
        sweep_storages(project)
        with gathering(options.master, watcher.note) as gathered:
            looks = each_round or (lambda project, fleet: _gather(gathered, options, project, fleet))
            return _run(project, options, environ, store, moves, watcher, looks)


def _gather(gathered: Gathering, options: Options, project: Project, fleet: Fleet) -> None:
    if not options.drain:
        gathered.look(project, fleet)


def _refuse(project: Project, options: Options) -> None:
    """What is wrong whatever is deployed."""
    if not project.queries:
        return
    plans = plans_of(plan_jobs(project, options.only))
    if options.drain:
        refuse_endless(project, plans)
    refuse_results(project, plans)


def _run(
    project: Project,
    options: Options,
    environ: Mapping[str, str],
    store: Store,
    moves: Moves,
    watcher: Watcher,
    each_round: EachRound,
) -> Outcome:
    signals, meter = Signals(), Meter(time.monotonic)

    def watch(snapshot: Snapshot) -> None:
        signals.keep()
        meter.see(snapshot)
        watcher.snapshot(snapshot)

    def make_data(project: Project, placed: PlacedPlan) -> None:
        materialise_all(project, placed, watcher.data)

    hooks = Hooks(watch, watcher.note, make_data, moves=moves, each_round=each_round)
    runner = Runner(project, store, now, time.sleep, options, hooks)
    placed = runner.prepare()
    # The capacities are those of the sites, and say nothing of another Spark.
    warnings = () if options.master else tuple(over_lines(project, placed, runner.channels))
    for text in warnings:
        watcher.note(f"warning: {text}")
    executor = spark_executor(project, placed, environ, watcher.rows, runner.plan_of)
    with signals.calling(runner.request_stop):
        outcome = runner.run(executor, site_ways(project, executor, options.master))
    costs = meter.report(project, runner.deployed(), options.master)
    return replace(outcome, costs=costs, notes=(*warnings, *outcome.notes))


class Signals:
    """The first SIGINT or SIGTERM asks for a clean end; a second SIGINT ends the process as usual."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in self.NUMBERS}
        self._stop = stop
        self.keep()
        try:
            yield
        finally:
            self._stop = None
            for number, handler in before.items():
                signal.signal(number, handler)

    def keep(self) -> None:
        """Take the signals (again): Spark's Python side puts a handler of its own in place on start."""
        if self._stop is not None:
            for number in self.NUMBERS:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None
            signal.signal(signal.SIGINT, signal.default_int_handler)
