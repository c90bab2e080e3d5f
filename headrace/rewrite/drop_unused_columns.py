"""Read and carry only the columns that something above needs.

x = x without column c, for a reader that never names c. What is needed goes down from the root, whose
columns are all needed, so the plan's own columns never change. Three things are needed though no
expression names them:

- a stream's event time (it makes the watermark) and the event times a join bounds or a Window opens on;
- the ends of the window below an Aggregate or a WindowJoin;
- every key of an Aggregate, read above or not: without `household` in `GROUP BY house, household` the
  groups would be houses, and max(total) over them another number.

A stream that is read in several places is read with the same columns in all of them, so that equal
sub-plans stay equal: a window compared with its own maximum must not become two reads of the stream.

At least one column stays where there was one: a Project, a table and an Aggregate's calls are never
emptied, since an engine need not have a relation without columns.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    nodes,
)
from headrace.plan.types import Schema
from headrace.rewrite.tree import call_args, on_reads, reads, with_inputs

Names = frozenset[str]


def drop_unused_columns(plan: LogicalPlan) -> LogicalPlan:
    alone = _Narrower({}).narrow(plan, frozenset(plan.schema.names))
    return _Narrower(_read_anywhere(alone)).narrow(plan, frozenset(plan.schema.names))


def _read_anywhere(plan: LogicalPlan) -> dict[str, Names]:
    """For each stream and table, the columns that some scan of it has."""
    found: dict[str, Names] = {}
    for node in nodes(plan):
        if isinstance(node, StreamScan | TableScan):
            found[_source(node)] = found.get(_source(node), frozenset()) | set(node.columns.names)
    return found


def _source(scan: StreamScan | TableScan) -> str:
    return f"stream {scan.stream}" if isinstance(scan, StreamScan) else f"table {scan.table}"


class _Narrower:
    """One pass from the root to the scans; `kept` is what a scan keeps besides what is needed above it."""

    def __init__(self, kept: Mapping[str, Names]) -> None:
        self._kept = kept

    def narrow(self, node: LogicalPlan, needed: Names) -> LogicalPlan:
        """The node with at least the columns `needed`, in their old order, and few others."""
        match node:
            case StreamScan():
                return self._scan(node, needed | {node.time})
            case TableScan():
                return self._scan(node, needed)
            case Filter():
                return replace(node, input=self.narrow(node.input, needed | columns_of(node.predicate)))
            case Project():
                return self._project(node, needed)
            case Window():
                return replace(node, input=self.narrow(node.input, needed | {node.time}))
            case Aggregate():
                return self._aggregate(node, needed)
            case IntervalJoin():
                times = (name for bound in node.time_bounds for name in (bound.earlier, bound.later))
                return self._join(node, needed.union(times))
            case WindowJoin():
                return self._join(node, needed | _ends(node.left.window) | _ends(node.right.window))
            case TableJoin():
                return self._join(node, needed)

    def _scan(self, node: StreamScan | TableScan, needed: Names) -> LogicalPlan:
        wanted = needed | self._kept.get(_source(node), frozenset())
        columns = tuple(c for c in node.columns if c.name in wanted) or node.columns.columns[:1]
        return replace(node, columns=Schema(columns))

    def _project(self, node: Project, needed: Names) -> Project:
        items = tuple(item for item in node.items if item[0] in needed) or node.items[:1]
        return Project(self.narrow(node.input, reads(e for _, e in items)), items)

    def _aggregate(self, node: Aggregate, needed: Names) -> Aggregate:
        calls = tuple(call for call in node.aggregates if call[0] in needed) or node.aggregates[:1]
        wanted = reads((*(key for _, key in node.keys), *call_args(calls))) | _ends(node.input.window)
        return Aggregate(self.narrow(node.input, wanted), node.keys, calls)

    def _join(self, node: IntervalJoin | WindowJoin | TableJoin, needed: Names) -> LogicalPlan:
        wanted = needed | on_reads(node.on) | columns_of(node.residual)
        return with_inputs(node, tuple(self.narrow(side, wanted) for side in node.inputs))


def _ends(window: WindowInfo | None) -> Names:
    return frozenset() if window is None else frozenset({window.start, window.end})
