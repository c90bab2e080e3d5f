"""Plan a project: every query bound and rewritten, as `weaving` places them, or each as a job of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan
from headrace.plan.shared import SharedPlan
from headrace.service.binding import bind, for_each, plan_query
from headrace.service.distributing import Distribution, at_sites, distribute
from headrace.service.placing import place_joins
from headrace.service.project import selected
from headrace.service.sharing import share
from headrace.service.weaving import placed

__all__ = ["Planned", "bind", "from_nothing", "plan_jobs", "plan_network", "plan_project", "plan_query"]


@dataclass(frozen=True, slots=True)
class Planned:
    shared: SharedPlan
    placed: PlacedPlan
    distribution: Distribution | None
    """None: every query is at the site that it names, or at the first."""


def from_nothing(project: Project, shared: SharedPlan) -> Planned:
    """What sharing has found as jobs, at the sites that a first run gives them; its trees are there too."""
    jobs = placed(project, shared)
    if not project.distributes:
        return Planned(shared, jobs, None)
    found = distribute(project, jobs)
    jobs = at_sites(jobs, found.new)
    pairs = zip(shared.trees, jobs.trees, strict=True)
    trees = tuple(replace(tree, site=job.site) for tree, job in pairs)
    return Planned(replace(shared, trees=trees), jobs, found)


def plan_jobs(project: Project, only: Sequence[str] = ()) -> PlacedPlan:
    """Every query (or those named in `only`) as a job of its own, as if there were no trees. Raises the
    first UserError and counts the others."""
    return PlacedPlan(tuple(for_each(selected(project, only), lambda query: plan_query(project, query))))


def plan_project(project: Project, only: Sequence[str] = ()) -> PlacedPlan:
    """All queries (or those named in `only`) from nothing, in trees where they can be, at the sites that a
    first run gives them. `jobs` alone does not have every query. Raises the first UserError and counts the
    others."""
    return from_nothing(project, share(project, only)).placed


def plan_network(project: Project, only: Sequence[str] = (), planner: str | None = None) -> PlacedPlan:
    """The same with joins of streams on sites and channels between them, in `network`, where there are
    several sites and joins. service/cutting.py makes jobs of it."""
    everything = plan_project(project, only)
    found = place_joins(project, everything, planner)
    return everything if found is None else replace(everything, network=found.network)
