"""The map of a solved problem shows all that costs: the data on its links adds up to the total."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from headrace.planners.placement.problem import Options
from headrace.planners.placement.solve import solve
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_map import MOST_WIRES, network_map, table_of
from headrace.service.solve_placement_file import read_placement
from tests.unit.service.placement_problems import drawn


def _costs(problem: Any) -> dict[tuple[str, str], float]:
    """Of the direct links, by the names on the map."""
    found: dict[tuple[str, str], float] = {}
    for a, b, cost in problem.get("links", ()):
        for pair in ((str(a), str(b)), (str(b), str(a))):
            found[pair] = min(cost, found.get(pair, cost))
    for a, row in zip(problem["sites"], problem.get("costs", ()), strict=False):
        found |= {(str(a), str(b)): c for b, c in zip(problem["sites"], row, strict=True) if c is not None}
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_flows_add_up_to_the_total(seed: int) -> None:
    problem = drawn(seed, plain=seed % 3 == 0)
    given = read_placement(ProblemFile("p", json.dumps(problem))).problem
    plan = solve(given, "top-down", Options(), lambda: 0.0)
    found = network_map(given, plan)
    costs = _costs(problem)
    total = sum(flow.rate * sum(costs[hop] for hop in pairwise(flow.path)) for flow in found.flows)
    assert total == pytest.approx(plan.total_cost)
    assert [spot.name for spot in found.spots] == [str(site) for site in problem["sites"]]
    assert sum(len(spot.sinks) for spot in found.spots) == len(problem["queries"])
    linked = {frozenset((wire.a, wire.b)) for wire in found.wires}
    assert linked == {frozenset(pair) for pair in costs if pair[0] != pair[1]}
    assert [row[0] for row in table_of(given, plan).rows] == [placed.query for placed in plan.queries]


def test_of_many_links_those_that_carry_data_are_drawn() -> None:
    size = 40
    costs = [[1 + abs(a - b) for b in range(size)] for a in range(size)]
    streams = {"A": {"site": 3, "rate": 5}, "B": {"site": 9, "rate": 1}}
    problem = {"sites": list(range(size)), "costs": costs, "streams": streams}
    text = json.dumps({**problem, "queries": [{"streams": ["A", "B"], "sink": 3}]})
    given = read_placement(ProblemFile("p", text)).problem
    found = network_map(given, solve(given, "top-down", Options(), lambda: 0.0))
    assert size * (size - 1) / 2 > MOST_WIRES
    assert [(wire.a, wire.b, wire.cost) for wire in found.wires] == [("3", "9", 7.0)]
    assert [(flow.path, flow.rate, flow.what) for flow in found.flows] == [(("9", "3"), 1.0, "B")]
