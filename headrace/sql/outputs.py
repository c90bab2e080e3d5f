"""The select list: what each item is, and what its column is called.

An item without an alias is called after its column (`house`), its function (`avg_value`), or its position
(`col_3`). Names must differ, because a sink holds columns by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.plan.expr import ColumnRef, Expr
from headrace.plan.logical import WINDOW_END, WINDOW_START
from headrace.plan.types import DataType
from headrace.sql.place import Source
from headrace.sql.scalars import ScalarBinder
from headrace.sql.scope import Scope, window_name


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result: its name, the alias if one was written, and its expression over the rows."""

    name: str
    alias: str
    expr: Expr
    node: exp.Expr


def bind_outputs(select: exp.Select, binder: ScalarBinder) -> list[Output]:
    outputs: list[Output] = []
    for node in select.expressions:
        outputs.extend(_item(node, binder, len(outputs)))
    _check_names(outputs, binder.source)
    return outputs


def _item(node: exp.Expr, binder: ScalarBinder, position: int) -> list[Output]:
    alias = str(node.alias) if isinstance(node, exp.Alias) else ""
    if isinstance(node, exp.Alias) and not alias:
        raise binder.source.error(node, "the name after AS is empty", "Write a name after AS, or remove it.")
    value = node.this if isinstance(node, exp.Alias) else node
    if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star)):
        table = value.table if isinstance(value, exp.Column) else ""
        return [Output(name, "", column, node) for name, column in binder.scope.star(value, table)]
    if isinstance(value, exp.Column) and window_name(value) == "window":
        window = binder.scope.window_of(value)
        if window is not None:
            return _whole_window(node, alias, window.start, window.end, binder)
    bound = binder.bind(value)
    if bound.type is DataType.INTERVAL:
        hint = "Add it to a timestamp."
        raise binder.source.error(node, "a length of time cannot be a column", hint)
    return [Output(alias or _name(value, position, binder.scope), alias, bound, node)]


def _whole_window(node: exp.Expr, alias: str, start: str, end: str, binder: ScalarBinder) -> list[Output]:
    if alias:
        hint = "Write window.start AS a, window.end AS b."
        raise binder.source.error(node, '"window" is two columns, one alias does not fit', hint)
    return [
        Output(WINDOW_START, "", ColumnRef(start, DataType.TIMESTAMP), node),
        Output(WINDOW_END, "", ColumnRef(end, DataType.TIMESTAMP), node),
    ]


def _name(node: exp.Expr, position: int, scope: Scope) -> str:
    node = node.unnest()
    if isinstance(node, exp.Filter):
        node = node.this
    if isinstance(node, exp.Column):
        return scope.shown_name(node)
    if isinstance(node, exp.Anonymous):
        function = str(node.this).lower()
        column = node.find(exp.Column)
        return f"{function}_{column.name}" if column is not None else function
    return f"col_{position + 1}"


def _check_names(outputs: list[Output], source: Source) -> None:
    seen: set[str] = set()
    for output in outputs:
        if output.name.startswith(("__", "#")) or not output.name.strip():
            hint = "Such names are kept for Headrace itself; choose another alias."
            raise source.error(output.node, f'"{output.name}" cannot be the name of a column', hint)
        if output.name.lower() in seen:
            hint = "Give one of them another name with AS."
            raise source.error(output.node, f'two columns of the result are called "{output.name}"', hint)
        seen.add(output.name.lower())


def aliases_of(select: exp.Select) -> dict[str, exp.Expr]:
    """Select items by alias, for GROUP BY and HAVING."""
    return {str(n.alias).lower(): n.this for n in select.expressions if isinstance(n, exp.Alias)}
