"""WeaveShare: the merges of the exhaustive algorithm, with hardly a pair evaluated; the paper's guarantee."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.experiments.weaving.workload import EXPERIMENT_2, workload
from headrace.planners.sharing.brute_force import bitset_edge_rate, optimum, plan_costs
from headrace.planners.sharing.grouping import TIE, grouped, to_lowest
from headrace.planners.sharing.instance import Instance, instance_of
from headrace.planners.sharing.problem import Options, SharingProblem
from headrace.planners.sharing.rates import Floats, rates_of
from headrace.planners.sharing.solve import PAPER, SINGLE
from headrace.planners.sharing.to_nodes import weave_share_on_one
from headrace.planners.sharing.weave import Woven, class_densities, weave_share
from tests.deep.sharing.test_optimisers import PROBLEMS, of


def merged_by_hand(instance: Instance, at_least: int, down_to: int) -> list[list[int]]:
    """Every pair at every step, in floats: the algorithm that the bounds and the class trees leave out."""
    trees = [[q] for q in range(instance.queries)]

    def cost(tree: list[int]) -> float:
        row = np.bitwise_or.reduce(instance.rows[instance.klass[tree]], axis=0)
        return float(instance.rate + instance.rates.of(row)[0] * instance.omega[tree].sum())

    costs = [cost(tree) for tree in trees]
    gains = {
        (i, j): costs[i] + costs[j] - cost(trees[i] + trees[j]) for i, j in combinations(range(len(trees)), 2)
    }
    while len({k for pair in gains for k in pair}) > at_least:
        top = max(gains.values())
        alive = sorted({k for pair in gains for k in pair})
        if top <= TIE * instance.rate and (not down_to or len(alive) <= down_to):
            break
        i, j = min(pair for pair, gain in gains.items() if gain >= top - TIE * instance.rate)
        trees[i] += trees[j]
        trees[j] = []
        costs[i] = cost(trees[i])
        gains = {pair: gain for pair, gain in gains.items() if j not in pair}
        for k in alive:
            if k not in (i, j):
                gains[min(i, k), max(i, k)] = costs[i] + costs[k] - cost(trees[i] + trees[k])
    return [sorted(tree) for tree in trees if tree]


def sorted_trees(woven: Woven) -> list[list[int]]:
    return [sorted(tree) for tree in woven.trees]


def medium(rng: random.Random, *, closing: bool) -> SharingProblem:
    slides = rng.choices(range(1, 31), k=45)
    windows = [(rng.randint(1, 5 * s) if closing else s * rng.randint(1, 9), s) for s in slides]
    return of(windows, rng.choice((2.0, 10.0, 40.0)), (1.0,) * 4)


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize(("at_least", "down_to"), [(1, 0), (12, 0), (6, 6)])
def test_no_bound_cuts_the_best_pair(closing: bool, at_least: int, down_to: int) -> None:
    rng = random.Random(closing)
    for _ in range(2):
        instance = instance_of(medium(rng, closing=closing))
        woven = weave_share(instance, at_least=at_least, down_to=down_to or None)
        assert sorted_trees(woven) == merged_by_hand(instance, at_least, down_to)


@pytest.mark.parametrize("name", ["W_TL", "W_TN", "W_I", "WG_TL", "WG_TN", "WG_I", "INSERT_THEN_WEAVE"])
def test_both_ways_of_reading_rates_give_the_same_plan(name: str) -> None:
    """Large problems have no table, and other short cuts: the same plans must come out."""
    rng = random.Random(name)
    run = {**PAPER, **SINGLE}[name]
    for i in range(3):
        instance = instance_of(medium(rng, closing=True))
        rates = rates_of(instance.events, most_cells=0)
        untabled = replace(instance, rates=rates, single=rates.of(rates.rows))
        assert instance.rates.tabled
        assert not rates.tabled
        for insert in ("prose", "plan"):
            options = Options(seed=i, insert="prose" if insert == "prose" else "plan")
            assert run(instance, options) == run(untabled, options)


def test_bounds_save_nearly_all_evaluations() -> None:
    """Else the comparison above would say nothing about bounds: the first step alone has 300 pairs."""
    instance = instance_of(workload(EXPERIMENT_2, 0))
    woven = weave_share(instance)
    assert len(woven.trees) < instance.classes < instance.queries
    assert woven.evaluated < instance.classes * (instance.classes - 1) / 2


@settings(max_examples=80, deadline=None)
@given(made=PROBLEMS)
def test_rates_and_overlaps_of_the_trees(made: SharingProblem) -> None:
    woven = weave_share(instance_of(made))
    for tree, rate, overlap in zip(woven.trees, woven.edge_rate, woven.overlap, strict=True):
        queries = [made.queries[q] for q in tree]
        assert rate == pytest.approx(
            float(bitset_edge_rate([(q.range, q.slide) for q in queries])), abs=1e-12
        )
        assert overlap == pytest.approx(float(sum(q.overlap for q in queries)))


def test_joint_densities_of_classes() -> None:
    windows = [
        (s + offset, s)
        for s, offset in product((2, 3, 4, 6, 10), (0, 1, 2))
        if offset < s and 2 * offset != s
    ]
    together = class_densities(instance_of(of(windows, 1.0, (1.0,))))
    for (i, (r, s)), (j, (r2, s2)) in combinations(enumerate(windows), 2):
        span = range(s * s2)
        wanted = sum(
            sum(t % s == a and t % s2 == b for t in span) / len(span)
            for a in {0, r % s}
            for b in {0, r2 % s2}
        )
        assert together[i, j] == together[j, i] == pytest.approx(wanted)


@settings(max_examples=40, deadline=None)
@given(made=PROBLEMS.filter(lambda p: p.cost == "paper" and len(p.queries) <= 7))
def test_the_saving_is_at_least_a_quarter_of_the_best(made: SharingProblem) -> None:
    one = of([(q.range, q.slide) for q in made.queries], made.rate, (1.0,))
    alone, _ = plan_costs(one, (tuple((q,) for q in range(len(one.queries))),))
    found, _ = plan_costs(one, weave_share_on_one(instance_of(one), Options()))
    assert alone - found >= (alone - optimum(one).total) / 4 - 1e-9


CAPACITIES = st.lists(st.sampled_from((0.5, 1.0, 2.0)), min_size=1, max_size=3).map(np.array)


@settings(max_examples=60, deadline=None)
@given(costs=st.lists(st.integers(1, 20).map(float), min_size=1, max_size=6), count=st.integers(1, 3))
def test_dearest_first_is_within_four_thirds(costs: list[float], count: int) -> None:
    """Graham's bound, against all ways to lay the trees on equal nodes."""
    nodes = to_lowest(costs, np.ones(count))
    made = max(np.bincount(nodes, weights=costs, minlength=count))
    best = min(
        max(sum(c for c, n in zip(costs, at, strict=True) if n == node) for node in range(count))
        for at in product(range(count), repeat=len(costs))
    )
    assert best <= made <= best * (4 / 3 - 1 / (3 * count)) + 1e-9


@settings(max_examples=60, deadline=None)
@given(costs=st.lists(st.integers(1, 20).map(float), min_size=1, max_size=8), capacity=CAPACITIES)
def test_no_tree_would_rather_be_on_another_node(costs: list[float], capacity: Floats) -> None:
    """The last tree of a node was put there because it is least loaded with it."""
    nodes = to_lowest(costs, capacity)
    load = np.zeros(len(capacity))
    for tree in np.argsort(-np.array(costs), kind="stable"):
        after = (load + costs[tree]) / capacity
        assert after[nodes[tree]] == min(after)
        load[nodes[tree]] += costs[tree]
    lists = grouped([[i] for i in range(len(costs))], nodes, len(capacity))
    assert [[t[0] for t in trees] for trees in lists] == [
        np.flatnonzero(nodes == n).tolist() for n in range(len(capacity))
    ]
