"""Move every condition as close to the scans as it may go, and write it one way.

Expressions are total (a division by zero is NULL, nothing stops a job), so a condition may be evaluated
on rows that another operator would have removed. With that:

- Filter(p, Filter(q, x)) = Filter(p AND q, x); parts are kept once, sorted by their text; TRUE goes.
- Filter(p, Project(x)) = Project(Filter(p', x)), p' being p with the project's expressions written out.
- Filter(p, Window(x)) = Window(Filter(p, x)) when p reads neither end of the window: the copies of a row
  differ in nothing else.
- Filter(p, Aggregate(x)) = Aggregate(Filter(p', x)) when p reads only keys: all rows of a group agree on
  p, and a window without rows gives no result on either side. Not where p reads an aggregate (HAVING
  count(*) > 2 is not about single rows). Not for FLOAT and DOUBLE keys: 0.0 and -0.0 are one group, but
  power(k, -1) > 0 holds for one of them only, so the group would lose half its rows. The ends of the
  window stay above: they are not columns of the stream, and below they would tie the Aggregate to this
  one query.
- A condition on one side of an inner join (IntervalJoin, WindowJoin, TableJoin) moves into that side,
  from above and from the join's own condition; one on both sides becomes part of the join's condition.
- An outer TableJoin lets only conditions from above on its stream side through. A condition on the
  table's columns stays above: in `s LEFT JOIN t ON s.k = t.k WHERE t.v > 5` a row of s whose only match
  has v = 1 must go, but with the condition below it finds no match and comes out with NULLs. The join's
  own condition stays where it is: `ON s.k = t.k AND s.x > 0` does not remove rows of s, it only leaves
  them without a match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.plan.expr import Expr, columns_of, conjunction, conjuncts, substitute
from headrace.plan.logical import (
    WINDOW_END,
    WINDOW_START,
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
from headrace.plan.text import format_expr
from headrace.plan.types import DataType
from headrace.rewrite.tree import can_read_through, read_through

Parts = tuple[Expr, ...]
_ENDS = frozenset({WINDOW_START, WINDOW_END})
_TWO_ZEROS = frozenset({DataType.FLOAT, DataType.DOUBLE})


def push_filters(plan: LogicalPlan) -> LogicalPlan:
    return _push(plan, ())


def _push(node: LogicalPlan, parts: Parts) -> LogicalPlan:
    """`Filter(node, parts)`, with the parts as deep as they may go."""
    match node:
        case Filter():
            return _push(node.input, conjuncts(node.predicate) + parts)
        case Project():
            return _below_project(node, parts)
        case Window():
            above, below = _split(parts, lambda p: not columns_of(p) & _ENDS)
            return _above(replace(node, input=_push(node.input, below)), above)
        case Aggregate():
            return _below_aggregate(node, parts)
        case IntervalJoin() | WindowJoin():
            return _into_join(node, parts)
        case TableJoin():
            return _into_outer(node, parts) if node.outer else _into_table_join(node, parts)
        case StreamScan() | TableScan():
            return _above(node, parts)


def _above(node: LogicalPlan, parts: Parts) -> LogicalPlan:
    predicate = _one(parts)
    return Filter(node, predicate) if conjuncts(predicate) else node


def _one(parts: Parts) -> Expr:
    """One condition, the same for the same parts in any order."""
    flat = {p for part in parts for p in conjuncts(part)}
    return conjunction(tuple(sorted(flat, key=format_expr)))


def _split(parts: Parts, goes: Callable[[Expr], bool]) -> tuple[Parts, Parts]:
    """(the parts that stay, the parts that go)."""
    return tuple(p for p in parts if not goes(p)), tuple(p for p in parts if goes(p))


def _below_project(node: Project, parts: Parts) -> LogicalPlan:
    above, below = _split(parts, lambda p: can_read_through((p,), node))
    deeper = _push(node.input, tuple(read_through(p, node) for p in below))
    return _above(replace(node, input=deeper), above)


def _below_aggregate(node: Aggregate, parts: Parts) -> LogicalPlan:
    keys = {name: key for name, key in node.keys if key.type not in _TWO_ZEROS}
    above, below = _split(parts, lambda p: columns_of(p) <= keys.keys())
    deeper = _push(node.input, tuple(substitute(p, keys) for p in below))
    return _above(replace(node, input=deeper), above)


def _sides(parts: Parts, left: LogicalPlan) -> tuple[Parts, Parts, Parts]:
    """(read the left only, read the right only, read both). A constant condition counts as left."""
    mine = frozenset(left.schema.names)
    on_left = tuple(p for p in parts if columns_of(p) <= mine)
    on_right = tuple(p for p in parts if columns_of(p) and not columns_of(p) & mine)
    return on_left, on_right, tuple(p for p in parts if columns_of(p) & mine and columns_of(p) - mine)


def _into_join(node: IntervalJoin | WindowJoin, parts: Parts) -> LogicalPlan:
    on_left, on_right, both = _sides(conjuncts(node.residual) + parts, node.left)
    left, right = _push(node.left, on_left), _push(node.right, on_right)
    return replace(node, left=left, right=right, residual=_one(both))


def _into_table_join(node: TableJoin, parts: Parts) -> LogicalPlan:
    on_left, on_right, both = _sides(conjuncts(node.residual) + parts, node.input)
    stream, table = _push(node.input, on_left), _push(node.table, on_right)
    return replace(node, input=stream, table=table, residual=_one(both))


def _into_outer(node: TableJoin, parts: Parts) -> LogicalPlan:
    on_left, on_right, both = _sides(parts, node.input)
    joined = replace(node, input=_push(node.input, on_left), table=_push(node.table, ()))
    return _above(joined, on_right + both)
