"""Scalar expressions: the parser's tree -> typed expressions of the plan.

SQL's sugar is lowered to the few functions of `plan.functions`, each to something equal for every input,
NULLs included: BETWEEN to two comparisons, x IS TRUE to coalesce(x, FALSE), CASE x WHEN v to CASE WHEN x = v.
What cannot be lowered is refused by name. A NULL takes the type of what stands next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.ids import did_you_mean
from headrace.plan.expr import CASTS, Call, Case, Cast, ColumnRef, Expr, Literal
from headrace.plan.functions import SCALARS, TRUNC_UNITS, unify
from headrace.plan.types import INTEGERS, NUMBERS, DataType
from headrace.sql import literals
from headrace.sql.names import AGGREGATE_NAMES, ALL_NAMES, REFUSED, SAME_TYPE, SCALAR_NAMES
from headrace.sql.place import Source
from headrace.sql.scope import Scope, window_name

_FALSE = Literal(False, DataType.BOOLEAN)
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_PARTS = ("year", "month", "day", "hour", "minute", "second")
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
AggregateHook = Callable[[exp.Expr], Expr]
"""Takes an aggregate call (or its FILTER) and gives the column that will hold it."""


@dataclass(frozen=True, slots=True)
class ScalarBinder:
    """Binds expressions of one clause. Without `aggregate`, aggregates are an error in this clause."""

    source: Source
    scope: Scope
    clause: str
    aggregate: AggregateHook | None = None
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    """Select aliases this clause may use where no column has that name (lower case)."""
    subqueries: Mapping[int, ColumnRef] = field(default_factory=dict)
    """Columns that hold the values of scalar subqueries, by id of their node."""

    def bind(self, node: exp.Expr) -> Expr:
        for kind in type(node).__mro__:
            bind = _BINDERS.get(kind)
            if bind is not None:
                return bind(self, node)
        hint = "See the list of functions and operators in the documentation."
        raise self.source.refusal(node, f"{_said(node)} is not supported", hint)

    def boolean(self, node: exp.Expr, what: str) -> Expr:
        """A condition."""
        if isinstance(node, exp.Null):
            return Literal(None, DataType.BOOLEAN)
        bound = self.bind(node)
        if bound.type != DataType.BOOLEAN:
            message = f"{what} must be a condition, this is a {bound.type}"
            raise self.source.error(node, message, "Compare it with something, as in x > 0.")
        return bound

    def together(self, nodes: Sequence[exp.Expr]) -> list[Expr]:
        """Expressions that meet in one type: texts and dates follow timestamps, NULLs follow the rest."""
        bound = [None if isinstance(n.unnest(), exp.Null) else self.bind(n) for n in nodes]
        types = [b.type for b in bound if b is not None]
        if not types:
            hint = "Give it one: CAST(NULL AS double)."
            raise self.source.error(nodes[0], "NULL has no type here", hint)
        target = next((t for t in (DataType.TIMESTAMP, DataType.DATE) if t in types), None)
        if target is not None:
            bound = [
                None if b is None else self._as_time(n, b, target) for n, b in zip(nodes, bound, strict=True)
            ]
        known = tuple(b.type for b in bound if b is not None)
        return [Literal(None, unify(known) or known[0]) if b is None else b for b in bound]

    def _as_time(self, node: exp.Expr, bound: Expr, target: DataType) -> Expr:
        if literals.is_text(node):
            read = literals.timestamp if target is DataType.TIMESTAMP else literals.day
            return read(str(node.unnest().this), node, self.source)
        if bound.type is DataType.DATE and target is DataType.TIMESTAMP:
            return Cast(bound, DataType.TIMESTAMP)
        return bound

    def call(self, function: str, args: Sequence[Expr], node: exp.Expr, said: str = "") -> Expr:
        """A call, if the arguments fit; otherwise what the function takes and what it got."""
        known = SCALARS[function]
        if known.rule(tuple(a.type for a in args)) is not None:
            return Call(function, tuple(args))
        got = ", ".join(a.type for a in args) or "nothing"
        raise self.source.error(node, f"{said or function} takes {known.takes}; it got {got}")


def _said(node: exp.Expr) -> str:
    """What the user wrote, by name."""
    names: dict[type[exp.Expr], str] = {
        exp.Window: "OVER (...)",
        exp.ILike: "ILIKE",
        exp.RegexpLike: "RLIKE",
        exp.NullSafeEQ: "<=>",
        exp.Escape: "LIKE ... ESCAPE",
        exp.IntDiv: "DIV",
        exp.Bracket: "access to an array or map, x[i],",
        exp.Exists: "EXISTS (subquery)",
        exp.Tuple: "a row value (a, b)",
        exp.IgnoreNulls: "IGNORE NULLS",
        exp.RespectNulls: "RESPECT NULLS",
        exp.Distinct: "DISTINCT here",
    }
    return names.get(type(node), node.key.upper())


def _paren(b: ScalarBinder, node: exp.Expr) -> Expr:
    return b.bind(node.this)


def _column(b: ScalarBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise b.source.error(node, "* is not a value", "Name the columns.")
    alias = b.aliases.get(node.name.lower()) if not node.table else None
    if alias is not None and not b.scope.can_resolve(node):
        return b.bind(alias)
    if window_name(node) == "window" and not _is_plain_column(b, node):
        hint = "Use window.start or window.end."
        raise b.source.error(node, '"window" is a pair of instants, not a value', hint)
    return b.scope.resolve(node)


def _is_plain_column(b: ScalarBinder, node: exp.Column) -> bool:
    return b.scope.window_of(node) is None


def _literal(b: ScalarBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Literal)
    if node.is_string:
        return Literal(str(node.this), DataType.STRING)
    return literals.number(node, b.source)


def _boolean(b: ScalarBinder, node: exp.Expr) -> Expr:
    return Literal(bool(node.this), DataType.BOOLEAN)


def _null(b: ScalarBinder, node: exp.Expr) -> Expr:
    raise b.source.error(node, "NULL has no type here", "Give it one: CAST(NULL AS double).")


def _interval(b: ScalarBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Interval)
    return literals.interval(node, b.source)


def _negate(b: ScalarBinder, node: exp.Expr) -> Expr:
    inner = node.this.unnest()
    if isinstance(inner, exp.Literal) and not inner.is_string and str(inner.this).isdigit():
        return literals.integer(-int(inner.this), node, b.source)
    arg = b.bind(node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, float):
        return Literal(-arg.value, arg.type)
    if isinstance(arg, Literal) and arg.type is DataType.INTERVAL and isinstance(arg.value, int):
        return Literal(-arg.value, arg.type)
    return b.call("negate", [arg], node, "unary minus")


def _not(b: ScalarBinder, node: exp.Expr) -> Expr:
    inner = node.this.unnest()
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return b.call("is_not_null", [_may_be_null(b, inner.this)], node)
    return b.call("not", [b.boolean(node.this, "the argument of NOT")], node)


def _may_be_null(b: ScalarBinder, node: exp.Expr) -> Expr:
    return Literal(None, DataType.BOOLEAN) if isinstance(node.unnest(), exp.Null) else b.bind(node)


def _logic(b: ScalarBinder, node: exp.Expr) -> Expr:
    name = "and" if isinstance(node, exp.And) else "or"
    parts: list[Expr] = []
    for part in _flat(node, type(node)):
        bound = b.boolean(part, f"each side of {name.upper()}")
        same = isinstance(bound, Call) and bound.function == name
        parts.extend(bound.children if same else (bound,))
    return b.call(name, parts, node)


def _flat(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    inner = node.unnest()
    if not isinstance(inner, kind):
        return [node]
    return [*_flat(inner.this, kind), *_flat(inner.expression, kind)]


def conjuncts_of(node: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition joined by AND, before binding."""
    return [] if node is None else _flat(node, exp.And)


