"""What the planners over a hierarchy have in common: the hierarchy is made once, then each query is planned
as views of clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from math import isfinite

from headrace.errors import InternalError, UserError
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.hierarchy import Cluster, Hierarchy, build
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import Options, Placed, PlacementProblem, Query
from headrace.planners.placement.reach import check_reach
from headrace.planners.placement.views import Ground, NoWay, Source, Views


class ByHierarchy(ABC):
    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self.ground = Ground(problem, build(prepared, options.max_cs, options.seed))

    @property
    def hierarchy(self) -> Hierarchy:
        return self.ground.hierarchy

    def use(self, hierarchy: Hierarchy) -> None:
        """Go on with a hierarchy that sites have joined or left. The advertisements are those of the sites in
        it: who takes over as a coordinator knows them."""
        self.ground = Ground(self.ground.problem, hierarchy)

    def place(self, query: Query, deployed: Deployed) -> Placed:
        """The query's deployment. Raises UserError where it has none."""
        return self.planned(query, deployed)[0]

    def planned(self, query: Query, deployed: Deployed) -> tuple[Placed, Views]:
        """The deployment, and the account of the search for it."""
        self._check_sites(query)
        views = Views(self.ground, query, deployed)
        try:
            placed = views.placed(self.plan(views), {})
        except NoWay:
            placed = None
        if placed is None or not isfinite(placed.cost):
            placed = self._flat(views)
        return placed, views

    @abstractmethod
    def plan(self, views: Views) -> Source:
        """A deployment of the whole query; it may raise NoWay."""

    def _check_sites(self, query: Query) -> None:
        problem, known = self.ground.problem, self.hierarchy.top.member_of
        if query.sink not in known:
            raise UserError(f'query "{query.id}": its sink is at a site that has left')
        for name in query.streams:
            if problem.streams[name].site not in known:
                raise UserError(f'query "{query.id}": stream "{name}" is at a site that has left')

    def _flat(self, views: Views) -> Placed:
        """Where not all sites reach each other, a representative may be reached and a site below it not. Then
        all sites are searched as one cluster."""
        sites = self.hierarchy.sites
        everything = Cluster(1, sites, sites[0], None)
        notes = {"flat": "the hierarchy's estimates led nowhere: all sites searched"}
        try:
            found = views.instantiate(everything, views.every, [], views.sources, views.query.sink)
            placed = views.placed(found, notes)
        except NoWay:
            placed = None
        if placed is None or not isfinite(placed.cost):
            check_reach(replace(self.ground.problem, queries=(views.query,)))
            raise InternalError(f"placement: no way found for {views.query.id}, and there is one")
        return placed
