"""The cheapest deployment of a query that keeps the limits of sites.

    load of a site = sum over the joins that run there of the data rates of their inputs  <=  its cpu

A join that is too much for a site alone is ruled out at once. Several joins of one query at one site are more
than the dynamic programme can see, so the rest is branch and bound, cheapest first: plan; if some site has
too much, at least one of its largest loads must go, as many as are too much together, so there is a branch
for each. A branch costs no less than what it came from, so the first plan that fits is the cheapest.

Exponential at worst. After `MOST_PLANS` a quick search (`fitting`) takes over, and for few streams a complete
one, with what was found as a bound, as far as its work allows. That nothing fits is only said where a search
was complete, over all sites, or where some join of every tree is too much for every site.

What a reused stream has to hold more for a query (weaker filter, more columns) loads the sites above it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

import numpy as np

from headrace.errors import UserError
from headrace.planners.placement.deployed import Deployed, Derived, Offer
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.fitting import Case, Given, Item, Labels, Try, easiest, packed
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
    walk,
)
from headrace.planners.placement.rates import Holding, by_subset, data_rate, together, wanted
from headrace.planners.placement.reach import NoDeployment
from headrace.planners.placement.subsets_kernels import cheapest, splits

MOST_PLANS = 2000
MOST_STEPS = 3e9
"""Of the dynamic programme in all plans: large queries get fewer plans, at least `LEAST_PLANS`."""
LEAST_PLANS = 20
ROUNDING = 1e-9
"""Of a site's limit."""
MOST_LABELLED = 8
"""Streams of a query for which labels are made: there are 3^K pairs of sets."""
QUICK, COMPLETE = 2e7, 4e7
"""Work of the quick search and of the complete one, in pairs of labels at sites."""
MOST_LABELS = 4000
NEAREST = 4
"""On large networks, sites without a limit that are looked at around each stream and sink."""

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
        more = set[Site]() if prepared.size <= MOST_SITES else _likely(problem, prepared, options)
        self._ground = Ground(problem, prepared, more | set(problem.cpu))
        self._complete = len(self._ground.sites) == prepared.size

    def place(self, query: Query, deployed: Deployed) -> Placed:
        """Raises NoDeployment where nothing fits, with the site that is closest to it and what it lacks."""
        search = _Search(self._problem, self._ground, query, deployed)
        found, certain = search.found()
        if found is None:
            raise self._too_much(query, search, certain and self._complete)
        return Placed(
            query.id,
            search.tree(found),
            found.cost,
            plans_examined=search.plans,
            certified=certain and self._complete,
            notes={"plans tried": str(search.plans)},
        )

    def _too_much(self, query: Query, search: _Search, certain: bool) -> NoDeployment:
        lacking = search.roomiest()
        closest = search.closest or lacking
        detail = ""
        if closest is not None:
            missing, site = closest
            name = self._problem.network.sites[site]
            detail = f"The best try lacks {missing:g} rows per unit of time at site {name}."
        why = "no deployment keeps the limits of all sites"
        if not certain and lacking is None:
            why = "no deployment was found within the limits (not proven that there is none)"
        number = [one.id for one in self._problem.queries].index(query.id)
        says, hint = f"query {query.id} does not fit: {why}", "Raise a limit under cpu, or stop a query."
        return NoDeployment(number, None, says, hint, detail)


