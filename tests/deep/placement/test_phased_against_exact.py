"""The phased planners against the exact one: on the paper's network and workloads, and on many small
problems; what they lose is bounded from both sides, so that a baseline made weak or strong by a change
shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.in_network import InNetwork
from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.plan_then_deploy import PlanThenDeploy
from headrace.planners.placement.problem import Network, Options, PlacementProblem
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.relaxation import Relaxation
from headrace.planners.placement.topologies import paper_network, transit_stub_of
from headrace.planners.placement.workloads import airline, synthetic
from tests.unit.planners.placement.small_problems import random_problem

Made = type[Exact] | type[PlanThenDeploy] | type[InNetwork] | type[Relaxation]
PHASED: tuple[Made, ...] = (PlanThenDeploy, InNetwork, Relaxation)
OPTIONS = Options(iterations=1000)


def total(made: Made, problem: PlacementProblem, prepared: Prepared) -> float:
    """Of all queries in turn; each must cost at least what the exact planner finds in its place."""
    planner, exact = made(problem, prepared, OPTIONS), Exact(problem, prepared, OPTIONS)
    deployed, found = Deployed(problem, prepared.distance), []
    for query in problem.queries:
        placed = planner.place(query, deployed)
        assert placed.cost >= exact.place(query, deployed).cost * (1 - 1e-9) - 1e-9
        deployed.add(query, placed.tree)
        found.append(placed)
    cost, added = recompute(problem, [(one.query, one.tree) for one in found], prepared.distance)
    assert [one.cost for one in found] == pytest.approx(added, abs=1e-6)
    return cost


@pytest.mark.parametrize("seed", range(60))
def test_never_below_exact_on_small_problems(seed: int) -> None:
    problem = random_problem(np.random.default_rng(10_000 + seed), sites=6, streams=5, queries=6)
    prepared = prepare(problem.network)
    for made in PHASED:
        total(made, problem, prepared)


def _airline(network: Network, rng: np.random.Generator) -> PlacementProblem:
    return airline(network, rng, queries=60)


def _synthetic(network: Network, rng: np.random.Generator) -> PlacementProblem:
    return synthetic(network, rng, queries=40)


@pytest.mark.parametrize("workload", [_synthetic, _airline])
def test_what_they_lose_on_the_paper_s_network(
    workload: Callable[[Network, np.random.Generator], PlacementProblem],
) -> None:
    above: dict[str, list[float]] = {made.name: [] for made in PHASED}
    for seed in range(3):
        network = paper_network(seed)
        prepared, problem = prepare(network), workload(network, np.random.default_rng(seed))
        best = total(Exact, problem, prepared)
        for made in PHASED:
            above[made.name].append(total(made, problem, prepared) / best - 1)
    mean = {name: float(np.mean(values)) for name, values in above.items()}
    assert 0.03 < mean["plan-then-deploy"] < 0.35
    assert 0.03 < mean["in-network"] < 0.40
    assert mean["in-network"] + 0.1 < mean["relaxation"] < 1.5


def test_plan_then_deploy_on_a_network_too_large_for_a_matrix() -> None:
    network = transit_stub_of(20_000, 1)
    problem = synthetic(network, np.random.default_rng(1), queries=3)
    prepared = prepare(network)
    assert not prepared.dense
    total(PlanThenDeploy, problem, prepared)
