"""In-network placement by zones, after Ahmad and Cetintemel (VLDB 2004), as section 4.4 uses it.

The join order is fixed first, without the network. Sites are divided into zones once. Then, for a query:

1. every join gets a zone: the cheapest placement of the order on the zones' coordinators;
2. every zone places the joins it got, neighbours among them together, on its own sites, from the sources up.
   Inputs are where they were placed; a consumer in another zone counts as being at that zone's coordinator.

Deployed streams are seen in step 1 wherever they are, and in step 2 by the zone they are in. The search is
limited to zones, not the way data takes.

The paper says only that it divided the network into five zones. The original places operators one by one at
the best site for their inputs and consumer; placing a zone's joins together is the same search without its
greed, so it flatters this baseline.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headrace.planners.placement.cost_space import both_ways
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.fixed_order import (
    Fixed,
    Ints,
    Placer,
    added_cost,
    fix_order,
    mask_of,
    need_matrix,
    usable_sites,
)
from headrace.planners.placement.join_order import Order
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import (
    Floats,
    Join,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    streams_of,
    walk,
)

ROUNDS = 50
"""Of improving the zones; they settle much earlier."""


class InNetwork:
    name = "in-network"

    def __init__(self, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._problem = problem
        self._prepared = prepared
        self._coordinators, self._zone_of = divide(need_matrix(prepared, self.name), options.zones)

    def place(self, query: Query, deployed: Deployed) -> Placed:
        usable = usable_sites(self._problem, self._prepared, query)
        fixed = fix_order(self._problem, query, deployed)
        placer = Placer(self._prepared, fixed.rates)
        tree: Tree
        if fixed.order.parts:
            zones = self._zones(usable)
            tree = _ByZones(fixed, placer, zones, self._zone_of).place()
        else:
            tree, _ = placer.place(fixed.order, fixed.ready, {}, query.sink)
        cost = added_cost(tree, query, fixed.rates, self._prepared)
        return Placed(query.id, tree, cost, fixed.examined + placer.examined)

    def _zones(self, usable: Ints) -> dict[int, _Zone]:
        """Those with a site to use; a coordinator that is none is stood in for by the nearest that is."""
        found: dict[int, _Zone] = {}
        for number, coordinator in enumerate(self._coordinators):
            members = usable[self._zone_of[usable] == number]
            if len(members):
                ways = self._prepared.between([coordinator], members.tolist())[0]
                found[number] = _Zone(int(members[int(ways.argmin())]), members)
        return found


@dataclass(frozen=True, slots=True)
class _Zone:
    coordinator: Site
    members: Ints


@dataclass
class _ByZones:
    """One query."""

    fixed: Fixed
    placer: Placer
    zones: dict[int, _Zone]
    zone_of: Ints
    rough: dict[int, Tree] = field(default_factory=dict)
    """Set of streams -> how the first step makes it."""

    def place(self) -> Tree:
        coordinators = np.array(sorted(zone.coordinator for zone in self.zones.values()))
        order, query = self.fixed.order, self.fixed.query
        rough, _ = self.placer.place(
            order, self.fixed.ready, {join.mask: coordinators for join in order.joins()}, query.sink
        )
        if not isinstance(rough, Join):
            return rough
        self.rough = {_mask(self.fixed, node): node for node in walk(rough)}
        tree, _ = self._zone(order, query.sink)
        return tree

    def _zone(self, top: Order, target: Site) -> tuple[Tree, float]:
        """The joins of one zone that hang together with `top`, placed on its sites; the result goes to
        `target`."""
        number = self._number(top)
        zone, ready, joins = self.zones[number], dict[int, list[tuple[Tree, float]]](), dict[int, Ints]()
        waiting = [top]
        while waiting:
            order = waiting.pop()
            joins[order.mask] = zone.members
            ready[order.mask] = [
                one for one in self.fixed.offers.get(order.mask, ()) if self.zone_of[one[0].site] == number
            ]
            for part in order.parts:
                if self._number(part) == number:
                    waiting.append(part)
                else:
                    ready[part.mask] = self._from_outside(part, zone.coordinator)
        return self.placer.place(top, ready, joins, target)

    def _from_outside(self, part: Order, target: Site) -> list[tuple[Tree, float]]:
        """A base or reused stream as chosen in the first step, or what another zone makes."""
        node = self.rough[part.mask]
        if isinstance(node, Join):
            return [self._zone(part, target)]
        return [(node, node.extra if isinstance(node, Reused) else 0.0)]

    def _number(self, order: Order) -> int:
        """The zone of a join; -1 for what is no new join."""
        node = self.rough[order.mask]
        return int(self.zone_of[node.site]) if isinstance(node, Join) else -1


def _mask(fixed: Fixed, tree: Tree) -> int:
    return mask_of(fixed.query, streams_of(tree))


def divide(matrix: Floats, zones: int) -> tuple[list[Site], Ints]:
    """Coordinators and the zone of every site: k-medoids on the mean cost of both directions, from sites far
    apart, starting at the most central. Sites without a path count as farther than all others."""
    both = both_ways(matrix)
    known = both[np.isfinite(both)]
    ways = np.where(np.isfinite(both), both, 10 * known.max() + 1)
    centres = [int(ways.sum(axis=1).argmin())]
    while len(centres) < min(zones, len(ways)):
        centres.append(int(ways[centres].min(axis=0).argmax()))
    for _ in range(ROUNDS):
        nearest = ways[centres].argmin(axis=0)
        # A centre that costs nothing to reach from another one is left without members.
        moved = [_medoid(ways, np.flatnonzero(nearest == zone)) for zone in np.unique(nearest)]
        if moved == centres:
            break
        centres = moved
    return centres, ways[centres].argmin(axis=0)


def _medoid(ways: Floats, members: Ints) -> Site:
    return int(members[int(ways[np.ix_(members, members)].sum(axis=1).argmin())])
