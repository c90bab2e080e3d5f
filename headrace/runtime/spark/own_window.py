"""Rows compared with an aggregate of their own window, without a join.

WindowJoin(Window(R), Aggregate(Window(R) by K)) on K pairs every row of a window with the aggregate over
the rows of the same window and key. When both sides read the same rows R through the same window, one
grouping that gives the aggregates AND keeps the rows says the same, reads the source once and holds each
row once per window instead of joining two streams.

Holds when: both sides are one stream under the same filters, the same window, the join is on all of the
aggregate's keys and on nothing else, and the keys are plain columns. A NULL key never joins, so rows with
one are filtered out first. Otherwise `find_own_window` gives None and the general join is used.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan import logical as lp
from headrace.plan.expr import (
    AggregateCall,
    Call,
    ColumnRef,
    Expr,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from headrace.plan.types import Schema

Names = dict[str, Expr]


@dataclass(frozen=True, slots=True)
class OwnWindow:
    base: lp.Window
    keys: tuple[str, ...]
    rows: tuple[str, ...]
    """Columns of the stream kept with the window."""
    aggregates: tuple[tuple[str, AggregateCall], ...]
    columns: tuple[tuple[str, Expr], ...]
    """The join's output over window columns, `rows` and aggregate names."""
    residual: Expr


@dataclass(frozen=True, slots=True)
class _Rows:
    """Filtered rows of one stream, columns by name as expressions over the stream's own."""

    scan: lp.StreamScan
    filters: tuple[Expr, ...]
    names: Names


def _identity(schema: Schema) -> Names:
    return {c.name: ColumnRef(c.name, c.type) for c in schema}


def _rows(plan: lp.LogicalPlan) -> _Rows | None:
    match plan:
        case lp.StreamScan():
            return _Rows(plan, (), _identity(plan.schema))
        case lp.Filter():
            below = _rows(plan.input)
            if below is None:
                return None
            more = tuple(substitute(p, below.names) for p in conjuncts(plan.predicate))
            return _Rows(below.scan, below.filters + more, below.names)
        case lp.Project():
            below = _rows(plan.input)
            if below is None:
                return None
            names = {n: substitute(e, below.names) for n, e in plan.items}
            return _Rows(below.scan, below.filters, names)
    return None


def _peel(plan: lp.LogicalPlan) -> tuple[lp.LogicalPlan, Names]:
    """The node under a chain of Projects, and the output columns as expressions over it."""
    names = _identity(plan.schema)
    while isinstance(plan, lp.Project):
        items = dict(plan.items)
        names = {n: substitute(e, items) for n, e in names.items()}
        plan = plan.input
    return plan, names


def _wider(a: lp.StreamScan, b: lp.StreamScan) -> lp.StreamScan:
    """One scan with the columns of both."""
    more = tuple(c for c in b.columns if c.name not in a.columns)
    return lp.StreamScan(a.stream, Schema((*a.columns, *more)), a.time, a.watermark)


def _time_of(window: lp.Window, rows: _Rows) -> Expr:
    return rows.names[window.time]


def find_own_window(join: lp.WindowJoin) -> OwnWindow | None:
    """The join as one grouping, or None where that would not be the same."""
    window, left_names = _peel(join.left)
    aggregate, right_names = _peel(join.right)
    if not isinstance(window, lp.Window) or not isinstance(aggregate, lp.Aggregate):
        return None
    theirs = aggregate.input
    if not isinstance(theirs, lp.Window) or theirs.spec != window.spec:
        return None
    mine, inner = _rows(window.input), _rows(theirs.input)
    if mine is None or inner is None or mine.scan.stream != inner.scan.stream:
        return None
    same_rows = frozenset(mine.filters) == frozenset(inner.filters)
    time = _time_of(window, mine)
    if not same_rows or time != _time_of(theirs, inner) or not isinstance(time, ColumnRef):
        return None
    keys = {n: substitute(e, inner.names) for n, e in aggregate.keys}
    row_names = {n: substitute(e, mine.names) for n, e in left_names.items()}
    if not _joins_on_keys(join, keys, row_names, right_names):
        return None
    calls, over_calls = _aggregates(aggregate, inner)
    known = {**keys, **over_calls}
    columns = {**row_names, **{n: substitute(e, known) for n, e in right_names.items()}}
    key_columns = tuple(e for e in keys.values() if isinstance(e, ColumnRef))
    if len(key_columns) != len(keys):
        return None
    present = tuple(Call("is_not_null", (k,)) for k in key_columns)
    scan = _wider(mine.scan, inner.scan)
    base = lp.Window(
        lp.Filter(scan, conjunction((*mine.filters, *present))) if mine.filters or present else scan,
        time.name,
        window.spec,
    )
    read = frozenset().union(*(columns_of(e) for e in columns.values()))
    rows = tuple(c for c in scan.columns.names if c in read) or (time.name,)
    return OwnWindow(
        base, tuple(k.name for k in key_columns), rows, calls, tuple(columns.items()), join.residual
    )


def _joins_on_keys(join: lp.WindowJoin, keys: Names, left: Names, right: Names) -> bool:
    """Whether the join's equalities are exactly: my column = the aggregate's key over that column."""
    met: set[str] = set()
    for mine, theirs in join.on:
        key = substitute(theirs, right)
        if not isinstance(key, ColumnRef) or key.name not in keys:
            return False
        if substitute(mine, left) != keys[key.name]:
            return False
        met.add(key.name)
    return met == set(keys)


def _aggregates(node: lp.Aggregate, rows: _Rows) -> tuple[tuple[tuple[str, AggregateCall], ...], Names]:
    """The aggregate's calls over the stream's columns, under names no column of it can have."""
    calls: list[tuple[str, AggregateCall]] = []
    names: Names = {}
    for i, (name, call) in enumerate(node.aggregates):
        arg = None if call.arg is None else substitute(call.arg, rows.names)
        calls.append((f"__a{i}", AggregateCall(call.function, arg)))
        names[name] = ColumnRef(f"__a{i}", call.type)
    return tuple(calls), names
