"""Links or rates have changed: which queries to move, when moving has a price.

    bill per unit of time = cost of the deployment + price of the operators it opens / horizon

An operator that runs already as it is (same streams on either side, same site) is kept for nothing, wherever
its inputs come from; any other one has to be opened and pays for its state. The bill adds up over operators
just as costs do, so the moves of joint.py, each exact given all the rest, minimise it directly: whatever
does not pay back within the horizon stays.

Guarantee: the bill is at most that of staying and at most that of planning everything anew in turn; no query
alone and no operator alone can be moved, or moved back, for less. Queries that cannot run on as they are (no
path left, site forbidden now) move whatever it costs, new queries are planned, and those that are gone leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from headrace.errors import NotSupported
from headrace.planners.placement.ground import Ground
from headrace.planners.placement.joint import Search, in_turn, time_spent
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.pool import Pool
from headrace.planners.placement.problem import Options, PlacementPlan, PlacementProblem, Site, Tree, walk
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.unwound import unwound, wound

Streams = frozenset[str]


@dataclass(frozen=True, slots=True)
class MovePrice:
    per_state: float
    """For a unit of state that a site has to get."""
    horizon: float
    """A move must pay back within this time."""
    window: float = 1.0
    """State of a join: what its inputs bring in this time."""
    states: Mapping[Streams, float] = field(default_factory=dict)
    """Joined streams -> state, where it is known better."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A join as the outside knows it."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    site: Site
    state: float


@dataclass(frozen=True, slots=True)
class Replanned:
    moved: tuple[str, ...]
    """Queries that read other operators than before, or from other places."""
    opened: tuple[Operator, ...]
    closed: tuple[Operator, ...]
    staying: float | None
    """Cost of leaving all as it is; None: some query cannot."""
    cost: float
    """Of the new deployment."""
    price: float
    trees: tuple[tuple[str, Tree], ...]
    """In an order of deployment."""

    @property
    def saving(self) -> float | None:
        """Per unit of time; None: there was no choice."""
        return None if self.staying is None else self.staying - self.cost

    @property
    def pay_back(self) -> float | None:
        """The time after which the moves have paid; None: never, or there was no choice."""
        if self.saving is None:
            return None
        return 0.0 if self.price == 0 else self.price / self.saving if self.saving > 0 else None

    def to_dict(self) -> dict[str, object]:
        """For `--json`, without the trees."""
        return {
            "moved": list(self.moved),
            "opened": [_as_dict(one) for one in self.opened],
            "closed": [_as_dict(one) for one in self.closed],
            "staying": self.staying,
            "cost": self.cost,
            "saving": self.saving,
            "price": self.price,
            "pay_back": self.pay_back,
        }


def replan(
    plan: PlacementPlan,
    after: PlacementProblem,
    prepared: Prepared,
    price: MovePrice,
    options: Options | None = None,
    *,
    clock: Callable[[], float],
) -> Replanned:
    """`plan` is what runs, made for the problem before; `after` is the problem now, with the same sites, and
    `prepared` its network. Raises UserError where a query has no deployment now."""
    if after.cpu:
        raise NotSupported("replanning keeps no limits of cpu")
    chosen = options or Options()
    states = _States(after, price)
    trees = [(one.query, one.tree) for one in plan.queries]
    ground = Ground(after, prepared, _sites(trees), states.opening)
    running = wound(ground, trees)
    states.keep(running)
    spent = time_spent(clock, clock(), chosen.seconds)
    search = Search(ground, np.random.default_rng(chosen.seed), spent)
    found = _searched(search, running.fork())
    return _answer(running, found, states, prepared)


def _searched(search: Search, stay: Pool) -> Pool:
    """From staying, and from planning everything anew."""
    for query in range(len(search.ground.masks)):
        if query not in stay.ways:
            stay.replan(query)
    best = stay.fork()
    search.settle(best)
    anew = in_turn(search.ground, range(len(search.ground.masks)))
    search.settle(anew)
    return search.improved(min(stay, best, anew, key=lambda pool: pool.total))


@dataclass
class _States:
    problem: PlacementProblem
    price: MovePrice
    kept: set[tuple[int, int, Site]] = field(default_factory=set)
    """(mask, part with its lowest stream, site) of what runs."""
    ground: Ground | None = None
    _known: dict[tuple[int, int], float] = field(default_factory=dict)

    def keep(self, running: Pool) -> None:
        self.ground = running.ground
        for one in running.operators.values():
            if one.query < 0:
                self.kept.add((one.mask, one.inputs[0][0], running.ground.sites[one.site]))

    def opening(self, mask: int, part: int, site: Site) -> float:
        if self.ground is None or (mask, part, site) in self.kept:
            return 0.0
        return self.price.per_state * self.state(mask, part) / self.price.horizon

    def state(self, mask: int, part: int) -> float:
        """Of a join that serves all queries that could read it: what it may grow to."""
        found = self._known.get((mask, part))
        if found is None:
            found = self._known[mask, part] = self._state(mask, part)
        return found

    def _state(self, mask: int, part: int) -> float:
        ground = self.ground
        if ground is None:
            return 0.0
        given = self.price.states.get(frozenset(ground.streams(mask)))
        if given is not None:
            return given
        readers = [(m, w) for m, w in zip(ground.masks, ground.wishes, strict=True) if m & mask == mask]
        wish = ground.union(mask, readers)
        sides = (part, mask ^ part)
        return self.price.window * sum(ground.rate(one, ground.part(mask, wish, one)) for one in sides)


def _answer(running: Pool, found: Pool, states: _States, prepared: Prepared) -> Replanned:
    ground = found.ground
    trees = unwound(found, prepared)
    cost, _ = recompute(ground.problem, trees, prepared.distance)
    old, new = _joins(running), _joins(found)
    opened = [_described(ground, key, states) for key in sorted(new - old)]
    stays = len(running.ways) == len(ground.masks)
    return Replanned(
        moved=tuple(
            query.id
            for i, query in enumerate(ground.problem.queries)
            if i not in running.ways or _shape(running, running.ways[i]) != _shape(found, found.ways[i])
        ),
        opened=tuple(opened),
        closed=tuple(_described(ground, key, states) for key in sorted(old - new)),
        staying=running.total if stays else None,
        cost=cost,
        price=states.price.per_state * sum(one.state for one in opened),
        trees=tuple(trees),
    )


def _joins(pool: Pool) -> set[tuple[int, int, int]]:
    return {(one.mask, one.inputs[0][0], one.site) for one in pool.operators.values() if one.query < 0}


def _shape(pool: Pool, number: int) -> object:
    """All that a query reads, and how it is put together."""
    one = pool.operators[number]
    inputs = tuple((m, s) if source < 0 else _shape(pool, source) for m, s, source in one.inputs)
    return one.mask, one.site, inputs


def _described(ground: Ground, key: tuple[int, int, int], states: _States) -> Operator:
    mask, part, site = key
    left, right = tuple(ground.streams(part)), tuple(ground.streams(mask ^ part))
    return Operator(left, right, ground.sites[site], states.state(mask, part))


def _sites(trees: list[tuple[str, Tree]]) -> set[Site]:
    return {node.site for _, tree in trees for node in walk(tree)}


def _as_dict(one: Operator) -> dict[str, object]:
    return {"left": list(one.left), "right": list(one.right), "site": one.site, "state": one.state}
