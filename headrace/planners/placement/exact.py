"""The cheapest deployment of a query, given what runs: join order, sites and reuse together.

The rate of a set of joined streams does not depend on how they were joined, so the cheapest way to have a
set at a site is made of cheapest ways to have its parts: a dynamic programme over (set, site), with offers
of derived streams as leaves that have a price. Exact for one query, O(3^K N + 2^K N^2) at worst; in practice
only the part of the network that can matter (`candidates`) and only states that can still lead to less than
the best known deployment (`exact_kernels`) are looked at.

Symbols of the paper: K = streams of a query, N = sites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.errors import InternalError, NotSupported, UserError
from headrace.planners.placement.candidates import Graph
from headrace.planners.placement.deployed import Deployed, Offer
from headrace.planners.placement.exact_kernels import Table, plan
from headrace.planners.placement.jit import Flags, Floats, Small
from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Leaf,
    Network,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Site,
    Tree,
)
from headrace.planners.placement.rates import by_subset
from headrace.planners.placement.spread_kernels import Ground, Offered, meeting_places, rows

_NO_GRAPH = Graph(np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0))
_NO_MATRIX = np.zeros((0, 0))

MOST_STATES = 500_000_000
"""Pairs of set and site, 16 bytes each if all are touched."""
SMALL = 64
"""Up to so many sites, a first bound is not worth its time."""
HUBS = 64
"""Sites for the first bound: so many meeting places and so many offers, besides the query's own sites."""


class Exact:
    name = "exact"

    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._problem = problem
        self._prepared = prepared
        self._allowed = np.ones(prepared.size, dtype=np.bool_)
        self._allowed[list(problem.forbidden)] = False
        self._matrix: Ground | None = None
        self._nearest: Small | None = None
        if prepared.graph is None:
            self._matrix = _by_matrix(prepared.matrix(), self._allowed)
        else:
            # Finds the blocks, if this is their first use.
            regions = prepared.regions
            self._nearest = regions.nearest_allowed(problem.forbidden) if problem.forbidden else None

    def place(self, query: Query, deployed: Deployed) -> Placed:
        offers = self._reachable(query, deployed.offers(query))
        task = self._task(query, offers)
        if len(task.rate) * len(task.sites) > MOST_STATES:
            raise NotSupported(
                f"query {query.id}: {len(query.streams)} streams are too many on {len(task.sites):,} sites",
                detail=f"{len(task.rate) * len(task.sites):,} pairs of set and site do not fit.",
                hint="Join fewer streams in one query.",
            )
        found, search, compared = task.solve()
        if found.whole < 0:
            raise self._nowhere(query)
        return Placed(
            query=query.id,
            tree=_Trees(query, found).deployment(),
            cost=found.cost,
            plans_examined=compared,
            certified=True,
            notes={"sites": str(len(task.sites)), "states": str(int(search.table.best[2]))},
        )

    def _task(self, query: Query, offers: list[Offer]) -> _Task:
        sites, ground = self._where(query, offers)

        def places(wanted: Sequence[Site]) -> Small:
            return np.searchsorted(sites, wanted).astype(np.int32)

        return _Task(
            rate=by_subset(self._problem, query),
            base=places([self._problem.streams[name].site for name in query.streams]),
            offers=_Offers.of(query, offers, places),
            sink=int(places([query.sink])[0]),
            sites=sites,
            ground=ground,
        )

    def _where(self, query: Query, offers: list[Offer]) -> tuple[Small, Ground]:
        """The sites that can matter, and the ways between them."""
        if self._matrix is not None:
            return np.arange(self._prepared.size, dtype=np.int32), self._matrix
        # All connected: links lead both ways, so a stream that is offered where the sink can be reached was
        # brought there from its own site.
        own = [self._problem.streams[name].site for name in query.streams]
        terminals = np.array([query.sink, *own, *(offer.site for offer in offers)], dtype=np.int32)
        region = self._prepared.regions.for_joins(terminals, self._nearest)
        graph, allowed = region.graph, np.ascontiguousarray(self._allowed[region.sites])
        return region.sites, Ground(graph.starts, graph.indices, graph.costs, _NO_MATRIX, True, allowed)

    def _reachable(self, query: Query, offers: list[Offer]) -> list[Offer]:
        """Without those from which nothing gets to the sink. Every stream must have a way there."""
        left = [offer for offer in offers if self._reaches(offer.site, query.sink)]
        for name in query.streams:
            offered = any(name in offer.streams for offer in left)
            if not offered and not self._reaches(self._problem.streams[name].site, query.sink):
                raise self._cut_off(query, name)
        return left

    def _reaches(self, site: Site, sink: Site) -> bool:
        if self._matrix is not None:
            return bool(self._matrix.matrix[site, sink] < np.inf)
        return self._prepared.regions.connected(site, sink)

    def _cut_off(self, query: Query, stream: str) -> UserError:
        site = self._problem.network.sites
        return UserError(
            f"query {query.id}: stream {stream} cannot reach the sink",
            detail=f"There is no path from site {site[self._problem.streams[stream].site]} "
            f"to site {site[query.sink]}.",
        )

    def _nowhere(self, query: Query) -> UserError:
        return UserError(
            f"query {query.id}: there is no site where its streams {', '.join(query.streams)} can be joined",
            detail="Every site that all of them can reach, and that can reach the sink, is forbidden, "
            "or there is none.",
        )


