"""The input rate has changed: keep the plan, mend it, or weave anew, whichever costs least over a horizon.

    bill of a choice = horizon * worth at the new rate (see online.py) + price of a move * queries moved

keep      nothing moves
mend      moves that pay one by one, at the price or at a part of it (RunningPlan.rebalance)
re-weave  a fresh plan of our optimiser, its trees and nodes named so that as few queries as possible move

A choice breaks even against keeping after (price * moved) / (fall of the worth). There is no other threshold:
a rate that goes up and comes back has to pay twice, so the price itself keeps a plan from following it.

A query has moved when it is on another node, or in a tree that does not continue the one it was in. Which
tree continues which is a free choice, and so is the naming of nodes with equal capacity: `renamed` finds the
naming with the fewest moves, exactly (two assignment problems, one inside the other).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np

from headrace.planners.sharing.online import Costs, MovePrice, Place, RunningPlan, Step, moved_queries
from headrace.planners.sharing.problem import Options
from headrace.planners.sharing.rates import Floats
from headrace.planners.sharing.solve import front_fast

Name = Literal["keep", "mend", "re-weave"]
Forest = Sequence[Sequence[Sequence[str]]]
"""Per node its trees, per tree its queries."""

PARTS = (1.0, 0.1, 0.0)
"""Mending is tried at these parts of the price, and billed at all of it: moves that do not pay one by one may
pay together."""
FRESH = 3
"""How many fresh plans, the worthiest first, have their moves counted."""


@dataclass(frozen=True, slots=True)
class Choice:
    name: Name
    steps: tuple[Step, ...]
    costs: Costs
    """At the new rate."""
    bill: float

    @property
    def moved(self) -> int:
        return moved_queries(self.steps)


@dataclass(frozen=True, slots=True)
class Decision:
    rate: float
    price: MovePrice
    choices: tuple[Choice, ...]
    """The first one is to keep the plan."""

    @property
    def chosen(self) -> Choice:
        return min(self.choices, key=lambda choice: choice.bill)

    def break_even(self, choice: Choice) -> float | None:
        """The time after which a choice has paid for its moves; None: it never does."""
        gain = self.choices[0].costs.worth - choice.costs.worth
        paid = self.price.per_query * choice.moved
        return 0.0 if paid == 0 else paid / gain if gain > 0 else None

    def apply(self, plan: RunningPlan) -> None:
        """Make the plan the chosen one. It must be the plan that was decided on."""
        plan.set_rate(self.rate)
        plan.apply(self.chosen.steps)


def decide(
    plan: RunningPlan,
    rate: float,
    price: MovePrice,
    options: Options | None = None,
    *,
    clock: Callable[[], float],
) -> Decision:
    """What to do about a new rate. The plan is left as it is."""
    running = plan.fork()
    running.set_rate(rate)
    choices = [_choice("keep", running, [], price)]
    choices += [_choice("mend", running, steps_to(running, _mended(running, price, p)), price) for p in PARTS]
    fresh = _fresh(running, options or Options(), clock)
    choices += [_choice("re-weave", running, steps_to(running, forest), price) for forest in fresh]
    return Decision(rate, price, tuple(choices))


def _choice(name: Name, running: RunningPlan, steps: list[Step], price: MovePrice) -> Choice:
    trial = running.fork()
    trial.apply(steps)
    costs = trial.costs()
    bill = price.horizon * costs.worth + price.per_query * moved_queries(steps)
    return Choice(name, tuple(steps), costs, bill)


def _fresh(running: RunningPlan, options: Options, clock: Callable[[], float]) -> list[Forest]:
    """The worthiest plans of the optimiser's front."""
    if not running.queries:
        return []
    names, capacity = list(running.queries), float(running.grove.capacity.sum())
    front = front_fast(running.problem(), options, clock=clock).front
    best = sorted(front, key=lambda p: p.total_cost + running.balance * p.max_cost * capacity)
    return [[[[names[i] for i in tree] for tree in trees] for trees in p.assignment] for p in best[:FRESH]]


def _mended(running: RunningPlan, price: MovePrice, part: float) -> Forest:
    trial = running.fork()
    trial.rebalance(MovePrice(price.per_query * part, price.horizon))
    return _forest(trial)


def _forest(plan: RunningPlan) -> list[list[tuple[str, ...]]]:
    nodes: list[list[tuple[str, ...]]] = [[] for _ in plan.grove.capacity]
    for tree, names in plan.trees().items():
        nodes[int(plan.grove.node[tree])].append(names)
    return nodes


