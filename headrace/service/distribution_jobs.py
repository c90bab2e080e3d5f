"""The paper's plans as jobs that run: a distribution problem and a table become a plan with channels.

Operators that hang together at one site are one job, as they are in the product; where two neighbours are at
different sites, a channel is between them. So a connection of the paper is a channel here, and costs what a
channel costs.

Rows are an event time and a number. A single-stream operator keeps all of them. A join pairs rows whose
numbers are equal modulo some number and whose times are at most a window apart; the modulus is chosen so that
it gives twice as many rows as it reads, as the paper's joins do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.catalog.model import FileSource, Format, PlannerChoices, Project, Query, Site, Stream
from headrace.plan import logical as lp
from headrace.plan.bounds import TimeBound
from headrace.plan.channels import ChannelJob, ChannelPlan, DerivedStream
from headrace.plan.expr import Call, ColumnRef, Expr, Literal
from headrace.plan.types import Column, DataType, Schema
from headrace.planners.distribution.problem import Operator, Problem, Table

MICROS = 1_000_000
NUMBERS = 1_000_003
"""Rows are numbered modulo this prime."""
DELAY = MICROS // 2
_TS, _U = ColumnRef("ts", DataType.TIMESTAMP), ColumnRef("u", DataType.BIGINT)
_ROWS = Schema([Column("ts", DataType.TIMESTAMP), Column("u", DataType.BIGINT)])


@dataclass(frozen=True, slots=True)
class Pace:
    """What comes in, and how it is worked on. `rate`: rows a second of each stream; times are in seconds."""

    rate: float
    window: float = 10.0
    trigger: float = 2.0


# -- pieces -----------------------------------------------------------------------------------------


def pieces_by_site(problem: Problem, table: Table) -> dict[str, str]:
    """Operator -> the topmost operator of its piece: neighbours at one site are one piece."""
    found: dict[str, str] = {}
    for name in reversed(problem.order):
        reader = _reader(problem, name)
        found[name] = found[reader] if reader is not None and table[reader] == table[name] else name
    return found


def pieces_by_join(problem: Problem) -> dict[str, str]:
    """The same with a piece for each join: what stands on it, and the streams it reads, come with it. Jobs
    that stay the same wherever they run, so that they can be moved."""
    found: dict[str, str] = {}
    for name in reversed(problem.order):
        reader = _reader(problem, name)
        if reader is None or (problem.operator[reader].kind == "join" and _has_join(problem, name)):
            found[name] = name
        else:
            found[name] = found[reader]
    return found


def _has_join(problem: Problem, name: str) -> bool:
    return any(problem.operator[one].kind == "join" for one in problem.below((name,)))


def _reader(problem: Problem, name: str) -> str | None:
    """The one operator above; the paper's plans are trees."""
    return next(iter(problem.readers[name]), None)


def as_operators(problem: Problem, pieces: Mapping[str, str]) -> Problem:
    """The same plan with each piece as one operator, for planners that move jobs."""
    made = []
    for top in (name for name in problem.order if pieces[name] == name):
        own = [one for one in problem.operators if pieces[one.id] == top]
        inputs = tuple(
            pieces.get(name, name) for one in own for name in one.inputs if pieces.get(name) != top
        )
        made.append(
            Operator(
                top,
                inputs,
                sum(one.cpu for one in own),
                problem.operator[top].rate,
                sum(one.state_bytes for one in own),
                "job",
            )
        )
    return Problem(
        problem.sites,
        tuple(made),
        problem.queries,
        problem.streams,
        problem.links,
        problem.connection_cpu,
        problem.row_cpu,
    )


# -- jobs -------------------------------------------------------------------------------------------


def job_id(piece: str) -> str:
    return f"job-{piece}"


def channel_plan(problem: Problem, pieces: Mapping[str, str], at: Table, pace: Pace) -> ChannelPlan:
    """`at`: piece -> site. Every output of a query is the top of a piece by how pieces are made."""
    growing = _Growing(problem, pieces, at, pace)
    tops = [name for name in problem.order if pieces[name] == name]
    answers = {name: query.id for query in problem.queries for name in query.outputs}
    streams = {name: growing.derived(name) for name in tops if name not in answers}
    jobs = tuple(
        ChannelJob(
            job_id(top),
            at[top],
            growing.inside(top),
            query=answers.get(top),
            writes=None if top in answers else streams[top].id,
        )
        for top in tops
    )
    return ChannelPlan(tuple(streams.values()), jobs)


