"""A query as a member of a tree: its normal form, and the window aggregate in it that a tree computes.

Members are compared by the rows below their filters. The normal form makes those equal wherever they mean the
same: windows right above the rows, conditions right below the window, projections written out in keys and
arguments, tables joined whole and under names that no alias changes. No column is dropped, since which
columns a query reads is no reason to read the stream twice.
"""

from __future__ import annotations

from headrace.catalog.model import Project, Query
from headrace.plan.logical import Aggregate, Filter, LogicalPlan, TableJoin, Window, WindowJoin
from headrace.plan.logical import Project as Projection
from headrace.plan.placed import TreeMember
from headrace.plan.shared import unmergeable
from headrace.rewrite.driver import rewrite
from headrace.rewrite.lift_from_joins import lift_from_joins
from headrace.rewrite.merge_projections import merge_projections
from headrace.rewrite.normalise_windows import normalise_windows
from headrace.rewrite.push_filters import push_filters
from headrace.service.binding import bind

OFF = "sharing is off in the project file"
NAMES_ENGINE = "it names an engine in the project file, and a tree has an engine of its own"
AS_BOUND = "rewriting is off in the project file, and a tree needs the normal form of its queries"


def normal_form(plan: LogicalPlan) -> LogicalPlan:
    """First down to one way of writing it, then up again what stands in the way of sharing."""
    down = rewrite(plan, (push_filters, normalise_windows, merge_projections))
    return rewrite(down, (lift_from_joins, normalise_windows, merge_projections))


def member_of(project: Project, query: Query) -> TreeMember | str:
    """A query as a member of a tree, or why it can be in none. Raises UserError where it does not bind."""
    bound = bind(project, query)
    if query.engine is not None or query.engines is not None:
        return NAMES_ENGINE
    if not project.planner.sharing:
        return OFF
    if not project.planner.rewrite:
        return AS_BOUND
    plan = normal_form(bound)
    found = weavable(plan)
    if isinstance(found, str):
        return found
    return not_runnable(plan, found) or TreeMember(query.name, plan, found)


def not_runnable(plan: LogicalPlan, aggregate: Aggregate) -> str:
    """Why the engine of trees cannot run a query; empty where it can."""
    # Imported here: the engines take a while to load, and `check` of a project without windows needs none.
    from headrace.runtime.duckdb import above
    from headrace.runtime.windows import partials

    reasons = [partials.unsupported(call) for _, call in aggregate.aggregates]
    return next((reason for reason in [*reasons, above.unsupported(plan, aggregate)] if reason), "")


def weavable(plan: LogicalPlan) -> Aggregate | str:
    """The aggregate of a plan that can be in a tree, or why there is none. What stands above it (filters on
    results, projections, aggregates of aggregates) is done on its results, shared or not."""
    top: Aggregate | None = None
    while True:
        match plan:
            case Aggregate(input=Window()):
                return unmergeable(plan) or plan
            case WindowJoin():
                return "it joins windows with each other, and a tree gives one window aggregate"
            case Filter() | Projection() | Aggregate() | TableJoin():
                top = plan if isinstance(plan, Aggregate) else top
                plan = plan.input
            case Window() if top is not None:
                return unmergeable(top)
            case _:
                return "it has no window aggregate"
