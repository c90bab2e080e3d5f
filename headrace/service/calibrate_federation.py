"""`headrace calibrate`, the part about engines: what operators cost on Spark and on DuckDB, and rows on their
way between the two, found by running queries on given engines (federation_cases.py)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headrace import __version__
from headrace.catalog.model import Project, Sink, Site
from headrace.cost.federation import DEFAULTS, FederationCosts
from headrace.cost.fit import Fitted, Run, cost, fit
from headrace.errors import EngineError
from headrace.runtime.executor import ENDED, JobContext, JobState
from headrace.service import federation_cases as cases
from headrace.service.calibrate import is_remote, machine, site_named
from headrace.service.calibration_file import (
    FederationCalibration,
    MeasuredCase,
    load_federation,
    save_federation,
)
from headrace.service.federation_cases import Case
from headrace.service.layout import lock_file, own_folder
from headrace.service.measured import Sampler
from headrace.state.lock import RunLock

if TYPE_CHECKING:
    from headrace.runtime.spark.executor import SparkExecutor

Tell = Callable[[str, int, int], None]
_PATIENCE, _POLL = 300.0, 0.25


@dataclass(frozen=True, slots=True)
class Effort:
    scale: float
    cases: tuple[Case, ...]
    quick: bool
    """Too few cases to tell all prices apart: the defaults are rescaled."""


FULL = Effort(1.0, cases.CASES, quick=False)
QUICK = Effort(0.5, tuple(case for case in cases.CASES if case.name in cases.QUICK), quick=True)


def calibrate_federation(
    project: Project,
    site_name: str,
    environ: Mapping[str, str],
    now: datetime,
    *,
    effort: Effort = FULL,
    tell: Tell = lambda what, done, total: None,
) -> FederationCalibration:
    """Measure a site and keep the figures in the project. Raises UserError as `calibrate` does."""
    site = site_named(project, site_name)
    load_federation(project)
    own_folder(project).mkdir(parents=True, exist_ok=True)
    folder, began = own_folder(project) / "calibrating", time.monotonic()
    with RunLock(lock_file(project)):
        _remove(folder)
        try:
            runs, held_out = _Bench(site, folder, environ, effort, tell).measure()
        finally:
            _remove(folder)
        costs, told = conclude(runs, held_out, quick=effort.quick)
        found = FederationCalibration(
            endpoint=site.endpoint,
            machine=machine(),
            date=now.isoformat(sep=" ", timespec="minutes"),
            headrace=__version__,
            seconds=round(time.monotonic() - began, 1),
            cases=told[:-1],
            held_out=told[-1],
            costs=costs.to_dict(),
        )
        save_federation(project, site_name, found)
    return found


def conclude(
    runs: tuple[Run, ...], held_out: Run, *, quick: bool
) -> tuple[FederationCosts, tuple[MeasuredCase, ...]]:
    """The costs, and what they say of every run; the one that was not in the fit comes last. A kind of work
    that the fit gives nothing for keeps its default: nothing is free."""
    found = rescaled(runs) if quick else fit(runs)
    known = {**DEFAULTS.to_dict(), **{name: price for name, price in found.prices.items() if price > 0}}
    prices = {**found.prices, **{name: known[name] for name in DEFAULTS.to_dict()}}
    told = tuple(
        MeasuredCase(case=r.name, measured=round(r.seconds, 3), predicted=round(cost(r.work, prices), 3))
        for r in (*runs, held_out)
    )
    return FederationCosts.from_dict({name: known[name] for name in DEFAULTS.to_dict()}), told


def rescaled(runs: tuple[Run, ...]) -> Fitted:
    """The defaults, each kind as a whole made dearer or cheaper."""
    prices = {**DEFAULTS.to_dict(), **cases.FIXED}
    grouped = [
        Run(run.name, {kind[0]: cost(_only(run.work, kind), prices) for kind in cases.KINDS}, run.seconds)
        for run in runs
    ]
    factors = fit(grouped)
    new = {name: prices[name] * factors.prices[kind[0]] for kind in cases.KINDS for name in kind}
    return Fitted(new, factors.errors)


def _only(work: Mapping[str, float], names: tuple[str, ...]) -> dict[str, float]:
    return {name: work.get(name, 0.0) for name in names}


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


class _Bench:
    """Runs cases on one engine."""

    def __init__(
        self, site: Site, folder: Path, environ: Mapping[str, str], effort: Effort, tell: Tell
    ) -> None:
        self._site, self._folder, self._environ, self._effort = site, folder, environ, effort
        self._tell, self._done = tell, 0
        self._total = len(cases.WARM_UPS) + len(effort.cases) + 1

    def measure(self) -> tuple[tuple[Run, ...], Run]:
        from headrace.runtime.spark.executor import SparkExecutor

        self._executor: SparkExecutor = SparkExecutor(self._environ)
        try:
            for case in cases.WARM_UPS:
                self._run(case)
            runs = tuple(self._run(case.scaled(self._effort.scale)) for case in self._effort.cases)
            held_out = self._run(cases.HELD_OUT.scaled(self._effort.scale))
        finally:
            self._executor.close()
        self._tell("done", self._total, self._total)
        return runs, held_out

    def _run(self, case: Case) -> Run:
        self._tell(case.name, self._done, self._total)
        self._done += 1
        rows, root = self._folder / "rows", self._folder / f"run-{self._done}"
        _remove(rows)
        cases.write_rows(case, rows)
        project = cases.project_of(case, rows, self._site)
        sampler = Sampler(time.monotonic)
        self._start(case, project, root)
        while self._executor.status(root.name) not in ENDED:
            time.sleep(_POLL)
            if sampler.sample().seconds > _PATIENCE:
                raise EngineError(f'case "{case.name}" took more than {_PATIENCE:.0f} s')
        usage, progress = sampler.sample(), self._executor.progress(root.name)
        if progress.state is not JobState.FINISHED:
            raise EngineError(f'case "{case.name}" failed', detail=progress.error)
        _remove(root)
        seconds = usage.seconds if is_remote(self._site) else usage.cpu_seconds
        return Run(case.name, cases.work_of(case, rows, self._site, (progress.batch or 0) + 1), seconds)

    def _start(self, case: Case, project: Project, root: Path) -> None:
        own, member = self._context(project, root, "job"), self._context(project, root, "q")
        if case.engines == "plain":
            job = cases.job_of(project)
            self._executor.start(type(job)(root.name, job.query, job.site, job.plan), own, drain=True)
        else:
            split = cases.split_of(case, project, root.name)
            self._executor.start_federated(split, own, {"q": member}, drain=True)

    def _context(self, project: Project, root: Path, name: str) -> JobContext:
        return JobContext(
            streams=project.streams,
            tables={},
            sink=Sink(),
            root=self._folder,
            state=root / "jobs" / name,
            results=root / "results" / name,
            endpoint=self._site.endpoint,
            shuffle_partitions=2,
        )
