"""Which output columns of a plan rest on approx_count_distinct.

Spark estimates that count and the reference counts exactly, so such columns are compared within the stated
error. A column is approximate when it is such a count or is computed from one; the mark follows names up
the plan, through renaming Projects and aggregates of aggregates.
"""

from __future__ import annotations

from headrace.plan.expr import ColumnRef, Expr, walk
from headrace.plan.logical import Aggregate, LogicalPlan, Project


def approximate_columns(plan: LogicalPlan) -> frozenset[str]:
    below = frozenset(name for child in plan.inputs for name in approximate_columns(child))
    match plan:
        case Project():
            return frozenset(name for name, expr in plan.items if _reads(expr, below))
        case Aggregate():
            keys = (name for name, key in plan.keys if _reads(key, below))
            calls = (
                name
                for name, call in plan.aggregates
                if call.function == "approx_count_distinct" or _reads(call.arg, below)
            )
            return frozenset((*keys, *calls))
        case _:
            return below


def _reads(expr: Expr | None, names: frozenset[str]) -> bool:
    return expr is not None and any(isinstance(p, ColumnRef) and p.name in names for p in walk(expr))
