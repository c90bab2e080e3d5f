"""Operators, literals and names.

SQL's sugar is lowered to the few functions of `plan.functions`, each to something equal for every input,
NULLs included: BETWEEN to two comparisons, x IS TRUE to coalesce(x, FALSE), CASE x WHEN v to CASE WHEN x = v.
What cannot be lowered is refused by name. A NULL takes the type of what stands next to it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.plan.expr import Call, Case, ColumnRef, Expr, Literal
from headrace.plan.functions import unify
from headrace.plan.types import DataType
from headrace.sql import literals
from headrace.sql.binder import ScalarBinder, binds
from headrace.sql.hints import mismatch_hint
from headrace.sql.names import CLOCKS, REFUSED
from headrace.sql.place import offset_of
from headrace.sql.scope import window_name

_FALSE = Literal(False, DataType.BOOLEAN)
COMPARISONS: dict[type[exp.Expr], str] = {
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


@binds(exp.Paren)
def _paren(b: ScalarBinder, node: exp.Expr) -> Expr:
    return b.bind(node.this)


@binds(exp.Column, parts="table db catalog")
def _column(b: ScalarBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise b.source.error(node, "* is not a value", "Name the columns.")
    alias = b.aliases.get(node.name.lower()) if not node.table else None
    if alias is not None and not b.scope.can_resolve(node):
        return replace(b, aliases={}).bind(alias)
    if not node.table and node.name.lower() in CLOCKS and not b.scope.can_resolve(node):
        raise b.source.refusal(node, *REFUSED[node.name.lower()])
    if window_name(node) == "window" and not _is_plain_column(b, node):
        hint = "Use window.start or window.end."
        raise b.source.error(node, '"window" is a pair of instants, not a value', hint)
    return b.scope.resolve(node)


def _is_plain_column(b: ScalarBinder, node: exp.Column) -> bool:
    return b.scope.window_of(node) is None


@binds(exp.Literal, parts="is_string")
def _literal(b: ScalarBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Literal)
    if node.is_string:
        _check_is_no_column(b, node)
        return Literal(str(node.this), DataType.STRING)
    return literals.number(node, b.source)


def _check_is_no_column(b: ScalarBinder, node: exp.Literal) -> None:
    """ "x" is a text in Spark and a column in standard SQL: where both make sense, the user must say."""
    start = offset_of(node)
    if start is None or b.source.text[start : start + 1] != '"':
        return
    if b.scope.can_resolve(exp.column(str(node.this))):
        message = f'"{node.this}" in double quotes is a text, and a column has that name'
        hint = f"Write `{node.this}` for the column, '{node.this}' for the text."
        raise b.source.error(node, message, hint)


@binds(exp.Boolean)
def _boolean(b: ScalarBinder, node: exp.Expr) -> Expr:
    return Literal(bool(node.this), DataType.BOOLEAN)


@binds(exp.Null)
def _null(b: ScalarBinder, node: exp.Expr) -> Expr:
    raise b.source.error(node, "NULL has no type here", "Give it one: CAST(NULL AS double), or AS string.")


@binds(exp.Interval, parts="unit")
def _interval(b: ScalarBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Interval)
    return literals.interval(node, b.source)


@binds(exp.Neg)
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


@binds(exp.Not)
def _not(b: ScalarBinder, node: exp.Expr) -> Expr:
    inner = node.this.unnest()
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return b.call("is_not_null", [_may_be_null(b, inner.this)], node)
    return b.call("not", [b.boolean(node.this, "the argument of NOT")], node)


def _may_be_null(b: ScalarBinder, node: exp.Expr) -> Expr:
    return Literal(None, DataType.BOOLEAN) if isinstance(node.unnest(), exp.Null) else b.bind(node)


@binds(exp.And, exp.Or)
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


@binds(*COMPARISONS)
def _compare(b: ScalarBinder, node: exp.Expr) -> Expr:
    windows = _whole_windows(b, node)
    if windows is not None:
        return windows
    operator = COMPARISONS[type(node)]
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


@binds(*_ARITHMETIC, parts="typed safe")
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


@binds(exp.Between, parts="low high")
def _between(b: ScalarBinder, node: exp.Expr) -> Expr:
    value, low, high = b.together([node.this, node.args["low"], node.args["high"]])
    least = b.call(">=", [value, low], node, "BETWEEN")
    most = b.call("<=", [value, high], node, "BETWEEN")
    return Call("and", (least, most))


@binds(exp.In, parts="query")
def _in(b: ScalarBinder, node: exp.Expr) -> Expr:
    if node.args.get("query") is not None:
        hint = "Join with the subquery instead."
        raise b.source.refusal(node, "IN (subquery) is not supported", hint)
    return b.call("in", b.together([node.this, *node.expressions]), node, "IN")


@binds(exp.Is)
def _is(b: ScalarBinder, node: exp.Expr) -> Expr:
    if isinstance(node.expression, exp.Null):
        return b.call("is_null", [_may_be_null(b, node.this)], node)
    if not isinstance(node.expression, exp.Boolean):
        hint = "IS takes NULL, TRUE or FALSE; compare other values with =."
        raise b.source.refusal(node, f"IS {node.expression.sql().upper()} is not supported", hint)
    value = b.boolean(node.this, "the left side of IS")
    value = value if node.expression.this else Call("not", (value,))
    return Call("coalesce", (value, _FALSE))


@binds(exp.Like, parts="negate")
def _like(b: ScalarBinder, node: exp.Expr) -> Expr:
    like = b.call("like", [b.bind(node.this), b.bind(node.expression)], node, "LIKE")
    return Call("not", (like,)) if node.args.get("negate") else like


@binds(exp.DPipe, parts="safe")
def _concat(b: ScalarBinder, node: exp.Expr) -> Expr:
    return b.call("concat", [b.bind(p) for p in _flat(node, exp.DPipe)], node, "||")


@binds(exp.Case, parts="ifs default")
def _case(b: ScalarBinder, node: exp.Expr) -> Expr:
    branches = node.args["ifs"]
    conditions = [_when(b, node.args.get("this"), branch.this) for branch in branches]
    default = node.args.get("default")
    otherwise = None if isinstance(default, exp.Null) else default
    return _branches(b, node, conditions, [branch.args["true"] for branch in branches], otherwise)


@binds(exp.If, parts="true false")
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
        hint = mismatch_hint("case", [v.type for v in bound])
        raise b.source.error(node, f"the branches of CASE must have one type; they are {got}", hint)
    pairs = tuple(zip(conditions, bound, strict=False))
    return Case(pairs, bound[len(pairs)] if otherwise is not None else None)
