"""Bring conditions and projections up through table joins below a window: the joined rows become the same for
all who join the same stream with the same table, whatever they keep of them and however they call it.

The opposite of what is good for a query alone, so not one of driver.RULES: sharing compares the rows below
the window, and what is above them can be done for each query. With x a stream and t a table:

- TableJoin(Filter(p, x), t) = Filter(p, TableJoin(x, t)), outer or not: p is about the row of x alone.
- TableJoin(x, Filter(q, t)) = Filter(q, TableJoin(x, t)) for inner joins. Not for outer ones: a row whose
  only match fails q must come out with NULLs, not go.
- TableJoin(Project(f, x), Project(g, t)) = Project(f + g, TableJoin(x, t')), t' being all columns of t, each
  under the name `table.column` that no alias changes. Not where a name would stand twice (a table joined
  with itself), and not where what f and g compute would be copied past `tree.LARGEST` parts.
- The pairs of ON are sorted by their text, and kept once.
- Filter(p, Project(x)) = Project(Filter(p', x)), so that what was left above a join meets what came up.

An outer join gives NULL for a column of g; an expression of g over that NULL may give another value
(coalesce(t.v, 0)), so outer joins are left alone where g computes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.plan.expr import ColumnRef, Expr, conjunction, conjuncts, substitute, walk
from headrace.plan.logical import Filter, LogicalPlan, Project, Shape, TableJoin, TableScan
from headrace.plan.text import format_expr
from headrace.rewrite.tree import LARGEST, bottom_up, can_read_through

Items = tuple[tuple[str, Expr], ...]


def lift_from_joins(plan: LogicalPlan) -> LogicalPlan:
    return bottom_up(plan, _lift)


@dataclass(frozen=True, slots=True)
class _Peeled:
    """A plan as Project(items, Filter(parts, core))."""

    core: LogicalPlan
    parts: tuple[Expr, ...]
    items: Items

    def over(self, expr: Expr) -> Expr:
        """An expression over the plan's columns, over those of the core."""
        return substitute(expr, dict(self.items))


def _peel(plan: LogicalPlan) -> _Peeled | None:
    """None: the expressions would grow too large."""
    match plan:
        case Filter():
            below = _peel(plan.input)
            if below is None or not _fits((plan.predicate,), below):
                return None
            return replace(below, parts=(*below.parts, *conjuncts(below.over(plan.predicate))))
        case Project():
            below = _peel(plan.input)
            if below is None or not _fits(tuple(e for _, e in plan.items), below):
                return None
            return replace(below, items=tuple((name, below.over(e)) for name, e in plan.items))
    return _Peeled(plan, (), tuple((c.name, ColumnRef(c.name, c.type)) for c in plan.schema))


def _fits(exprs: tuple[Expr, ...], below: _Peeled) -> bool:
    return can_read_through(exprs, Project(below.core, below.items))


def _lift(node: LogicalPlan) -> LogicalPlan:
    if node.shape is not Shape.STREAM:
        return node
    match node:
        case TableJoin():
            return _from_join(node)
        case Filter(input=Project()):
            found = _peel(node)
            return node if found is None else Project(_above(found.core, found.parts), found.items)
    return node


def _from_join(node: TableJoin) -> LogicalPlan:
    mine, theirs = _peel(node.input), _table(node)
    if mine is None or theirs is None or set(mine.core.schema.names) & set(theirs.core.schema.names):
        return node
    items = (*mine.items, *theirs.items)
    if sum(1 for e in (node.residual, *(e for _, e in items)) for _ in walk(e)) > LARGEST:
        return node
    on = {(mine.over(a), theirs.over(b)) for a, b in node.on}
    pairs = tuple(sorted(on, key=lambda pair: (format_expr(pair[0]), format_expr(pair[1]))))
    residual = substitute(node.residual, dict(items))
    join = TableJoin(mine.core, theirs.core, pairs, residual, node.outer)
    lifted = _above(join, (*mine.parts, *theirs.parts))
    return lifted if _passes(items, join) else Project(lifted, items)


def _passes(items: Items, join: TableJoin) -> bool:
    """Whether a Project of these items would change nothing."""
    return items == tuple((c.name, ColumnRef(c.name, c.type)) for c in join.schema)


def _above(plan: LogicalPlan, parts: tuple[Expr, ...]) -> LogicalPlan:
    kept = tuple(sorted(set(parts), key=format_expr))
    return Filter(plan, conjunction(kept)) if kept else plan


def _table(node: TableJoin) -> _Peeled | None:
    """The table's side over all columns of its scan, under names of their own; None: left as it is."""
    found = _peel(node.table)
    if found is None or not isinstance(found.core, TableScan):
        return None
    scan = found.core
    names = {c.name: ColumnRef(f"{scan.table}.{c.name}", c.type) for c in scan.schema}
    named = tuple((ref.name, ColumnRef(name, ref.type)) for name, ref in names.items())
    new: dict[str, Expr] = dict(names)
    items = tuple((name, substitute(e, new)) for name, e in found.items)
    if not node.outer:
        return _Peeled(Project(scan, named), tuple(substitute(p, new) for p in found.parts), items)
    if not all(isinstance(e, ColumnRef) for _, e in items):
        return None
    return _Peeled(Project(_above(scan, found.parts), named), (), items)
