"""`headrace experiment distribution`: paper 002's patterns and policies, on sites of this machine and in a
model with prices from there."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from headrace.errors import UserError
from headrace.experiments.distribution.bars import bars
from headrace.experiments.distribution.cases import SIZES, Setting
from headrace.experiments.distribution.claims import judge
from headrace.experiments.distribution.plots import draw
from headrace.experiments.distribution.report import markdown, text_tables
from headrace.experiments.distribution.results import Results, read_results
from headrace.experiments.distribution.runs import run_all
from headrace.experiments.distribution.tables import make_tables
from headrace.experiments.judged import statement
from headrace.service.experiment_files import (
    ClockName,
    OnProgress,
    Report,
    judged_data,
    report_again,
    run_and_report,
    write_report,
)

__all__ = ["Setting", "report_from", "run", "setting_of"]

NONE = "none"
LEAST_SECONDS, MOST_SECONDS = 5.0, 600.0


def setting_of(
    *,
    quick: bool = False,
    seeds: int | None = None,
    real: str | None = None,
    seconds: float | None = None,
) -> Setting:
    """None: as usual. `real`: sizes of plans with commas between, or `none`. Raises UserError."""
    setting = Setting.small() if quick else Setting()
    if seeds is not None:
        setting = replace(setting, seeds=seeds)
    if real is not None:
        setting = replace(setting, real=_sizes(real))
    if seconds is not None:
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            hint = f"Give {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds."
            raise UserError(f"a run of {seconds:g} s tells nothing", hint=hint)
        setting = replace(setting, seconds=seconds)
    return setting


def _sizes(text: str) -> tuple[int, ...]:
    if text.strip().lower() == NONE:
        return ()
    known = {str(size): size for size in SIZES}
    words = [word.strip() for word in text.split(",")]
    if not all(word in known for word in words):
        hint = f"Some of {', '.join(known)}, with commas between, or {NONE}: --real 5,20"
        raise UserError(f'"{text}" are no sizes of plans', hint=hint)
    return tuple(sorted({known[word] for word in words}))


def run(setting: Setting, out: Path, clock: ClockName, on_progress: OnProgress) -> Report:
    return run_and_report(
        out,
        setting.command,
        clock,
        lambda tick: run_all(setting, out, tick, on_progress),
        Results,
        _write,
    )


def report_from(file: Path, out: Path) -> Report:
    return report_again(file, out, read_results, _write)


def _write(results: Results, out: Path) -> Report:
    tables = make_tables(results)
    claims, judged = judge(tables), bars(tables)
    data = judged_data("distribution", results.made, claims, judged) | asdict(tables)
    files = write_report(out, data, markdown(results, tables, claims, judged))
    shown = text_tables(tables, claims, judged)
    return Report(shown, statement(claims), data, (*files, *draw(tables, out)))
