"""The cheapest deployment of a query that keeps the limits of sites.

    load of a site = sum over the joins that run there of the data rates of their inputs  <=  its cpu

A join that is too much for a site alone is ruled out at once. Several joins of one query at one site are more
than the dynamic programme can see, so the rest is branch and bound, cheapest first: plan; if some site has
too much, at least one of the things that load it there must go, so there is a branch for each. A branch
costs no less than what it came from, so the first plan that fits is the cheapest. Exponential at worst: after
`MOST_PLANS` the search turns to ruling out whole sites, and the answer is not certified. Nor is it on
networks so large that not all sites are looked at.

What a reused stream has to hold more for a query (weaker filter, more columns) loads the sites above it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np

from headrace.errors import UserError
from headrace.planners.placement.deployed import Deployed, Derived, Offer
from headrace.planners.placement.ground import MOST_SITES, Ground
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import (
    Join,
    Leaf,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Site,
    Tree,
)
from headrace.planners.placement.rates import Holding, by_subset, data_rate, together, wanted
from headrace.planners.placement.subsets_kernels import cheapest, splits

MOST_PLANS = 2000
ROUNDING = 1e-9

Item = tuple[int, int, int]
"""What may be ruled out: (set, part, site) of a join; (-1, offer, -1) of an offer."""
Loads = dict[Site, float]


def loads(problem: PlacementProblem, deployed: Deployed) -> Loads:
    """What the joins that run read at each site, per unit of time."""
    wishes = {query.id: wanted(problem, query) for query in problem.queries}
    found: Loads = {}
    for one in deployed.derived.values():
        if not one.at_sink:
            held = _held(problem, one, [wishes[name] for name in one.readers])
            found[one.site] = found.get(one.site, 0.0) + _reading(problem, one, held)
    return found


class Limited:
    """Plans as `exact` does, within the limits."""

    name = "exact"

    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._problem = problem
        self._ground = Ground(problem, prepared, problem.cpu)
        self._complete = prepared.size <= MOST_SITES

    def place(self, query: Query, deployed: Deployed) -> Placed:
        """Raises UserError where nothing fits, with the site that is closest to it and what it lacks."""
        search = _Search(self._problem, self._ground, query, deployed)
        found, certified = search.found()
        if found is None:
            raise self._too_much(query, search)
        return Placed(
            query.id,
            search.tree(found),
            found.cost,
            plans_examined=search.plans,
            certified=certified and self._complete,
            notes={"plans tried": str(search.plans)},
        )

    def _too_much(self, query: Query, search: _Search) -> UserError:
        detail = ""
        closest = search.closest or search.roomiest()
        if closest is not None:
            missing, site = closest
            name = self._problem.network.sites[site]
            detail = f"The best try lacks {missing:g} rows per unit of time at site {name}."
        return UserError(
            f"query {query.id} does not fit: no deployment keeps the limits of all sites",
            detail=detail,
            hint="Raise a limit under cpu, or stop a query.",
        )


@dataclass(frozen=True)
class _Try:
    cost: float
    items: tuple[Item, ...]
    """Joins and offers of the plan, inputs first."""
    sources: tuple[tuple[int, int], ...]
    """Per join, the sites of its inputs; (-1, -1) for what is not one."""
    top: tuple[int, int]
    """Set and site of the result's maker."""


