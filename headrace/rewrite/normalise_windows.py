"""Bring the ways to write a window over the same rows to one: Window sits right above the rows it copies.

Then two queries with equal windows are equal in text up to the Window, which is what sharing compares.

- Window(Project(x)) = Project(Window(x)): a Window copies rows and adds two columns, so it does not
  matter whether the others are computed before or after. The event time must be a plain column of x (else
  it would not be one) and x must not have columns named like the ends of the window already.
- TableJoin(Window(x), t) = Window(TableJoin(x, t)), outer or not: a row finds the same partners in each
  of its windows. `FROM s [RANGE 1 MINUTE] JOIN t` and `FROM s JOIN t GROUP BY window(ts, '1 minute')`
  meet here, and rows are joined once instead of once per window. Not where the join reads an end of the
  window (prices valid from t.since: `ON window_end >= t.since`): below the Window there is no such
  column.
- TableJoin(Project(Window(x)), t) = Project(TableJoin(Window(x), t)), so that the Project does not stand
  between them. Not where a column that the Project hides has the name of one of t's columns.

A Filter needs no case: `push_filters` has already moved what can go below the Window.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.plan.expr import ColumnRef, Expr, columns_of
from headrace.plan.logical import WINDOW_END, WINDOW_START, LogicalPlan, Project, TableJoin, Window
from headrace.plan.types import Column, DataType, Schema
from headrace.rewrite.tree import bottom_up, can_read_through, on_reads, read_through

_ENDS = tuple(ColumnRef(name, DataType.TIMESTAMP) for name in (WINDOW_START, WINDOW_END))
_END_NAMES = frozenset({WINDOW_START, WINDOW_END})


def normalise_windows(plan: LogicalPlan) -> LogicalPlan:
    return bottom_up(plan, _normalise)


def _normalise(node: LogicalPlan) -> LogicalPlan:
    match node:
        case Window(input=Project() as project):
            return _window_below(node, project)
        case TableJoin(input=Window() as window):
            return _join_below(node, window)
        case TableJoin(input=Project(input=Window()) as project):
            return _project_above(node, project)
    return node


def _window_below(node: Window, project: Project) -> LogicalPlan:
    time = dict(project.items)[node.time]
    if not isinstance(time, ColumnRef) or _END_NAMES & set(project.input.schema.names):
        return node
    ends = tuple((end.name, end) for end in _ENDS)
    window = _normalise(Window(project.input, time.name, node.spec))
    return Project(window, (*ends, *project.items))


def _join_below(join: TableJoin, window: Window) -> LogicalPlan:
    if _END_NAMES & (on_reads(join.on) | columns_of(join.residual)):
        return join
    return replace(window, input=_normalise(replace(join, input=window.input)))


def _project_above(join: TableJoin, project: Project) -> LogicalPlan:
    hidden = set(project.input.schema.names)
    if hidden & set(join.table.schema.names):
        return join
    if not can_read_through((join.residual, *(mine for mine, _ in join.on)), project):
        return join
    on = tuple((read_through(mine, project), theirs) for mine, theirs in join.on)
    residual = read_through(join.residual, project)
    below = _normalise(replace(join, input=project.input, on=on, residual=residual))
    return Project(below, (*project.items, *_passed(join.table.schema)))


def _passed(schema: Schema) -> tuple[tuple[str, Expr], ...]:
    return tuple((c.name, _ref(c)) for c in schema)


def _ref(column: Column) -> ColumnRef:
    return ColumnRef(column.name, column.type)
