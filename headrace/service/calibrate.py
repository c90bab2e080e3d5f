"""`headrace calibrate`: what a unit of work costs on a site, found by running trees on it.

The engine is started and warmed up; then each case (calibration_cases.py) is drained. Prices are fitted to
the cases and then tried on one that was not among them. All is done in a folder of its own inside the
project's, which a remote site sees too, and which is removed at the end.

CPU seconds are those of this process and all below it: the JVM, its Python workers, and the publishing of
results. They do not grow when others use the machine, as wall time does.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa

from headrace import __version__
from headrace.catalog.model import Project, Sink, Site
from headrace.cost.fit import Run, cost, fit, rescale
from headrace.cost.windows import DEFAULTS, KEY_VALUES, WindowCosts
from headrace.errors import EngineError, UserError
from headrace.ids import did_you_mean
from headrace.plan.text import format_expr
from headrace.runtime.executor import ENDED, JobContext, JobState
from headrace.runtime.windows.spec import FRAGMENT
from headrace.runtime.windows.tree import key_name, woven_spec
from headrace.service import calibration_cases as cases
from headrace.service.calibration_cases import Case
from headrace.service.calibration_file import Calibration, MeasuredCase, load_calibrations, save_calibration
from headrace.service.calibration_footprint import Footprint, footprint
from headrace.service.doctor import usable_cores
from headrace.service.layout import lock_file, own_folder
from headrace.service.measured import Sampler, Usage
from headrace.state.lock import RunLock
from headrace.units import format_size

if TYPE_CHECKING:
    from headrace.runtime.spark.executor import SparkExecutor

Tell = Callable[[str, int, int], None]
"""(what is being run, how many are done, of how many)"""
_PATIENCE = 240.0
_POLL = 0.25
_SLOW = "Is the machine busy? Try again later, or with --quick."
BUCKETS = 2


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is run."""

    scale: float
    """The size of the cases."""
    cases: tuple[Case, ...]
    warm_ups: int
    quick: bool
    """Too few cases to tell all prices apart: the defaults are rescaled."""


FULL = Effort(1.0, cases.CASES + cases.PLAIN, warm_ups=2, quick=False)
QUICK = Effort(0.5, tuple(c for c in FULL.cases if c.name in cases.QUICK), warm_ups=1, quick=True)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the engine, of a worker, and of a value of a result on its way."""

    engine: float
    worker: float
    result: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was run, and the one case that is kept out of the fit."""

    warm_up: Run
    """With the start of the engine in it."""
    runs: tuple[Run, ...]
    held_out: Run
    memory: Memory


def calibrate(
    project: Project,
    site_name: str,
    environ: Mapping[str, str],
    now: datetime,
    *,
    effort: Effort = FULL,
    tell: Tell = lambda what, done, total: None,
) -> Calibration:
    """Measure a site and keep the figures in the project. Raises UserError for a site that is not there or
    does not answer, and while the project runs, which would be measured too."""
    site = site_named(project, site_name)
    load_calibrations(project)  # A file that cannot be read is told now, not after three minutes.
    own_folder(project).mkdir(parents=True, exist_ok=True)
    folder = own_folder(project) / "calibrating"
    began = time.monotonic()
    with RunLock(lock_file(project)):
        _remove(folder)
        try:
            size = footprint_of(cases.FOOTPRINT, folder, site)
            found = Bench(site, folder, environ, effort, tell).measure()
        finally:
            _remove(folder)
        costs, told = conclude(found, size, quick=effort.quick)
        calibration = Calibration(
            endpoint=site.endpoint,
            machine=machine(),
            date=now.isoformat(sep=" ", timespec="minutes"),
            headrace=__version__,
            unit="wall" if is_remote(site) else "cpu",
            seconds=round(time.monotonic() - began, 1),
            cases=told[:-1],
            held_out=told[-1],
            costs=costs.to_dict(),
        )
        save_calibration(project, site_name, calibration)
    return calibration


def conclude(
    found: Measurements, size: Footprint, *, quick: bool
) -> tuple[WindowCosts, tuple[MeasuredCase, ...]]:
    """The costs, and what they say of every run; the one that was not in the fit comes last."""
    prices = (rescale(found.runs, DEFAULTS.to_dict()) if quick else fit(found.runs)).prices
    costs = WindowCosts(
        **prices,
        engine=max(0.0, found.warm_up.seconds - cost(found.warm_up.work, prices)),
        fragment_state=size.state,
        fragment_memory=size.memory,
        result_memory=found.memory.result,
        worker_memory=found.memory.worker,
        engine_memory=found.memory.engine,
    )
    runs = (*found.runs, found.held_out)
    told = (
        MeasuredCase(case=r.name, measured=round(r.seconds, 3), predicted=round(cost(r.work, prices), 3))
        for r in runs
    )
    return costs, tuple(told)


def memory_of(idle: Usage, trees: Sequence[tuple[Case, Run, Usage]]) -> Memory:
    """A tree that keeps little shows what Spark and its workers take alone; the one with the most results in
    a batch what results add."""
    values, usage = max((_values(run) / case.batches, usage.memory) for case, run, usage in trees)
    result = max(0, usage - idle.memory) / values
    return Memory(float(idle.memory - idle.workers), idle.workers / BUCKETS, result)


def _values(run: Run) -> float:
    return run.work["cell_output"] + KEY_VALUES * run.work["cell"]


