"""Replanning with a price for moving: against staying, moving everything, and every group of queries."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest

from headrace.planners.placement.drift import MovePrice, Replanned, replan
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Network,
    Options,
    PlacementPlan,
    PlacementProblem,
    Query,
    Tree,
    streams_of,
    walk,
)
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.solve import solve
from tests.unit.planners.placement.tiny_placement import every_tree, prepared_of, tiny, with_cuts


def drifted(problem: PlacementProblem, seed: int) -> PlacementProblem:
    """Other rates and other links."""
    rng = np.random.default_rng([seed, 5])
    streams = {n: replace(s, rate=s.rate * float(rng.uniform(0.2, 5))) for n, s in problem.streams.items()}
    links = tuple((a, b, c * float(rng.uniform(0.2, 5))) for a, b, c in problem.network.links)
    return replace(problem, streams=streams, network=replace(problem.network, links=links))


def planned(problem: PlacementProblem) -> PlacementPlan:
    return solve(problem, "exact", Options(), time.perf_counter)


def moved(plan: PlacementPlan, after: PlacementProblem, price: MovePrice, **options: int) -> Replanned:
    return replan(plan, after, prepared_of(after), price, Options(**options), clock=time.perf_counter)


def bill(found: Replanned, price: MovePrice) -> float:
    return found.cost + found.price / price.horizon


def total(problem: PlacementProblem, trees: list[tuple[str, Tree]]) -> float:
    return recompute(problem, trees, prepared_of(problem).distance)[0]


def joins_of(trees: list[tuple[str, Tree]]) -> set[tuple[frozenset[frozenset[str]], int]]:
    return {
        (frozenset({streams_of(node.left), streams_of(node.right)}), node.site)
        for _, tree in trees
        for node in walk(tree)
        if isinstance(node, Join)
    }


def priced(problem: PlacementProblem, old: list[tuple[str, Tree]], new: list[tuple[str, Tree]]) -> float:
    """State of all that has to be opened, with a window of 1 and no cuts: what its inputs bring."""
    whole = replace(problem, queries=())
    found = 0.0
    for sides, _ in joins_of(new) - joins_of(old):
        for side in sides:
            rates = [whole.streams[name].rate for name in side]
            pairs = [whole.selectivities.get(frozenset(pair), 1.0) for pair in combinations(sorted(side), 2)]
            found += float(np.prod(rates) * np.prod(pairs))
    return found


@pytest.mark.parametrize("seed", range(10))
def test_never_worse_than_staying_or_moving_everything(seed: int) -> None:
    before = tiny(seed, queries=6, streams=5, sites=6)
    after = drifted(before, seed)
    if seed % 3 == 2:
        before, after = with_cuts(before, seed), with_cuts(after, seed)
    plan = planned(before)
    old = [(one.query, one.tree) for one in plan.queries]
    price = MovePrice(per_state=float(10 ** (seed % 4)), horizon=10.0)
    found = moved(plan, after, price)
    assert found.cost == pytest.approx(total(after, list(found.trees)))
    assert found.staying == pytest.approx(total(after, old))
    assert bill(found, price) <= total(after, old) * (1 + 1e-9)
    if not after.filters:
        anew = [(one.query, one.tree) for one in planned(after).queries]
        assert found.price == pytest.approx(price.per_state * priced(after, old, list(found.trees)))
        everything = total(after, anew) + price.per_state * priced(after, old, anew) / price.horizon
        assert bill(found, price) <= everything * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_as_good_as_any_group_of_queries_moved(seed: int) -> None:
    """Two queries that share nothing afterwards: every group, every order, every tree of those that move."""
    before = tiny(seed, queries=2, streams=3, sites=2)
    after = drifted(before, seed)
    plan = planned(before)
    old = {one.query: one.tree for one in plan.queries}
    price = MovePrice(per_state=2.0, horizon=3.0)
    best = np.inf
    for order in permutations(after.queries):
        for first in _choices(after, order[0], old):
            for second in _choices(after, order[1], old):
                trees = [(order[0].id, first), (order[1].id, second)]
                try:
                    cost = total(after, trees)
                except ValueError:
                    continue
                opening = price.per_state * priced(after, list(old.items()), trees)
                best = min(best, cost + opening / price.horizon)
    found = moved(plan, after, price)
    assert bill(found, price) <= best * (1 + 1e-9)


def _choices(problem: PlacementProblem, query: Query, old: dict[str, Tree]) -> list[Tree]:
    return [old[query.id], *every_tree(problem, frozenset(query.streams), [])]


def test_the_price_decides() -> None:
    """A join of a and b at 0 for a sink at 2; then the way from 0 becomes dear and 1 is better."""
    network = Network((0, 1, 2), ((0, 1, 1.0), (0, 2, 1.0), (1, 2, 3.0)))
    streams = {"a": BaseStream("a", 0, 4.0), "b": BaseStream("b", 1, 1.0)}
    problem = PlacementProblem(network, streams, {frozenset("ab"): 0.5}, (Query("q", ("a", "b"), 2),))
    plan = planned(problem)
    assert plan.total_cost == pytest.approx(1 + 2)
    dear = replace(
        problem,
        network=replace(network, links=((0, 1, 1.0), (0, 2, 9.0), (1, 2, 3.0))),
        queries=problem.queries,
    )
    # Staying: b comes to 0 (1), the result goes by way of 1 (2 * 4). At 1: a comes (4), the result goes (6).
    stay = moved(plan, dear, MovePrice(per_state=0.0, horizon=1.0))
    assert stay.staying == pytest.approx(9) == stay.cost
    assert stay.moved == () and stay.pay_back == 0.0
    little = replace(dear, selectivities={frozenset("ab"): 2.0})
    # Now the result is 8: staying 1 + 32, at 1 it is 4 + 24, and at 2 the inputs come: 16 + 3.
    cheap = moved(plan, little, MovePrice(per_state=1.0, horizon=1.0))
    assert cheap.cost == pytest.approx(19) and cheap.saving == pytest.approx(14)
    assert cheap.price == pytest.approx(5) and cheap.pay_back == pytest.approx(5 / 14)
    assert cheap.moved == ("q",)
    assert [(o.left, o.right, o.site) for o in cheap.opened] == [(("a",), ("b",), 2)]
    assert [o.site for o in cheap.closed] == [0]
    kept = moved(plan, little, MovePrice(per_state=3.0, horizon=1.0))
    assert kept.moved == () and kept.cost == pytest.approx(33) and kept.price == 0
    known = MovePrice(per_state=3.0, horizon=1.0, states={frozenset("ab"): 0.1})
    assert moved(plan, little, known).moved == ("q",)
    assert json.loads(json.dumps(cheap.to_dict()))["pay_back"] == pytest.approx(5 / 14)


def test_nothing_changed_nothing_moves() -> None:
    problem = tiny(3, queries=1, streams=4, sites=5)
    found = moved(planned(problem), problem, MovePrice(1.0, 1.0))
    assert found.moved == () and found.opened == () == found.closed


def test_what_cannot_stay_moves_at_any_price() -> None:
    problem = tiny(3, queries=4, streams=4, sites=5)
    plan = planned(problem)
    site = next(node.site for node in walk(plan.queries[0].tree) if isinstance(node, Join))
    after = replace(problem, forbidden=frozenset({site}))
    found = moved(plan, after, MovePrice(1e6, 1.0))
    assert found.staying is None and found.saving is None and found.pay_back is None
    assert plan.queries[0].query in found.moved
    total(after, list(found.trees))


def test_queries_come_and_go() -> None:
    problem = tiny(8, queries=4, streams=4, sites=5)
    old = replace(problem, queries=problem.queries[:3])
    found = moved(planned(old), replace(problem, queries=problem.queries[1:]), MovePrice(1.0, 1.0))
    assert sorted(name for name, _ in found.trees) == ["q1", "q2", "q3"]
    assert "q3" in found.moved


def test_what_a_query_that_is_gone_made_for_others_stays() -> None:
    problem = tiny(8, queries=1, streams=4, sites=5)
    one = replace(problem.queries[0], streams=tuple(problem.streams))
    before = replace(problem, queries=(one, replace(one, id="reader")))
    after = replace(before, queries=before.queries[1:])
    found = moved(planned(before), after, MovePrice(1e9, 1.0))
    assert found.moved == () and found.opened == ()
    assert found.cost == pytest.approx(planned(after).total_cost)
