"""`headrace experiment admission`: paper 003's planners, and ours."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from headrace.experiments.admission.bars import bars
from headrace.experiments.admission.board import Board
from headrace.experiments.admission.cases import Setting
from headrace.experiments.admission.claims import judge
from headrace.experiments.admission.judgement import Evidence
from headrace.experiments.admission.plots import draw
from headrace.experiments.admission.report import markdown, text_tables
from headrace.experiments.admission.results import Results, read_results
from headrace.experiments.admission.runs import run_all
from headrace.experiments.admission.tables import make_tables
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
    board = Board(results)
    claims = judge(Evidence(board, tables))
    judged = bars(board)
    data = judged_data("admission", results.made, claims, judged) | asdict(tables)
    files = write_report(out, data, markdown(results, tables, claims, judged))
    shown = text_tables(tables, claims, judged)
    return Report(shown, statement(claims), data, (*files, *draw(tables, out)))
