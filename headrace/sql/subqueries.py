"""Scalar subqueries in WHERE: "compare with the window's own max".

    a.value > 0.9 * (SELECT max(b.value) FROM s [...] AS b WHERE b.plug = a.plug)

becomes a window join of the rows with the subquery's aggregate, grouped by what it is correlated on, and a
filter above it. Holds because
- the two windows end together, so a row in a window meets the value of that very window;
- correlation is by equality, so a row meets at most one value;
- a row that meets none would be compared with NULL, and the comparison, a top-level conjunct that is NULL
  whenever the value is, would drop it, as the join does. So count, which is 0 and not NULL over no rows, is
  refused, as is anything between the comparison and the value that can turn a NULL into something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.plan.expr import ColumnRef, Expr, conjuncts
from headrace.plan.logical import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    LogicalPlan,
    Project,
    StreamScan,
    WindowInfo,
    WindowJoin,
    nodes,
)
from headrace.sql.aggregates import AggregateSet, Lifting, NotGrouped, free_name, not_grouped
from headrace.sql.clauses import check_clauses
from headrace.sql.extensions import Form
from headrace.sql.frame import Frame, Inherited, open_frame, read_frame
from headrace.sql.joins import filtered
from headrace.sql.names import AGGREGATE_NAMES
from headrace.sql.place import Source
from headrace.sql.scalars import ScalarBinder, conjuncts_of
from headrace.sql.scope import WINDOW_FORMS, Scope, window_name

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_KEEPS_NULL = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
"""Operators that give NULL when any argument is."""
_NEVER_NULL = frozenset({"count", "approx_count_distinct"})
_HINT = "Write: value > (SELECT max(b.value) FROM ... AS b WHERE b.key = a.key)."


def holds_subquery(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


def compare_with_subqueries(frame: Frame, plan: LogicalPlan, conditions: Sequence[exp.Expr]) -> LogicalPlan:
    """The rows that pass the comparisons with scalar subqueries."""
    held: dict[int, ColumnRef] = {}
    for condition in conditions:
        subquery = _compared(condition, frame.env.source)
        joined = _bind(subquery, frame, plan, _free_prefix(plan))
        plan = WindowJoin(plan, joined.plan, joined.on)
        held[id(subquery)] = joined.value
    binder = ScalarBinder(frame.env.source, frame.scope, "WHERE", subqueries=held)
    bound = [part for c in conditions for part in conjuncts(binder.boolean(c, "WHERE"))]
    return filtered(plan, bound)


def _free_prefix(plan: LogicalPlan) -> str:
    """q0, q1, ...: the first that no column of the plan starts with."""
    taken = {name.partition(".")[0].lower() for name in plan.schema.names}
    return next(f"q{n}" for n in range(len(taken) + 1) if f"q{n}" not in taken)


def _compared(condition: exp.Expr, source: Source) -> exp.Subquery:
    """The one subquery of a comparison, reached only through operators that keep NULL."""
    top = condition.unnest()
    if isinstance(top, exp.Not) and isinstance(top.this.unnest(), exp.Exists | exp.In):
        top = top.this.unnest()
    if isinstance(top, exp.Exists):
        raise source.refusal(top, "EXISTS (subquery) is not supported", "Join with the subquery instead.")
    if isinstance(top, exp.In):
        raise source.refusal(top, "IN (subquery) is not supported", "Join with the subquery instead.")
    found = list(condition.find_all(exp.Subquery))
    outermost = [s for s in found if not _inside_another(s, condition)]
    if not isinstance(top, _COMPARISONS) or not outermost:
        message = "a subquery is supported only in a comparison that is joined to the others by AND"
        raise source.refusal(outermost[0] if outermost else condition, message, _HINT)
    if len(outermost) > 1:
        raise source.refusal(outermost[1], "two subqueries in one comparison are not supported", _HINT)
    _check_path(outermost[0], top, source)
    return outermost[0]


def _inside_another(node: exp.Expr, stop: exp.Expr) -> bool:
    around = node.parent
    while around is not None and around is not stop:
        if isinstance(around, exp.Query) and not isinstance(around, exp.Subquery):
            return True
        around = around.parent
    return False


def _check_path(subquery: exp.Subquery, top: exp.Expr, source: Source) -> None:
    around = subquery.parent
    while around is not None and around is not top:
        if not isinstance(around, _KEEPS_NULL):
            message = "between a comparison and its subquery only arithmetic is supported"
            raise source.refusal(around, message, _HINT)
        around = around.parent


@dataclass(frozen=True, slots=True)
class _Joinable:
    """The subquery as the right side of a window join."""

    plan: LogicalPlan
    on: tuple[tuple[Expr, Expr], ...]
    value: ColumnRef


def _bind(node: exp.Subquery, outer: Frame, plan: LogicalPlan, prefix: str) -> _Joinable:
    source = outer.env.source
    select = node.this
    if not isinstance(select, exp.Select) or select.args.get("with_") is not None:
        raise source.refusal(node, "only a plain SELECT is supported as a subquery here", _HINT)
    if plan.window is None:
        raise source.error(node, "a comparison with a subquery needs a window", WINDOW_FORMS)
    check_clauses(select, source)
    streams = frozenset(n.stream for n in nodes(plan) if isinstance(n, StreamScan))
    frame = open_frame(select, outer.env, Inherited(plan.window.spec, streams))
    local, correlated = _split(select, frame, outer)
    inner = read_frame(frame, local)
    _check_window(node, frame, inner, plan.window, source)
    keys, outers = _correlation(correlated, frame, inner, outer, plan.window)
    _check_group(select, frame, keys)
    return _aggregate(select, frame, inner, keys, outers, prefix)


def _split(select: exp.Select, frame: Frame, outer: Frame) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Conditions on the subquery's own columns, and those that name columns from outside."""
    where = select.args.get("where")
    local: list[exp.Expr] = []
    correlated: list[exp.Expr] = []
    for condition in conjuncts_of(where.this if where is not None else None):
        if holds_subquery(condition):
            message = "a subquery inside a subquery is not supported here"
            raise frame.env.source.refusal(condition, message, "Join with it in FROM.")
        names_outside = any(_is_outside(c, frame.scope, outer.scope) for c in condition.find_all(exp.Column))
        (correlated if names_outside else local).append(condition)
    return local, correlated