@dataclass(frozen=True, slots=True)
class _Offers:
    """Offers by set: those of set S are first[S]:first[S + 1]."""

    offers: list[Offer]
    first: Small
    sites: Small
    extra: Floats

    @staticmethod
    def of(query: Query, offers: list[Offer], places: Callable[[Sequence[Site]], Small]) -> _Offers:
        bit = {name: 1 << i for i, name in enumerate(query.streams)}
        keyed = sorted(
            ((sum(bit[name] for name in offer.streams), offer.site, i) for i, offer in enumerate(offers))
        )
        masks = np.array([mask for mask, _, _ in keyed], dtype=np.int64)
        first = np.searchsorted(masks, np.arange((1 << len(query.streams)) + 1)).astype(np.int32)
        ordered = [offers[i] for _, _, i in keyed]
        extra = np.array([offer.extra for offer in ordered], dtype=np.float64)
        return _Offers(ordered, first, places([offer.site for offer in ordered]), extra)

    def within(self, places: Small) -> _Offers:
        """Those at some places, numbered by these."""
        kept = np.flatnonzero(np.isin(self.sites, places))
        first = np.searchsorted(kept, self.first).astype(np.int32)
        sites = np.searchsorted(places, self.sites[kept]).astype(np.int32)
        return _Offers([self.offers[k] for k in kept], first, sites, self.extra[kept])


@dataclass(frozen=True, slots=True)
class _Found:
    """What the programme found, for the task it was given."""

    task: _Task
    table: Table

    @property
    def whole(self) -> int:
        """The set of the deployment; -1: there is none below the limit."""
        return int(self.table.found[0])

    @property
    def cost(self) -> float:
        return float(self.table.best[0])

    @property
    def compared(self) -> int:
        return int(self.table.best[1])


@dataclass(frozen=True, slots=True)
class _Task:
    """One query, in the kernel's numbers."""

    rate: Floats
    base: Small
    offers: _Offers
    sink: int
    sites: Small
    """By rising number."""
    ground: Ground

    def solve(self) -> tuple[_Found, _Found, int]:
        """The deployment, the whole search, and how many deployments or parts of them were compared. First
        joins are tried at a few promising sites only: the cost of that prunes the rest."""
        far = rows(self.ground, self.base, self.sink)
        if len(self.sites) <= SMALL or len(self.base) == 1:
            found = self._plan(far, np.inf)
            return found, found, found.compared
        first = self._on_few(far)
        found = self._plan(far, first.cost)
        return found if found.whole >= 0 else first, found, first.compared + found.compared

    def _plan(self, far: Floats, limit: float) -> _Found:
        offered = Offered(self.offers.first, self.offers.sites, self.offers.extra)
        return _Found(self, plan(self.ground, offered, self.base, self.sink, self.rate, far, limit))

    def _on_few(self, far: Floats) -> _Found:
        offers, allowed = self.offers, self.ground.allowed
        good = meeting_places(self.rate, far, allowed, HUBS)
        # Offers near the sink, if there are many.
        order = np.argsort(offers.extra + far[-1][offers.sites], kind="stable")[:HUBS]
        hubs = np.unique(np.concatenate((self.base, [self.sink], good, offers.sites[order]))).astype(np.int32)
        ways = Ground(
            *(_NO_GRAPH.starts, _NO_GRAPH.indices, _NO_GRAPH.costs),
            self._upper(far, hubs),
            self.ground.both_ways,
            allowed[hubs],
        )
        base = np.searchsorted(hubs, self.base).astype(np.int32)
        sink = int(np.searchsorted(hubs, self.sink))
        few = _Task(self.rate, base, offers.within(hubs), sink, self.sites[hubs], ways)
        return few._plan(rows(ways, base, sink), np.inf)

    def _upper(self, far: Floats, hubs: Small) -> Floats:
        """Distances between hubs, never too small: right if one of them is a base stream's site or the sink,
        else by way of one of these."""
        if len(self.ground.matrix):
            return np.ascontiguousarray(self.ground.matrix[np.ix_(hubs, hubs)])
        near = far[:, hubs]
        matrix: Floats = np.min(near[:, :, None] + near[:, None, :], axis=0)
        np.fill_diagonal(matrix, 0.0)
        return matrix


