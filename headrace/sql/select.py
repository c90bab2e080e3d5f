"""One SELECT -> a relation.

    read the frame (FROM, WHERE, window) -> compare with scalar subqueries -> group -> project

The last Project gives the columns their names. A subquery over windows keeps the ends of its window in the
plan under window_start and window_end, even where its select list leaves them out: what is around it may
need them to group or join by. At the top only what was selected is left.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.plan.expr import ColumnRef, Expr
from headrace.plan.logical import WINDOW_END, WINDOW_START, LogicalPlan, Project
from headrace.plan.types import DataType
from headrace.sql.clauses import check_clauses
from headrace.sql.frame import Frame, is_aggregated, open_frame, read_frame
from headrace.sql.grouping import group, window_columns
from headrace.sql.outputs import Output, bind_outputs
from headrace.sql.place import Source
from headrace.sql.scalars import ScalarBinder, conjuncts_of
from headrace.sql.scope import Visible
from headrace.sql.sources import Env, Relation
from headrace.sql.subqueries import compare_with_subqueries, holds_subquery

_Items = tuple[tuple[Output, Expr], ...]


def bind_top(select: exp.Select, env: Env) -> LogicalPlan:
    """The whole query: its columns and nothing else."""
    plan, items, _ = _bind(select, env)
    return Project(plan, tuple((output.name, expr) for output, expr in items))


def bind_inner(select: exp.Select, env: Env) -> Relation:
    """A subquery in FROM or WITH."""
    plan, items, frame = _bind(select, env)
    if plan.window is None:
        project = Project(plan, tuple((output.name, expr) for output, expr in items))
        return Relation(project, tuple(Visible(o.name, o.name, e.type) for o, e in items))
    ends = window_columns(frame, plan)
    return replace(_keep_window(plan, items, ends, env.source), form=frame.form)


def _bind(select: exp.Select, env: Env) -> tuple[LogicalPlan, _Items, Frame]:
    """The rows of the result, its columns over them, and the frame they came from."""
    source = env.source
    check_clauses(select, source)
    env = _with_clauses(select, env)
    frame = open_frame(select, env)
    where = select.args.get("where")
    conditions = conjuncts_of(where.this if where is not None else None)
    plain = [c for c in conditions if not holds_subquery(c)]
    compared = [c for c in conditions if holds_subquery(c)]
    plan = compare_with_subqueries(frame, read_frame(frame, plain), compared)
    if is_aggregated(select):
        grouped = group(frame, plan)
        return grouped.plan, grouped.items, frame
    outputs = bind_outputs(select, ScalarBinder(source, frame.scope, "SELECT"))
    return plan, tuple((o, o.expr) for o in outputs), frame


def _with_clauses(select: exp.Select, env: Env) -> Env:
    clause = select.args.get("with_")
    seen: set[str] = set()
    for cte in clause.expressions if clause is not None else ():
        if cte.args["alias"].args.get("columns"):
            raise env.source.refusal(cte, "column names in WITH are not supported", "Use AS in its SELECT.")
        if not isinstance(cte.this, exp.Select):
            raise env.source.refusal(cte, f"{cte.this.key.upper()} is not supported")
        name = str(cte.alias).lower()
        if name in seen:
            raise env.source.error(cte, f'WITH defines "{cte.alias}" twice', "Give one of them another name.")
        seen.add(name)
        env = replace(env, withs={**env.withs, name: env.bind_select(cte.this, env)})
    return env


def _keep_window(plan: LogicalPlan, items: _Items, ends: dict[str, str], source: Source) -> Relation:
    """The select list with the ends of the window in front; a column equal to one is another name for it."""
    window = plan.window
    assert window is not None
    own = ((WINDOW_START, window.start), (WINDOW_END, window.end))
    projected: list[tuple[str, Expr]] = [(name, ColumnRef(c, DataType.TIMESTAMP)) for name, c in own]
    visible: list[Visible] = []
    for output, expr in items:
        end = ends.get(expr.name) if isinstance(expr, ColumnRef) else None
        if end is None and output.name.lower() in (WINDOW_START, WINDOW_END):
            message = f'"{output.name}" is the name of an end of the window'
            raise source.error(output.node, message, "Choose another alias.")
        visible.append(Visible(output.name, end or output.name, expr.type))
        if end is None:
            projected.append((output.name, expr))
    return Relation(Project(plan, tuple(projected)), tuple(visible))