def _is_outside(column: exp.Column, inner: Scope, outer: Scope) -> bool:
    return not inner.can_resolve(column) and outer.can_resolve(column)


def _check_window(
    node: exp.Subquery, frame: Frame, inner: LogicalPlan, around: WindowInfo, source: Source
) -> None:
    if inner.window is None:
        raise source.error(node, "this subquery has no window", WINDOW_FORMS)
    mine = inner.window.spec
    if not mine.ends_align(around.spec):
        message = (
            f"the window of the subquery ({mine}) and the one around it ({around.spec}) do not end together"
        )
        raise source.error(node, message, "Use the same slide for both.")
    if frame.form is not Form.CQL and mine != around.spec:
        message = f"the window of the subquery ({mine}) is not the one around it ({around.spec})"
        hint = "Use the same window, or the CQL form, or join the two in FROM on window_end."
        raise source.error(node, message, hint)


def _correlation(
    conditions: Sequence[exp.Expr], frame: Frame, inner: LogicalPlan, outer: Frame, around: WindowInfo
) -> tuple[list[Expr], list[Expr]]:
    """Inner expressions and the outer ones they are equal to."""
    source = frame.env.source
    mine: list[Expr] = []
    theirs: list[Expr] = []
    for condition in conditions:
        sides = _sides(condition, frame, outer, source)
        if _says_same_window(sides, frame, inner, outer, around):
            continue
        own = ScalarBinder(source, frame.scope, "WHERE").bind(sides[0])
        other = ScalarBinder(source, outer.scope, "WHERE").bind(sides[1])
        ScalarBinder(source, frame.scope, "WHERE").call("=", [own, other], condition)
        mine.append(own)
        theirs.append(other)
    return mine, theirs


def _sides(condition: exp.Expr, frame: Frame, outer: Frame, source: Source) -> tuple[exp.Expr, exp.Expr]:
    """The two sides of a correlating equality, the inner one first."""
    top = condition.unnest()
    if isinstance(top, exp.EQ):
        for own, other in ((top.this, top.expression), (top.expression, top.this)):
            inside = [_is_outside(c, frame.scope, outer.scope) for c in own.find_all(exp.Column)]
            outside = [_is_outside(c, frame.scope, outer.scope) for c in other.find_all(exp.Column)]
            if inside and not any(inside) and outside and all(outside):
                return own, other
    message = "a subquery can be tied to the rows around it only by equalities"
    raise source.refusal(condition, message, "Write b.key = a.key, the inner column on one side.")


def _says_same_window(
    sides: tuple[exp.Expr, exp.Expr], frame: Frame, inner: LogicalPlan, outer: Frame, around: WindowInfo
) -> bool:
    """b.window_end = a.window_end, which holds anyway."""
    own, other = sides[0].unnest(), sides[1].unnest()
    if not isinstance(own, exp.Column) or not isinstance(other, exp.Column):
        return False
    name = window_name(own)
    if name is None or name != window_name(other) or inner.window is None:
        return False
    if frame.scope.window_of(own) is None or outer.scope.window_of(other) is None:
        return False
    return name == WINDOW_END or inner.window.spec == around.spec


