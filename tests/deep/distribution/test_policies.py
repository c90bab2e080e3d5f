"""Policies over many random problems, and how much of a good placement they bring back from a bad one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.patterns import round_robin
from headrace.planners.distribution.plans import paper_plan
from headrace.planners.distribution.problem import Problem, Table
from headrace.planners.distribution.redistribute import POLICIES, redistribute
from headrace.planners.distribution.rules import History, Rules
from headrace.planners.distribution.usage import misplaced, passed, usage
from tests.unit.planners.distribution.drawn import drawn


@pytest.mark.parametrize("policy", POLICIES)
def test_constant_load_comes_to_rest(policy: str) -> None:
    for seed in range(120):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(1, 14), rng.randint(2, 5), limits=bool(seed % 2))
        table: Table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
        model = MODELS[sorted(MODELS)[seed % len(MODELS)]]
        rules = Rules(0.0, rest=0.0, full=rng.uniform(0.1, 1), margin=1.0, least_gain=0.0, degraded=0.0)
        history = History({site.id: rng.uniform(0, 1) for site in problem.sites})
        for number in range(100):
            now = replace(problem, table=table)
            decision = redistribute(now, policy, model, rules, history, float(number))
            assert not list(misplaced(now, decision.table))
            assert passed(now, usage(now, decision.table)).keys() <= passed(now, usage(now, table)).keys()
            if not decision.moves:
                break
            assert decision.table != table
            table, history = decision.table, decision.history
        else:
            raise AssertionError(f"seed {seed}: it never comes to rest")


def throughput(problem: Problem, table: Table) -> float:
    """A pipeline is as fast as its slowest site."""
    return min(1.0, 1 / usage(problem, table).max_load)


def scaled(problem: Problem, load: float) -> Problem:
    """Sites such that our placement fills the fullest to this load; a connection takes a hundredth of one."""
    priced = replace(problem, connection_cpu=0.01, row_cpu=1e-5)
    cpu = usage(priced, balanced(priced)).max_load / load
    return replace(priced, sites=tuple(replace(site, cpu=cpu) for site in priced.sites))


@pytest.mark.parametrize("operators", [20, 40])
@pytest.mark.parametrize("sites", [2, 3, 5])
@pytest.mark.parametrize("start", ["in turn", "all on one"])
def test_a_bad_placement_is_put_right(operators: int, sites: int, start: str) -> None:
    """Redistribution brings back 90 % of the throughput of a good initial placement."""
    for seed in range(2):
        problem = scaled(paper_plan(operators, sites, Random(seed)), 0.75)
        good = throughput(problem, balanced(problem))
        table: Table = round_robin(problem)
        if start == "all on one":
            table = dict.fromkeys(problem.operator, "s1")
        bad, history = throughput(problem, table), History()
        assert bad < 0.9 * good
        for number in range(20):
            now = replace(problem, table=table)
            decision = redistribute(now, "pays", MODELS["cpu"], Rules(), history, 60.0 * number)
            if not decision.moves:
                break
            table, history = decision.table, decision.history
        assert throughput(problem, table) >= 0.9 * good
