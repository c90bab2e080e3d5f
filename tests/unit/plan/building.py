"""Short ways to write plans by hand in tests."""

from __future__ import annotations

from headrace.plan.bounds import TimeBound
from headrace.plan.expr import AggregateCall, Call, ColumnRef, Expr, Literal
from headrace.plan.logical import (
    IntervalJoin,
    LogicalPlan,
    Project,
    StreamScan,
    TableScan,
    Window,
    WindowSpec,
)
from headrace.plan.types import Column, DataType, Schema

SECOND = 1_000_000
T = DataType


def schema(**columns: DataType) -> Schema:
    return Schema(Column(name, kind) for name, kind in columns.items())


READINGS = StreamScan("readings", schema(ts=T.TIMESTAMP, k=T.INT, v=T.DOUBLE, s=T.STRING), "ts", 5 * SECOND)
SWITCHES = StreamScan("switches", schema(ts2=T.TIMESTAMP, k2=T.INT, on2=T.BOOLEAN), "ts2", 3 * SECOND)
PLUGS = TableScan("plugs", schema(pk=T.INT, name=T.STRING, watts=T.DOUBLE))
MINUTE = WindowSpec(60 * SECOND, 60 * SECOND)
SLIDING = WindowSpec(60 * SECOND, 10 * SECOND)


def col(plan: LogicalPlan, name: str) -> ColumnRef:
    return ColumnRef(name, plan.schema[name].type)


def lit(value: bool | int | float | str) -> Literal:
    kinds = {bool: T.BOOLEAN, int: T.INT, float: T.DOUBLE, str: T.STRING}
    return Literal(value, kinds[type(value)])


def call(function: str, *args: Expr) -> Call:
    return Call(function, args)


def agg(function: str, arg: Expr | None = None) -> AggregateCall:
    return AggregateCall(function, arg)


def columns(plan: LogicalPlan, *names: str, **renamed: str) -> tuple[tuple[str, Expr], ...]:
    """Items of a Project or keys: columns under their own names, then under new ones."""
    own: tuple[tuple[str, Expr], ...] = tuple((n, col(plan, n)) for n in names)
    return own + tuple((new, col(plan, old)) for new, old in renamed.items())


def project(plan: LogicalPlan, *names: str, **renamed: str) -> Project:
    return Project(plan, columns(plan, *names, **renamed))


def window(plan: LogicalPlan, spec: WindowSpec = MINUTE, time: str = "ts") -> Window:
    return Window(plan, time, spec)


def within(seconds: int, left: str = "ts", right: str = "ts2") -> tuple[TimeBound, TimeBound]:
    return TimeBound(left, right, seconds * SECOND), TimeBound(right, left, seconds * SECOND)


def interval_join(left: LogicalPlan = READINGS, right: LogicalPlan = SWITCHES) -> IntervalJoin:
    return IntervalJoin(left, right, ((col(left, "k"), col(right, "k2")),), within(10))