def site_named(project: Project, name: str) -> Site:
    if name not in project.sites:
        raise UserError(f'site "{name}" does not exist', hint=did_you_mean(name, project.sites, "sites"))
    return project.sites[name]


def is_remote(site: Site) -> bool:
    return site.endpoint.startswith("sc://")


def machine() -> str:
    """Where it was measured, in one line."""
    parts = (platform.machine(), f"{usable_cores()} cores", format_size(psutil.virtual_memory().total))
    return ", ".join((*parts, f"{platform.system()} {platform.release()}"))


def footprint_of(case: Case, folder: Path, site: Site) -> Footprint:
    """What a fragment row of a usual tree takes."""
    project = cases.project_of(case, folder, site)
    tree = cases.tree_of(project, site)
    spec = woven_spec(tree)
    table = cases.rows_of(case)
    columns = {FRAGMENT: pa.array(cases.fragments(table, case.windows))}
    columns |= {key_name(key): table["k"] for key in tree.shape.keys}
    columns |= {name: table[format_expr(expr)] for name, expr in spec.columns}
    return footprint(spec, pa.table(columns), case.batches)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _prepared(case: Case, folder: Path) -> Mapping[str, float]:
    """Write the rows of a case and count its work. They are gone from memory before memory is measured."""
    table = cases.rows_of(case)
    cases.write_rows(case, table, folder)
    return cases.amounts(case, table)


class Bench:
    """Runs cases on one engine."""

    def __init__(
        self, site: Site, folder: Path, environ: Mapping[str, str], effort: Effort, tell: Tell
    ) -> None:
        self._site, self._folder, self._environ, self._effort = site, folder, environ, effort
        self._tell, self._done = tell, 0
        self._total = effort.warm_ups + len(effort.cases) + (1 if effort.quick else 2)
        self._usages: list[Usage] = []

    def measure(self) -> Measurements:
        from headrace.runtime.spark.executor import SparkExecutor

        self._executor: SparkExecutor = SparkExecutor(self._environ)
        try:
            warm_up, *_ = [self._run(cases.WARM_UP) for _ in range(self._effort.warm_ups)]
            idle = self._usages.pop()
            self._usages.clear()
            trees = tuple(self._run(case) for case in self._cases(plain=False))
            # Before the plain queries: Spark lets workers go that have nothing to do, and new ones cost.
            held_out = self._run(cases.HELD_OUT.scaled(self._effort.scale))
            if not self._effort.quick:
                self._run(cases.PLAIN_WARM_UP)
            runs = trees + tuple(self._run(case) for case in self._cases(plain=True))
        finally:
            self._executor.close()
        self._tell("done", self._total, self._total)
        return Measurements(warm_up, runs, held_out, self._memory(idle, trees))

    def _cases(self, *, plain: bool) -> tuple[Case, ...]:
        return tuple(c.scaled(self._effort.scale) for c in self._effort.cases if c.plain == plain)

    def _memory(self, idle: Usage, runs: Sequence[Run]) -> Memory:
        """A remote site's cannot be seen."""
        if is_remote(self._site):
            return Memory(DEFAULTS.engine_memory, DEFAULTS.worker_memory, DEFAULTS.result_memory)
        return memory_of(idle, list(zip(self._cases(plain=False), runs, self._usages, strict=False)))

    def _run(self, case: Case) -> Run:
        folder = self._folder / "rows"
        _remove(folder)
        work = _prepared(case, folder)
        batches, seconds = self._once(case, folder)
        return Run(case.name, cases.in_batches(work, batches), seconds)

    def _once(self, case: Case, rows: Path) -> tuple[int, float]:
        """How many batches Spark made, and the seconds that counts for this site."""
        self._tell(case.name, self._done, self._total)
        self._done += 1
        root = self._folder / f"run-{self._done}"
        project = cases.project_of(case, rows, self._site)
        sampler = Sampler(time.monotonic)
        name = self._start(case, project, root)
        while self._executor.status(name) not in ENDED:
            time.sleep(_POLL)
            usage = sampler.sample()
            if usage.seconds > _PATIENCE:
                raise EngineError(f'case "{case.name}" took more than {_PATIENCE:.0f} s', hint=_SLOW)
        usage, progress = sampler.sample(), self._executor.progress(name)
        if progress.state is not JobState.FINISHED:
            raise EngineError(f'case "{case.name}" failed', detail=progress.error)
        self._usages.append(usage)
        _remove(root)
        return (progress.batch or 0) + 1, usage.seconds if is_remote(self._site) else usage.cpu_seconds

    def _start(self, case: Case, project: Project, root: Path) -> str:
        name = root.name
        if case.plain:
            job = replace(cases.job_of(project), id=name)
            self._executor.start(job, self._context(project, root, name), drain=True)
        else:
            tree = replace(cases.tree_of(project, self._site), id=name)
            members = {query: self._context(project, root, query) for query in project.queries}
            self._executor.start_tree(tree, self._context(project, root, name), members, drain=True)
        return name

    def _context(self, project: Project, root: Path, name: str) -> JobContext:
        return JobContext(
            streams=project.streams,
            tables={},
            sink=Sink(),
            root=self._folder,
            state=root / "jobs" / name,
            results=root / "results" / name,
            endpoint=self._site.endpoint,
            shuffle_partitions=BUCKETS,
        )
