"""SQPR, query after query: what it admits, what it moves, what it says when it refuses."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from time import perf_counter

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.admission import exhaustive, milp
from headrace.planners.admission.check import violations
from headrace.planners.admission.objective import Lambdas, objective
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Options,
    Plan,
    Query,
    Weights,
    operator,
)
from headrace.planners.admission.sqpr import Sqpr
from tests.unit.planners.admission.tiny import (
    ab_problem,
    crowded_problem,
    eight_streams,
    relay_problem,
    tiny,
)

A, B = frozenset("a"), frozenset("b")
JOIN = operator(A, B)
WIDE = HostLimits("x", 8.0, 4.0, 5.0)


def sqpr(problem: AdmissionProblem, deadline: float = 100.0, **how: bool | int) -> Sqpr:
    return Sqpr(problem, Options(deadline=deadline), perf_counter, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("seed", range(4))
def test_weights_that_are_given_choose_the_plan(seed: int, unit: float) -> None:
    """The first query against every plan, by weights drawn for it; one worth too little is refused."""
    problem = tiny(seed)
    query, rng = problem.queries[0], np.random.default_rng(seed)
    network, cpu, balance = (float(weight) for weight in rng.uniform(0.1, 3.0, 3))
    oracle = exhaustive.best_plan(problem, Plan(), query, exhaustive.Prices(network, cpu, balance))
    price = -objective(problem, oracle, Lambdas(0.0, network, cpu, balance)) if oracle else 5.0
    for worth in (None, 0.9 * price, 1.1 * price):
        admitted = None if worth is None else worth * unit
        weights = Weights(admitted, network * unit, cpu * unit, balance * unit)
        planner = Sqpr(problem, Options(deadline=100.0, weights=weights), perf_counter)
        decision = planner.submit(query)
        assert decision.admitted == (oracle is not None and (worth is None or worth > price))
        if decision.admitted:
            found = -objective(problem, planner.plan, Lambdas(0.0, network, cpu, balance))
            assert found == pytest.approx(price, rel=2e-3)


def test_a_stream_that_is_delivered_already_costs_nothing() -> None:
    again = replace(ab_problem(WIDE, WIDE), queries=(Query("q", A | B), Query("again", A | B)))
    planner = sqpr(again)
    assert planner.submit(again.queries[0]).admitted
    before = planner.plan
    decision = planner.submit(again.queries[1])
    assert decision.admitted
    assert decision.proven
    assert planner.plan == before
    assert planner.admitted == ("q", "again")


@pytest.mark.parametrize("printed", [False, True])
def test_related_queries_are_moved_to_make_room(printed: bool) -> None:
    problem = crowded_problem()
    planner = sqpr(problem, printed=printed)
    first, second = (planner.submit(query) for query in problem.queries[:1]), problem.queries[1]
    assert all(decision.admitted and decision.moved == 0 for decision in first)
    assert planner.plan.placements == {(0, JOIN)}
    decision = planner.submit(second)
    assert decision.admitted
    assert decision.moved == 1
    assert (1, JOIN) in planner.plan.placements
    assert violations(problem, planner.plan, planner.admitted) == []


def test_a_refusal_is_proven_names_what_binds_and_changes_nothing() -> None:
    problem = ab_problem(replace(WIDE, id="x", cpu=7.0), replace(WIDE, id="y", cpu=4.0))
    planner = sqpr(problem)
    decision = planner.submit(problem.queries[0])
    assert not decision.admitted
    assert decision.proven
    assert decision.why == "no plan fits; it would with 1 more cpu at host x"
    assert planner.plan == Plan()
    assert planner.admitted == ()
    short = sqpr(problem, reasons=False).submit(problem.queries[0])
    assert (short.admitted, short.proven, short.why) == (False, True, "no plan fits")


def test_a_refusal_beside_what_stays_fixed_says_so() -> None:
    streams = {name: Base(name, 0, 2.0) for name in "abcd"}
    wanted = [A | B, frozenset("cd")]
    queries = tuple(Query(f"q{i}", one) for i, one in enumerate(wanted))
    hosts = (HostLimits("x", 7.0, 9.0, 9.0),)
    problem = AdmissionProblem(hosts, 100.0, streams, dict.fromkeys(wanted, 1.0), queries)
    planner = sqpr(problem)
    assert planner.submit(queries[0]).admitted
    decision = planner.submit(queries[1])
    assert decision.proven
    assert decision.why == "no plan fits beside what stays fixed; it would with 1 more cpu at host x"


def test_memory_is_a_limit_too() -> None:
    host = replace(WIDE, memory=7.0)
    problem = replace(ab_problem(host, replace(host, memory=4.0)), memory_cost=1.0)
    decision = sqpr(problem).submit(problem.queries[0])
    assert decision.why == "no plan fits; it would with 1 more memory at host x"


def test_a_stream_that_others_read_already_may_be_sent_on() -> None:
    # Both partners are too fast to leave their hosts, so a*b goes to 1 and to 2, and is delivered besides.
    ab = frozenset("ab")
    streams = {"a": Base("a", 0, 4.0), "b": Base("b", 0, 4.0), "p": Base("p", 1, 9.0), "q": Base("q", 2, 9.0)}
    wanted = [ab | {"p"}, ab | {"q"}, ab]
    problem = AdmissionProblem(
        (HostLimits(0, 8.0, 3.0, 3.0), HostLimits(1, 10.0, 3.0, 3.0), HostLimits(2, 10.0, 3.0, 3.0)),
        100.0,
        streams,
        dict.fromkeys(wanted, 1.0),
        tuple(Query(f"q{i}", one) for i, one in enumerate(wanted)),
    )
    planner = sqpr(problem)
    assert all(planner.submit(query).admitted for query in problem.queries)
    assert violations(problem, planner.plan, planner.admitted) == []


def test_a_refusal_names_the_link() -> None:
    problem = ab_problem(WIDE, replace(WIDE, id="y", cpu=1.0), link=3.0)
    decision = sqpr(problem).submit(problem.queries[0])
    assert decision.why == "no plan fits; it would with 1 more bandwidth from host y to host x"


def test_a_stream_that_cannot_be_made_is_refused_as_such() -> None:
    problem = replace(ab_problem(WIDE, WIDE), rates={})
    decision = sqpr(problem).submit(problem.queries[0])
    assert (decision.admitted, decision.proven) == (False, True)
    assert "known rates" in decision.why


def test_a_base_stream_is_delivered_by_its_home() -> None:
    problem = replace(ab_problem(WIDE, WIDE), queries=(Query("q", A),))
    planner = sqpr(problem)
    assert planner.submit(problem.queries[0]).admitted
    assert planner.plan == Plan(deliveries={A: 0})


def test_without_time_nothing_is_claimed() -> None:
    problem = ab_problem(WIDE, WIDE)
    decision = sqpr(problem, deadline=0.0).submit(problem.queries[0])
    assert (decision.admitted, decision.proven) == (False, False)
    assert decision.why == "no plan was found in 0 s"


@pytest.mark.parametrize("printed", [False, True])
def test_time_may_be_over_before_a_model_is_written_down(
    printed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("no model is ready")

    monkeypatch.setattr(milp, "solve", never)
    problem, ticks = eight_streams(), count()
    planner = Sqpr(problem, Options(deadline=100.0), lambda: float(next(ticks)), printed=printed)
    decision = planner.submit(problem.queries[0])
    assert (decision.admitted, decision.proven) == (False, False)
    assert decision.why == "no plan was found in 100 s"
    assert next(ticks) < 150


def test_what_only_a_removed_query_needed_is_gone() -> None:
    problem = crowded_problem()
    planner = sqpr(problem)
    for query in problem.queries:
        planner.submit(query)
    both = planner.plan
    planner.remove("first")
    assert planner.plan == Plan(both.placements, both.flows, {frozenset("abc"): 0})
    planner.remove("second")
    assert planner.plan == Plan()
    assert planner.submit(problem.queries[0]).admitted
    with pytest.raises(UserError, match="not admitted"):
        planner.remove("second")


def test_a_stream_stays_while_another_query_wants_it() -> None:
    problem = replace(ab_problem(WIDE, WIDE), queries=(Query("q", A | B), Query("again", A | B)))
    planner = sqpr(problem)
    for query in problem.queries:
        planner.submit(query)
    running = planner.plan
    planner.remove("q")
    assert planner.plan == running
    planner.remove("again")
    assert planner.plan == Plan()


@pytest.mark.parametrize("seed", range(6))
def test_queries_that_come_together_are_planned_as_well_as_can_be(seed: int) -> None:
    problem = tiny(seed)
    distinct = {query.streams: query for query in problem.queries}
    problem = replace(problem, queries=tuple(distinct.values()))
    planner = sqpr(problem)
    decisions = planner.submit_all(problem.queries)
    assert sum(decision.admitted for decision in decisions) == exhaustive.most_admitted(problem)
    assert violations(problem, planner.plan, planner.admitted) == []


def test_a_batch_uses_relays() -> None:
    problem = relay_problem()
    assert all(decision.admitted for decision in sqpr(problem).submit_all(problem.queries))


@pytest.mark.parametrize("seed", range(4))
def test_few_hosts_give_plans_too(seed: int) -> None:
    problem = tiny(seed, most=4)
    planner = sqpr(problem, hosts=2)
    for query in problem.queries:
        planner.submit(query)
        assert violations(problem, planner.plan, planner.admitted) == []