def _compare(b: ScalarBinder, node: exp.Expr) -> Expr:
    windows = _whole_windows(b, node)
    if windows is not None:
        return windows
    operator = _COMPARISONS[type(node)]
    return b.call(operator, b.together([node.this, node.expression]), node)


def _whole_windows(b: ScalarBinder, node: exp.Expr) -> Expr | None:
    """a.window = b.window: both ends are equal."""
    sides = [s.unnest() for s in (node.this, node.expression)]
    columns = [s for s in sides if isinstance(s, exp.Column) and window_name(s) == "window"]
    infos = [b.scope.window_of(c) for c in columns]
    if not isinstance(node, exp.EQ) or len(infos) != 2 or infos[0] is None or infos[1] is None:
        return None
    left, right = infos[0], infos[1]
    pairs = ((left.start, right.start), (left.end, right.end))
    equal = [Call("=", tuple(ColumnRef(c, DataType.TIMESTAMP) for c in pair)) for pair in pairs]
    return Call("and", tuple(equal))


def _arithmetic(b: ScalarBinder, node: exp.Expr) -> Expr:
    operator = _ARITHMETIC[type(node)]
    sides = (node.this, node.expression)
    nulls = any(isinstance(s.unnest(), exp.Null) for s in sides)
    left, right = b.together(sides) if nulls else [b.bind(s) for s in sides]
    both = isinstance(left, Literal) and isinstance(right, Literal)
    if both and left.type is DataType.INTERVAL and right.type is DataType.INTERVAL and operator in "+-":
        return _fold_intervals(left, right, operator)
    return b.call(operator, [left, right], node)


def _fold_intervals(left: Expr, right: Expr, operator: str) -> Expr:
    assert isinstance(left, Literal) and isinstance(right, Literal)
    x, y = int(left.value or 0), int(right.value or 0)
    return Literal(x + y if operator == "+" else x - y, DataType.INTERVAL)


def _between(b: ScalarBinder, node: exp.Expr) -> Expr:
    value, low, high = b.together([node.this, node.args["low"], node.args["high"]])
    least = b.call(">=", [value, low], node, "BETWEEN")
    most = b.call("<=", [value, high], node, "BETWEEN")
    return Call("and", (least, most))


