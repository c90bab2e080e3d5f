"""Large placement problems load in a second or two, and every planner's costs are those of its answer."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from headrace.service.problem_file import ProblemFile
from headrace.service.solve import list_optimisers
from headrace.service.solve_placement import solve_placement
from headrace.service.solve_placement_file import read_placement
from headrace.service.solve_request import Request
from tests.unit.service.placement_count import Count
from tests.unit.service.placement_problems import drawn


def test_a_hundred_thousand_sites_load_fast() -> None:
    size = 100_000
    links = [[f"s{i}", f"s{(i * 7 + k) % size}", 1.5 + k] for i in range(size) for k in (1, 2)]
    streams = {"A": {"site": "s5", "rate": 1}}
    problem = {"sites": [f"s{i}" for i in range(size)], "links": links, "streams": streams}
    text = json.dumps({**problem, "queries": [{"streams": ["A"], "sink": "s9"}]})
    started = time.process_time()
    found = read_placement(ProblemFile("p", text)).problem.network
    assert time.process_time() - started < 5
    assert (found.size, found.links[3]) == (size, (1, 9, 3.5))


def test_a_large_matrix_loads_fast() -> None:
    size = 1_000
    row = [0.25 * i for i in range(size)]
    problem = {"sites": list(range(size)), "costs": [[None, *row[1:]]] * size}
    text = json.dumps(
        {**problem, "streams": {"A": {"site": 5, "rate": 1}}, "queries": [{"streams": ["A"], "sink": 9}]}
    )
    started = time.process_time()
    costs = read_placement(ProblemFile("p", text)).problem.network.costs
    assert time.process_time() - started < 5
    assert costs is not None
    assert (costs[7, 0], costs[7, 7], costs[7, 8]) == (np.inf, 0, 2)


def _answer(problem: Any, planner: str | None = None) -> Any:
    file = ProblemFile("p.json", json.dumps(problem))
    return json.loads(json.dumps(solve_placement(file, Request(planner, seconds=0.1, iterations=200))))


@pytest.mark.parametrize("planner", list_optimisers("placement"))
def test_every_planner_tells_the_cost_of_its_answer(planner: str) -> None:
    """And none is cheaper than exact for the first query, which finds nothing to reuse."""
    for seed in range(15):
        problem = drawn(seed, plain=seed % 3 == 0)
        problem["sinks"] = seed % 5 == 0
        problem["reuse"] = seed % 7 != 0
        problem["forbidden"] = problem["sites"][: seed % 2]
        answer = _answer(problem, planner)
        told = [query["added_cost"] for query in answer["queries"]]
        assert told == pytest.approx(Count(problem, answer).added(), rel=1e-9, abs=1e-9)
        best = _answer(problem)["queries"][0]
        first = answer["queries"][0]
        assert first["id"] != best["id"] or first["added_cost"] >= best["added_cost"] - 1e-9


def test_limits_of_cpu_are_kept() -> None:
    """Each site may read less than it does without a limit: something must move, and all must fit."""
    moved = 0
    for seed in range(12):
        problem = drawn(seed, plain=seed % 2 == 0, queries=3)
        free = _answer(problem)
        count = Count(problem, free)
        added = sum(count.added())
        problem["cpu"] = {str(site): 0.9 * load for site, load in count.loads().items()}
        if not problem["cpu"]:
            continue
        limited = _answer(problem)
        count = Count(problem, limited)
        assert limited["total_cost"] == pytest.approx(sum(count.added()))
        for site, load in count.loads().items():
            assert load <= problem["cpu"].get(str(site), float("inf")) * (1 + 1e-9)
        moved += limited["total_cost"] > added
    assert moved > 3
