"""`headrace experiment weaving`: paper 000's optimisers."""

from __future__ import annotations

import time
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
    CLOCKS,
    ClockName,
    OnProgress,
    Report,
    keep_results,
    kept_text,
    made_by,
    make_folder,
    write_report,
)

__all__ = ["Setting", "report_from", "run"]


def run(setting: Setting, out: Path, clock: ClockName, on_progress: OnProgress) -> Report:
    make_folder(out)
    started = time.perf_counter()
    rows = run_all(setting, CLOCKS[clock], on_progress)
    seconds = time.perf_counter() - started
    results = Results(rows, setting.readings, made_by(setting.command, clock, seconds))
    keep_results(out, results.to_json())
    return _write(results, out)


def report_from(file: Path, out: Path) -> Report:
    """The same report from an earlier run's results."""
    results = read_results(kept_text(file), str(file))
    make_folder(out)
    return _write(results, out)


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
