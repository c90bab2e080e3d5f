"""GROUP BY, HAVING and the select list over grouped rows: Aggregate -> Filter -> the columns of the result.

Every group lies in one window. CQL windows hold without being named. The SQL forms group by what is written,
so the window must be among it: silently grouping by a window that was not asked for would be another query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.plan.expr import ColumnRef, Expr, conjuncts
from headrace.plan.logical import WINDOW_END, WINDOW_START, Aggregate, LogicalPlan
from headrace.plan.types import DataType
from headrace.sql.aggregates import AggregateSet, Lifting, NotGrouped, free_name, is_aggregate, not_grouped
from headrace.sql.extensions import Form
from headrace.sql.frame import Frame
from headrace.sql.joins import filtered
from headrace.sql.outputs import Output, aliases_of, bind_outputs
from headrace.sql.scalars import ScalarBinder
from headrace.sql.scope import WINDOW_FORMS, window_name
from headrace.units import counted


@dataclass(frozen=True, slots=True)
class Grouped:
    plan: LogicalPlan
    items: tuple[tuple[Output, Expr], ...]
    """The select list over the plan."""


def group(frame: Frame, plan: LogicalPlan) -> Grouped:
    """The grouped SELECT over its rows."""
    source = frame.env.source
    having = frame.select.args.get("having")
    if having is not None and frame.select.args.get("group") is None and _first_call(frame.select) is None:
        raise source.error(having, "HAVING is for groups, and there are none", "Use WHERE.")
    if plan.window is None:
        node = frame.select.args.get("group") or frame.select
        raise source.error(_first_call(frame.select) or node, "an aggregate needs a window", WINDOW_FORMS)
    rows = ScalarBinder(source, frame.scope, "the argument of an aggregate")
    calls = AggregateSet(rows)
    aliases = aliases_of(frame.select)
    outputs = bind_outputs(frame.select, ScalarBinder(source, frame.scope, "SELECT", calls.hook))
    condition = _having(frame, ScalarBinder(source, frame.scope, "HAVING", calls.hook, aliases))
    keys, names_window = _keys(frame, plan, outputs)
    if frame.form is not Form.CQL and not names_window:
        node = frame.select.args.get("group") or _first_call(frame.select) or frame.select
        hint = "Add window_start, window_end to GROUP BY."
        raise source.error(node, "GROUP BY must name the window of the rows", hint)
    return _aggregate(plan, keys, calls, outputs, condition, rows)


def _first_call(select: exp.Select) -> exp.Expr | None:
    """The first aggregate of the select list."""
    calls = (found for item in select.expressions for found in item.walk() if is_aggregate(found))
    return next(calls, None)


def _having(frame: Frame, binder: ScalarBinder) -> tuple[exp.Expr, Expr] | None:
    clause = frame.select.args.get("having")
    return None if clause is None else (clause.this, binder.boolean(clause.this, "HAVING"))


def window_columns(frame: Frame, plan: LogicalPlan) -> dict[str, str]:
    """Columns of the rows that hold an end of their window -> its name above the Aggregate."""
    info = plan.window
    assert info is not None
    columns = {info.start: WINDOW_START, info.end: WINDOW_END}
    for item in frame.scope.items:
        if item.window is not None:
            columns.setdefault(item.window.end, WINDOW_END)
            if item.window.spec == info.spec:
                columns.setdefault(item.window.start, WINDOW_START)
    return columns


@dataclass(slots=True)
class _Keys:
    by_expr: dict[Expr, str]
    columns: dict[str, str]


def _keys(frame: Frame, plan: LogicalPlan, outputs: Sequence[Output]) -> tuple[_Keys, bool]:
    """The group keys by expression, and whether the window is one of them."""
    binder = ScalarBinder(frame.env.source, frame.scope, "GROUP BY", None, aliases_of(frame.select))
    columns = window_columns(frame, plan)
    keys: dict[Expr, str] = {}
    names_window = False
    clause = frame.select.args.get("group")
    for node in clause.expressions if clause is not None else ():
        bound = _key(node, frame, binder, outputs)
        if bound is None or (isinstance(bound, ColumnRef) and bound.name in columns):
            names_window = True
        elif bound not in keys:
            keys[bound] = _key_name(bound, outputs, {*keys.values(), WINDOW_START, WINDOW_END})
    return _Keys(keys, columns), names_window


def _key(node: exp.Expr, frame: Frame, binder: ScalarBinder, outputs: Sequence[Output]) -> Expr | None:
    """The expression of one GROUP BY item; None for the window."""
    inner = node.unnest()
    if isinstance(inner, exp.Anonymous) and str(inner.this).lower() == "window":
        return None
    whole = isinstance(inner, exp.Column) and window_name(inner) == "window"
    if isinstance(inner, exp.Column) and whole and frame.scope.window_of(inner) is not None:
        return None
    number = inner.this if isinstance(inner, exp.Neg) else inner
    if isinstance(number, exp.Literal) and not number.is_string:
        return _ordinal(inner, outputs, binder)
    bound = binder.bind(node)
    if bound.type is DataType.INTERVAL:
        hint = "Add it to a timestamp."
        raise binder.source.error(node, "a length of time cannot be a group key", hint)
    return bound


def _ordinal(node: exp.Expr, outputs: Sequence[Output], binder: ScalarBinder) -> Expr:
    text = node.sql()
    position = int(text) if text.isdigit() else 0
    if not 1 <= position <= len(outputs):
        message = f"GROUP BY {text}: the select list has {counted(len(outputs), 'column')}"
        raise binder.source.error(node, message, f"Use a number from 1 to {len(outputs)}.")
    chosen = outputs[position - 1]
    item = chosen.node.this if isinstance(chosen.node, exp.Alias) else chosen.node
    return chosen.expr if isinstance(item, exp.Column) else binder.bind(item)


def _key_name(key: Expr, outputs: Sequence[Output], taken: set[str]) -> str:
    """The column's own name, else an alias, else key_N. Engines do not tell names apart by case."""
    taken = {name.lower() for name in taken}
    if isinstance(key, ColumnRef) and key.name.lower() not in taken:
        return key.name
    for output in outputs:
        if output.alias and output.expr == key and output.alias.lower() not in taken:
            return output.alias
    return free_name("key", taken)


def _aggregate(
    plan: LogicalPlan,
    keys: _Keys,
    calls: AggregateSet,
    outputs: Sequence[Output],
    having: tuple[exp.Expr, Expr] | None,
    rows: ScalarBinder,
) -> Grouped:
    wanted = [(o.alias, o.expr) for o in outputs if o.alias]
    names = calls.names(wanted, set(keys.by_expr.values()))
    lifting = Lifting(keys.by_expr, {**keys.columns, **names})
    lifted = tuple((o, _lift(lifting, o.expr, o.node, rows)) for o in outputs)
    condition = () if having is None else conjuncts(_lift(lifting, having[1], having[0], rows))
    aggregated = Aggregate(
        plan,
        tuple((name, key) for key, name in keys.by_expr.items()),
        tuple((names[mark], call) for call, mark in calls.calls.items()),
    )
    return Grouped(filtered(aggregated, condition), lifted)


def _lift(lifting: Lifting, expr: Expr, node: exp.Expr, rows: ScalarBinder) -> Expr:
    try:
        return lifting.lift(expr)
    except NotGrouped as error:
        raise not_grouped(error, node, rows, rows.source) from None