def _check_group(select: exp.Select, frame: Frame, keys: Sequence[Expr]) -> None:
    """GROUP BY may name the window and what the subquery is correlated on: one row per row outside."""
    clause = select.args.get("group")
    binder = ScalarBinder(frame.env.source, frame.scope, "GROUP BY")
    for node in clause.expressions if clause is not None else ():
        inner = node.unnest()
        if isinstance(inner, exp.Anonymous) and str(inner.this).lower() == "window":
            continue
        named = isinstance(inner, exp.Column) and window_name(inner) is not None
        if isinstance(inner, exp.Column) and named and frame.scope.window_of(inner) is not None:
            continue
        if binder.bind(node) not in keys:
            message = "a subquery in a comparison gives one value; this GROUP BY gives one for each group"
            hint = "Group only by the window and by columns equated with the rows around it."
            raise frame.env.source.error(node, message, hint)
    if select.args.get("having") is not None:
        raise frame.env.source.refusal(select.args["having"], "HAVING in a subquery here is not supported")


def _aggregate(
    select: exp.Select,
    frame: Frame,
    inner: LogicalPlan,
    keys: Sequence[Expr],
    outers: Sequence[Expr],
    prefix: str,
) -> _Joinable:
    source = frame.env.source
    value = _value(select, source)
    rows = ScalarBinder(source, frame.scope, "the argument of an aggregate")
    calls = AggregateSet(rows)
    bound = ScalarBinder(source, frame.scope, "SELECT", calls.hook).bind(value)
    named = _named_keys(keys)
    names = calls.names([("value", bound)], set(named.values()))
    assert inner.window is not None
    ends = {inner.window.start: WINDOW_START, inner.window.end: WINDOW_END}
    try:
        lifted = Lifting(named, {**ends, **names}).lift(bound)
    except NotGrouped as error:
        raise not_grouped(error, value, rows, source) from None
    aggregates = tuple((names[mark], call) for call, mark in calls.calls.items())
    plan = Aggregate(inner, tuple((n, k) for k, n in named.items()), aggregates)
    return _prefixed(plan, named, keys, outers, lifted, prefix)


def _prefixed(
    plan: Aggregate,
    named: dict[Expr, str],
    keys: Sequence[Expr],
    outers: Sequence[Expr],
    value: Expr,
    prefix: str,
) -> _Joinable:
    """Names that no column around the subquery can have."""
    kept = [ColumnRef(c.name, c.type) for c in plan.schema if c.name in (WINDOW_START, WINDOW_END)]
    kept += [ColumnRef(name, key.type) for key, name in named.items()]
    taken = {name.lower() for name in named.values()}
    result = f"{prefix}.{'value' if 'value' not in taken else free_name('result', taken)}"
    items = (*((f"{prefix}.{c.name}", c) for c in kept), (result, value))
    on = tuple(
        (other, ColumnRef(f"{prefix}.{named[key]}", key.type))
        for key, other in zip(keys, outers, strict=True)
    )
    return _Joinable(Project(plan, items), on, ColumnRef(result, value.type))


def _named_keys(keys: Sequence[Expr]) -> dict[Expr, str]:
    named: dict[Expr, str] = {}
    for key in keys:
        if key not in named:
            taken = {WINDOW_START, WINDOW_END, *named.values()}
            own = key.name if isinstance(key, ColumnRef) and key.name not in taken else ""
            named[key] = own or free_name("key", taken)
    return named


def _value(select: exp.Select, source: Source) -> exp.Expr:
    if len(select.expressions) != 1:
        raise source.error(select, "a subquery in a comparison selects one value", _HINT)
    item: exp.Expr = select.expressions[0]
    value: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    if not _null_over_nothing(value):
        message = "the value of a subquery here must be NULL when there are no rows"
        hint = "Use arithmetic over max, min, avg, sum, var or stddev; count is 0 over no rows."
        raise source.refusal(value, message, hint)
    return value


def _null_over_nothing(node: exp.Expr) -> bool:
    """Whether an aggregate that is NULL over no rows is reached through operators that keep NULL."""
    if isinstance(node, exp.Filter):
        return _null_over_nothing(node.this)
    if isinstance(node, exp.Anonymous):
        function = AGGREGATE_NAMES.get(str(node.this).lower())
        return function is not None and function not in _NEVER_NULL
    if isinstance(node, _KEEPS_NULL):
        return any(_null_over_nothing(child) for child in node.iter_expressions())
    return False
