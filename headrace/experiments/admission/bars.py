"""The issue's bars that these runs can speak about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.experiments.admission.board import Board
from headrace.experiments.admission.cases import (
    BOUND,
    DEPLOYED,
    EFFICIENCY,
    HEURISTIC,
    OURS,
    POINTS,
    SODA,
    SQPR,
    Point,
    Run,
)
from headrace.experiments.judged import Bar

OF_BOUND = {1000.0: 104.0, 100.0: 98.0, 50.0: 95.0}
"""Least % of the sequential optimistic bound, by bandwidth."""
OVER_HEURISTIC = 1.15
MEAN_MS, P99_MS = 3.0, 20.0


def bars(board: Board) -> tuple[Bar, ...]:
    sizes = {point.x: point for point in POINTS if point.figure == EFFICIENCY and not point.group}
    made = [_of_bound(board, sizes[width], least) for width, least in OF_BOUND.items()]
    made += [_over_heuristic(board, sizes[100.0]), *_times(board, sizes)]
    cluster = next(point for point in POINTS if point.figure == DEPLOYED)
    made += _at_least(board, sizes[100.0], OURS, SQPR, "Headrace admits at least what SQPR does, 50 hosts")
    made += _at_least(board, cluster, SQPR, SODA, "SQPR admits at least what SODA does, 15 hosts")
    return tuple(made)


def _of_bound(board: Board, point: Point, least: float) -> Bar:
    found = 100 * board.ratio(point.name, Run(OURS), Run(BOUND))
    text = f"Headrace, % of the optimistic bound, {point.x:g} Mbps"
    return Bar(text, f">= {least:.0f}", f"{found:.1f}", found >= least, _seeds(board, point))


def _over_heuristic(board: Board, point: Point) -> Bar:
    found = board.ratio(point.name, Run(OURS), Run(HEURISTIC))
    text = f"Headrace / heuristic, {point.x:g} Mbps"
    return Bar(text, f">= {OVER_HEURISTIC}", f"{found:.2f}", found >= OVER_HEURISTIC, _seeds(board, point))


def _times(board: Board, sizes: dict[float, Point]) -> Iterator[Bar]:
    rows = [row for point in sizes.values() for row in board.rows(point.name, Run(OURS))]
    mean, p99 = (float(np.mean([getattr(row, name) for row in rows])) for name in ("mean_ms", "p99_ms"))
    yield Bar(
        "Headrace, mean ms of a query, 50 hosts", f"<= {MEAN_MS:g}", f"{mean:.2f}", mean <= MEAN_MS, len(rows)
    )
    yield Bar(
        "Headrace, p99 ms of a query, 50 hosts", f"<= {P99_MS:g}", f"{p99:.2f}", p99 <= P99_MS, len(rows)
    )


def _at_least(board: Board, point: Point, mine: str, other: str, text: str) -> Iterator[Bar]:
    """On every seed that has both."""
    others = {row.seed: row.admitted for row in board.rows(point.name, Run(other))}
    rows = [row for row in board.rows(point.name, Run(mine)) if row.seed in others]
    if rows:
        told = ", ".join(f"{row.admitted:.0f} to {others[row.seed]:.0f}" for row in rows)
        yield Bar(text, "every seed", told, all(row.admitted >= others[row.seed] for row in rows), len(rows))


def _seeds(board: Board, point: Point) -> int:
    return len(board.rows(point.name, Run(OURS)))