@dataclass(frozen=True, slots=True)
class _Trees:
    """From the tables of the programme back to a tree."""

    query: Query
    found: _Found

    def deployment(self) -> Tree:
        """The set that was found at a site, and every stream that is left joined to it there."""
        whole, place = (int(number) for number in self.found.table.found)
        streams = len(self.query.streams)
        last = 1 < whole == (1 << streams) - 1
        tree = self._made(whole, place) if last else self._at(whole, place)
        for i in range(streams):
            if not whole >> i & 1:
                tree = Join(tree, self._at(1 << i, place), self._site(place))
        return tree

    def _site(self, place: int) -> Site:
        return int(self.found.task.sites[place])

    def _at(self, whole: int, place: int) -> Tree:
        return self._made(whole, int(self.found.table.origin[whole, place]))

    def _made(self, whole: int, place: int) -> Tree:
        """An offer, a base stream or a join, whichever is cheapest; of equals the first."""
        price, offer = self._offered(whole, place)
        if whole & (whole - 1) == 0:
            i = whole.bit_length() - 1
            if place == self.found.task.base[i] and not (offer is not None and price < 0.0):
                return Leaf(self.query.streams[i], self._site(place))
        else:
            total, part = self._split(whole, place)
            if total < price:
                left, right = self._at(whole ^ part, place), self._at(part, place)
                return Join(left, right, self._site(place))
        if offer is None:
            raise InternalError(f"placement: exact lost {self.query.id} at a site")
        return offer.as_leaf()

    def _offered(self, whole: int, place: int) -> tuple[float, Offer | None]:
        table = self.found.task.offers
        best: tuple[float, Offer | None] = (float("inf"), None)
        for k in range(table.first[whole], table.first[whole + 1]):
            if table.sites[k] == place and table.extra[k] < best[0]:
                best = float(table.extra[k]), table.offers[k]
        return best

    def _split(self, whole: int, place: int) -> tuple[float, int]:
        here, length = self.found.table.here, self.found.table.length
        best, part = (float("inf"), 0), (whole - 1) & whole
        while 2 * part > whole:
            other = whole ^ part
            if length[part] and length[other]:
                best = min(best, (float(here[part, place] + here[other, place]), part))
            part = (part - 1) & whole
        return best


def _by_matrix(matrix: Floats, allowed: Flags) -> Ground:
    same, graph = bool(np.array_equal(matrix, matrix.T)), _NO_GRAPH
    return Ground(graph.starts, graph.indices, graph.costs, np.ascontiguousarray(matrix), same, allowed)


def warm() -> None:
    """Compile the kernels, or load them from the cache."""
    streams = {name: BaseStream(name, i, 1.0) for i, name in enumerate("abc")}
    links = ((0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0))
    for network in (Network((0, 1, 2, 3), links), Network((0, 1, 2, 3), costs=np.ones((4, 4)))):
        query = Query("q", ("a", "b", "c"), 3)
        problem = PlacementProblem(network, streams, {}, (query,), forbidden=frozenset({3}))
        prepared = prepare(network)
        Exact(problem, prepared, Options()).place(query, Deployed(problem, prepared.distance))
