"""The paper's tables and figures as data: what the report, the plots and tables.json are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.experiments.federation.board import Board
from headrace.experiments.federation.cases import CHAINS, DUCKDB, SPARK, TABLE_2, TABLE_3
from headrace.experiments.federation.results import Search
from headrace.planners.federation.problem import FEASIBLE

CHOSEN, UNCHECKED = "chosen", "chosen without the check"


@dataclass(frozen=True)
class Point:
    """A split at a rate."""

    query: str
    rate: int
    split: str
    names: tuple[str, ...]
    chosen: bool
    keeps_up: bool
    throughput: float
    seconds: float | None
    """Of a batch; None: not measured."""
    cpu: float | None
    """Seconds for a second of event time."""
    believed: float
    """C_u, in the same unit, without what a batch costs whatever is done in it."""
    feasible: bool
    """As the planner believes."""
    memory: int
    compared: int
    problem: str


@dataclass(frozen=True)
class Maximum:
    """The highest throughput of a split over all rates (the right sides of Figure 5)."""

    query: str
    label: str
    split: str
    rows: float
    at_least: bool
    foretold: float | None
    ceiling: float | None
    """The rate above it that it was not measured at, where it may be anything up to that."""
    cpu: float | None
    """Seconds for a second of event time, at the highest rate that it was run at."""


@dataclass(frozen=True)
class AtRate:
    """The planner's choice at a rate, with and without the feasibility check."""

    query: str
    rate: int
    split: str
    unchecked: str
    throughput: float
    throughput_unchecked: float
    best: str
    best_throughput: float
    short: float
    """% of the best throughput that is missed."""
    dearer: float | None
    """% of CPU above the best split's."""


@dataclass(frozen=True)
class Tables:
    searches: tuple[Search, ...]
    points: tuple[Point, ...]
    at_rates: tuple[AtRate, ...]
    maxima: tuple[Maximum, ...]
    rates: tuple[int, ...]
    batch: int
    by_cpu: bool

    def search(self, query: str) -> Search:
        return next(one for one in self.searches if one.query == query)

    @property
    def joins(self) -> list[Search]:
        return [self.search(f"{ways}-way join") for ways in TABLE_2]

    @property
    def plug_queries(self) -> list[Search]:
        return [self.search(name) for name in TABLE_3]

    @property
    def chains(self) -> list[Search]:
        return [self.search(f"{count} unary") for count in CHAINS]

    def maximum(self, query: str, label: str) -> Maximum | None:
        return next((one for one in self.maxima if (one.query, one.label) == (query, label)), None)

    def of(self, query: str) -> list[AtRate]:
        return [one for one in self.at_rates if one.query == query]

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.query for one in self.points))


def make_tables(board: Board) -> Tables:
    runs = list(board.runs.values())
    return Tables(
        searches=tuple(board.results.of(Search)),
        points=tuple(_points(board)),
        at_rates=tuple(_at_rates(board)),
        maxima=tuple(_maxima(board)),
        rates=board.rates,
        batch=runs[0].batch if runs else 0,
        by_cpu=board.by_cpu,
    )


def _points(board: Board) -> Iterator[Point]:
    for (query, rate, split), run in board.runs.items():
        capacity, cpu = board.capacity(query, split, rate), board.cpu(query, split, rate)
        yield Point(
            query,
            rate,
            split,
            run.names,
            chosen=board.choice(query, rate).runs_as == split,
            keeps_up=capacity is not None and capacity >= rate,
            throughput=_rounded(board.throughput(query, split, rate)),
            seconds=_or_none(board.seconds(run)),
            cpu=_or_none(cpu),
            believed=_rounded(run.utilisation),
            feasible=run.bottleneck <= FEASIBLE,
            memory=run.memory,
            compared=run.compared,
            problem=run.problem,
        )


def _at_rates(board: Board) -> Iterator[AtRate]:
    for query in board.queries:
        for rate in board.rates:
            best, short = board.best(query, rate), board.short(query, rate)
            if best is None or short is None:
                continue
            chosen = board.choice(query, rate).runs_as
            unchecked = board.choice(query, rate, feasibility=False).runs_as
            yield AtRate(
                query,
                rate,
                chosen,
                unchecked,
                _rounded(board.throughput(query, chosen, rate)),
                _rounded(board.throughput(query, unchecked, rate)),
                best,
                _rounded(board.throughput(query, best, rate)),
                _rounded(short),
                _or_none(board.dearer(query, rate)),
            )


def _maxima(board: Board) -> Iterator[Maximum]:
    for query in board.queries:
        last = [rate for rate in board.rates if board.short(query, rate) is not None]
        wanted: dict[str, str | None] = {
            CHOSEN: board.choice(query, last[-1]).runs_as if last else None,
            SPARK: board.named(query, SPARK),
            DUCKDB: board.named(query, DUCKDB),
        }
        for split in board.splits(query):
            if split not in wanted.values():
                wanted[", ".join(board.names(query, split)) or split] = split
        for label, found in wanted.items():
            if found is not None:
                rows, more = board.maximum(query, found)
                ceiling = board.ceiling(query, found)
                foretold, cpu = board.foretold(query, found), board.last_cpu(query, found)
                yield Maximum(
                    query, label, found, _rounded(rows), more, _or_none(foretold), ceiling, _or_none(cpu)
                )


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _or_none(value: float | None) -> float | None:
    return None if value is None else _rounded(value)
