"""One Project where there were several, and none where it does nothing.

- Project(f, Project(g, x)) = Project(f o g, x): f with the expressions of g written out. Holds always; it
  is not done where g's expressions would be copied past `tree.LARGEST` parts.
- Aggregate(k, a, Project(g, x)) = Aggregate(k o g, a o g, x) when x has the window that the Project
  passes on: the Aggregate names its own columns, so nothing above sees the difference. Not where g drops
  or recomputes the ends of the window: then the Aggregate would not exist.
- Project(x) = x when it gives every column of x under its own name in x's order. In another order it
  stays: the order of the columns is part of a query's answer.
"""

from __future__ import annotations

from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.logical import Aggregate, LogicalPlan, Project
from headrace.rewrite.tree import bottom_up, call_args, can_read_through, read_through


def merge_projections(plan: LogicalPlan) -> LogicalPlan:
    return bottom_up(plan, _merge)


def _merge(node: LogicalPlan) -> LogicalPlan:
    match node:
        case Project(input=Project() as inner):
            return _over_project(node, inner)
        case Project() if _is_identity(node):
            return node.input
        case Aggregate(input=Project() as inner):
            return _over_aggregate(node, inner)
    return node


def _is_identity(node: Project) -> bool:
    same = tuple((c.name, ColumnRef(c.name, c.type)) for c in node.input.schema)
    return node.items == same


def _over_project(outer: Project, inner: Project) -> LogicalPlan:
    if not can_read_through((e for _, e in outer.items), inner):
        return outer
    items = tuple((name, read_through(expr, inner)) for name, expr in outer.items)
    return _merge(Project(inner.input, items))


def _over_aggregate(node: Aggregate, inner: Project) -> LogicalPlan:
    exprs = (*(key for _, key in node.keys), *call_args(node.aggregates))
    if inner.input.window is None or not can_read_through(exprs, inner):
        return node
    keys = tuple((name, read_through(key, inner)) for name, key in node.keys)
    calls = tuple((name, _call_through(call, inner)) for name, call in node.aggregates)
    return _merge(Aggregate(inner.input, keys, calls))


def _call_through(call: AggregateCall, inner: Project) -> AggregateCall:
    return AggregateCall(call.function, None if call.arg is None else read_through(call.arg, inner))
