"""The oracles against each other, against a walk in plain Python, and against plans written out by hand."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest

from headrace.errors import UserError
from headrace.planners.sharing import brute_force
from headrace.planners.sharing.brute_force import (
    bitset_edge_rate,
    composite_slide,
    counted_operations,
    inclusion_exclusion,
    optimum,
    plan_costs,
    simulated_fragments,
    simulated_operations,
    tree_cost,
)
from headrace.planners.sharing.problem import CostModel, SharingProblem, WindowQuery
from tests.edges_check import small_sets


def problem_of(
    windows: list[tuple[int, int]], rate: float, capacities: tuple[float, ...], cost: CostModel = "paper"
) -> SharingProblem:
    queries = tuple(WindowQuery(f"q{i}", r, s) for i, (r, s) in enumerate(windows))
    return SharingProblem(rate, capacities, queries, cost)


def walked(windows: list[tuple[int, int]]) -> tuple[Fraction, Fraction]:
    """Edges and final operations a unit of time, from sets of instants."""
    length = composite_slide(windows)
    end = length + max(r for r, _ in windows)
    edges = {t for r, s in windows for k in range(-r // s - 1, end // s + 1) for t in (k * s, k * s + r)}
    taken = sum(t <= e < t + r for r, s in windows for t in range(0, length, s) for e in edges)
    return Fraction(sum(0 <= e < length for e in edges), length), Fraction(taken, length)


def test_oracles_agree_with_a_walk_in_plain_python() -> None:
    for windows in [w for w in small_sets(300, seed=2) if composite_slide(w) <= 700][:25]:
        rate, operations = walked(windows)
        assert bitset_edge_rate(windows) == inclusion_exclusion(windows) == rate
        assert simulated_operations(windows) == counted_operations(windows) == operations


def test_every_window_is_a_union_of_whole_fragments_and_every_edge_is_needed() -> None:
    rng = random.Random(7)
    for _ in range(25):
        windows = [(rng.randint(1, 40), rng.randint(1, 15)) for _ in range(rng.randint(1, 4))]
        seen = simulated_fragments(windows, horizon=160)
        assert seen.windows > 0
        assert seen.whole
        assert seen.needed


def test_fragments_notice_a_missing_and_a_superfluous_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = brute_force.edge_bits([(10, 6)], 100)
    fewer, more = bits.copy(), bits.copy()
    fewer[4::6], more[45] = False, True
    monkeypatch.setattr(brute_force, "edge_bits", lambda windows, length: fewer)
    assert not simulated_fragments([(10, 6)], 100).whole
    monkeypatch.setattr(brute_force, "edge_bits", lambda windows, length: more)
    assert not simulated_fragments([(10, 6)], 100).needed


def test_a_bit_set_beyond_its_size_is_refused() -> None:
    with pytest.raises(UserError, match="too large"):
        bitset_edge_rate([(1, 4999), (1, 4993)])


def test_tree_costs_by_hand() -> None:
    # Edges at 0 and 2 of 3: E = 2/3, Omega = 5/3. In truth 3 fragments a window, one window every 3.
    assert tree_cost(problem_of([(5, 3)], 10, (1,)), [0]) == pytest.approx(10 + 10 / 9)
    assert tree_cost(problem_of([(5, 3)], 10, (1,), "true"), [0]) == pytest.approx(11)


def test_plan_costs_sums_nodes_and_refuses_what_is_no_plan() -> None:
    problem = problem_of([(6, 2), (8, 4), (9, 3)], 7, (1, 1))
    total, nodes = plan_costs(problem, (((0, 1),), ((2,),)))
    assert nodes == pytest.approx((7 + 0.5 * 5, 7 + 1))
    assert total == pytest.approx(sum(nodes))
    for wrong in ((((0, 1),), ()), (((0, 1), (2,)),), (((0, 1),), ((1, 2),))):
        with pytest.raises(UserError, match="not a plan"):
            plan_costs(problem, wrong)


def every_plan(problem: SharingProblem) -> list[tuple[float, float]]:
    """(total, max load) of every labelling of queries with (tree, node): naive, with many repeats."""
    count, found = len(problem.queries), []
    for labels in product(range(count), repeat=count):
        trees = [tuple(i for i in range(count) if labels[i] == t) for t in sorted(set(labels))]
        for nodes in product(range(problem.nodes), repeat=len(trees)):
            plan = tuple(
                tuple(t for t, n in zip(trees, nodes, strict=True) if n == k) for k in range(problem.nodes)
            )
            total, costs = plan_costs(problem, plan)
            found.append((total, max(c / w for c, w in zip(costs, problem.capacities, strict=True))))
    return found


@pytest.mark.parametrize("cost", ["paper", "true"])
@pytest.mark.parametrize("capacities", [(1.0, 1.0), (1.0, 2.5)])
def test_the_optimum_is_the_best_of_all_plans(cost: CostModel, capacities: tuple[float, ...]) -> None:
    problem = problem_of([(7, 3), (8, 4), (10, 5), (7, 3)], 2.0, capacities, cost)
    plans, best = every_plan(problem), optimum(problem)
    assert best.total == pytest.approx(min(total for total, _ in plans))
    assert best.max_load == pytest.approx(min(load for _, load in plans))
    assert list(best.front) == sorted(best.front)
    for total, load in best.front:
        assert not any(t < total - 1e-9 and m < load + 1e-9 for t, m in plans)
        assert any(t == pytest.approx(total) and m == pytest.approx(load) for t, m in plans)
    assert all(any(t <= total + 1e-9 and m <= load + 1e-9 for t, m in best.front) for total, load in plans)


def test_too_many_queries_are_refused() -> None:
    with pytest.raises(UserError, match="too many"):
        optimum(problem_of([(4, 2)] * 10, 1, (1,)))
