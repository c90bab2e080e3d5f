"""Many random problems through the comparison planners, and rates that change at 50 hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np
import pytest

from headrace.planners.admission.adaptive import Policy, adapt
from headrace.planners.admission.check import violations
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.objective import lambdas_of, objective
from headrace.planners.admission.observed import Observed, observed_problem
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import Options, Weights
from headrace.planners.admission.soda import Soda
from headrace.planners.admission.workload import PAPER, paper_problem
from tests.unit.planners.admission.heuristic_by_loops import best_value
from tests.unit.planners.admission.mixed import mixed
from tests.unit.planners.admission.replay import replayed
from tests.unit.planners.admission.test_adaptive import busy


@pytest.mark.parametrize("make", [Heuristic, Soda])
@pytest.mark.parametrize("block", range(4))
def test_no_plan_is_ever_wrong(make: Callable[..., Heuristic | Soda], block: int) -> None:
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        problem = mixed(seed, queries=14)
        planner, admitted = make(problem, Options(seed=seed), lambda: 0.0), list[str]()
        for query in problem.queries:
            admitted += [query.id] if planner.submit(query).admitted else []
            assert violations(problem, planner.plan, admitted) == [], seed


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_the_heuristic_is_the_plain_double_loop(seed: int) -> None:
    problem = mixed(seed, queries=8)
    planner = Heuristic(problem, Options(), lambda: 0.0)
    weights = lambdas_of(problem, Weights())
    for query in problem.queries:
        fresh = query.streams not in planner.plan.deliveries
        best = best_value(problem, planner.plan, query.streams, weights) if fresh else None
        admitted = planner.submit(query).admitted
        assert admitted == (best is not None or not fresh)
        if best is not None:
            assert objective(problem, planner.plan, weights) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_adapted_plans_hold_and_can_be_reached(seed: int) -> None:
    problem, plan, admitted, observed = busy(seed)
    policy = Policy(ways=("least", "all"))
    after, answer = adapt(problem, plan, admitted, observed, lambda: 0.0, policy=policy)
    now = observed_problem(problem, observed, plan)
    assert violations(now, after, answer.kept) == []
    assert replayed(now, plan, answer.changes) == (after, [])


@pytest.mark.parametrize("width", [1000.0, 50.0])
def test_a_fifth_of_the_rates_change_at_fifty_hosts(width: float) -> None:
    problem = paper_problem(7, replace(PAPER, bandwidth=width))
    planner = Ours(problem, Options(), lambda: 0.0)
    admitted = [query.id for query in problem.queries if planner.submit(query).admitted]
    rng = np.random.default_rng(7)
    some = rng.choice(sorted(problem.streams), len(problem.streams) // 5, replace=False).tolist()
    observed = Observed({frozenset({name}): float(rng.uniform(5.0, 18.0)) for name in some})
    after, answer = adapt(problem, planner.plan, admitted, observed, process_time)
    now = observed_problem(problem, observed, planner.plan)
    assert violations(now, planner.plan) != []
    assert violations(now, after, answer.kept) == []
    assert answer.changes
    assert len(answer.dropped) < 0.1 * len(admitted)
    assert answer.seconds < 2.0
