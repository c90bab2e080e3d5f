"""`headrace experiment weaving`: paper 000's optimisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from headrace.experiments.weaving.claims import Claim, Evidence, judge
from headrace.experiments.weaving.plots import draw
from headrace.experiments.weaving.report import markdown, statement, text_tables
from headrace.experiments.weaving.results import Results, read_results
from headrace.experiments.weaving.runs import Setting, run_all
from headrace.experiments.weaving.tables import Tables, make_tables
from headrace.service.experiment_files import (
    ClockName,
    OnProgress,
    Report,
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
        lambda rows, made: Results(rows, setting.readings, made),
        _write,
    )


def report_from(file: Path, out: Path) -> Report:
    return report_again(file, out, read_results, _write)


def _write(results: Results, out: Path) -> Report:
    tables = make_tables(results)
    claims = judge(Evidence(results, tables))
    data = _data(results, tables, claims)
    text = markdown(results, tables, claims, str(results.made.get("command", "headrace experiment weaving")))
    files = write_report(out, data, text)
    return Report(text_tables(tables, claims), statement(claims), data, (*files, *draw(tables, out)))


def _data(results: Results, tables: Tables, claims: Sequence[Claim]) -> dict[str, object]:
    return {
        "experiment": "weaving",
        "made": dict(results.made),
        "readings": dict(results.readings),
        "statement": statement(claims),
        "claims": [asdict(claim) for claim in claims],
        **asdict(tables),
    }