class _Search:
    def __init__(self, problem: PlacementProblem, ground: Ground, query: Query, deployed: Deployed) -> None:
        self.problem, self.ground, self.query, self.deployed = problem, ground, query, deployed
        self.plans = 0
        self.closest: tuple[float, Site] | None = None
        used = loads(problem, deployed)
        self._left = {site: limit - used.get(site, 0.0) for site, limit in problem.cpu.items()}
        self._rate = by_subset(problem, query)
        self._base = np.array([ground.position[problem.streams[name].site] for name in query.streams])
        self._rows = splits(len(query.streams))
        bit = {name: 1 << i for i, name in enumerate(query.streams)}
        self._offers = [offer for offer in deployed.offers(query) if offer.site in ground.position]
        self._sets = [sum(bit[name] for name in offer.streams) for offer in self._offers]
        self._adds = [self._added(offer) for offer in self._offers]
        distance = ground.distance[:, ground.position[query.sink]]
        self._out = np.where(np.isfinite(distance), self._rate[-1] * distance, np.inf)

    def found(self) -> tuple[_Try | None, bool]:
        """The cheapest plan that fits, and whether that is certain."""
        alone = frozenset(self._too_much_alone())
        order = count()
        waiting: list[tuple[float, int, frozenset[Item], _Try]] = []
        seen: set[frozenset[Item]] = set()
        self._push(waiting, seen, alone, order)
        while waiting and self.plans < MOST_PLANS:
            _, _, banned, one = heappop(waiting)
            crowded = self._crowded(one)
            if not crowded:
                # Of equal streams at a site only the cheapest is offered: another one might have fitted.
                return one, all(item[0] >= 0 for item in banned)
            for item in crowded:
                self._push(waiting, seen, banned | {item}, order)
        if not waiting:
            return None, True
        return self._dive(waiting[0][2]), False

    def tree(self, one: _Try) -> Tree:
        made: dict[tuple[int, int], Tree] = {}
        sites = self.ground.sites
        for (whole, part, site), (a, b) in zip(one.items, one.sources, strict=True):
            if whole < 0:
                offer = self._offers[part]
                made[self._sets[part], self.ground.position[offer.site]] = offer.as_leaf()
            else:
                made[whole, site] = Join(
                    self._at(made, part, a), self._at(made, whole ^ part, b), sites[site]
                )
        return self._at(made, *one.top)

    def _at(self, made: Mapping[tuple[int, int], Tree], whole: int, site: int) -> Tree:
        if (whole, site) in made:
            return made[whole, site]
        return Leaf(self.query.streams[whole.bit_length() - 1], self.ground.sites[site])

    def _push(
        self,
        waiting: list[tuple[float, int, frozenset[Item], _Try]],
        seen: set[frozenset[Item]],
        banned: frozenset[Item],
        order: Iterable[int],
    ) -> None:
        if banned in seen:
            return
        seen.add(banned)
        one = self._plan(banned)
        if one is not None:
            heappush(waiting, (one.cost, next(iter(order)), banned, one))

    def _dive(self, banned: frozenset[Item]) -> _Try | None:
        """Rule out all joins at a crowded site, again and again."""
        while (one := self._plan(banned)) is not None:
            crowded = self._crowded(one)
            if not crowded:
                return one
            sites = {item[2] for item in crowded if item[0] >= 0}
            banned |= {(*row, site) for row in self._rows for site in sites}
            banned |= {item for item in crowded if item[0] < 0}
        return None

    def _plan(self, banned: frozenset[Item]) -> _Try | None:
        """The cheapest without what is ruled out; None: there is none."""
        self.plans += 1
        ground = self.ground
        opening = np.zeros((len(self._rows), len(ground.sites)))
        for whole, part, site in banned:
            if whole >= 0:
                opening[self._rows[whole, part], site] = np.inf
        offered = np.full((len(self._rate), len(ground.sites)), np.inf)
        number: dict[tuple[int, int], int] = {}
        for i, offer in enumerate(self._offers):
            site = ground.position[offer.site]
            if (-1, i, -1) not in banned and offer.extra < offered[self._sets[i], site]:
                offered[self._sets[i], site] = offer.extra
                number[self._sets[i], site] = i
        whole_price = np.ones(len(self._rate))
        made, split, source = cheapest(
            self._rate, self._base, ground.distance, ground.allowed, offered, whole_price, opening
        )
        total = made[-1] + self._out
        best = int(np.argmin(total))
        if not total[best] < np.inf:
            return None
        items: list[Item] = []
        sources: list[tuple[int, int]] = []

        def visit(whole: int, site: int) -> None:
            part = int(split[whole, site])
            if part:
                rest = whole ^ part
                a, b = int(source[part, site]), int(source[rest, site])
                visit(part, a)
                visit(rest, b)
                items.append((whole, part, site))
                sources.append((a, b))
            elif (whole, site) in number:
                items.append((-1, number[whole, site], -1))
                sources.append((-1, -1))

        full = len(self._rate) - 1
        visit(full, best)
        return _Try(float(total[best]), tuple(items), tuple(sources), (full, best))

    def roomiest(self) -> tuple[float, Site] | None:
        """If every tree has a join that is too much for any site: the site with most room, and what the
        easiest tree lacks there."""
        hardest = dict.fromkeys((1 << i for i in range(len(self.query.streams))), 0.0)
        for (whole, part), load in self._loads_of_joins().items():
            this = max(load, hardest[part], hardest[whole ^ part])
            hardest[whole] = min(this, hardest.get(whole, np.inf))
        if not self._left or len(self._left) < int(self.ground.allowed.sum()):
            return None
        site = max(self._left, key=lambda one: self._left[one])
        missing = hardest[len(self._rate) - 1] - self._left[site]
        return (missing, site) if missing > 0 else None

    def _too_much_alone(self) -> Iterable[Item]:
        for site, left in self._left.items():
            if site in self.ground.position:
                for (whole, part), load in self._loads_of_joins().items():
                    if load > left + ROUNDING * abs(left):
                        yield whole, part, self.ground.position[site]
        for i, adds in enumerate(self._adds):
            if any(more > self._left.get(site, np.inf) for site, more in adds.items()):
                yield -1, i, -1

    def _loads_of_joins(self) -> dict[tuple[int, int], float]:
        return {(s, a): float(self._rate[a] + self._rate[s ^ a]) for s, a in self._rows}

    def _crowded(self, one: _Try) -> list[Item]:
        """What loads the site that is overloaded most; nothing: all fits."""
        by_site: dict[Site, list[tuple[float, Item]]] = {}
        for item in one.items:
            for site, load in self._load(item).items():
                by_site.setdefault(site, []).append((load, item))
        worst, crowded = 0.0, []
        for site, parts in by_site.items():
            left = self._left.get(site, np.inf)
            missing = sum(load for load, _ in parts) - left
            if missing > ROUNDING * max(1.0, abs(left)) and missing > worst:
                worst, crowded = missing, [item for _, item in parts]
                if self.closest is None or missing < self.closest[0]:
                    self.closest = missing, site
        return crowded

    def _load(self, item: Item) -> Loads:
        whole, part, site = item
        if whole < 0:
            return self._adds[part]
        return {self.ground.sites[site]: float(self._rate[part] + self._rate[whole ^ part])}

    def _added(self, offer: Offer) -> Loads:
        """What reading an offer adds to the loads of the sites it comes from."""
        found: Loads = {}
        # Also where it costs nothing: inputs made at the same site travel no way, but are read.
        if self.ground.cut:
            self._widen(self.deployed.derived[offer.number], found)
        return found

    def _widen(self, one: Derived, found: Loads) -> None:
        queries = {query.id: query for query in self.problem.queries}
        wishes = [wanted(self.problem, queries[name]) for name in one.readers]
        now = _held(self.problem, one, wishes)
        then = _held(self.problem, one, [*wishes, wanted(self.problem, self.query)])
        if not one.at_sink and now != then:
            more = _reading(self.problem, one, then) - _reading(self.problem, one, now)
            found[one.site] = found.get(one.site, 0.0) + more
        for _, _, source in one.inputs:
            if source is not None:
                self._widen(self.deployed.derived[source], found)


def _held(problem: PlacementProblem, one: Derived, wishes: Sequence[Holding]) -> Holding:
    return {name: together(problem, [wish[name] for wish in wishes]) for name in one.streams}


def _reading(problem: PlacementProblem, one: Derived, held: Holding) -> float:
    return sum(data_rate(problem, held, streams) for streams, _, _ in one.inputs)
