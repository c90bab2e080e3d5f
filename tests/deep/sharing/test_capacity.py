"""Nodes of different capacity: what is balanced is cost / capacity, in every optimiser that balances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.planners.sharing.brute_force import optimum, plan_costs
from headrace.planners.sharing.problem import Options, SharingProblem, WindowQuery
from headrace.planners.sharing.solve import PAPER, Quick, plan_fast
from tests.deep.sharing.clock import counting

MIXED = (1.0, 1.0, 2.0, 4.0)
COST_BASED = ("G_TL", "W_TL", "W_TN", "W_I", "WG_TL", "WG_TN", "WG_I")


def random_problem(
    seed: int, count: int, capacities: tuple[float, ...], rate: float = 20.0
) -> SharingProblem:
    """Slides whose composite slide the oracle can walk."""
    rng = np.random.default_rng([seed, 8])
    slides = rng.choice([1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 18, 20, 24], size=count).tolist()
    queries = tuple(WindowQuery(f"q{i}", s * int(rng.integers(1, 30)), s) for i, s in enumerate(slides))
    return SharingProblem(rate, capacities, queries)


def planned(problem: SharingProblem, optimiser: str, seconds: float = 0.05) -> Quick:
    return plan_fast(problem, optimiser, Options(balance=1.0, seconds=seconds), clock=counting())


def loads(problem: SharingProblem, found: Quick) -> list[float]:
    """From the assignment, by the oracle."""
    _, costs = plan_costs(problem, found.assignment)
    return [cost / capacity for cost, capacity in zip(costs, problem.capacities, strict=True)]


@pytest.mark.parametrize("optimiser", [*PAPER, "headrace"])
def test_the_reported_maximum_is_a_load(optimiser: str) -> None:
    problem = random_problem(1, 40, MIXED)
    found = planned(problem, optimiser)
    assert found.max_load == pytest.approx(max(loads(problem, found)))


@pytest.mark.parametrize("optimiser", COST_BASED)
def test_doubled_capacities_halve_the_loads_and_change_nothing_else(optimiser: str) -> None:
    problem = random_problem(2, 40, MIXED)
    doubled = replace(problem, capacities=tuple(2 * c for c in MIXED))
    one, two = planned(problem, optimiser), planned(doubled, optimiser)
    assert one.assignment == two.assignment
    assert one.total == two.total
    assert two.max_load == pytest.approx(one.max_load / 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("optimiser", ["G_TL", "WG_I", "headrace"])
def test_load_is_balanced_not_cost(optimiser: str, seed: int) -> None:
    """The strong node bears about four times what a weak one does; as if all were alike it would be a
    quarter as loaded."""
    problem = random_problem(seed, 120, MIXED, 5.0)
    found = loads(problem, planned(problem, optimiser))
    assert max(found) <= 1.35 * sum(found) / 4
    blind = planned(replace(problem, capacities=(1.0,) * 4), optimiser)
    assert max(found) < 0.75 * max(loads(problem, blind))


@pytest.mark.parametrize("seed", range(8))
def test_ours_against_the_optimum(seed: int) -> None:
    """On small problems: total * maximum within 6 % of the best, and never better."""
    capacities = [(1.0, 3.0), (1.0, 1.5), (0.5, 2.0), (1.0, 1.0, 4.0)][seed % 4]
    problem = random_problem(seed, 6, capacities, [1.0, 5.0, 20.0, 60.0][seed // 2])
    best = optimum(problem)
    found = planned(problem, "headrace")
    total, costs = plan_costs(problem, found.assignment)
    load = max(cost / capacity for cost, capacity in zip(costs, capacities, strict=True))
    assert (found.total, found.max_load) == pytest.approx((total, load))
    assert total >= best.total * (1 - 1e-9) and load >= best.max_load * (1 - 1e-9)
    assert total * load >= min(t * m for t, m in best.front) * (1 - 1e-9)
    assert total * load <= 1.06 * min(t * m for t, m in best.front)


@pytest.mark.parametrize("seed", range(3))
def test_a_node_of_no_account_is_left_alone(seed: int) -> None:
    """A node a thousand times weaker than the others gets nothing from those that look at the load."""
    problem = random_problem(seed, 30, (1.0, 1.0, 0.001))
    for optimiser in ("G_TL", "WG_TN", "headrace"):
        assert planned(problem, optimiser).assignment[2] == ()
