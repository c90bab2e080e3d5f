"""FROM, WHERE and the window of one SELECT: everything below its grouping.

The frame of a SELECT is opened first: names and windows are known then, and expressions can be bound. Reading
it gives the plan: items joined, conditions on raw columns below the window, those on the window above it.

A window is opened once. Where it is written next to the only stream of a SELECT it opens above the joins with
tables, just as window(ts, ...) in GROUP BY does; where several items have windows, each opens under its item
and the join is one of windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.errors import UserError
from headrace.plan.expr import Expr, conjuncts
from headrace.plan.logical import (
    WINDOW_END,
    WINDOW_START,
    LogicalPlan,
    Shape,
    StreamScan,
    Window,
    WindowInfo,
    WindowSpec,
)
from headrace.sql.aggregates import has_aggregate
from headrace.sql.extensions import Form
from headrace.sql.joins import filtered, join_items, prefix_of
from headrace.sql.literals import interval, is_text
from headrace.sql.place import Source
from headrace.sql.scalars import ScalarBinder, conjuncts_of
from headrace.sql.scope import Scope, ScopeItem, Visible
from headrace.sql.sources import Env, FromItem, from_items
from headrace.sql.spans import interval_micros, window_spec


@dataclass(frozen=True, slots=True)
class Opening:
    """A window this SELECT opens over its joined rows: on which column, of which item, written how."""

    spec: WindowSpec
    time: str
    alias: str
    form: Form


@dataclass(frozen=True, slots=True)
class Inherited:
    """The window of the SELECT around a scalar subquery, and the streams it is over."""

    spec: WindowSpec
    streams: frozenset[str]


@dataclass(frozen=True, slots=True)
class Frame:
    select: exp.Select
    env: Env
    items: tuple[FromItem, ...]
    scope: Scope
    opening: Opening | None
    form: Form | None
    """How the window of the rows was written, whether opened here or inherited from the items."""


def open_frame(select: exp.Select, env: Env, inherited: Inherited | None = None) -> Frame:
    items = from_items(select, env)
    opening = _opening(select, items, env, inherited)
    windowed = [i for i in items if i.windowed]
    form = opening.form if opening else None
    if opening is None and windowed:
        form = Form.CQL if all(i.form is Form.CQL for i in windowed) else Form.SQL
    info = WindowInfo(opening.spec, WINDOW_START, WINDOW_END) if opening else None
    alias = opening.alias if opening else ""
    in_place = opening is None
    scope = Scope(env.source, tuple(_names(i, len(items), in_place) for i in items), info, alias)
    _check_window_columns(items, opening, env)
    return Frame(select, env, items, scope, opening, form)


def _names(item: FromItem, count: int, in_place: bool) -> ScopeItem:
    prefix = prefix_of(item, count)
    window = item.plan.window
    if item.pending is not None and in_place:
        window = WindowInfo(item.pending, WINDOW_START, WINDOW_END)
    if window is not None:
        window = WindowInfo(window.spec, f"{prefix}{window.start}", f"{prefix}{window.end}")
    columns = tuple(Visible(v.name, f"{prefix}{v.column}", v.type) for v in item.columns)
    return ScopeItem(item.alias, columns, window, item.pending is not None and item.form is Form.SQL)


def _check_window_columns(items: Sequence[FromItem], opening: Opening | None, env: Env) -> None:
    """A window adds its two columns; the rows must not have them already."""
    for item in items:
        opens = item.pending is not None if opening is None else len(items) == 1
        clash = [c for c in item.plan.schema.names if c.lower() in (WINDOW_START, WINDOW_END)]
        if opens and clash:
            message = f'"{item.alias}" has a column "{clash[0]}", which is a name of its window'
            raise env.source.error(item.node, message, "Rename the column in a subquery or in the stream.")


def _opening(
    select: exp.Select, items: Sequence[FromItem], env: Env, inherited: Inherited | None
) -> Opening | None:
    call = _group_window(select, env.source)
    windowed = [i for i in items if i.windowed]
    _check_ranges(items, call, env)
    if call is not None:
        if windowed:
            message = f'"{windowed[0].alias}" has a window already'
            hint = "Remove window(...) from GROUP BY, or the window of the FROM item."
            raise env.source.error(call, message, hint)
        return _spark_opening(call, items, env)
    if len(windowed) == 1 and windowed[0].pending is not None:
        return _pending_opening(windowed[0], items, env)
    if inherited is not None and not windowed:
        return _inherited_opening(select, items, env, inherited)
    return None


def _group_window(select: exp.Select, source: Source) -> exp.Anonymous | None:
    """The window(...) call of GROUP BY."""
    group = select.args.get("group")
    keys = [node.unnest() for node in group.expressions] if group is not None else []
    calls = [k for k in keys if isinstance(k, exp.Anonymous) and str(k.this).lower() == "window"]
    if len(calls) > 1:
        raise source.refusal(calls[1], "a second window in GROUP BY is not supported", "One query for each.")
    return calls[0] if calls else None


def _check_ranges(items: Sequence[FromItem], call: exp.Expr | None, env: Env) -> None:
    """A range without a slide bounds a join and is nothing else."""
    ranged = [i for i in items if i.range is not None]
    if not ranged or len([i for i in items if i.plan.shape is not Shape.TABLE]) > 1:
        return
    hint = "Add the slide: [RANGE 5 MINUTES SLIDE 1 SECOND]."
    if call is not None:
        hint = "Remove [RANGE ...]: GROUP BY window(...) has the window already."
    message = "a [RANGE ...] without SLIDE is for joins of streams"
    raise UserError(message, hint=hint, span=ranged[0].window_place)


def _spark_opening(call: exp.Anonymous, items: Sequence[FromItem], env: Env) -> Opening:
    args = call.expressions
    if len(args) == 4:
        hint = "Windows start at multiples of the slide: window(ts, '5 minutes', '1 second')."
        raise env.source.refusal(call, "window(...) with a start time is not supported", hint)
    if not 2 <= len(args) <= 3:
        message = "window takes an event time, a range and optionally a slide"
        raise env.source.error(call, message, "Write window(ts, '5 minutes', '1 second').")
    lengths = [_length(a, env.source) for a in args[1:]]
    spec = window_spec(lengths[0], lengths[-1], env.source.span_of(call))
    item, time = _event_time(args[0], items, env)
    return Opening(spec, time, item.alias, Form.SQL)


def _length(node: exp.Expr, source: Source) -> int:
    if isinstance(node, exp.Interval):
        return int(interval(node, source).value or 0)
    if is_text(node):
        return interval_micros(str(node.this), source.span_of(node))
    hint = "Write a text: '5 minutes'."
    raise source.error(node, "the range and slide of window(...) are lengths of time", hint)


def _event_time(node: exp.Expr, items: Sequence[FromItem], env: Env) -> tuple[FromItem, str]:
    scope = Scope(env.source, tuple(_names(i, len(items), False) for i in items))
    times = {f"{prefix_of(i, len(items))}{t}": i for i in items for t in i.plan.times}
    name = scope.resolve(node).name if isinstance(node, exp.Column) else ""
    if name in times:
        return times[name], name
    message = f'"{node.sql(dialect="spark")}" is not an event time'
    raise env.source.error(node, message, _time_hint(scope, times))


def _time_hint(scope: Scope, times: dict[str, FromItem]) -> str:
    names = [
        f"{i.alias}.{v.name}" if len(scope.items) > 1 else v.name
        for i in scope.items
        for v in i.columns
        if v.column in times
    ]
    return f"The event time here: {', '.join(names)}." if names else "No FROM item here has an event time."


def _pending_opening(item: FromItem, items: Sequence[FromItem], env: Env) -> Opening:
    assert item.pending is not None and item.form is not None
    others = [i for i in items if i is not item and i.plan.shape is Shape.STREAM]
    if others:
        raise _one_window(item, others[0], env)
    return Opening(item.pending, f"{prefix_of(item, len(items))}{item.time}", item.alias, item.form)


def _one_window(item: FromItem, other: FromItem, env: Env) -> UserError:
    message = f'"{item.alias}" and "{other.alias}" cannot be joined: only one of them has a sliding window'
    hint = "Give both a window with a slide, or both only a range: [RANGE 5 MINUTES]."
    return env.source.error(other.node, message, hint)


def _inherited_opening(
    select: exp.Select, items: Sequence[FromItem], env: Env, inherited: Inherited
) -> Opening:
    """A subquery without a window of its own, over the stream of the SELECT around it."""
    streams = [i for i in items if i.plan.shape is Shape.STREAM]
    if not streams:
        hint = "Join with the table in FROM."
        raise env.source.refusal(select, "a subquery that reads only tables is not supported here", hint)
    plan = streams[0].plan
    if len(streams) > 1 or not isinstance(plan, StreamScan) or plan.stream not in inherited.streams:
        message = "this subquery has no window of its own and reads another stream"
        raise env.source.error(select, message, "Add GROUP BY window(...) to it, the same as outside.")
    item = streams[0]
    time = f"{prefix_of(item, len(items))}{item.plan.times[0]}"
    return Opening(inherited.spec, time, item.alias, Form.SQL)


def read_frame(frame: Frame, where: Sequence[exp.Expr]) -> LogicalPlan:
    """The rows of the SELECT, in their windows if there are any."""
    pool, outer_on = _join_conditions(frame)
    binder = ScalarBinder(frame.env.source, frame.scope, "WHERE")
    _check_aliases(frame, where)
    for node in where:
        pool.extend(conjuncts(binder.boolean(node, "WHERE")))
    in_place = frame.opening is None
    joined = join_items(frame.items, pool, outer_on, frame.env.source, in_place)
    if frame.opening is None:
        return filtered(joined.plan, joined.rest)
    windowed = Window(joined.plan, frame.opening.time, frame.opening.spec)
    return filtered(windowed, joined.rest)


def _check_aliases(frame: Frame, where: Sequence[exp.Expr]) -> None:
    """WHERE comes before SELECT: the names the select list gives are not known in it."""
    aliases = {str(n.alias).lower() for n in frame.select.expressions if isinstance(n, exp.Alias)}
    for column in (c for node in where for c in node.find_all(exp.Column)):
        if not column.table and column.name.lower() in aliases and not frame.scope.can_resolve(column):
            message = f'"{column.name}" is an alias of the select list, which WHERE cannot use'
            hint = "Repeat the expression, or use HAVING over groups."
            raise frame.env.source.error(column, message, hint)


def _join_conditions(frame: Frame) -> tuple[list[Expr], dict[str, tuple[Expr, ...]]]:
    """ON conditions: the inner ones, and those of LEFT JOINs by alias. ON sees the items up to its own."""
    pool: list[Expr] = []
    outer: dict[str, tuple[Expr, ...]] = {}
    for index, item in enumerate(frame.items):
        scope = Scope(
            frame.env.source, frame.scope.items[: index + 1], frame.scope.window, frame.scope.window_alias
        )
        binder = ScalarBinder(frame.env.source, scope, "ON")
        bound = [c for n in conjuncts_of(item.on) for c in conjuncts(binder.boolean(n, "ON"))]
        if item.outer:
            outer[item.alias] = tuple(bound)
        else:
            pool.extend(bound)
    return pool, outer


def is_aggregated(select: exp.Select) -> bool:
    having = select.args.get("having")
    if select.args.get("group") is not None or having is not None:
        return True
    return any(has_aggregate(node) for node in select.expressions)
