"""What is shown while a run goes on, on a terminal and elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from headrace.cli.live import LiveView, PlainView, SilentView, most_telling, run_table, view
from headrace.runtime.executor import JobState, Progress
from headrace.service.run import Snapshot, Watched
from headrace.service.view import job_rows


def _snapshot(seconds: float, *progress: Progress | None) -> Snapshot:
    return Snapshot(tuple(Watched(f"q{i}", "local", p) for i, p in enumerate(progress)), seconds)


def _console(*, terminal: bool, height: int = 30) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    made = Console(
        file=file, force_terminal=terminal, width=100, height=height, color_system=None, highlight=False
    )
    return made, file


RUNNING = Progress(
    "q0", JobState.RUNNING, batch=12, input_rows=2500, output_rows=40, late_rows=3, rows_per_second=1234.5,
    lag=1_500_000, input_total=10_000,
)  # fmt: skip
FINISHED = Progress("q1", JobState.FINISHED, batch=2, input_rows=10, output_rows=5)
FAILED = Progress("q2", JobState.FAILED, error="disk full\nat /tmp")


def test_which_view() -> None:
    terminal, _ = _console(terminal=True)
    file, _ = _console(terminal=False)
    assert type(view(terminal, quiet=False)) is LiveView
    assert type(view(file, quiet=False)) is PlainView
    assert type(view(terminal, quiet=True)) is SilentView


def test_the_table_has_every_number() -> None:
    console, file = _console(terminal=False)
    console.print(run_table(job_rows(_snapshot(1.0, RUNNING, FINISHED, None)), bars=False))
    head, *lines = (" ".join(line.split()) for line in file.getvalue().splitlines())
    assert head == "query state batch rows in rows/s rows out late lag read"
    assert lines == ["q0 running 12 2,500 1,234 40 3 1.5 s 25%", "q1 finished 2 10 5 0", "q2 waiting"]


def test_plain_lines_are_few() -> None:
    """The first look, one every five seconds, and one when a job ends."""
    console, file = _console(terminal=False)
    with PlainView(console) as shown:
        for half_seconds in range(24):
            ended = FINISHED if half_seconds >= 5 else None
            shown.show(_snapshot(half_seconds / 2, RUNNING, ended))
    lines = [" ".join(line.split()) for line in file.getvalue().splitlines()]
    assert lines == [
        "0.0 s 1 waiting, 1 running; 2,500 rows in, 40 rows out, 3 late",
        "2.5 s q1: finished, 10 rows in, 5 rows out, 0 late",
        "5.0 s 1 running, 1 finished; 2,510 rows in, 45 rows out, 3 late",
        "10.0 s 1 running, 1 finished; 2,510 rows in, 45 rows out, 3 late",
    ]


def test_a_failure_is_one_plain_line() -> None:
    console, file = _console(terminal=False)
    with PlainView(console) as shown:
        shown.show(_snapshot(1.0, FAILED))
    assert "q0: failed, 0 rows in, 0 rows out, 0 late: disk full\n" in file.getvalue()


def test_the_live_table_fits_the_terminal() -> None:
    console, file = _console(terminal=True, height=12)
    with LiveView(console) as shown:
        shown.data("readings", 5, 10)
        shown.show(_snapshot(3.0, *([None] * 40), RUNNING, FAILED))
    text = file.getvalue()
    assert "data of stream readings: 5 of 10 rows" in text
    assert "q40" in text
    assert "q41" in text
    assert "... and 36 more" in text
    assert "40 waiting, 1 running, 1 failed" in text


def test_what_is_shown_when_not_all_fits() -> None:
    states = (FINISHED, None, RUNNING, None, FAILED, RUNNING)
    rows = job_rows(_snapshot(1.0, *states))
    assert [r["job"] for r in most_telling(rows, 3)] == ["q2", "q4", "q5"]
    assert [r["job"] for r in most_telling(rows, 4)] == ["q0", "q2", "q4", "q5"]
    assert len(most_telling(rows, 99)) == 6


def test_the_tree_of_a_query_is_shown_where_there_is_one() -> None:
    console, file = _console(terminal=False)
    console.width = 140
    added = replace(RUNNING, valid_from=60_000_000)
    rows = job_rows(
        Snapshot((Watched("q0", "local", added, "tree-1"), Watched("q1", "local", FINISHED)), 1.0)
    )
    console.print(run_table(rows, bars=False))
    head, first, second = (" ".join(line.split()) for line in file.getvalue().splitlines())
    assert head.endswith("lag read tree")
    assert first.endswith("25% tree-1 valid from 1970-01-01 00:01:00")
    assert "tree" not in second


@pytest.mark.parametrize("terminal", [False, True])
def test_notes_are_shown_at_once(terminal: bool) -> None:
    console, file = _console(terminal=terminal)
    with view(console, quiet=False) as shown:
        shown.note("new runs in tree-1 with a")
        assert "new runs in tree-1 with a\n" in file.getvalue()
