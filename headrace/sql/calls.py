"""Casts and calls by name: scalar functions, and the aggregates that a clause may or may not have.

A cast is made only where every engine means the same by it; the others are refused with what to do instead.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.ids import did_you_mean
from headrace.plan.expr import CASTS, Cast, Expr, Literal
from headrace.plan.functions import TRUNC_UNITS
from headrace.plan.types import INTEGERS, NUMBERS, DataType
from headrace.sql import literals
from headrace.sql.binder import ScalarBinder, binds
from headrace.sql.names import AGGREGATE_NAMES, ALL_NAMES, REFUSED, SAME_TYPE, SCALAR_NAMES

_PARTS = ("year", "month", "day", "hour", "minute", "second")
_OF_DAYS = frozenset({"year", "month", "day"})
"""Parts that a date has too."""
_TYPES: dict[exp.DType, DataType] = {
    exp.DType.BOOLEAN: DataType.BOOLEAN,
    exp.DType.INT: DataType.INT,
    exp.DType.BIGINT: DataType.BIGINT,
    exp.DType.FLOAT: DataType.FLOAT,
    exp.DType.DOUBLE: DataType.DOUBLE,
    exp.DType.TEXT: DataType.STRING,
    exp.DType.VARCHAR: DataType.STRING,
    exp.DType.DATE: DataType.DATE,
    exp.DType.TIMESTAMP: DataType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: DataType.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: DataType.TIMESTAMP,
}


@binds(exp.Cast, exp.TryCast, parts="to safe _type")
def _cast(b: ScalarBinder, node: exp.Expr) -> Expr:
    written = node.args["to"]
    target = _TYPES.get(written.this)
    if target is None:
        names = ", ".join(sorted(set(_TYPES.values())))
        raise b.source.refusal(node, f"CAST to {written.sql().lower()} is not supported", f"Types: {names}.")
    inner = node.this.unnest()
    if isinstance(inner, exp.Null):
        return Literal(None, target)
    if literals.is_text(inner) and target in (DataType.TIMESTAMP, DataType.DATE):
        read = literals.timestamp if target is DataType.TIMESTAMP else literals.day
        return read(str(inner.this), inner, b.source)
    return _cast_value(b, node, b.bind(node.this), target)


def _cast_value(b: ScalarBinder, node: exp.Expr, arg: Expr, target: DataType) -> Expr:
    if arg.type == target:
        return arg
    if (arg.type, target) not in CASTS:
        message = f"CAST from {arg.type} to {target} is not supported: engines disagree on its meaning"
        raise b.source.refusal(node, message, _cast_hint(arg.type, target))
    if isinstance(arg, Literal) and isinstance(arg.value, int) and arg.type in INTEGERS:
        if target in (DataType.DOUBLE, DataType.FLOAT):
            return Literal(float(arg.value), target)
        if target is DataType.BIGINT:
            return Literal(arg.value, target)
    return Cast(arg, target)


def _cast_hint(source: DataType, target: DataType) -> str:
    if source is DataType.STRING:
        return f"Declare the column as {target} in the stream, or write the literal itself as {target}."
    if target is DataType.BOOLEAN and source in NUMBERS:
        return "Write x <> 0."
    if target is DataType.STRING and source in NUMBERS:
        return "Round it to a bigint first, or keep it a number."
    if source is DataType.TIMESTAMP and target in NUMBERS:
        return "Use unix_seconds(ts) or unix_micros(ts)."
    return "Keep the value in its own type."


@binds(exp.Extract)
def _extract(b: ScalarBinder, node: exp.Expr) -> Expr:
    part = node.this.name.lower()
    if part not in _PARTS:
        raise b.source.refusal(
            node, f"EXTRACT({part.upper()} ...) is not supported", f"Parts: {', '.join(_PARTS)}."
        )
    return b.call(part, _instants(part, [b.bind(node.expression)]), node)


@binds(exp.Anonymous)
def _function(b: ScalarBinder, node: exp.Expr) -> Expr:
    written = str(node.this)
    name = written.lower()
    if name in AGGREGATE_NAMES:
        return _aggregate(b, node)
    if name == "window":
        raise b.source.error(node, "window(...) belongs in GROUP BY", "Use window.start or window.end here.")
    if name in REFUSED:
        raise b.source.refusal(node, *REFUSED[name])
    function = SCALAR_NAMES.get(name)
    if function is None:
        hint = did_you_mean(written, ALL_NAMES, "functions")
        raise b.source.error(node, f'function "{written}" does not exist', hint)
    if function == "date_trunc":
        return _date_trunc(b, node)
    if function == "round":
        return _round(b, node)
    args = b.together(node.expressions) if function in SAME_TYPE and node.expressions else _args(b, node)
    return b.call(function, _instants(function, args), node, written)


def _instants(function: str, args: list[Expr]) -> list[Expr]:
    """A date as its first instant, where its part is asked for."""
    if function not in _OF_DAYS:
        return args
    return [Cast(a, DataType.TIMESTAMP) if a.type is DataType.DATE else a for a in args]


def _args(b: ScalarBinder, node: exp.Expr) -> list[Expr]:
    return [b.bind(a) for a in node.expressions]


@binds(exp.Filter)
def _aggregate(b: ScalarBinder, node: exp.Expr) -> Expr:
    if b.aggregate is not None:
        return b.aggregate(node)
    call = node.this if isinstance(node, exp.Filter) else node
    hint = "Use HAVING." if b.clause == "WHERE" else "Aggregate in a subquery first."
    raise b.source.error(call, f"the aggregate {call.this} cannot stand in {b.clause}", hint)


def _date_trunc(b: ScalarBinder, node: exp.Expr) -> Expr:
    args = node.expressions
    unit = str(args[0].unnest().this).lower() if args and literals.is_text(args[0]) else None
    if unit not in TRUNC_UNITS:
        hint = f"The unit is one of {', '.join(repr(u) for u in TRUNC_UNITS)}."
        raise b.source.error(args[0] if args else node, "date_trunc takes a known unit first", hint)
    return b.call("date_trunc", [Literal(unit, DataType.STRING), *map(b.bind, args[1:])], node)


def _round(b: ScalarBinder, node: exp.Expr) -> Expr:
    args = node.expressions
    if len(args) < 2:
        return b.call("round", [b.bind(a) for a in args], node)
    digits = literals.whole_number(args[1])
    if digits is None or digits > 12 or len(args) > 2:
        message = "the digits of round must be a whole number from 0 to 12"
        raise b.source.error(args[1], message, "Write the number itself: round(x, 2).")
    return b.call("round", [b.bind(args[0]), Literal(digits, DataType.INT)], node)


@binds(exp.Window, parts="partition_by order over spec alias first")
def _over(b: ScalarBinder, node: exp.Expr) -> Expr:
    hint = "Group by a window instead: " + "GROUP BY window(ts, '5 minutes', '1 second')."
    raise b.source.refusal(node, "OVER (...) is not supported", hint)


@binds(exp.Subquery, parts="alias")
def _subquery(b: ScalarBinder, node: exp.Expr) -> Expr:
    held = b.subqueries.get(id(node))
    if held is not None:
        return held
    hint = "Compare with it in WHERE: a value, a comparison, (SELECT an aggregate ...)."
    raise b.source.refusal(node, f"a subquery in {b.clause} is not supported", hint)
