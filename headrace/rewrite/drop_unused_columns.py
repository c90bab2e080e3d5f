"""Read and carry only the columns that something above needs.

x = x without column c, for a reader that never names c. What is needed goes down from the root, whose
columns are all needed, so the plan's own columns never change. Three things are needed though no
expression names them:

- a stream's event time (it makes the watermark) and the event times a join bounds or a Window opens on;
- the ends of the window below an Aggregate or a WindowJoin;
- every key of an Aggregate, read above or not: without `household` in `GROUP BY house, household` the
  groups would be houses, and max(total) over them another number.

At least one column stays where there was one: a Project, a table and an Aggregate's calls are never
emptied, since an engine need not have a relation without columns.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.plan.expr import columns_of
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
    WindowInfo,
    WindowJoin,
)
from headrace.plan.types import Schema
from headrace.rewrite.tree import call_args, on_reads, reads

Names = frozenset[str]


def drop_unused_columns(plan: LogicalPlan) -> LogicalPlan:
    return _narrow(plan, frozenset(plan.schema.names))


def _narrow(node: LogicalPlan, needed: Names) -> LogicalPlan:
    """The node with at least the columns `needed`, in their old order, and few others."""
    match node:
        case StreamScan():
            return replace(node, columns=_columns(node.columns, needed | {node.time}))
        case TableScan():
            return replace(node, columns=_columns(node.columns, needed))
        case Filter():
            return replace(node, input=_narrow(node.input, needed | columns_of(node.predicate)))
        case Project():
            return _narrow_project(node, needed)
        case Window():
            return replace(node, input=_narrow(node.input, needed | {node.time}))
        case Aggregate():
            return _narrow_aggregate(node, needed)
        case IntervalJoin():
            times = (name for bound in node.time_bounds for name in (bound.earlier, bound.later))
            return _narrow_join(node, needed.union(times))
        case WindowJoin():
            return _narrow_join(node, needed | _ends(node.left.window) | _ends(node.right.window))
        case TableJoin():
            wanted = needed | on_reads(node.on) | columns_of(node.residual)
            return replace(node, input=_narrow(node.input, wanted), table=_narrow(node.table, wanted))


def _columns(schema: Schema, needed: Names) -> Schema:
    kept = tuple(c for c in schema if c.name in needed)
    return Schema(kept or schema.columns[:1])


def _ends(window: WindowInfo | None) -> Names:
    return frozenset() if window is None else frozenset({window.start, window.end})


def _narrow_project(node: Project, needed: Names) -> Project:
    items = tuple(item for item in node.items if item[0] in needed) or node.items[:1]
    return Project(_narrow(node.input, reads(e for _, e in items)), items)


def _narrow_aggregate(node: Aggregate, needed: Names) -> Aggregate:
    calls = tuple(call for call in node.aggregates if call[0] in needed) or node.aggregates[:1]
    wanted = reads((*(key for _, key in node.keys), *call_args(calls))) | _ends(node.input.window)
    return Aggregate(_narrow(node.input, wanted), node.keys, calls)


def _narrow_join(node: IntervalJoin | WindowJoin, needed: Names) -> LogicalPlan:
    wanted = needed | on_reads(node.on) | columns_of(node.residual)
    return replace(node, left=_narrow(node.left, wanted), right=_narrow(node.right, wanted))
