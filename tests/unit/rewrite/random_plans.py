"""Random plans over the streams of `building`: any operator on top of any other that accepts it."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from headrace.plan.expr import Case, Expr, Literal
from headrace.plan.functions import AGGREGATES
from headrace.plan.logical import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    Shape,
    TableJoin,
    Window,
    WindowJoin,
    WindowSpec,
)
from headrace.plan.types import NUMBERS, Column
from tests.unit.plan.building import PLUGS, READINGS, SECOND, SWITCHES, T, agg, call, col, lit, within

Draw = st.DrawFn
SPECS = [WindowSpec(r * SECOND, s * SECOND) for r, s in [(60, 60), (60, 30), (50, 20), (90, 60)]]
MIDDLE = Literal(1_714_521_660_000_000, T.TIMESTAMP)
"""The middle of the two minutes of data."""
STEPS = ["filter", "filter", "project", "project", "table", "window", "aggregate", "interval", "own"]


@st.composite
def plans(draw: Draw) -> LogicalPlan:
    plan: LogicalPlan = READINGS
    names = iter(f"c{i}" for i in range(1000))
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=7)):
        plan = _grow(draw, plan, step, names)
    return plan


def _grow(draw: Draw, plan: LogicalPlan, step: str, names: Iterator[str]) -> LogicalPlan:
    """The plan with one operator more, or the plan where the operator does not fit."""
    has_ends = {WINDOW_START, WINDOW_END} & set(plan.schema.names)
    match step:
        case "filter":
            return Filter(plan, draw(conditions(plan)))
        case "project":
            return _project(draw, plan, names)
        case "table" if "pk" not in plan.schema and plan.shape is not Shape.TABLE:
            return _table_join(draw, plan)
        case "window" if plan.shape is Shape.STREAM and plan.times and not has_ends:
            return Window(plan, draw(st.sampled_from(plan.times)), draw(st.sampled_from(SPECS)))
        case "aggregate" if plan.window is not None:
            return _aggregate(draw, plan, names)
        case "interval" if plan.shape is Shape.STREAM and plan.times and "ts2" not in plan.schema:
            return _interval_join(draw, plan)
        case "own" if plan.window is not None:
            return _own_window(draw, plan, names)
    return plan


def of_type(plan: LogicalPlan, *kinds: object) -> list[Column]:
    return [c for c in plan.schema if c.type in kinds]


@st.composite
def conditions(draw: Draw, plan: LogicalPlan) -> Expr:
    parts = draw(st.lists(_condition(plan), min_size=1, max_size=3))
    if len(parts) == 1:
        return parts[0]
    return call(draw(st.sampled_from(["and", "and", "or"])), *parts)


@st.composite
def _condition(draw: Draw, plan: LogicalPlan) -> Expr:
    column = draw(st.sampled_from(plan.schema.columns))
    ref = col(plan, column.name)
    if draw(st.integers(0, 5)) == 0:
        choices: list[Expr] = [call("is_null", ref), call("is_not_null", ref), lit(True)]
        return draw(st.sampled_from(choices))
    compare = draw(st.sampled_from(["<", "=", ">="]))
    if column.type in NUMBERS:
        other = draw(
            st.sampled_from([col(plan, c.name) for c in of_type(plan, *NUMBERS)] + [lit(1), lit(2.5)])
        )
        return call(compare, ref, other)
    match column.type:
        case T.STRING:
            return call("=", ref, lit(draw(st.sampled_from(["load", "a"]))))
        case T.TIMESTAMP:
            return call(compare, ref, MIDDLE)
    return ref if column.type is T.BOOLEAN else lit(True)


@st.composite
def _numbers(draw: Draw, plan: LogicalPlan) -> Expr:
    choices: list[Expr] = [col(plan, c.name) for c in of_type(plan, *NUMBERS)]
    first = draw(st.sampled_from([*choices, lit(1), lit(0.5)]))
    match draw(st.integers(0, 3)):
        case 0:
            return call("+", first, draw(st.sampled_from([*choices, lit(2)])))
        case 1:
            return call("coalesce", first, lit(1))
        case 2:
            return Case(((draw(conditions(plan)), first),), lit(0))
    return first


def _project(draw: Draw, plan: LogicalPlan, names: Iterator[str]) -> LogicalPlan:
    """Some columns under old or new names, shuffled, and some computed ones."""
    kept = draw(st.permutations(plan.schema.names))[draw(st.integers(0, 2)) :]
    items: dict[str, Expr] = {}
    for name in kept:
        fixed = name in (WINDOW_START, WINDOW_END) or draw(st.booleans())
        items[name if fixed else next(names)] = col(plan, name)
    for _ in range(draw(st.integers(0, 2))):
        items[next(names)] = draw(_numbers(plan))
    return Project(plan, tuple(items.items())) if items else plan


def _table_join(draw: Draw, plan: LogicalPlan) -> LogicalPlan:
    if {"name", "watts"} & set(plan.schema.names):
        return plan
    keys = of_type(plan, T.INT)
    on = ((col(plan, draw(st.sampled_from(keys)).name), col(PLUGS, "pk")),) if keys else ()
    plain = TableJoin(plan, PLUGS, on)
    residual = draw(conditions(plain)) if draw(st.booleans()) else lit(True)
    return TableJoin(plan, PLUGS, on, residual, outer=draw(st.booleans()))


def _aggregate(draw: Draw, plan: LogicalPlan, names: Iterator[str]) -> LogicalPlan:
    columns = [c for c in plan.schema if c.name not in (WINDOW_START, WINDOW_END)]
    picked = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True)) if columns else []
    keys = tuple((next(names), col(plan, c.name)) for c in picked)
    functions = [f for f in ("count", "sum", "min", "max") if f in AGGREGATES]
    calls = tuple(
        (next(names), agg(draw(st.sampled_from(functions)), draw(_numbers(plan))))
        for _ in range(draw(st.integers(1, 2)))
    )
    return Aggregate(plan, keys, (*calls, (next(names), agg("count"))))


def _interval_join(draw: Draw, plan: LogicalPlan) -> LogicalPlan:
    if {"k2", "on2"} & set(plan.schema.names):
        return plan
    keys = of_type(plan, T.INT)
    on = ((col(plan, draw(st.sampled_from(keys)).name), col(SWITCHES, "k2")),) if keys else ()
    bounds = within(draw(st.sampled_from([0, 3, 10])), plan.times[0])
    plain = IntervalJoin(plan, SWITCHES, on, bounds)
    return IntervalJoin(plan, SWITCHES, on, bounds, draw(conditions(plain)))


def _own_window(draw: Draw, plan: LogicalPlan, names: Iterator[str]) -> LogicalPlan:
    """The rows of a window beside an aggregate of the same window."""
    theirs = _aggregate(draw, plan, names)
    items = tuple((next(names), col(theirs, name)) for name in theirs.schema.names)
    right = Project(theirs, items)
    return WindowJoin(plan, right, (), draw(conditions(WindowJoin(plan, right, ()))))
