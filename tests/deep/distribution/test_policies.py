"""Policies over many random problems, and how much of a good placement they bring back from a bad one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.exhaustive import exhaustive
from headrace.planners.distribution.patterns import grouping, round_robin
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


def starts(problem: Problem, seed: int) -> dict[str, Table]:
    rng = Random(seed)
    return {
        "in turn": round_robin(problem),
        "grouped": grouping(problem),
        "all on one": dict.fromkeys(problem.operator, "s1"),
        "at random": {one: rng.choice(problem.sites).id for one in problem.operator},
    }


def settled(problem: Problem, table: Table, rules: Rules) -> tuple[Table, int]:
    """Rounds of a minute until nothing moves: the table, and how many moved."""
    history = History()
    for number in range(20):
        now = replace(problem, table=table)
        decision = redistribute(now, "pays", MODELS["cpu"], rules, history, 60.0 * number)
        if not decision.moves:
            return table, number
        table, history = decision.table, decision.history
    raise AssertionError("it never comes to rest")


@pytest.mark.parametrize(("load", "full"), [(0.75, 0.8), (0.95, 0.95), (0.95, 0.8)])
@pytest.mark.parametrize("sites", [2, 3, 4, 5])
@pytest.mark.parametrize("operators", [5, 20, 40, 80])
def test_a_bad_placement_is_put_right(operators: int, sites: int, load: float, full: float) -> None:
    """Redistribution brings back 90 % of the throughput of a good initial placement, and nothing ends below
    where it began."""
    for seed in range(2):
        problem = scaled(paper_plan(operators, sites, Random(seed)), load)
        good = throughput(problem, balanced(problem))
        for start, table in starts(problem, seed).items():
            after, rounds = settled(problem, table, Rules(full=full))
            then = throughput(problem, after)
            assert then >= 0.9 * good, (start, seed)
            assert then >= min(throughput(problem, table), 1.0) - 1e-9, (start, seed)
            assert rounds <= 4, (start, seed)


def test_tiny_problems_come_near_the_best_table() -> None:
    """Against every table there is, where connections cost and operators are shared."""
    short = 0
    for seed in range(150):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(3, 7), rng.choice([2, 2, 3]), alike=bool(seed % 2))
        best = usage(problem, exhaustive(problem, 10**6)).max_load
        start: Table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
        after, _ = settled(problem, start, Rules(0.0, full=best, rest=0.0))
        short += best < 0.9 * usage(problem, after).max_load
    assert short <= 3


def test_loads_that_vary_do_not_reshuffle() -> None:
    """Each operator by up to 5 %, anew every minute, for half an hour on sites that are always too full."""
    moved = 0
    for operators in (20, 40):
        problem = scaled(paper_plan(operators, 3, Random(0)), 0.95)
        table, history, rng = balanced(problem), History(), Random(1)
        for number in range(30):
            varied = (replace(one, cpu=one.cpu * rng.uniform(0.95, 1.05)) for one in problem.operators)
            now = replace(problem, table=table, operators=tuple(varied))
            decision = redistribute(now, "pays", MODELS["cpu"], Rules(), history, 60.0 * number)
            moved += bool(decision.moves)
            table, history = dict(decision.table), decision.history
    assert moved <= 6, "of 60 rounds"
