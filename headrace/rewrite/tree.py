"""What the rules share: rebuilding nodes over new inputs, and reading expressions through a Project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.plan.expr import AggregateCall, ColumnRef, Expr, columns_of, substitute, walk
from headrace.plan.logical import (
    Aggregate,
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    StreamScan,
    TableJoin,
    TableScan,
    Window,
    WindowJoin,
)

LARGEST = 400
"""Reading through a Project copies its expressions to every place that reads them. Nested doublings
(x + x of y + y of ...) would grow without end, so no rule makes a list of expressions with more parts."""


def with_inputs(node: LogicalPlan, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
    """The same operator over other inputs; the node itself when they are its own."""
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    match node:
        case StreamScan() | TableScan():
            return node
        case Filter() | Project() | Window() | Aggregate():
            return replace(node, input=inputs[0])
        case TableJoin():
            return replace(node, input=inputs[0], table=inputs[1])
        case IntervalJoin() | WindowJoin():
            return replace(node, left=inputs[0], right=inputs[1])


def bottom_up(plan: LogicalPlan, change: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """The plan with `change` applied to every node, inputs first."""
    return change(with_inputs(plan, tuple(bottom_up(i, change) for i in plan.inputs)))


def reads(exprs: Iterable[Expr]) -> frozenset[str]:
    """Names of all columns that any of the expressions reads."""
    return frozenset().union(*(columns_of(e) for e in exprs))


def on_reads(on: tuple[tuple[Expr, Expr], ...]) -> frozenset[str]:
    return reads(side for pair in on for side in pair)


def call_args(calls: tuple[tuple[str, AggregateCall], ...]) -> tuple[Expr, ...]:
    return tuple(call.arg for _, call in calls if call.arg is not None)


def can_read_through(exprs: Iterable[Expr], project: Project) -> bool:
    """Whether the expressions stay small enough when written over the project's input."""
    sizes = {name: _size(expr) for name, expr in project.items}
    parts = (part for expr in exprs for part in walk(expr))
    total = sum(sizes.get(part.name, 1) if isinstance(part, ColumnRef) else 1 for part in parts)
    return total <= LARGEST


def read_through(expr: Expr, project: Project) -> Expr:
    """The expression over the project's input instead of its output."""
    return substitute(expr, dict(project.items))


def _size(expr: Expr) -> int:
    return sum(1 for _ in walk(expr))
