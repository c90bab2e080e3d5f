"""Re-planning of what runs against the least CPU there is: all families of streams that could be made."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headrace.planners.admission.bound import least_cpu
from headrace.planners.admission.check import violations
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Options,
    Query,
    Stream,
)


def on_one_host(seed: int) -> AdmissionProblem:
    """Joins of four streams, and room for all of them."""
    rng = np.random.default_rng(seed)
    streams = {name: Base(name, 0, float(rng.integers(5, 15))) for name in "abcd"}
    sets = [frozenset(c) for size in (2, 3, 4) for c in combinations("abcd", size)]
    rates = {stream: float(rng.uniform(0.01, 0.3)) for stream in sets}
    asked = rng.choice(len(sets), size=4, replace=False)
    queries = tuple(Query(f"q{i}", sets[number]) for i, number in enumerate(asked.tolist()))
    return AdmissionProblem((HostLimits(0, 1e6, 1e6, 1e6),), 1.0, streams, rates, queries)


def family_cpu(problem: AdmissionProblem, family: frozenset[Stream]) -> float:
    """Every stream of a family made of two others, as cheaply as that goes."""
    total = 0.0
    for stream in family:
        ways = [
            problem.rate(part) + problem.rate(stream - part)
            for size in range(1, len(stream))
            for part in map(frozenset, combinations(sorted(stream), size))
            if all(len(s) == 1 or s in family for s in (part, stream - part))
        ]
        total += min(ways, default=np.inf)
    return total


def least_of_all(problem: AdmissionProblem) -> float:
    wanted = {query.streams for query in problem.queries}
    others = [stream for stream in problem.rates if stream not in wanted]
    return min(
        family_cpu(problem, frozenset(wanted | set(more)))
        for size in range(len(others) + 1)
        for more in combinations(others, size)
    )


def one_by_one(problem: AdmissionProblem) -> float:
    made: set[Stream] = set()
    total = 0.0
    for query in problem.queries:
        cpu, operators = least_cpu(problem, query.streams, made)
        total += cpu
        made.update(one.output for one in operators)
    return total


def test_hindsight_is_nearly_as_good_as_foresight() -> None:
    ours = exact = greedy = 0.0
    for problem in map(on_one_host, range(20)):
        planner = Ours(problem, Options(), lambda: 0.0)
        assert all(planner.submit(query).admitted for query in problem.queries)
        assert violations(problem, planner.plan, [query.id for query in problem.queries]) == []
        least = least_of_all(problem)
        assert planner.state.total_cpu >= least - 1e-6
        ours += planner.state.total_cpu
        exact += least
        greedy += one_by_one(problem)
    assert greedy > 1.05 * exact
    assert ours < 1.03 * exact


@pytest.mark.parametrize("first", ["ab", "ac", "ad"])
def test_a_stream_is_made_from_scratch_where_a_part_of_it_appears(first: str) -> None:
    """abcd, then a pair of it: only the pair and two more reads are left, whatever abcd was made of."""
    problem = on_one_host(0)
    whole, pair = frozenset("abcd"), frozenset(first)
    planner = Ours(problem, Options(), lambda: 0.0)
    planner.submit(Query("whole", whole))
    planner.submit(Query("pair", pair))
    reads = [part for _, one in planner.plan.placements for part in (one.left, one.right) if len(part) == 1]
    assert len(reads) == 4
    assert pair in {one.output for _, one in planner.plan.placements}
