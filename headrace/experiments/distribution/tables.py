"""The paper's figures as data: what the report, the plots and tables.json are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from headrace.experiments.distribution.cases import JUST, PATTERNS
from headrace.experiments.distribution.prices import Prices, predicted
from headrace.experiments.distribution.results import (
    Curve,
    MovedJoin,
    Placed,
    Ran,
    Rebalanced,
    Recovered,
    Results,
)

_STEPS = 3
"""Batches, with fewer of which their ends say little."""


@dataclass(frozen=True)
class Placement:
    """A pattern on a plan at some sites, by the model: medians over the seeds."""

    plan: str
    sites: int
    pattern: str
    connections: float
    busiest: float
    joins: float
    max_load: float
    total: float
    capacity: float
    state: float
    ms: float
    seeds: int
    lower: int
    """Seeds on which its load is below grouping's; `higher` and `more` are those with more load, and with
    more connections."""
    higher: int
    more: int
    fewer: int
    """Seeds on which it has fewer connections than round robin."""


@dataclass(frozen=True)
class Policy:
    """A policy from a start, by the model: medians over the seeds."""

    plan: str
    sites: int
    start: str
    policy: str
    filled: float
    before: float
    after: float
    least: float
    """Of `after`."""
    moves: float
    rounds: float
    done: tuple[float, ...]
    seeds: int

    @property
    def end(self) -> float:
        """Minutes of input that are done in the end."""
        return self.done[-1]


@dataclass(frozen=True)
class Run:
    """A plan on sites of this machine."""

    plan: str
    sites: int
    patterns: tuple[str, ...]
    jobs: int
    connections: int
    rows_in: int
    rows_out: int
    kept_up: float
    """Rows that came out in a second, of those that should have."""
    cores: tuple[float, ...]
    """That each site took."""
    total: float
    busiest: float
    believed: float
    believed_busiest: float
    """By the prices, that were fitted to all runs."""
    manager: float
    state_rows: int
    batch_seconds: float
    curve: Curve
    problem: str


@dataclass(frozen=True)
class Tables:
    prices: Prices
    points: int
    error: float
    placements: tuple[Placement, ...]
    policies: tuple[Policy, ...]
    runs: tuple[Run, ...]
    moved: tuple[MovedJoin, ...]
    recovered: tuple[Recovered, ...]
    measured: bool = field(default=False)
    """Whether the prices are of this machine."""

    def placement(self, plan: str, sites: int, pattern: str) -> Placement:
        return next(
            one for one in self.placements if (one.plan, one.sites, one.pattern) == (plan, sites, pattern)
        )

    def policy(self, plan: str, sites: int, start: str, policy: str, filled: float = JUST) -> Policy:
        wanted = (plan, sites, start, policy, filled)
        return next(one for one in self.policies if _key(one) == wanted)

    def run(self, plan: str, sites: int, pattern: str) -> Run | None:
        found = (
            one
            for one in self.runs
            if (one.plan, one.sites) == (plan, sites) and pattern in one.patterns and not one.problem
        )
        return next(found, None)

    def still(self) -> MovedJoin | None:
        return next((one for one in self.moved if not one.moves and one.seconds), None)

    def moving(self) -> MovedJoin | None:
        return next((one for one in self.moved if one.moves and one.seconds), None)

    @property
    def pictured(self) -> frozenset[str]:
        """The pictures of runs that there is something for."""
        found = {
            "21-31-measured": any(not run.problem for run in self.runs),
            "36": self.still() is not None or self.moving() is not None,
            "37-measured": any(one.curve for one in self.recovered),
        }
        return frozenset(name for name, there in found.items() if there)

    def recovery(self, start: str, policy: str) -> Recovered | None:
        found = (one for one in self.recovered if (one.start, one.policy) == (start, policy))
        return next((one for one in found if one.seconds), None)


def make_tables(results: Results) -> Tables:
    priced = results.priced
    return Tables(
        priced.prices,
        priced.points,
        priced.error,
        tuple(_placements(results.of(Placed))),
        tuple(_policies(results.of(Rebalanced))),
        tuple(_run(row, priced.prices) for row in results.of(Ran)),
        tuple(results.of(MovedJoin)),
        tuple(results.of(Recovered)),
        priced.points > 0,
    )


def _placements(rows: Sequence[Placed]) -> Iterator[Placement]:
    by_seed = {(row.plan, row.sites, row.pattern, row.seed): row for row in rows}
    for plan, sites, pattern in sorted({(r.plan, r.sites, r.pattern) for r in rows}, key=_order):
        own = [r for r in rows if (r.plan, r.sites, r.pattern) == (plan, sites, pattern)]

        def mid(value: Callable[[Placed], float], own: Sequence[Placed] = own) -> float:
            return float(median(map(value, own)))

        grouped = [by_seed[plan, sites, "grouping", row.seed] for row in own]
        turns = [by_seed[plan, sites, "round-robin", row.seed] for row in own]
        yield Placement(
            plan,
            sites,
            pattern,
            mid(lambda r: r.connections),
            mid(lambda r: r.busiest),
            mid(lambda r: r.joins),
            mid(lambda r: r.max_load),
            mid(lambda r: r.total),
            mid(lambda r: r.capacity),
            mid(lambda r: r.state),
            mid(lambda r: r.ms),
            len(own),
            sum(a.max_load < b.max_load * (1 - 1e-4) for a, b in zip(own, grouped, strict=True)),
            sum(a.max_load > b.max_load * (1 + 1e-4) for a, b in zip(own, grouped, strict=True)),
            sum(a.connections > b.connections for a, b in zip(own, grouped, strict=True)),
            sum(a.connections < b.connections for a, b in zip(own, turns, strict=True)),
        )


def _order(key: tuple[str, int, str]) -> tuple[int, str, int, int]:
    plan, sites, pattern = key
    return int(plan.split(" ")[0]), plan, sites, PATTERNS.index(pattern)


def _policies(rows: Sequence[Rebalanced]) -> Iterator[Policy]:
    for key in sorted({_key(row) for row in rows}):
        own = [row for row in rows if _key(row) == key]
        curves = zip(*(row.done for row in own), strict=True)
        yield Policy(
            *key,
            float(median(row.before for row in own)),
            float(median(row.after for row in own)),
            min(row.after for row in own),
            float(median(row.moves for row in own)),
            float(median(row.rounds for row in own)),
            tuple(float(median(minute)) for minute in curves),
            len(own),
        )


def speed(curve: Curve) -> float:
    """Rows a second. Rows come batch by batch: from the end of the first batch that was seen to that of the
    last, so that it does not matter how many happen to end within the time."""
    steps = [after for before, after in pairwise(curve) if after[1] > before[1]]
    if len(steps) < _STEPS:
        return (curve[-1][1] - curve[0][1]) / (curve[-1][0] - curve[0][0]) if len(curve) > 1 else 0.0
    (first, rows), (last, more) = steps[0], steps[-1]
    return (more - rows) / (last - first)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _key(row: Rebalanced | Policy) -> tuple[str, int, str, str, float]:
    return row.plan, row.sites, row.start, row.policy, row.filled


def _run(row: Ran, prices: Prices) -> Run:
    seconds = row.seconds or 1.0
    cores = tuple(_rounded(cpu / seconds) for cpu in row.cpu)
    believed = [predicted(prices, count) for count in row.counts] or [0.0]
    return Run(
        row.plan,
        row.sites,
        row.patterns,
        row.jobs,
        row.connections,
        row.rows_in,
        row.rows_out,
        _rounded(speed(row.curve) * seconds / row.wanted_out) if row.wanted_out else 0.0,
        cores,
        sum(cores),
        max(cores),
        _rounded(sum(believed)),
        _rounded(max(believed)),
        float(f"{row.own_cpu / seconds:.3g}"),
        row.state_rows,
        row.batch_seconds,
        row.curve,
        row.problem,
    )
