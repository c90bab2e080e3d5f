"""The numbers of Figures 4 to 7, and of ours beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.experiments.admission.board import Board
from headrace.experiments.admission.cases import (
    BATCHING,
    BOUND,
    DEPLOYED,
    EFFICIENCY,
    OFFLINE,
    POINTS,
    SMALL,
    SQPR,
    TIMES_HOSTS,
    TIMES_WAYS,
    Point,
    Run,
    setup_name,
)
from headrace.experiments.admission.results import Results, Row

TIMED_FIGURES = (TIMES_HOSTS, TIMES_WAYS)
SMALL_NAME = setup_name(SMALL)
EPOCHS = 5
"""Figure 7(a) looks five times."""


@dataclass(frozen=True, slots=True)
class Line:
    """One planner at one point of a figure, means over the seeds."""

    figure: str
    group: str
    x: float
    planner: str
    label: str
    batch: int
    seeds: int
    queries: int
    admitted: float
    of_bound: float | None
    """% of the optimistic bound, seed by seed; None: the bound was not run here."""
    mean_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Time:
    """One point of Figure 6."""

    figure: str
    x: float
    planner: str
    mean_ms: float
    median_ms: float
    most_ms: float
    queries: int
    proven: int
    fit: int


@dataclass(frozen=True, slots=True)
class Load:
    """Figures 7(b) and 7(c): all hosts of all seeds, sorted."""

    planner: str
    early: bool
    submitted: int
    cpu: tuple[float, ...]
    """Shares of what a host has."""
    network: tuple[float, ...]
    """Sent and received."""

    @property
    def mean_cpu(self) -> float:
        return float(np.mean(self.cpu))

    @property
    def cpu_spread(self) -> float:
        """One standard deviation, in points of utilisation."""
        return 100 * float(np.std(self.cpu))

    @property
    def network_spread(self) -> float:
        """One standard deviation, as a share of the mean."""
        return float(np.std(self.network) / np.mean(self.network)) if any(self.network) else 0.0


Curves = dict[str, list[float]]
"""Label -> admitted after each fiftieth of the queries, mean over the seeds
that all have."""


@dataclass(frozen=True)
class Tables:
    seeds: int
    milp_seeds: int
    deadline: float
    """Of SQPR, seconds; 0: it was not run."""
    quick: bool
    lines: tuple[Line, ...]
    curves: dict[str, Curves]
    """Of Figures 4(a) and 7(a), by title."""
    submitted: dict[str, int]
    """Queries at the end of each of these curves."""
    common: dict[str, int]
    """Seeds of each of these curves: those that all its planners have."""
    ceilings: dict[str, float]
    """Offline bound of each of these curves, mean over its seeds."""
    times: tuple[Time, ...]
    loads: tuple[Load, ...]
    passed: int
    """Plans of anybody that admit more than the offline bound: none can."""

    def series(self, figure: str, group: str, planner: str) -> dict[float, Line]:
        """Along the axis."""
        found = (
            one for one in self.lines if (one.figure, one.group, one.planner) == (figure, group, planner)
        )
        return dict(sorted((one.x, one) for one in found))


def make_tables(results: Results) -> Tables:
    board = Board(results)
    solved = [row for row in results.rows if row.planner == SQPR]
    drawn = {curve_title(point): point for point in POINTS if point.figure in (EFFICIENCY, DEPLOYED)}
    return Tables(
        len({row.seed for row in results.rows}),
        len({row.seed for row in solved if row.setup == SMALL_NAME}),
        max((row.deadline for row in solved if row.patience == 1), default=0.0),
        "--quick" in str(results.made.get("command", "")),
        tuple(line for point in POINTS if point.figure not in TIMED_FIGURES for line in _lines(board, point)),
        {title: _curves(board, point) for title, point in drawn.items()},
        {title: board.rows(point.name, Run(BOUND))[0].queries for title, point in drawn.items()},
        {title: len(board.common(point)) for title, point in drawn.items()},
        {title: _ceiling(board, point) for title, point in drawn.items()},
        tuple(time for point in POINTS if point.figure in TIMED_FIGURES for time in _times(board, point)),
        tuple(load for point in POINTS if point.figure == DEPLOYED for load in _loads(board, point)),
        _passed(board),
    )


def _lines(board: Board, point: Point) -> Iterator[Line]:
    for run in point.runs:
        rows = board.rows(point.name, run)
        if rows and run.patience == 1:
            yield _line(board, point, run, rows)


def _line(board: Board, point: Point, run: Run, rows: Sequence[Row]) -> Line:
    ratio = board.ratio(point.name, run, Run(BOUND))
    return Line(
        point.figure,
        point.group,
        point.x,
        run.planner,
        board.label(point.name, run),
        run.batch,
        len(rows),
        rows[0].queries,
        float(np.mean([row.admitted for row in rows])),
        None if np.isnan(ratio) else 100 * ratio,
        float(np.mean([row.mean_ms for row in rows])),
        float(np.mean([row.p99_ms for row in rows])),
    )


def _curves(board: Board, point: Point) -> Curves:
    """The offline bound has none."""
    ran = [run for run in point.runs if run.planner != OFFLINE and board.rows(point.name, run)]
    return {board.label(point.name, run): board.curve(point, run) for run in ran}


def _ceiling(board: Board, point: Point) -> float:
    seeds = board.common(point)
    rows = board.rows(point.name, Run(OFFLINE))
    return float(np.mean([row.admitted for row in rows if row.seed in seeds]))


def curve_title(point: Point) -> str:
    if point.figure == DEPLOYED:
        return "7(a)"
    return f"4(a) {point.group or f'{point.x:g} Mbps'}"


def _times(board: Board, point: Point) -> Iterator[Time]:
    for run in point.runs:
        rows = board.rows(point.name, run)
        every = np.array([ms for row in rows for ms in row.times])
        if len(every):
            proven, fit = sum(row.proven for row in rows), int(sum(row.admitted for row in rows))
            shown = (float(every.mean()), float(np.median(every)), float(every.max()))
            yield Time(point.figure, point.x, run.planner, *shown, len(every), proven, fit)


def _loads(board: Board, point: Point) -> Iterator[Load]:
    for run in point.runs:
        rows = [row for row in board.rows(point.name, run) if row.cpu_late]
        for share, when in ((1, "early"), (3, "late")) if rows else ():
            cpu = sorted(one for row in rows for one in getattr(row, f"cpu_{when}"))
            network = sorted(one for row in rows for one in getattr(row, f"net_{when}"))
            yield Load(
                run.planner, when == "early", share * rows[0].queries // EPOCHS, tuple(cpu), tuple(network)
            )


def _passed(board: Board) -> int:
    found = 0
    for point in POINTS:
        best = {row.seed: row.admitted for row in board.rows(point.name, Run(OFFLINE))}
        rows = [row for run in point.runs for row in board.rows(point.name, run) if run.planner != BOUND]
        found += sum(row.admitted > best.get(row.seed, float("inf")) + 1e-6 for row in rows if not row.loaded)
    return found


def batch_lines(tables: Tables, planner: str) -> dict[int, Line]:
    """Figure 4(b)."""
    return {one.batch: one for one in tables.lines if (one.figure, one.planner) == (BATCHING, planner)}
