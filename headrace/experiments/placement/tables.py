"""The numbers of Figures 2 and 6 to 16, of ours beside them, and of the rate models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.experiments.placement.board import Board, compared
from headrace.experiments.placement.cases import (
    AIRLINE,
    ALL,
    BALANCED,
    BOTTOM_UP,
    BY_HIERARCHY,
    CLUSTER_SIZES,
    COMPARED,
    EXACT,
    IN_NETWORK,
    INTEGRATED,
    JOINT,
    NPC,
    OTHER_MODELS,
    RELAXATION,
    SIZES,
    SYNTHETIC,
    TIMES,
    TOP_DOWN,
    Part,
    Run,
)
from headrace.experiments.placement.results import Results, Row
from headrace.planners.placement.theorems import exhaustive_plans

COMPARED_PARTS = (SYNTHETIC, AIRLINE, *OTHER_MODELS)


@dataclass(frozen=True, slots=True)
class Above:
    """How much a planner's total is above the exact planner's, in %, over the seeds."""

    part: str
    planner: str
    mean: float
    deviation: float
    least: float
    most: float
    seeds: int
    reused: float
    """Derived streams read by a query, on average."""
    planning: float
    """Mean milliseconds for a query."""


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """One planner with one max_cs (Figures 6 to 11)."""

    planner: str
    max_cs: int
    plans: float
    """Of all queries, the geometric mean over the seeds."""
    cost: float
    """Of all queries, the mean."""
    above: float
    """% above exact."""
    height: float
    top: float
    """Members of the highest cluster."""
    cluster: float
    """Sites in a lowest cluster."""


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """One point of Figure 15: plans for one query over four streams."""

    sites: int
    planner: str
    plans: float
    most: int
    bound: float | None
    """Theorems 2 and 4; None: they say nothing of this planner."""
    exhaustive: float
    """Lemma 1."""
    height: float
    cluster: float


@dataclass(frozen=True, slots=True)
class PlanningTime:
    """One bar of Figure 16."""

    planner: str
    max_cs: int
    streams: int
    median: float
    """Milliseconds."""
    queries: int


@dataclass(frozen=True, slots=True)
class Operators:
    """One bar of Figure 14, means over the seeds."""

    label: str
    joins: float
    filters: float
    reused: float


Curves = dict[str, list[float]]
"""Label -> a value after each query, mean over the seeds (of plans: the geometric one)."""


@dataclass(frozen=True)
class Tables:
    seeds: int
    above: tuple[Above, ...]
    cluster_sizes: tuple[ClusterSize, ...]
    network_sizes: tuple[NetworkSize, ...]
    planning_times: tuple[PlanningTime, ...]
    operators: tuple[Operators, ...]
    figures: dict[str, Curves]
    """Those that are curves, by number."""
    joint: float
    """Mean total of joint planning, synthetic workload."""
    bound_checks: int
    """Queries of Top-Down and Bottom-Up whose plans were counted against Theorems 2 and 4."""
    bound_broken: int


def make_tables(results: Results) -> Tables:
    board = Board(results)
    checks = list(_bound_checks(results.rows))
    return Tables(
        len({row.seed for row in board.rows(SYNTHETIC, Run(EXACT))}),
        tuple(_above(board, part, run) for part in COMPARED_PARTS for run in _runs(board, part)),
        tuple(_cluster_size(board, planner, size) for planner in BY_HIERARCHY for size in CLUSTER_SIZES),
        tuple(_network_size(board, part, planner) for part in SIZES for planner in BY_HIERARCHY),
        tuple(_planning_times(board)),
        tuple(_operators(board, run) for run in _compared_runs()),
        figures(board),
        board.total(SYNTHETIC, Run(JOINT)),
        len(checks),
        checks.count(False),
    )


def _runs(board: Board, part: Part) -> list[Run]:
    runs = [*(compared(planner) for planner in ALL), Run(JOINT)]
    return [run for run in runs if board.rows(part, run)]


def _above(board: Board, part: Part, run: Run) -> Above:
    above = 100 * (board.ratios(part, run, Run(EXACT)) - 1)
    return Above(
        part.name,
        run.planner,
        float(above.mean()),
        float(above.std()),
        float(above.min()),
        float(above.max()),
        len(above),
        board.mean(part, run, lambda row: row.reused / len(row.costs)),
        board.mean(part, run, lambda row: 1000 * row.planning / len(row.costs)),
    )


def _cluster_size(board: Board, planner: str, size: int) -> ClusterSize:
    run = Run(planner, size)
    return ClusterSize(
        planner,
        size,
        board.plans(SYNTHETIC, run)[-1],
        board.total(SYNTHETIC, run),
        board.above(SYNTHETIC, run),
        board.mean(SYNTHETIC, run, lambda row: row.height),
        board.mean(SYNTHETIC, run, lambda row: row.top),
        board.mean(SYNTHETIC, run, lambda row: SYNTHETIC.sites / row.bottom),
    )


def _network_size(board: Board, part: Part, planner: str) -> NetworkSize:
    run, streams = compared(planner), part.joins[0] + 1
    rows = board.rows(part, run)
    height = float(np.mean([row.height for row in rows]))
    return NetworkSize(
        part.sites,
        planner,
        board.mean(part, run, lambda row: float(np.mean(row.plans))),
        max(max(row.plans) for row in rows),
        None if planner == NPC else height * exhaustive_plans(streams, COMPARED),
        float(exhaustive_plans(streams, part.sites)),
        height,
        board.mean(part, run, lambda row: part.sites / row.bottom),
    )


def _planning_times(board: Board) -> Iterator[PlanningTime]:
    """The median: a search that another process interrupted says nothing."""
    for run in TIMES.runs:
        rows = board.rows(TIMES, run)
        for streams in range(TIMES.joins[0] + 1, TIMES.joins[1] + 2):
            found = [
                1000 * seconds
                for row in rows
                for seconds, size in zip(row.seconds, row.streams, strict=True)
                if size == streams
            ]
            if found:
                yield PlanningTime(run.planner, run.max_cs, streams, float(np.median(found)), len(found))


def _compared_runs() -> list[Run]:
    """As Figure 14 compares them, and the baselines without reuse."""
    return [
        *(compared(planner) for planner in ALL),
        Run(IN_NETWORK, reuse=False),
        Run(RELAXATION, reuse=False),
    ]


def _operators(board: Board, run: Run) -> Operators:
    return Operators(
        run.label,
        board.mean(AIRLINE, run, lambda row: row.joins),
        board.mean(AIRLINE, run, lambda row: row.filters),
        board.mean(AIRLINE, run, lambda row: row.reused),
    )


def _bound_checks(rows: Sequence[Row]) -> Iterator[bool]:
    """For every query of two streams and more whether its plans stay within Theorem 2 or 4."""
    for row in rows:
        if row.planner in (TOP_DOWN, BOTTOM_UP):
            for plans, streams in zip(row.plans, row.streams, strict=True):
                yield plans <= row.height * exhaustive_plans(streams, row.max_cs)


def figures(board: Board) -> dict[str, Curves]:
    """Of those that are curves over the number of queries."""

    def by_size(planner: str) -> list[Run]:
        return [Run(planner, size) for size in CLUSTER_SIZES]

    balanced = [Run(planner, BALANCED) for planner in BY_HIERARCHY]
    wanted = {
        "2": (INTEGRATED, INTEGRATED.runs, board.costs),
        "6": (SYNTHETIC, by_size(BOTTOM_UP), board.plans),
        "7": (SYNTHETIC, by_size(TOP_DOWN), board.plans),
        "8": (SYNTHETIC, by_size(BOTTOM_UP), board.costs),
        "9": (SYNTHETIC, by_size(TOP_DOWN), board.costs),
        "10": (SYNTHETIC, balanced, board.costs),
        "11": (SYNTHETIC, balanced, board.plans),
        "12": (SYNTHETIC, _compared_runs(), board.costs),
        "13": (AIRLINE, _compared_runs(), board.costs),
    }
    return {
        number: {run.label: curve(part, run) for run in runs}
        for number, (part, runs, curve) in wanted.items()
    }
