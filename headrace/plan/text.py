"""The stable text of plans and expressions: what goldens compare, explain prints and fingerprints hash.

One line a node, inputs first; a node shared by two readers is written once.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.expr import TRUE, AggregateCall, Call, Case, Cast, ColumnRef, Expr, Literal
from headrace.plan.types import DataType
from headrace.units import MICROS, format_duration, format_instant

_INFIX = {"or": 1, "and": 2, "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "like": 4}
_INFIX |= {"+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_ATOM = 9


def format_literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    match literal.type:
        case DataType.STRING:
            return "'" + str(value).replace("'", "''") + "'"
        case DataType.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case DataType.TIMESTAMP:
            return f"TIMESTAMP '{format_instant(int(value))}'"
        case DataType.DATE:
            return f"DATE '{format_instant(int(value) * MICROS['day'])[:10]}'"
        case DataType.INTERVAL:
            return f"INTERVAL '{format_duration(int(value))}'"
    return repr(value)


def _format(expr: Expr) -> tuple[str, int]:
    """The text of an expression and how tightly it binds."""
    match expr:
        case ColumnRef():
            return expr.name, _ATOM
        case Literal():
            return format_literal(expr), _ATOM
        case Cast():
            return f"CAST({format_expr(expr.arg)} AS {expr.type.upper()})", _ATOM
        case Case():
            parts = [f"WHEN {format_expr(c)} THEN {format_expr(v)}" for c, v in expr.branches]
            parts += [] if expr.otherwise is None else [f"ELSE {format_expr(expr.otherwise)}"]
            return f"CASE {' '.join(parts)} END", _ATOM
        case Call():
            return _format_call(expr)
    raise InternalError(f"no text for {expr!r}")


def _format_call(call: Call) -> tuple[str, int]:
    name, args = call.function, call.args
    level = _INFIX.get(name)
    if level is not None:
        # The left operand may bind as tightly as the operator itself, the right one must bind tighter.
        texts = [_enclosed(a, level if i == 0 else level + 1) for i, a in enumerate(args)]
        return f" {name.upper()} ".join(texts), level
    match name:
        case "not":
            return f"NOT {_enclosed(args[0], 3)}", 3
        case "is_null":
            return f"{_enclosed(args[0], 5)} IS NULL", 4
        case "is_not_null":
            return f"{_enclosed(args[0], 5)} IS NOT NULL", 4
        case "in":
            return f"{_enclosed(args[0], 5)} IN ({', '.join(map(format_expr, args[1:]))})", 4
        case "negate":
            return f"-{_enclosed(args[0], 7)}", 7
    return f"{name}({', '.join(map(format_expr, args))})", _ATOM


def _enclosed(expr: Expr, least: int) -> str:
    text, level = _format(expr)
    return text if level >= least else f"({text})"


def format_expr(expr: Expr) -> str:
    return _format(expr)[0]


def format_aggregate(call: AggregateCall) -> str:
    return f"{call.function}({'*' if call.arg is None else format_expr(call.arg)})"


def _named(name: str, text: str) -> str:
    return name if name == text else f"{text} AS {name}"


def _on(pairs: tuple[tuple[Expr, Expr], ...], residual: Expr) -> str:
    parts = [f"{_enclosed(a, 5)} = {_enclosed(b, 5)}" for a, b in pairs]
    return " AND ".join(parts + ([] if residual == TRUE else [_enclosed(residual, 3)])) or "TRUE"


def _detail(node: lp.LogicalPlan) -> str:
    match node:
        case lp.StreamScan():
            columns = ", ".join(map(str, node.columns))
            return f"{node.stream} [{columns}] time {node.time}, watermark {format_duration(node.watermark)}"
        case lp.TableScan():
            return f"{node.table} [{', '.join(map(str, node.columns))}]"
        case lp.Filter():
            return format_expr(node.predicate)
        case lp.Project():
            return ", ".join(_named(n, format_expr(e)) for n, e in node.items)
        case lp.Window():
            return f"{node.spec} on {node.time}"
        case lp.Aggregate():
            keys = ", ".join(_named(n, format_expr(e)) for n, e in node.keys)
            calls = ", ".join(_named(n, format_aggregate(c)) for n, c in node.aggregates)
            return f"by ({keys}) give ({calls})"
        case lp.IntervalJoin():
            bounds = "; ".join(str(b) for b in node.time_bounds)
            return f"on {_on(node.on, node.residual)}" + (f" within {bounds}" if bounds else "")
        case lp.TableJoin():
            return f"{'outer ' if node.outer else ''}on {_on(node.on, node.residual)}"
        case lp.WindowJoin():
            return f"on {_on(node.on, node.residual)}"
    raise InternalError(f"no text for {node!r}")


@dataclass(frozen=True, slots=True)
class Line:
    """One node of a plan as text."""

    id: str
    operator: str
    inputs: tuple[str, ...]
    detail: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        heads = " ".join((self.operator, *self.inputs))
        return (
            f"{self.id} := {heads}: {self.detail}" if self.inputs else f"{self.id} := {heads} {self.detail}"
        )


_NAMES = {"StreamScan": "Stream", "TableScan": "Table"}


def plan_lines(plan: lp.LogicalPlan) -> tuple[Line, ...]:
    """The nodes of a plan, inputs first, equal sub-plans once."""
    ids: dict[lp.LogicalPlan, str] = {}
    lines: list[Line] = []
    for node in lp.nodes(plan):
        if node in ids:
            continue
        ids[node] = f"n{len(ids)}"
        operator = _NAMES.get(type(node).__name__, type(node).__name__)
        inputs = tuple(ids[i] for i in node.inputs)
        lines.append(Line(ids[node], operator, inputs, _detail(node), tuple(map(str, node.schema))))
    return tuple(lines)


def format_plan(plan: lp.LogicalPlan) -> str:
    return "\n".join(map(str, plan_lines(plan)))
