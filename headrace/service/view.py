"""A run as rows to show: the same facts for the live table, the plain lines and `--json`."""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

from headrace.runtime.executor import ENDED, JobState
from headrace.service.compared import SiteComparison
from headrace.service.run import Outcome, Snapshot, Watched
from headrace.units import format_instant

WAITING = "waiting"


class JobRow(TypedDict):
    """One query at one moment. None: never observed."""

    job: str
    site: str
    tree: str | None
    """None: a job of its own."""
    state: str
    ended: bool
    batch: int | None
    input_rows: int
    """Also by earlier starts."""
    input_total: int | None
    share: float | None
    """Part of the input that is read, 0 to 1, where its size is known."""
    rows_per_second: float | None
    output_rows: int
    late_rows: int
    lag_seconds: float | None
    watermark: str | None
    valid_from: str | None
    """It gives the windows that start then or later. None: all of them."""
    error: str
    notes: list[str]


class RunData(TypedDict):
    seconds: float
    exit_code: int
    interrupted: bool
    failures: dict[str, str]
    notes: list[str]
    jobs: list[JobRow]
    costs: list[SiteComparison]
    """What each site should have taken, and took."""


def job_rows(snapshot: Snapshot) -> list[JobRow]:
    return [_row(watched) for watched in snapshot.jobs]


def run_data(outcome: Outcome) -> RunData:
    return RunData(
        seconds=round(outcome.last.seconds, 3),
        exit_code=outcome.exit_code,
        interrupted=outcome.interrupted,
        failures=dict(outcome.failures),
        notes=list(outcome.notes),
        jobs=job_rows(outcome.last),
        costs=list(outcome.costs),
    )


def count_states(rows: list[JobRow]) -> dict[str, int]:
    """How many queries are in each state, in the order of a job's life."""
    counts = Counter(row["state"] for row in rows)
    return {state: counts[state] for state in (WAITING, *map(str, JobState)) if counts[state]}


def rows_read(rows: list[JobRow]) -> int:
    """Rows that were read, once for all members of a tree."""
    by_tree = {row["tree"]: row["input_rows"] for row in rows if row["tree"] is not None}
    return sum(by_tree.values()) + sum(row["input_rows"] for row in rows if row["tree"] is None)


def total_share(rows: list[JobRow]) -> float | None:
    """Part of all the work that is done: the mean over queries, an ended one counting whole. None when a
    running job's input has no known size."""
    if not rows or any(r["share"] is None and not r["ended"] and r["state"] != WAITING for r in rows):
        return None
    return sum(1.0 if r["ended"] else (r["share"] or 0.0) for r in rows) / len(rows)


def _row(watched: Watched) -> JobRow:
    p = watched.progress
    share = None
    if p is not None and p.input_total:
        share = min(1.0, p.rows_read / p.input_total)
    return JobRow(
        job=watched.job,
        site=watched.site,
        tree=watched.tree,
        state=p.state.value if p else WAITING,
        ended=p is not None and p.state in ENDED,
        batch=p.batch if p else None,
        input_rows=p.rows_read if p else 0,
        input_total=p.input_total if p else None,
        share=share,
        rows_per_second=p.rows_per_second if p else None,
        output_rows=p.output_rows if p else 0,
        late_rows=p.late_rows if p else 0,
        lag_seconds=None if p is None or p.lag is None else p.lag / 1e6,
        watermark=None if p is None or p.watermark is None else format_instant(p.watermark),
        valid_from=None if p is None or p.valid_from is None else format_instant(p.valid_from),
        error=p.error if p else "",
        notes=list(p.notes) if p else [],
    )