def _likely(problem: PlacementProblem, prepared: Prepared, options: Options) -> set[Site]:
    """Where joins would run without limits, and sites that have none near streams and sinks."""
    found: set[Site] = set()
    exact, deployed = Exact(problem, prepared, options), Deployed(problem, prepared.distance)
    for query in problem.queries:
        # What cannot be placed at all is said when its turn comes.
        with suppress(UserError):
            tree = exact.place(query, deployed).tree
            deployed.add(query, tree)
            found |= {node.site for node in walk(tree)}
    ends = {stream.site for stream in problem.streams.values()} | {query.sink for query in problem.queries}
    closed = np.array(sorted(set(problem.cpu) | problem.forbidden), dtype=np.int64)
    for end in sorted(ends):
        row = prepared.row(end).copy()
        row[closed] = np.inf
        nearest = np.argsort(row, kind="stable")[:NEAREST]
        found |= {int(site) for site in nearest if row[site] < np.inf}
    return found


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
        # Of equal streams at a site only the cheapest is offered, and what two of them load above is counted
        # twice: once an offer is ruled out for its loads, nothing is certain.
        self._sure = not any(self._adds)

    def found(self) -> tuple[Try | None, bool]:
        """The cheapest plan that fits (None: none was found), and whether that is certain."""
        alone = frozenset(self._too_much_alone())
        order = count()
        waiting: list[tuple[float, int, frozenset[Item], Try]] = []
        seen: set[frozenset[Item]] = set()
        ruled_out = any(item[0] < 0 for item in alone)
        self._push(waiting, seen, alone, order)
        while waiting and self.plans < self._most_plans():
            _, _, banned, one = heappop(waiting)
            crowded = self._crowded(one)
            if not crowded:
                return one, self._sure or not ruled_out
            ruled_out = ruled_out or any(item[0] < 0 for item in crowded)
            for item in crowded:
                self._push(waiting, seen, banned | {item}, order)
        if waiting:
            return self._otherwise(waiting[0][0])
        # Without ruling out offers something may yet be found.
        return (None, True) if self._sure or not ruled_out else self._otherwise(-np.inf)

    def _most_plans(self) -> int:
        steps = 3.0 ** len(self.query.streams) * len(self.ground.sites)
        return int(min(MOST_PLANS, max(LEAST_PLANS, MOST_STEPS / steps)))

    def _otherwise(self, least: float) -> tuple[Try | None, bool]:
        """What `fitting` finds, where all that fits costs at least so much."""
        case = self._case()
        found = self._quickly(case)
        if found is not None and found.cost <= least * (1 + 1e-12):
            return found, self._sure
        if len(self.query.streams) > MOST_LABELLED:
            return found, False
        bound = np.inf if found is None else found.cost
        labels = Labels(case, MOST_LABELS, COMPLETE, bound)
        better = self._fitting(labels.found())
        if better is not None and better.cost < bound:
            found = better
        return found, labels.complete and self._sure

    def _quickly(self, case: Case) -> Try | None:
        streams = len(self.query.streams)
        found: list[Try | None] = [self._fitting(packed(case, easiest(case)))]
        if streams <= MOST_LABELLED:
            width = int(np.sqrt(QUICK / (3.0**streams * len(self.ground.sites))))
            found.append(self._fitting(Labels(case, min(64, max(6, width)), np.inf).found()))
        return min((one for one in found if one is not None), key=lambda one: one.cost, default=None)

    def _fitting(self, one: Try | None) -> Try | None:
        return one if one is not None and not self._crowded(one) else None

    def _case(self) -> Case:
        ground = self.ground
        room = np.full(len(ground.sites), np.inf)
        for site in self._left:
            if site in ground.position:
                room[ground.position[site]] = self._room(site)
        given = [Given(1 << i, int(site)) for i, site in enumerate(self._base)]
        for i, offer in enumerate(self._offers):
            takes = {ground.position[site]: load for site, load in self._adds[i].items()}
            given.append(Given(self._sets[i], ground.position[offer.site], i, offer.extra, takes))
        return Case(self._rate, ground.distance, self._out, ground.allowed, room, tuple(given))

    def _room(self, site: Site) -> float:
        """What may still be read at a site, with what rounding may add."""
        if site not in self._left:
            return np.inf
        return self._left[site] + ROUNDING * self.problem.cpu[site]

    def tree(self, one: Try) -> Tree:
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
        waiting: list[tuple[float, int, frozenset[Item], Try]],
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

    def _plan(self, banned: frozenset[Item]) -> Try | None:
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
        return Try(float(total[best]), tuple(items), tuple(sources), (full, best))

    def roomiest(self) -> tuple[float, Site] | None:
        """If every tree has a join that is too much for any site: the site with most room, and what the
        easiest tree lacks there."""
        limited = [site for site in self._left if site not in self.problem.forbidden]
        if not limited or len(limited) < self.problem.network.size - len(self.problem.forbidden):
            return None
        hardest = dict.fromkeys([*(1 << i for i in range(len(self.query.streams))), *self._sets], 0.0)
        for (whole, part), load in self._loads_of_joins().items():
            this = max(load, hardest[part], hardest[whole ^ part])
            hardest[whole] = min(this, hardest.get(whole, np.inf))
        site = max(limited, key=self._room)
        most = hardest[len(self._rate) - 1]
        return (most - self._left[site], site) if most > self._room(site) else None

    def _too_much_alone(self) -> Iterable[Item]:
        for site in self._left:
            if site in self.ground.position:
                for (whole, part), load in self._loads_of_joins().items():
                    if load > self._room(site):
                        yield whole, part, self.ground.position[site]
        for i, adds in enumerate(self._adds):
            if any(more > self._room(site) for site, more in adds.items()):
                yield -1, i, -1

    def _loads_of_joins(self) -> dict[tuple[int, int], float]:
        return {(s, a): float(self._rate[a] + self._rate[s ^ a]) for s, a in self._rows}

    def _crowded(self, one: Try) -> list[Item]:
        """The largest loads of the site that is overloaded most, until they are too much; none: all fits."""
        by_site: dict[Site, list[tuple[float, Item]]] = {}
        for item in one.items:
            for site, load in self._load(item).items():
                by_site.setdefault(site, []).append((load, item))
        worst, crowded = 0.0, []
        for site, parts in by_site.items():
            total = sum(load for load, _ in parts)
            missing = total - self._left.get(site, np.inf)
            if total > self._room(site) and missing > worst:
                worst, crowded = missing, self._largest(parts, self._room(site))
                if self.closest is None or missing < self.closest[0]:
                    self.closest = missing, site
        return crowded

    def _largest(self, parts: Sequence[tuple[float, Item]], room: float) -> list[Item]:
        found: list[Item] = []
        for load, item in sorted(parts, key=lambda part: (-part[0], part[1])):
            found.append(item)
            room -= load
            if room < 0:
                break
        return found

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
