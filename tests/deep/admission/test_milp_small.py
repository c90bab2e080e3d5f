"""The model as printed and its faster equal against each other and against trying every plan."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from headrace.planners.admission import exhaustive
from headrace.planners.admission.check import violations
from headrace.planners.admission.milp import Search, best_hosts
from headrace.planners.admission.milp_fast import Fast
from headrace.planners.admission.milp_model import Printed, Wish
from headrace.planners.admission.objective import Lambdas, lambdas_of, objective
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Plan,
    Query,
    Weights,
    operator,
)
from headrace.planners.admission.reduction import Scope, reduce
from headrace.planners.admission.solvers import Status, solve
from tests.unit.planners.admission.tiny import ab_problem, relay_problem, tiny

EXACT = 1e-9
FAST = Search(perf_counter, gap=EXACT)
PRINTED = Search(perf_counter, printed=True, gap=EXACT)


def run_against_all_plans(problem: AdmissionProblem) -> int:
    """Every query in turn, by both models and by trying every plan: the same values. Gives the admitted."""
    lambdas = lambdas_of(problem, Weights())
    prices = exhaustive.Prices(lambdas.network, lambdas.cpu, lambdas.balance)
    plan, admitted = Plan(), list[str]()
    for query in problem.queries:
        if query.streams not in plan.deliveries:
            scope = reduce(problem, plan, [query])
            until = perf_counter() + 100
            fast = FAST.best(scope, Wish(lambdas), until)
            printed = PRINTED.best(scope, Wish(lambdas, must=False), until)
            oracle = exhaustive.best_plan(problem, plan, query, prices)
            assert fast.proven
            assert printed.proven
            assert printed.plan is not None
            expected = (
                None if oracle is None else pytest.approx(objective(problem, oracle, lambdas), abs=1e-7)
            )
            assert (fast.plan and objective(problem, fast.plan, lambdas)) == expected
            if oracle is None:
                assert query.streams not in printed.plan.deliveries
            else:
                assert objective(problem, printed.plan, lambdas) == expected
            plan = fast.plan or plan
        admitted += [query.id] if query.streams in plan.deliveries else []
        assert violations(problem, plan, admitted) == []
    return len(admitted)


@pytest.mark.parametrize("links", [False, True])
def test_both_models_equal_trying_every_plan(links: bool) -> None:
    admitted = [run_against_all_plans(tiny(seed, links=links)) for seed in range(4)]
    assert 0 < sum(admitted) < sum(len(tiny(seed).queries) for seed in range(4))


def test_relays_are_planned_by_both() -> None:
    problem = relay_problem()
    lambdas = lambdas_of(problem, Weights())
    scope = reduce(problem, Plan(), problem.queries)
    for search in (FAST, PRINTED):
        found = search.best(scope, Wish(lambdas, must=True), perf_counter() + 100)
        assert found.plan is not None
        assert violations(problem, found.plan, ["q1", "q2"]) == []
        relayed = [flow for flow in found.plan.flows if flow[2] == {"a"} and flow[0] != 0]
        assert len(relayed) == 1


def spread(hosts: int, names: str = "abcd") -> Scope:
    """A join of some streams on idle hosts."""
    streams = {name: Base(name, i % hosts, 10.0) for i, name in enumerate(names)}
    query = Query("q", frozenset(names))
    sets = {frozenset(n for i, n in enumerate(names) if mask >> i & 1) for mask in range(1, 1 << len(names))}
    rates = {some: 0.1 for some in sets if len(some) > 1}
    limits = tuple(HostLimits(i, 300.0, 100.0, 100.0) for i in range(hosts))
    return reduce(AdmissionProblem(limits, 1000.0, streams, rates, (query,)), Plan(), [query])


def test_the_fast_model_is_far_smaller() -> None:
    wish = Wish(lambdas_of(spread(20).problem, Weights()))
    printed, fast = Printed(spread(20), wish).model.size, Fast(spread(20), wish).model.size
    # x and p alone: 20 * 19 * 15 + 20 * 15 variables, two rows for each x.
    assert printed[0] > 2 * 20 * 19 * 15
    assert printed[1] > 20 * 19 * 15 + 20 * 15
    assert fast[0] < 3500
    assert fast[1] < 2000


def test_a_solution_says_its_own_value() -> None:
    problem = relay_problem()
    lambdas = lambdas_of(problem, Weights())
    scope = reduce(problem, Plan(), [problem.queries[0]])
    for model in (Printed(scope, Wish(lambdas)), Fast(scope, Wish(lambdas))):
        solved = solve(model.model, perf_counter() + 100, perf_counter, EXACT)
        assert solved.values is not None
        part = model.plan(solved.values)
        assert part is not None
        assert model.value(solved.values) == pytest.approx(objective(problem, part, lambdas))


def test_weights_are_the_papers_where_none_are_given() -> None:
    problem = ab_problem(HostLimits("x", 30.0, 5.0, 4.0), HostLimits("y", 10.0, 5.0, 6.0))
    lambdas = lambdas_of(problem, Weights())
    # 1 / all outgoing, 1 / all CPU, 1 / mean CPU; and more than 1 + 1 + 30/20 for a query.
    assert lambdas == Lambdas(1 + 1 + 1 + 1.5, 1 / 10, 1 / 40, 1 / 20)
    plan = Plan(
        frozenset({(0, operator(frozenset("a"), frozenset("b")))}), frozenset({(1, 0, frozenset("b"))}), {}
    )
    assert objective(problem, plan, lambdas) == pytest.approx(-4 / 10 - 8 / 40 - 8 / 20)
    given = lambdas_of(problem, Weights(network=0.0, cpu=0.0, balance=1.0))
    assert given == Lambdas(31.0, 0.0, 0.0, 1.0)


def test_limits_without_end_need_no_weight() -> None:
    free = HostLimits("x", float("inf"), float("inf"), float("inf"))
    assert lambdas_of(ab_problem(free, free), Weights()) == Lambdas(1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_freeing_what_a_refusal_names_is_enough_and_less_is_not(seed: int) -> None:
    problem = tiny(seed)
    query = Query("more", frozenset("ab"))
    poor = tuple(HostLimits(h.id, 1.5, h.incoming, h.outgoing, h.memory) for h in problem.hosts)
    short_of = AdmissionProblem(poor, 100.0, problem.streams, problem.rates, (query,), memory_cost=1.0)
    lambdas = lambdas_of(short_of, Weights())
    scope = reduce(short_of, Plan(), [query])
    short, plan = FAST.shortage(scope, Wish(lambdas), perf_counter() + 100)
    assert short
    assert plan is None
    for share, fits in ((1.0 + 1e-6, True), (0.99, False)):
        extra = {(one.resource, one.where[0]): share * one.amount for one in short}
        richer = tuple(
            HostLimits(
                host.id,
                host.cpu + extra.get(("cpu", i), 0.0),
                host.incoming + extra.get(("in", i), 0.0),
                host.outgoing + extra.get(("out", i), 0.0),
                host.memory + extra.get(("memory", i), 0.0),
            )
            for i, host in enumerate(poor)
        )
        given = AdmissionProblem(richer, 100.0, problem.streams, problem.rates, (query,), memory_cost=1.0)
        assert (exhaustive.best_plan(given, Plan(), query) is not None) == fits


def test_what_a_refusal_names_is_enough_where_a_link_binds_once_its_ends_have_more() -> None:
    """Nothing goes from x to y, so y's stream has to come to x, however much x could send."""
    links = np.array([[0.0, 0.0], [10.0, 0.0]])
    hosts = (HostLimits("x", 100.0, 0.0, 0.0), HostLimits("y", 100.0, 100.0, 8.0))
    streams = {"a": Base("a", 0, 10.0), "b": Base("b", 1, 10.0)}
    query = Query("q", frozenset("ab"))
    problem = AdmissionProblem(hosts, links, streams, {query.streams: 0.0}, (query,))
    scope = reduce(problem, Plan(), [query])
    assert not scope.tight_links.any()
    short, _ = FAST.shortage(scope, Wish(lambdas_of(problem, Weights())), perf_counter() + 100)
    assert {(one.resource, one.where): one.amount for one in short} == {
        ("in", (0,)): pytest.approx(10.0),
        ("out", (1,)): pytest.approx(2.0),
    }