def steps_to(running: RunningPlan, wanted: Forest) -> list[Step]:
    """The fewest moves that turn the running plan into the wanted one, up to the names of equal nodes."""
    place_of = {name: running.place(name) for name in running.queries}
    target_of = renamed(place_of, wanted, running.grove.capacity.tolist())
    moves: dict[tuple[Place, Place], list[str]] = {}
    for name, source in place_of.items():
        if target_of[name] != source:
            moves.setdefault((source, target_of[name]), []).append(name)
    return [Step(tuple(names), source, target) for (source, target), names in moves.items()]


def renamed(place_of: Mapping[str, Place], wanted: Forest, capacities: Sequence[float]) -> dict[str, Place]:
    """Where every query of the wanted forest goes, so that as many as possible stay where they are."""
    nodes = len(capacities)
    stay = np.full((nodes, nodes), -1.0 - len(place_of))
    """stay[a, b]: queries that stay when the wanted node a becomes node b; too low where it cannot."""
    for a, trees in enumerate(wanted):
        common = _common(trees, place_of)
        for b in range(nodes):
            if capacities[a] == capacities[b]:
                stay[a, b] = sum(common.get((i, r), 0) for i, r in _continued(common, b).items())
    taken = {place.tree for place in place_of.values()}
    free = (number for number in count() if number not in taken)
    target_of: dict[str, Place] = {}
    for a, b in enumerate(matched(stay)):
        follows = _continued(_common(wanted[a], place_of), b)
        for i, tree in enumerate(wanted[a]):
            place = follows[i] if i in follows else Place(b, next(free))
            target_of.update((name, place) for name in tree)
    return target_of


def _common(trees: Sequence[Sequence[str]], place_of: Mapping[str, Place]) -> dict[tuple[int, Place], int]:
    """How many queries a wanted tree and a running tree have in common, where they have any."""
    common: dict[tuple[int, Place], int] = {}
    for i, tree in enumerate(trees):
        for name in tree:
            key = (i, place_of[name])
            common[key] = common.get(key, 0) + 1
    return common


def _continued(common: Mapping[tuple[int, Place], int], node: int) -> dict[int, Place]:
    """Which running tree of a node each wanted tree continues; those that continue none are left out."""
    here = {key: n for key, n in common.items() if key[1].node == node}
    rows, columns = sorted({i for i, _ in here}), sorted({place for _, place in here})
    if not here:
        return {}
    weights = np.array([[float(here.get((i, place), 0)) for place in columns] for i in rows])
    pairs = [(i, columns[k]) for i, k in zip(rows, matched(weights), strict=True) if k < len(columns)]
    return {i: place for i, place in pairs if (i, place) in here}


def matched(weights: Floats) -> list[int]:
    """The heaviest assignment: the column of every row; a column beyond the last stands for none.

    The Hungarian method with shortest augmenting paths (Kuhn, Munkres): exact, O(rows^2 * columns).
    """
    rows = weights.shape[0]
    cost = np.pad(-weights, ((0, 0), (0, max(0, rows - weights.shape[1]))))
    columns = cost.shape[1]
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.full(columns + 1, -1)
    for row in range(rows):
        _augment(row, cost, row_price, column_price, owner)
    found = [-1] * rows
    for column, row in enumerate(owner[:columns].tolist()):
        if row >= 0:
            found[row] = column
    return found


def _augment(row: int, cost: Floats, row_price: Floats, column_price: Floats, owner: np.ndarray) -> None:
    """Give one row more a column, along the path that costs least."""
    columns = cost.shape[1]
    slack, done = np.full(columns, np.inf), np.zeros(columns + 1, dtype=np.bool_)
    before = np.full(columns, columns)
    column = columns
    owner[column] = row
    while owner[column] >= 0:
        done[column] = True
        here = int(owner[column])
        reduced = cost[here] - row_price[here] - column_price[:columns]
        closer = ~done[:columns] & (reduced < slack)
        slack[closer], before[closer] = reduced[closer], column
        step = int(np.argmin(np.where(done[:columns], np.inf, slack)))
        by = slack[step]
        row_price[owner[done]] += by
        column_price[done] -= by
        slack[~done[:columns]] -= by
        column = step
    while column != columns:
        owner[column] = owner[before[column]]
        column = int(before[column])
    owner[columns] = -1