def _in(b: ScalarBinder, node: exp.Expr) -> Expr:
    if node.args.get("query") is not None:
        hint = "Join with the subquery instead."
        raise b.source.refusal(node, "IN (subquery) is not supported", hint)
    return b.call("in", b.together([node.this, *node.expressions]), node, "IN")


def _is(b: ScalarBinder, node: exp.Expr) -> Expr:
    if isinstance(node.expression, exp.Null):
        return b.call("is_null", [_may_be_null(b, node.this)], node)
    if not isinstance(node.expression, exp.Boolean):
        raise b.source.refusal(node, f"IS {node.expression.sql().upper()} is not supported")
    value = b.boolean(node.this, "the left side of IS")
    value = value if node.expression.this else Call("not", (value,))
    return Call("coalesce", (value, _FALSE))


def _like(b: ScalarBinder, node: exp.Expr) -> Expr:
    return b.call("like", [b.bind(node.this), b.bind(node.expression)], node, "LIKE")


def _concat(b: ScalarBinder, node: exp.Expr) -> Expr:
    return b.call("concat", [b.bind(p) for p in _flat(node, exp.DPipe)], node, "||")


def _case(b: ScalarBinder, node: exp.Expr) -> Expr:
    branches = node.args["ifs"]
    conditions = [_when(b, node.args.get("this"), branch.this) for branch in branches]
    default = node.args.get("default")
    otherwise = None if isinstance(default, exp.Null) else default
    return _branches(b, node, conditions, [branch.args["true"] for branch in branches], otherwise)


def _if(b: ScalarBinder, node: exp.Expr) -> Expr:
    condition = b.boolean(node.this, "the condition of IF")
    return _branches(b, node, [condition], [node.args["true"]], node.args.get("false"))


def _when(b: ScalarBinder, operand: exp.Expr | None, node: exp.Expr) -> Expr:
    if operand is None:
        return b.boolean(node, "the condition of WHEN")
    return b.call("=", b.together([operand, node]), node, "CASE ... WHEN")


def _branches(
    b: ScalarBinder,
    node: exp.Expr,
    conditions: list[Expr],
    values: list[exp.Expr],
    otherwise: exp.Expr | None,
) -> Expr:
    bound = b.together(values if otherwise is None else [*values, otherwise])
    if unify(tuple(v.type for v in bound)) is None:
        got = ", ".join(dict.fromkeys(v.type for v in bound))
        raise b.source.error(node, f"the branches of CASE must have one type; they are {got}")
    pairs = tuple(zip(conditions, bound, strict=False))
    return Case(pairs, bound[len(pairs)] if otherwise is not None else None)


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
        return f"Declare the column as {target} in the stream, or write the literal as a {target}."
    if target is DataType.BOOLEAN and source in NUMBERS:
        return "Write x <> 0."
    if target is DataType.STRING and source in NUMBERS:
        return "Round it to a bigint first, or keep it a number."
    if source is DataType.TIMESTAMP and target in NUMBERS:
        return "Use unix_seconds(ts) or unix_micros(ts)."
    return "Keep the value in its own type."


def _extract(b: ScalarBinder, node: exp.Expr) -> Expr:
    part = node.this.name.lower()
    if part not in _PARTS:
        raise b.source.refusal(
            node, f"EXTRACT({part.upper()} ...) is not supported", f"Parts: {', '.join(_PARTS)}."
        )
    return b.call(part, [b.bind(node.expression)], node)


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
    return b.call(function, args, node, written)


def _args(b: ScalarBinder, node: exp.Expr) -> list[Expr]:
    return [b.bind(a) for a in node.expressions]


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
        raise b.source.error(args[1], "the digits of round must be a whole number from 0 to 12")
    return b.call("round", [b.bind(args[0]), Literal(digits, DataType.INT)], node)


def _over(b: ScalarBinder, node: exp.Expr) -> Expr:
    hint = "Group by a window instead: " + "GROUP BY window(ts, '5 minutes', '1 second')."
    raise b.source.refusal(node, "OVER (...) is not supported", hint)


def _subquery(b: ScalarBinder, node: exp.Expr) -> Expr:
    held = b.subqueries.get(id(node))
    if held is not None:
        return held
    hint = "Compare with it in WHERE: a value, a comparison, (SELECT an aggregate ...)."
    raise b.source.refusal(node, f"a subquery in {b.clause} is not supported", hint)


_BINDERS: dict[type[object], Callable[[ScalarBinder, exp.Expr], Expr]] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Interval: _interval,
    exp.Neg: _negate,
    exp.Not: _not,
    exp.And: _logic,
    exp.Or: _logic,
    **dict.fromkeys(_COMPARISONS, _compare),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.DPipe: _concat,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Anonymous: _function,
    exp.Filter: _aggregate,
    exp.Window: _over,
    exp.Subquery: _subquery,
}
