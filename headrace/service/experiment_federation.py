"""`headrace experiment federation`: paper 004's optimiser, and what its splits really do on this machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path

from headrace.errors import UserError
from headrace.experiments.federation.bars import bars
from headrace.experiments.federation.board import Board
from headrace.experiments.federation.cases import KNOWN_SPLITS, QUERIES, Setting
from headrace.experiments.federation.claims import judge
from headrace.experiments.federation.plots import draw
from headrace.experiments.federation.report import markdown, text_tables
from headrace.experiments.federation.results import Results, read_results
from headrace.experiments.federation.runs import run_all
from headrace.experiments.federation.tables import make_tables
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

MOST_ROWS = 100_000
"""A second: a window of five minutes of more does not fit the memory that DuckDB is given."""


def setting_of(
    *,
    quick: bool = False,
    rates: str | None = None,
    queries: str | None = None,
    splits: str | None = None,
    costs: str | None = None,
    limit: float | None = None,
) -> Setting:
    """Lists are names or numbers with commas between; None: as usual. Raises UserError."""
    setting = Setting.small() if quick else Setting()
    if rates is not None:
        setting = replace(setting, rates=_rates(rates))
    if queries is not None:
        setting = replace(setting, queries=_names(queries, "query", QUERIES))
    if splits is not None:
        setting = replace(setting, splits=_names(splits, "split", KNOWN_SPLITS))
    if costs is not None:
        setting = replace(setting, costs=costs)
    return setting if limit is None else replace(setting, limit=limit)


def _rates(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= MOST_ROWS for word in words):
        hint = f"Whole numbers from 1 to {MOST_ROWS:,}, with commas between: --rates 1000,20000"
        raise UserError(f'"{text}" are no rates', hint=hint)
    return tuple(sorted({int(word) for word in words}))


def _names(text: str, what: str, known: Collection[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(word.strip().lower() for word in text.split(",")))
    for name in names:
        if name not in known:
            raise UserError(f'there is no {what} "{name}"', hint=f"There are: {', '.join(known)}.")
    return names


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
    tables = make_tables(Board(results))
    claims, judged = judge(tables), bars(tables)
    data = judged_data("federation", results.made, claims, judged) | asdict(tables)
    files = write_report(out, data, markdown(results, tables, claims, judged))
    shown = text_tables(tables, claims, judged)
    return Report(shown, statement(claims), data, (*files, *draw(tables, out)))
