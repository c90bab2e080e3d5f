"""Aggregate calls, and what a SELECT may still name once its rows are grouped.

Expressions of the select list and of HAVING are bound over the rows, each aggregate call in them standing for
a column to come. Then they are lifted over the Aggregate: a part equal to a group key becomes the key's
column, a window's end becomes window_start or window_end, and any other column of the rows is an error,
because it has no one value in a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.errors import UserError
from headrace.plan.expr import AggregateCall, Call, Case, Cast, ColumnRef, Expr, Literal
from headrace.plan.functions import AGGREGATES
from headrace.plan.logical import WINDOW_END, WINDOW_START
from headrace.plan.types import DataType
from headrace.sql.hints import mismatch_hint
from headrace.sql.literals import is_text, whole_number
from headrace.sql.names import AGGREGATE_NAMES
from headrace.sql.place import Source
from headrace.sql.scalars import ScalarBinder

_MARK = "\0aggregate "


class NotGrouped(Exception):
    """A column of the rows is used where only keys and aggregates are."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


@dataclass(slots=True)
class AggregateSet:
    """The aggregate calls of one SELECT, each once, in the order of first use."""

    rows: ScalarBinder
    """Binds the arguments; knows no aggregates, so an aggregate inside an aggregate is an error."""
    calls: dict[AggregateCall, str] = field(default_factory=dict)

    def hook(self, node: exp.Expr) -> Expr:
        """The column that stands for an aggregate call until its name is known."""
        call = aggregate_call(node, self.rows)
        mark = self.calls.setdefault(call, f"{_MARK}{len(self.calls)}")
        return ColumnRef(mark, call.type)

    def names(self, wanted: Sequence[tuple[str, Expr]], taken: set[str]) -> dict[str, str]:
        """Final names by mark: the alias of the select item that is exactly the call, else agg_N."""
        taken = {name.lower() for name in (*taken, WINDOW_START, WINDOW_END)}
        chosen: dict[str, str] = {}
        for alias, expr in wanted:
            mark = expr.name if isinstance(expr, ColumnRef) else ""
            if mark.startswith(_MARK) and mark not in chosen and alias.lower() not in taken:
                chosen[mark] = alias
                taken.add(alias.lower())
        for mark in self.calls.values():
            if mark not in chosen:
                chosen[mark] = free_name("agg", taken)
                taken.add(chosen[mark])
        return chosen


def free_name(stem: str, taken: set[str]) -> str:
    """stem_0, stem_1, ...: the first that is not taken. Engines do not tell names apart by case."""
    number = 0
    taken = {name.lower() for name in taken}
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def aggregate_call(node: exp.Expr, rows: ScalarBinder) -> AggregateCall:
    """`sum(x)`, `count(*)`, `avg(x) FILTER (WHERE p)`."""
    condition = None
    call = node
    if isinstance(node, exp.Filter):
        condition = rows.boolean(node.expression.this, "FILTER")
        call = node.this
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() not in AGGREGATE_NAMES:
        raise rows.source.error(node, "FILTER follows an aggregate", "Write sum(x) FILTER (WHERE p).")
    function = AGGREGATE_NAMES[str(call.this).lower()]
    arg = _argument(call, function, rows)
    if condition is not None:
        arg = Case(((condition, Literal(1, DataType.INT) if arg is None else arg),), None)
    types = () if arg is None else (arg.type,)
    if AGGREGATES[function].rule(types) is None:
        got = ", ".join(types) or "nothing"
        message = f"{call.this} takes {AGGREGATES[function].takes}; it got {got}"
        raise rows.source.error(call, message, mismatch_hint(function, types))
    return AggregateCall(function, arg)


def _argument(call: exp.Anonymous, function: str, rows: ScalarBinder) -> Expr | None:
    args = call.expressions
    if any(isinstance(a, exp.Distinct) for a in args):
        counts = function == "count"
        hint = "Use approx_count_distinct(x)." if counts else "Remove DISTINCT."
        raise rows.source.refusal(call, f"{call.this}(DISTINCT ...) is not supported", hint)
    if len(args) != 1:
        message = f"{call.this} takes {AGGREGATES[function].takes}; it got {len(args) or 'no'} arguments"
        raise rows.source.error(call, message, f"Write {function}({'*' if function == 'count' else 'x'}).")
    if isinstance(args[0], exp.Star):
        if function != "count":
            raise rows.source.error(call, f"{call.this}(*) has no meaning", "Only count takes *.")
        return None
    if function == "count" and (whole_number(args[0]) is not None or is_text(args[0])):
        return None
    return rows.bind(args[0])


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATE_NAMES


def has_aggregate(node: exp.Expr | None) -> bool:
    """Whether the expression holds an aggregate of its own SELECT."""
    if node is None or isinstance(node, exp.Query | exp.Window):
        return False
    if is_aggregate(node):
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


@dataclass(frozen=True, slots=True)
class Lifting:
    """What columns of the rows are called above the Aggregate."""

    keys: Mapping[Expr, str]
    columns: Mapping[str, str]
    """Marks of aggregates and ends of the window -> their columns."""

    def lift(self, expr: Expr) -> Expr:
        if expr in self.keys:
            return ColumnRef(self.keys[expr], expr.type)
        match expr:
            case ColumnRef():
                if expr.name not in self.columns:
                    raise NotGrouped(expr.name)
                return ColumnRef(self.columns[expr.name], expr.type)
            case Call():
                return Call(expr.function, tuple(self.lift(a) for a in expr.args))
            case Cast():
                return Cast(self.lift(expr.arg), expr.type)
            case Case():
                branches = tuple((self.lift(c), self.lift(v)) for c, v in expr.branches)
                return Case(branches, None if expr.otherwise is None else self.lift(expr.otherwise))
        return expr


def not_grouped(error: NotGrouped, node: exp.Expr, rows: ScalarBinder, source: Source) -> UserError:
    """The error at the column's own place in the expression."""
    for column in _free_columns(node):
        if rows.scope.can_resolve(column) and rows.scope.resolve(column).name == error.column:
            name = column.name
            hint = f"Add it to GROUP BY, or put it in an aggregate: max({name})."
            message = f'column "{name}" is neither in GROUP BY nor in an aggregate'
            return source.error(column, message, hint)
    return source.error(node, f'column "{error.column}" is neither in GROUP BY nor in an aggregate')


def _free_columns(node: exp.Expr) -> list[exp.Column]:
    if is_aggregate(node):
        return []
    if isinstance(node, exp.Column):
        return [node]
    return [c for child in node.iter_expressions() for c in _free_columns(child)]