def test_the_hosts_that_matter_come_first() -> None:
    scope = spread(20, "abc")
    assert best_hosts(scope, 2) == {0, 1, 2}
    assert len(best_hosts(scope, 12)) == 12
    wish = Wish(lambdas_of(scope.problem, Weights()), hosts=best_hosts(scope, 4))
    found = FAST.best(scope, wish, perf_counter() + 100)
    assert found.plan is not None
    assert not found.proven
    assert {host for host, _ in found.plan.placements} <= best_hosts(scope, 4)


def test_a_model_is_not_called_infeasible_because_presolve_says_so() -> None:
    problem = tiny(105, links=True)
    scope = reduce(problem, Plan(), [problem.queries[0]])
    printed = Printed(scope, Wish(lambdas_of(problem, Weights()), must=False))
    upper = printed.model.upper.copy()
    upper[printed.p] = len(problem.hosts) + 1.0
    bounded = replace(printed.model, upper=upper)
    # Doing nothing is a solution. HiGHS 1.12 with presolve finds the model infeasible.
    nothing = np.zeros(bounded.size[1])
    assert np.all(bounded.rows @ nothing <= bounded.high)
    assert np.all(bounded.rows @ nothing >= bounded.low)
    assert solve(bounded, perf_counter() + 100, perf_counter).status is Status.OPTIMAL
