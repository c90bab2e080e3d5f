"""Run everything: plans on sites first, then prices from what they took, then the model with these prices.
What is done is kept on the way."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from headrace.experiments.distribution import model, real
from headrace.experiments.distribution.cases import Setting
from headrace.experiments.distribution.prices import DEFAULT, Prices, Taken, errors, fitted
from headrace.experiments.distribution.results import AnyRow, Priced, Ran, Results
from headrace.experiments.processes import run_tasks
from headrace.service.distribution_bench import Ground

Clock = Callable[[], float]
OnProgress = Callable[[int, int], None]
SO_FAR = "results-so-far.json"
WORK = ".headrace-distribution"
"""What runs leave is removed before and after: no name that somebody else might use."""
LOGS = "logs"
"""Logs of the sites, where a run has failed."""
LEAST_POINTS = 12
"""Sites that prices are fitted to; with fewer the default ones stay."""
_LAST = 5
"""Runs after those of the patterns: the moved join and without, and three of redistribution."""
_WORKERS = 2


def run_all(setting: Setting, out: Path, clock: Clock, on_progress: OnProgress) -> tuple[AnyRow, ...]:
    steps = _steps(setting)
    total = steps + len(model.tasks(setting, DEFAULT))
    on_progress(0, total)
    rows: list[AnyRow] = []
    if setting.real:
        rows = _real(setting, out, lambda done: on_progress(done, total))
    priced = prices_of([row for row in rows if isinstance(row, Ran)])
    rows.insert(0, priced)
    tasks = model.tasks(setting, priced.prices.stretched())
    rows += run_tasks(
        tasks,
        model.run_task,
        model.warm_up,
        0 if setting.quick else _WORKERS,
        clock,
        lambda done, _: on_progress(steps + done, total),
    )
    return tuple(rows)


def _steps(setting: Setting) -> int:
    """Runs on sites."""
    return len(real.cases(setting)) + (_LAST if 20 in setting.real else 0)


def _real(setting: Setting, out: Path, on_done: Callable[[int], None]) -> list[AnyRow]:
    rows: list[AnyRow] = []

    def add(row: AnyRow) -> None:
        rows.append(row)
        made = {"command": f"{setting.command} (not all of it)"}
        (out / SO_FAR).write_text(Results(tuple(rows), made).to_json(), encoding="utf-8")
        on_done(len(rows))

    work = out / WORK
    shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
    try:
        with Ground(work.resolve(), setting.sites) as ground:
            real.warm_up(ground, setting)
            for case in real.cases(setting):
                add(real.run_case(ground, case, setting.seconds))
            if 20 in setting.real:
                for moves in (0, setting.moves):
                    add(real.moved_join(ground, setting, moves))
                prices: Prices = prices_of([row for row in rows if isinstance(row, Ran)]).prices
                for row in real.recovered(ground, setting, prices):
                    add(row)
    finally:
        if len(rows) < _steps(setting) or any(getattr(row, "problem", "") for row in rows):
            _keep_logs(work, out / LOGS)
        shutil.rmtree(work, ignore_errors=True)
    return rows


def _keep_logs(work: Path, logs: Path) -> None:
    """What the sites said, where something went wrong: their folders go."""
    logs.mkdir(exist_ok=True)
    for log in sorted(work.glob("sites/*/log")):
        with contextlib.suppress(OSError):
            shutil.copyfile(log, logs / f"{log.parent.name}.log")


def prices_of(ran: Sequence[Ran]) -> Priced:
    """From all sites that had something to do."""
    taken = [
        Taken(count, cpu / row.seconds)
        for row in ran
        if not row.problem
        for count, cpu in zip(row.counts, row.cpu, strict=True)
        if count[1] and cpu > 0
    ]
    if len(taken) < LEAST_POINTS:
        return Priced(DEFAULT, 0, 0.0)
    found = fitted(taken)
    return Priced(found, len(taken), float(f"{np.median(errors(found, taken)):.3g}"))
