"""How wide rows are where they may go from one engine to the other: only columns that are read further up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.plan.expr import Expr, columns_of
from headrace.plan.logical import (
    Aggregate,
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    TableJoin,
    Window,
    WindowJoin,
)
from headrace.service.placing_problem import width_of

Path = tuple[int, ...]
"""The way to a node from the root, input by input: at two places a node may be read for other columns."""


def widths(plan: LogicalPlan) -> Mapping[Path, float]:
    """Bytes of a row of each node, of the columns that are read above it."""
    found: dict[Path, float] = {}

    def visit(node: LogicalPlan, wanted: frozenset[str], path: Path) -> None:
        found[path] = width_of(column for column in node.schema if column.name in wanted)
        for number, child in enumerate(node.inputs):
            names = _read(node, wanted) & frozenset(child.schema.names)
            visit(child, names | frozenset(child.times[:1]) | _ends(child), (*path, number))

    visit(plan, frozenset(plan.schema.names), ())
    return found


def _ends(node: LogicalPlan) -> frozenset[str]:
    """Rows of a window always say which one it is."""
    return frozenset() if node.window is None else frozenset((node.window.start, node.window.end))


def _read(node: LogicalPlan, wanted: frozenset[str]) -> frozenset[str]:
    """Names of columns of the inputs that the node reads to give what is wanted of it."""
    match node:
        case Project():
            return _names(expr for name, expr in node.items if name in wanted)
        case Filter():
            return wanted | _names([node.predicate])
        case Aggregate():
            calls = (call.arg for _, call in node.aggregates if call.arg is not None)
            return _names([*(key for _, key in node.keys), *calls])
        case Window():
            return wanted | {node.time}
        case IntervalJoin() | TableJoin() | WindowJoin():
            sides = [side for pair in node.on for side in pair]
            return wanted | _names([*sides, node.residual])
        case _:
            return wanted


def _names(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset(name for expr in exprs for name in columns_of(expr))
