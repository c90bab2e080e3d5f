"""The paper's planners on its own network: how far above the best, against the bars of the issue."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import numpy as np
import pytest

from headrace.planners.placement.bottom_up import BottomUp
from headrace.planners.placement.by_hierarchy import ByHierarchy
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.hierarchy import build
from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.npc import Npc
from headrace.planners.placement.problem import Options, PlacementProblem
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.theorems import suboptimality
from headrace.planners.placement.top_down import TopDown
from headrace.planners.placement.topologies import paper_network, random_geometric
from headrace.planners.placement.workloads import airline, synthetic
from tests.deep.placement.test_by_hierarchy_small import PLANNERS, above_the_best
from tests.unit.planners.placement.small_problems import random_problem
from tests.unit.planners.placement.test_hierarchy import check


def total(planner: type[ByHierarchy] | type[Exact], problem: PlacementProblem, prepared: Prepared) -> float:
    made, deployed = planner(problem, prepared, Options()), Deployed(problem, prepared.distance)
    trees = []
    for query in problem.queries:
        placed = made.place(query, deployed)
        deployed.add(query, placed.tree)
        trees.append((query.id, placed.tree))
    return recompute(problem, trees, prepared.distance)[0]


@pytest.mark.parametrize(
    ("workload", "bars"), [(synthetic, (0.10, 0.18, 0.34)), (airline, (0.10, 0.10, 0.36))]
)
def test_mean_cost_above_the_best(
    workload: Callable[..., PlacementProblem], bars: tuple[float, float, float]
) -> None:
    shares: dict[type[ByHierarchy], list[float]] = {TopDown: [], Npc: [], BottomUp: []}
    for seed in range(3):
        network = paper_network(seed)
        problem, prepared = (
            workload(network, np.random.default_rng(1000 + seed), queries=100),
            prepare(network),
        )
        best = total(Exact, problem, prepared)
        for planner, found in shares.items():
            found.append(total(planner, problem, prepared) / best - 1)
    means = [fmean(found) for found in shares.values()]
    assert all(mean <= bar for mean, bar in zip(means, bars, strict=True)), means


@pytest.mark.parametrize("planner", PLANNERS)
def test_never_below_the_best(planner: type[ByHierarchy]) -> None:
    for seed in range(100, 130):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, sites=int(rng.integers(4, 14)), streams=5, queries=6)
        assert min(above_the_best(planner, problem, max_cs=2 + seed % 4)) >= -1e-9


def test_the_bound_of_theorem_3() -> None:
    for seed in range(4):
        problem = synthetic(random_geometric(60, seed), np.random.default_rng(seed), queries=30)
        prepared = prepare(problem.network)
        made, exact = TopDown(problem, prepared, Options(max_cs=3)), Exact(problem, prepared, Options())
        deployed = Deployed(problem, prepared.distance)
        for query in problem.queries:
            best = exact.place(query, deployed)
            placed, views = made.planned(query, deployed)
            chosen, flows = (placed.tree, placed.cost), views.tally.flows
            found = suboptimality(made.hierarchy, problem, query, chosen, flows, (best.tree, best.cost))
            assert found.above <= found.bound
            deployed.add(query, placed.tree)


def test_long_random_joins_and_departures() -> None:
    rng = np.random.default_rng(7)
    prepared = prepare(random_geometric(200, 7))
    present = set(range(0, 200, 2))
    hierarchy = build(prepared, 4, 0, sorted(present))
    for _ in range(250):
        absent = sorted(set(range(200)) - present)
        if rng.random() < 0.5:
            site = int(rng.choice(absent))
            hierarchy = hierarchy.joined(site)
            present.add(site)
        else:
            site = int(rng.choice([c.coordinator for c in hierarchy.top.walk()]))
            hierarchy = hierarchy.left(site)
            present.remove(site)
        check(hierarchy, present)
