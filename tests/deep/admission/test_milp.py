"""Longer searches: both models against trying every plan, against each other on problems too large for that,
and SQPR over whole sequences of queries that come and go."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from time import perf_counter

import numpy as np
import pytest

from headrace.planners.admission.check import violations
from headrace.planners.admission.milp import Search
from headrace.planners.admission.milp_model import Wish
from headrace.planners.admission.objective import lambdas_of, objective
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Options,
    Plan,
    Query,
    Weights,
)
from headrace.planners.admission.reduction import reduce
from headrace.planners.admission.sqpr import Sqpr
from tests.deep.admission.test_milp_small import EXACT, run_against_all_plans
from tests.unit.planners.admission.tiny import tiny


@pytest.mark.parametrize("links", [False, True])
def test_both_models_equal_trying_every_plan(links: bool) -> None:
    admitted = [run_against_all_plans(tiny(seed, links=links)) for seed in range(100, 125)]
    assert 10 < sum(admitted) < sum(len(tiny(seed, links=links).queries) for seed in range(100, 125))


def larger(seed: int, *, links: bool, count: int = 5, most: int = 4) -> AdmissionProblem:
    """Hosts that send little, six base streams, ten queries."""
    rng = np.random.default_rng(seed)
    names = "abcdef"
    streams = {name: Base(name, int(rng.integers(count)), float(rng.integers(2, 5))) for name in names}
    sets = [frozenset(some) for size in range(2, most + 1) for some in combinations(names, size)]
    rates = {some: float(rng.integers(1, 9)) / 4 for some in sets}
    hosts = [
        HostLimits(i, float(rng.integers(10, 30)), float(rng.integers(4, 14)), float(rng.integers(4, 10)))
        for i in range(count)
    ]
    queries = [Query(f"q{i}", sets[int(rng.integers(len(sets)))]) for i in range(10)]
    width: float | np.ndarray[tuple[int, int], np.dtype[np.float64]] = 100.0
    if links:
        width = rng.integers(2, 9, size=(count, count)).astype(np.float64)
    return AdmissionProblem(tuple(hosts), width, streams, rates, tuple(queries))


@pytest.mark.parametrize("links", [False, True])
def test_the_models_agree_query_after_query_relays_included(links: bool) -> None:
    relays = refused = 0
    for seed in range(2):
        problem = larger(seed, links=links, count=3, most=3)
        lambdas = lambdas_of(problem, Weights())
        plan = Plan()
        for query in problem.queries:
            if query.streams in plan.deliveries:
                continue
            scope = reduce(problem, plan, [query])
            found = [
                Search(perf_counter, printed, EXACT).best(scope, Wish(lambdas), perf_counter() + 100)
                for printed in (False, True)
            ]
            assert all(one.proven for one in found)
            values = [one.plan and objective(problem, one.plan, lambdas) for one in found]
            assert values[0] == (None if values[1] is None else pytest.approx(values[1], abs=1e-7))
            plan = found[0].plan or plan
            refused += found[0].plan is None
            at_home = {(base.host, frozenset({base.id})) for base in problem.streams.values()}
            relays += sum(len(s) == 1 and (h, s) not in at_home for h, _, s in plan.flows)
    assert relays
    assert refused


def test_queries_come_and_go_and_the_plan_is_always_one() -> None:
    for seed in range(4):
        # Narrow links may need the printed model, which is slow: fewer hosts there.
        problem = larger(seed, links=seed > 1, count=5 if seed < 2 else 3, most=4 if seed < 2 else 2)
        rng = np.random.default_rng(seed)
        planner = Sqpr(problem, Options(deadline=5.0), perf_counter)
        for query in problem.queries:
            before = planner.plan
            decision = planner.submit(query)
            assert decision.admitted == (query.id in planner.admitted)
            assert decision.admitted or (planner.plan == before and decision.why)
            if planner.admitted and rng.random() < 0.3:
                planner.remove(planner.admitted[int(rng.integers(len(planner.admitted)))])
            assert violations(problem, planner.plan, planner.admitted) == []
            assert planner.plan.deliveries.keys() == {
                one.streams for one in problem.queries if one.id in planner.admitted
            }


def test_a_batch_admits_at_least_as_many_as_one_by_one() -> None:
    for seed in range(4):
        problem = larger(seed, links=False)
        distinct = tuple(
            {query.streams: query for query in problem.queries if len(query.streams) == 2}.values()
        )
        problem = replace(problem, queries=distinct)
        together, alone = (Sqpr(problem, Options(deadline=20.0), perf_counter) for _ in range(2))
        several = together.submit_all(problem.queries)
        assert sum(one.admitted for one in several) >= sum(alone.submit(q).admitted for q in problem.queries)
        assert violations(problem, together.plan, together.admitted) == []
