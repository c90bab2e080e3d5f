"""`headrace experiment placement`: paper 001's planners, and ours."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from headrace.experiments.judged import statement
from headrace.experiments.placement.bars import bars
from headrace.experiments.placement.board import Board
from headrace.experiments.placement.cases import Setting
from headrace.experiments.placement.claims import judge
from headrace.experiments.placement.judgement import Evidence
from headrace.experiments.placement.plots import draw
from headrace.experiments.placement.report import markdown, text_tables
from headrace.experiments.placement.results import Results, read_results
from headrace.experiments.placement.runs import run_all
from headrace.experiments.placement.tables import make_tables
from headrace.service.experiment_files import (
    ClockName,
    OnProgress,
    Report,
    judged_data,
    report_again,
    run_and_report,
    write_report,
)

__all__ = ["Setting", "report_from", "run"]


def run(setting: Setting, out: Path, clock: ClockName, on_progress: OnProgress) -> Report:
    return run_and_report(
        out,
        setting.command,
        clock,
        lambda tick: run_all(setting, tick, on_progress),
        Results,
        _write,
    )


def report_from(file: Path, out: Path) -> Report:
    return report_again(file, out, read_results, _write)


def _write(results: Results, out: Path) -> Report:
    tables = make_tables(results)
    claims = judge(Evidence(Board(results), tables))
    data = judged_data("placement", results.made, claims, bars(tables)) | asdict(tables)
    files = write_report(out, data, markdown(results, tables, claims))
    return Report(text_tables(tables, claims), statement(claims), data, (*files, *draw(tables, out)))