def whole_plans(problem: Problem, pace: Pace) -> dict[str, lp.LogicalPlan]:
    """Query -> its plan in one piece, for a batch evaluation."""
    growing = _Growing(problem, {}, {}, pace)
    return {query.id: growing.whole(query.outputs[0]) for query in problem.queries}


class _Growing:
    def __init__(self, problem: Problem, pieces: Mapping[str, str], at: Table, pace: Pace) -> None:
        self._problem, self._pieces, self._at, self._pace = problem, pieces, at, pace

    def derived(self, top: str) -> DerivedStream:
        return DerivedStream(f"d_{top}", self._at[top], self.whole(top))

    def whole(self, name: str) -> lp.LogicalPlan:
        """From the base streams up."""
        return self._made(name, self.whole)

    def inside(self, name: str) -> lp.LogicalPlan:
        """Up to the channels that come from other pieces."""

        def read(below: str) -> lp.LogicalPlan:
            if below in self._problem.stream or self._pieces[below] == self._pieces[name]:
                return self.inside(below)
            return self.derived(below).scan()

        return self._made(name, read)

    def _made(self, name: str, read: Callable[[str], lp.LogicalPlan]) -> lp.LogicalPlan:
        if name in self._problem.stream:
            return lp.StreamScan(name, _ROWS, "ts", DELAY)
        operator = self._problem.operator[name]
        inputs = [read(below) for below in operator.inputs]
        if operator.kind != "join":
            return lp.Filter(inputs[0], Call(">=", (_U, _number(0))))
        return _join(inputs[0], inputs[1], self._modulus(operator), round(self._pace.window * MICROS))

    def _modulus(self, operator: Operator) -> int:
        """Pairs of n1 and n2 rows a second within the window to either side: 2 * window * n1 * n2 / modulus,
        which is to be 2 * (n1 + n2)."""
        n1, n2 = (rate_of(self._problem, name) for name in operator.inputs)
        scale = self._pace.rate / self._problem.streams[0].rate
        return max(1, round(scale * self._pace.window * n1 * n2 / (n1 + n2)))


def rate_of(problem: Problem, name: str) -> float:
    return problem.stream[name].rate if name in problem.stream else problem.operator[name].rate


def _number(value: int) -> Literal:
    return Literal(value, DataType.BIGINT)


def _join(left: lp.LogicalPlan, right: lp.LogicalPlan, modulus: int, window: int) -> lp.LogicalPlan:
    """Only one event time is passed on: the plans have up to eight streams."""
    bounds = (TimeBound("l_ts", "r_ts", window), TimeBound("r_ts", "l_ts", window))
    on = ((_named("l_k"), _named("r_k")),)
    pairs = lp.IntervalJoin(_side(left, "l", modulus), _side(right, "r", modulus), on, bounds)
    mixed = Call("+", (Call("*", (_named("l_u"), _number(31))), _named("r_u")))
    time = ColumnRef("l_ts", DataType.TIMESTAMP)
    return lp.Project(pairs, (("ts", time), ("u", Call("%", (mixed, _number(NUMBERS))))))


def _named(name: str) -> ColumnRef:
    return ColumnRef(name, DataType.BIGINT)


def _side(rows: lp.LogicalPlan, prefix: str, modulus: int) -> lp.Project:
    key: Expr = Call("%", (_U, _number(modulus)))
    return lp.Project(rows, ((f"{prefix}_ts", _TS), (f"{prefix}_u", _U), (f"{prefix}_k", key)))


# -- the project ------------------------------------------------------------------------------------


def project_of(problem: Problem, root: Path, endpoints: Mapping[str, str], pace: Pace) -> Project:
    """`endpoints` by site of the problem."""
    streams = {
        one.id: Stream(
            name=one.id,
            columns={column.name: column.type for column in _ROWS},
            time="ts",
            watermark=DELAY,
            rate=pace.rate,
            site=problem.sites[0].id,
            source=FileSource(path=f"in/{one.id}", format=Format.PARQUET),
        )
        for one in problem.streams
    }
    return Project(
        name="distribution",
        root=root,
        streams=streams,
        tables={},
        sites={site.id: Site(name=site.id, endpoint=endpoints[site.id], cpu=1.0) for site in problem.sites},
        links=(),
        queries={query.id: Query(name=query.id, sql="a plan of paper 002") for query in problem.queries},
        planner=PlannerChoices(trigger=round(pace.trigger * MICROS), shuffle_partitions=1),
    )
