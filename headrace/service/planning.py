"""Plan a project: every query bound and rewritten, as `weaving` places them, or each as a job of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan
from headrace.service.binding import bind, for_each, plan_query
from headrace.service.placing import place_joins
from headrace.service.project import selected
from headrace.service.weaving import place

__all__ = ["bind", "plan_jobs", "plan_network", "plan_project", "plan_query"]


def plan_jobs(project: Project, only: Sequence[str] = ()) -> PlacedPlan:
    """Every query (or those named in `only`) as a job of its own, as if there were no trees. Raises the
    first UserError and counts the others."""
    return PlacedPlan(tuple(for_each(selected(project, only), lambda query: plan_query(project, query))))


def plan_project(project: Project, only: Sequence[str] = ()) -> PlacedPlan:
    """All queries (or those named in `only`) from nothing, in trees where they can be. `jobs` alone does not
    have every query. Raises the first UserError and counts the others."""
    return place(project, [query.name for query in selected(project, only)])


def plan_network(project: Project, only: Sequence[str] = (), planner: str | None = None) -> PlacedPlan:
    """The same with joins of streams on sites and channels between them, in `network`, where there are
    several sites and joins. service/cutting.py makes jobs of it."""
    everything = plan_project(project, only)
    found = place_joins(project, everything, planner)
    return everything if found is None else replace(everything, network=found.network)
