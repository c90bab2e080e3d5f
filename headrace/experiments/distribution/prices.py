"""What an operator, a row and a connection take on this machine, and problems with these prices.

    cpu of a site = idle + connections * connection + rows over them * sent
                  + joins * join + rows that joins read and give * join_row
                  + rows that other operators read and give * row

Fitted to what sites took in real runs, none below zero. The first three lines of terms are what
`planners.distribution` knows of a site, so that its loads can be compared with measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headrace.experiments.distribution.cases import STREAM_RATE
from headrace.planners.distribution.problem import Operator, Problem, Table
from headrace.planners.distribution.usage import ends, is_remote, usage

STRETCHED = 5.0
"""Batches of 10 s instead of every 2 s."""
LIMITLESS = 1e6
"""Rows a second, where prices set no limit."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prices:
    """Cores: of an idle site, a connection end, a row a second over one, a join, a row a second of a join, of
    any other operator."""

    idle: float
    connection: float
    sent: float
    join: float
    join_row: float
    row: float

    def stretched(self) -> Prices:
        """At a site that is full: Spark then does fewer and larger batches, and what a job costs whatever
        it reads is spread over them."""
        return replace(self, connection=self.connection / STRETCHED, join=self.join / STRETCHED)

    def as_dict(self) -> dict[str, float]:
        return {name: float(f"{value:.4g}") for name, value in asdict(self).items()}


DEFAULT = Prices(idle=0.01, connection=0.02, sent=1e-5, join=0.05, join_row=3e-5, row=1e-6)
"""For the model alone."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a site does in a plan, in the order of Prices, and the cores it took."""

    counts: tuple[float, ...]
    cores: float


def counts(problem: Problem, table: Table) -> dict[str, tuple[float, ...]]:
    """Of each site, in the order of Prices."""
    used = usage(problem, table).sites
    over = dict.fromkeys(used, 0.0)
    for edge in problem.edges:
        if is_remote(edge, table):
            for end in ends(edge, table):
                if end in over:
                    over[end] += edge.rate
    found = {}
    for site, one in used.items():
        joins = [problem.operator[name] for name in one.operators if problem.operator[name].kind == "join"]
        others = [problem.operator[name] for name in one.operators if problem.operator[name].kind != "join"]
        through = [sum(problem.rows_in[o.id] + o.rate for o in kind) for kind in (joins, others)]
        found[site] = (1.0, float(one.connections), over[site], float(len(joins)), *through)
    return found


def fitted(taken: Sequence[Taken]) -> Prices:
    """Least squares over all sites of all runs, each weighed by what it took, so that small ones count; terms
    that would be negative are left out, the most negative first."""
    a = np.array([one.counts for one in taken])
    b = np.array([one.cores for one in taken])
    weight = 1 / np.maximum(b, 0.02)
    kept = list(range(a.shape[1]))
    while True:
        # Columns differ by orders of magnitude; scaled, so that rank is judged fairly.
        scale = np.maximum(np.abs(a[:, kept]).max(axis=0), 1e-12)
        found, *_ = np.linalg.lstsq(a[:, kept] / scale * weight[:, None], b * weight, rcond=None)
        found = found / scale
        if not len(kept) or (found >= 0).all():
            break
        kept.pop(int(np.argmin(found * scale)))
    values = np.zeros(a.shape[1])
    values[kept] = found
    return Prices(*(float(value) for value in values))


def predicted(prices: Prices, count: Sequence[float]) -> float:
    return float(np.dot(astuple(prices), count))


def priced(problem: Problem, prices: Prices, rate: float) -> Problem:
    """The plan at a rate of each stream, with these prices."""
    times = rate / STREAM_RATE
    operators = tuple(_operator(problem, one, prices, times) for one in problem.operators)
    return replace(
        problem,
        operators=operators,
        streams=tuple(replace(stream, rate=stream.rate * times) for stream in problem.streams),
        sites=tuple(replace(site, cpu_other=prices.idle) for site in problem.sites),
        connection_cpu=prices.connection,
        row_cpu=prices.sent,
    )


def _operator(problem: Problem, one: Operator, prices: Prices, times: float) -> Operator:
    rows = times * (problem.rows_in[one.id] + one.rate)
    cpu = prices.join + prices.join_row * rows if one.kind == "join" else prices.row * rows
    return replace(one, cpu=cpu, rate=one.rate * times, state_bytes=one.state_bytes * times)


def capacity(problem: Problem, table: Table, prices: Prices, full: float = 1.0) -> float:
    """Rows a second of each stream at which the fullest site is filled so far: the least over the sites. Part
    of a site's load grows with the rate; a site that is full without a row can take none, and one whose rows
    cost nothing that could be measured takes any number."""
    least = LIMITLESS / STREAM_RATE
    for count in counts(problem, table).values():
        fixed, growing = split(prices, count)
        if growing > 0:
            least = min(least, max(0.0, full - fixed) / growing)
    return least * STREAM_RATE


def split(prices: Prices, count: Sequence[float]) -> tuple[float, float]:
    """What does not depend on the rate, and what does, at the paper's."""
    terms = [price * number for price, number in zip(astuple(prices), count, strict=True)]
    return terms[0] + terms[1] + terms[3], terms[2] + terms[4] + terms[5]


def errors(prices: Prices, taken: Sequence[Taken]) -> Floats:
    """Relative, of each site."""
    return np.array([abs(predicted(prices, one.counts) - one.cores) / one.cores for one in taken])


def loads(problem: Problem, table: Table, prices: Prices) -> Mapping[str, float]:
    return {site: predicted(prices, count) for site, count in counts(problem, table).items()}
