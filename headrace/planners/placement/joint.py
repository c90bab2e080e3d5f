"""All queries planned against each other: search among deployments of the whole set.

Planning queries in turn is greedy: the first ones put joins where they alone want them. Here

    settle     every query replanned, every operator relocated (pool.py), each exactly given all the rest,
               until none of it lowers the total
    stir       take a group of queries out and plan them again in another order, at first with joins that
               others of the group could read too priced at a share of their cost (they invest), or with a
               join opened for nobody (what stays unread is dropped), then at full price; settle what was
               touched; keep it if the total is no higher than allowed

What is allowed falls to the best total known while the search goes on (record-to-record travel, Dueck 1993),
which leaves plateaus and shallow pits. The plan is never dearer than planning in turn, in the order given.

Deterministic by the seed; with `Options.seconds` as far as the clock is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from headrace.errors import NotSupported
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.exact import warm as warm_exact
from headrace.planners.placement.ground import WHOLE, Ground
from headrace.planners.placement.jit import Floats
from headrace.planners.placement.lower_bound import can_bound, lower_bound
from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.pool import Pool
from headrace.planners.placement.problem import (
    BaseStream,
    Network,
    Options,
    Placed,
    PlacementPlan,
    PlacementProblem,
    Query,
    Tree,
    walk,
)
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.unwound import unwound, wound

Clock = Callable[[], float]

SAME = 1e-12
"""Totals closer than this, relatively, are equal."""
STARTS = 3
"""Orders of planning in turn that the search starts from, besides the one given."""
STIRS_A_QUERY, FEWEST_STIRS, MOST_STIRS = 6, 60, 600
"""Without a time limit the search ends after so many stirs for each query, within these limits."""
PATIENCE = 3
"""It also ends when so many stirs for each query (and no fewer than that) found nothing better."""
LARGEST = 14
"""Queries taken out together."""
SLACK = 0.003
"""By how much of the best total a plan may be dearer and still be searched from, at first."""
PLANTING = 0.5
"""How often a stir also opens a join that nobody asked for, to see who reads it."""
ALL_SITES = 400
"""On larger networks joins may run only at sites of streams, sinks, and joins of the exact planner."""
BOUND_ROUNDS, BOUND_WORK = 60, 100_000_000
"""A plan comes with a lower bound if that takes no more work than this: a fraction of a second."""
INVESTING = (0.0, 0.1, 0.3, 1.0)
"""How much joins that others could read are discounted, drawn at random."""


def solve_joint(
    problem: PlacementProblem, prepared: Prepared, options: Options, clock: Clock
) -> PlacementPlan:
    """The best deployment of all queries that the search finds. Raises UserError where a query has none."""
    if problem.cpu:
        raise NotSupported("joint planning keeps no limits of cpu", hint="exact does.")
    loading = clock()
    warm()
    started = clock()
    first = _exact(problem, prepared, options)
    sites = {node.site for _, tree in first for node in walk(tree)}
    ground = Ground(problem, prepared, sites, most=ALL_SITES)
    search = Search(ground, np.random.default_rng(options.seed), time_spent(clock, started, options.seconds))
    pool = search.run(wound(ground, first))
    plan = _plan(pool, prepared, search, _bound(pool, prepared))
    return replace(plan, seconds=clock() - started, compile_seconds=started - loading)


@cache
def warm() -> None:
    """Compile the kernels, or load them from the cache."""
    warm_exact()
    network = Network((0, 1), ((0, 1, 1.0),))
    streams = {name: BaseStream(name, 0, 1.0) for name in "ab"}
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b"), 1),))
    in_turn(Ground(problem, prepare(network)), [0])
    lower_bound(problem, prepare(network), 1.0, rounds=1)


@dataclass
class Search:
    ground: Ground
    rng: np.random.Generator
    spent: Callable[[], float] | None
    """The part of the time that is over; None: there is no limit of time, only of work."""
    stirs: int = 0
    in_turn: float = 0.0
    """What planning in turn, in the order given, costs."""

    def run(self, first: Pool) -> Pool:
        """The best that is found from a first deployment, and from planning in turn in other orders."""
        self.in_turn = first.total
        starts = [first.fork()]
        starts += [in_turn(self.ground, order) for order in self._orders() if not self.out_of_time()]
        for pool in starts:
            self.settle(pool)
        return self.improved(min([first, *starts], key=lambda pool: pool.total))

    def _orders(self) -> list[list[int]]:
        """The largest queries first, the smallest first, and at random."""
        count = len(self.ground.masks)
        sizes = [mask.bit_count() for mask in self.ground.masks]
        largest = sorted(range(count), key=lambda q: -sizes[q])
        at_random = [self.rng.permutation(count).tolist() for _ in range(STARTS - 2)]
        return [largest, largest[::-1], *at_random]

    def settle(self, pool: Pool) -> None:
        """Until no query and no operator can do better alone."""
        while not self.out_of_time():
            before = pool.total
            self._relocate(pool, list(pool.operators))
            for query in list(pool.ways):
                pool.replan(query)
            if pool.total >= before * (1 - 1e-9):
                return

    def improved(self, pool: Pool) -> Pool:
        """Stir until the time is over or nothing better turns up."""
        count, best, since = len(self.ground.masks), pool, 0
        patience = max(FEWEST_STIRS, PATIENCE * count) if count > 1 else 0
        while since < patience and (spent := self._spent()) < 1:
            allowed = best.total * (1 + SLACK * (1 - spent))
            trial = self.stirred(pool)
            self.stirs += 1
            since += 1
            if trial.total <= allowed:
                pool = trial
            if trial.total < best.total * (1 - SAME):
                best, since = trial, 0
        self.settle(best)
        return best

    def out_of_time(self) -> bool:
        return self.spent is not None and self.spent() >= 1

    def _spent(self) -> float:
        if self.spent is not None:
            return self.spent()
        stirs = max(FEWEST_STIRS, min(MOST_STIRS, STIRS_A_QUERY * len(self.ground.masks)))
        # With cuts a stir takes several times as long.
        return self.stirs / (stirs / 2 if self.ground.cut else stirs)

    def stirred(self, pool: Pool) -> Pool:
        trial = pool.fork()
        group = [query for query in self._group(pool) if pool.removable(query)]
        for query in group:
            trial.remove(query)
        self.rng.shuffle(group)
        if self.rng.random() < PLANTING and not self.ground.cut:
            self._plant(trial, group)
        part = float(self.rng.choice(INVESTING))
        for query in group:
            trial.replan(query, self._shares(query, group, part))
        for query in group:
            trial.replan(query)
        trial.sweep()
        self._relocate(trial, _made_for(trial, group))
        for query in group:
            trial.replan(query)
        return trial

    def _plant(self, pool: Pool, group: Sequence[int]) -> None:
        """Open a join that two of the group could read, for nobody yet, at a site between its streams and
        their sinks: where exactly is drawn by weighing them at random."""
        ground, rng = self.ground, self.rng
        if len(group) < 2 or not ground.problem.reuse:
            return
        mask = ground.masks[group[0]] & ground.masks[group[1]]
        bits = [i for i in range(mask.bit_length()) if mask >> i & 1]
        if len(bits) < 2:
            return
        kept = rng.permutation(bits)[: int(rng.integers(2, len(bits) + 1))].tolist()
        mask = sum(1 << bit for bit in kept)
        pull = np.where(ground.allowed, 0.0, np.inf)
        here = ground.local(mask, WHOLE)
        for i, at in enumerate(here.base.tolist()):
            pull += rng.exponential() * here.rate[1 << i] * ground.distance[at]
        for query in group[:2]:
            pull += rng.exponential() * here.rate[-1] * ground.distance[:, ground.sinks[query]]
        site = int(np.argmin(pull))
        if np.isfinite(pull[site]):
            only = np.full(len(ground.sites), np.inf)
            only[site] = 0.0
            pool.opened(ground.plan(mask, WHOLE, pool.offers(mask, WHOLE), only))

    def _relocate(self, pool: Pool, numbers: Sequence[int]) -> None:
        for number in numbers:
            one = pool.operators.get(number)
            if one is not None and one.query < 0:
                pool.relocate(number)

    def _group(self, pool: Pool) -> list[int]:
        """Queries that have something to do with each other: those that could share the same streams, those
        that read one operator, or those with sinks close together."""
        ground, rng = self.ground, self.rng
        count = len(ground.masks)
        first = int(rng.integers(count))
        kind = int(rng.integers(3))
        if kind == 0:
            affinity = np.array(
                [(mask & ground.masks[first]).bit_count() / mask.bit_count() for mask in ground.masks]
            )
        elif kind == 1:
            affinity = self._common(pool, first)
        else:
            affinity = -ground.distance[ground.sinks[first], ground.sinks] / (1e-9 + ground.distance.mean())
        affinity = affinity + rng.random(count) * 0.5
        affinity[first] = np.inf
        size = int(rng.integers(2, LARGEST + 1))
        return [int(q) for q in np.argsort(-affinity, kind="stable")[:size]]

    def _common(self, pool: Pool, first: int) -> Floats:
        """How many operators other queries read in common with one."""
        mine = pool.below(pool.ways[first])
        return np.array([float(len(mine & pool.below(pool.ways[q]))) for q in range(len(self.ground.masks))])

    def _shares(self, query: int, group: Sequence[int], part: float) -> Floats | None:
        if part == 0:
            return None
        ground = self.ground
        masks = ground.local(ground.masks[query], ground.wishes[query]).masks
        others = [ground.masks[q] for q in group if q != query]
        could = np.array([sum(mask & other == mask for other in others) for mask in masks])
        return 1 / (1 + part * could)


def time_spent(clock: Clock, started: float, seconds: float | None) -> Callable[[], float] | None:
    """The part of the seconds that is over, at any time."""
    if seconds is None:
        return None
    return lambda: (clock() - started) / seconds if seconds > 0 else 1.0


def _exact(problem: PlacementProblem, prepared: Prepared, options: Options) -> list[tuple[str, Tree]]:
    """What planning in turn gives, in the order of the problem."""
    planner, deployed = Exact(problem, prepared, options), Deployed(problem, prepared.distance)
    trees: list[tuple[str, Tree]] = []
    for query in problem.queries:
        tree = planner.place(query, deployed).tree
        deployed.add(query, tree)
        trees.append((query.id, tree))
    return trees


def in_turn(ground: Ground, order: Sequence[int]) -> Pool:
    pool = Pool(ground)
    for query in order:
        pool.replan(query)
    return pool


def _made_for(pool: Pool, group: Sequence[int]) -> list[int]:
    found: set[int] = set()
    for query in group:
        found |= pool.below(pool.ways[query])
    return sorted(found)


def _bound(pool: Pool, prepared: Prepared) -> float | None:
    """What nothing can beat, where that is known and found in no time."""
    ground = pool.ground
    work = sum(3 ** mask.bit_count() for mask in ground.masks) * prepared.size**2 * BOUND_ROUNDS
    if work > BOUND_WORK or not can_bound(ground.problem, prepared):
        return None
    return lower_bound(ground.problem, prepared, pool.total, rounds=BOUND_ROUNDS).value


def _plan(pool: Pool, prepared: Prepared, search: Search, bound: float | None) -> PlacementPlan:
    problem = pool.ground.problem
    trees = unwound(pool, prepared)
    total, added = recompute(problem, trees, prepared.distance)
    placed = [
        Placed(name, tree, cost, plans_examined=search.stirs + STARTS + 1)
        for (name, tree), cost in zip(trees, added, strict=True)
    ]
    notes = {"stirs": str(search.stirs), "planned in turn": repr(search.in_turn)}
    return PlacementPlan("joint", tuple(placed), total, 0.0, 0.0, 0.0, bound, notes)
