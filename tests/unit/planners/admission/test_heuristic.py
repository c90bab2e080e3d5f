"""The paper's heuristic: the same answers as a plain double loop, and what it does and does not do."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.admission.check import violations
from headrace.planners.admission.heuristic import DEADLINE, Heuristic
from headrace.planners.admission.objective import lambdas_of, objective
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
from tests.unit.planners.admission.heuristic_by_loops import best_value
from tests.unit.planners.admission.mixed import mixed
from tests.unit.planners.admission.tiny import ab_problem, crowded_problem, eight_streams

A, B, C, D = (frozenset(name) for name in "abcd")
AB, ABC, ABD = A | B, A | B | C, A | B | D
WIDE = HostLimits("x", 8.0, 4.0, 5.0)


def heuristic(problem: AdmissionProblem, weights: Weights | None = None) -> Heuristic:
    return Heuristic(problem, Options(weights=weights or Weights()), lambda: 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_all_hosts_at_once_is_the_same_as_one_by_one(seed: int) -> None:
    problem = mixed(seed, queries=5)
    planner, weights = heuristic(problem), lambdas_of(problem, Weights())
    for query in problem.queries:
        before = planner.plan
        if query.streams in before.deliveries:
            continue
        best = best_value(problem, before, query.streams, weights)
        decision = planner.submit(query)
        assert decision.admitted == (best is not None)
        if best is not None:
            assert objective(problem, planner.plan, weights) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(16))
def test_plans_are_right_after_every_query_and_nothing_moves(seed: int) -> None:
    problem = mixed(seed)
    planner, admitted = heuristic(problem), list[str]()
    for query in problem.queries:
        before = planner.plan
        decision = planner.submit(query)
        admitted += [query.id] if decision.admitted else []
        after = planner.plan
        assert violations(problem, after, admitted) == []
        assert before.placements <= after.placements
        assert before.flows <= after.flows
        assert before.deliveries.items() <= after.deliveries.items()
        assert decision.admitted != bool(decision.why)
        assert decision.admitted or before == after
        assert len({host for host, _ in after.placements - before.placements}) <= 1


def figure_2() -> AdmissionProblem:
    """Two queries share the stream of a and b. Each host has CPU for three joins, and four large streams."""
    streams = {"a": Base("a", 0, 2.0), "b": Base("b", 0, 2.0), "c": Base("c", 0, 2.0), "d": Base("d", 1, 1.0)}
    hosts = (HostLimits("h1", 11.0, 8.0, 8.0), HostLimits("h2", 11.0, 8.0, 8.0))
    rates = {AB: 2.0, ABC: 1.0, ABD: 1.0}
    return AdmissionProblem(hosts, 100.0, streams, rates, (Query("1", ABC), Query("2", ABD)))


@pytest.mark.parametrize(
    ("weights", "host", "flow"),
    [(Weights(balance=0.0), 0, (1, 0, D)), (Weights(cpu=0.0, balance=100.0), 1, (0, 1, AB))],
)
def test_figure_2_on_one_host_or_balanced(
    weights: Weights, host: int, flow: tuple[int, int, frozenset[str]]
) -> None:
    """Without balance all three joins are at h1 and h2 is idle, but for sending d, which is smaller than the
    shared stream. With it the second query's join is at h2, which receives the shared stream once."""
    problem = figure_2()
    planner = heuristic(problem, weights)
    assert all(planner.submit(query).admitted for query in problem.queries)
    joins = {(0, operator(A, B)), (0, operator(AB, C)), (host, operator(AB, D))}
    assert planner.plan == Plan(frozenset(joins), frozenset({flow}), {ABC: 0, ABD: host})


def test_what_the_milp_admits_by_a_move_is_refused() -> None:
    problem = crowded_problem()
    planner = heuristic(problem, Weights(balance=0.0))
    first, second = (planner.submit(query) for query in problem.queries)
    assert (first.admitted, second.admitted) == (True, False)
    assert "no single host has room" in second.why


def test_a_refusal_says_what_is_missing() -> None:
    problem = ab_problem(replace(WIDE, cpu=7.0), replace(WIDE, id="y", cpu=4.0))
    why = heuristic(problem).submit(problem.queries[0]).why
    assert why.endswith("binding: cpu (1 more needed at host x)")


def test_a_refusal_names_a_link_and_a_sender() -> None:
    narrow = ab_problem(WIDE, replace(WIDE, id="y"), link=3.0)
    assert "link bandwidth (4 more needed" in heuristic(narrow).submit(narrow.queries[0]).why
    quiet = ab_problem(replace(WIDE, outgoing=3.0), replace(WIDE, id="y", outgoing=3.0))
    assert "outgoing bandwidth (1 more needed" in heuristic(quiet).submit(quiet.queries[0]).why


def test_memory_counts() -> None:
    problem = ab_problem(replace(WIDE, memory=7.0), replace(WIDE, id="y", memory=6.0))
    decision = heuristic(replace(problem, memory_cost=1.0)).submit(problem.queries[0])
    assert decision.why.endswith("binding: memory (1 more needed at host x)")


@pytest.mark.parametrize(("home", "other"), [(0, 1), (1, 0)])
def test_the_host_with_most_to_spare_sends(home: int, other: int) -> None:
    """The first query brings b from its home to a host that can send more. The second reads it there."""
    streams = {"a": Base("a", other, 3.0), "b": Base("b", home, 1.0), "c": Base("c", 2, 3.0)}
    limits = {home: HostLimits("x", 0.0, 9.0, 5.0), other: HostLimits("y", 4.0, 9.0, 9.0)}
    hosts = (limits[0], limits[1], HostLimits("z", 4.0, 9.0, 9.0))
    queries = (Query("1", AB), Query("2", B | C))
    problem = AdmissionProblem(hosts, 9.0, streams, {AB: 1.0, B | C: 1.0}, queries)
    planner = heuristic(problem)
    assert all(planner.submit(query).admitted for query in problem.queries)
    assert planner.plan.flows == {(home, other, B), (other, 2, B)}


def test_a_deadline_ends_the_search_with_the_best_so_far() -> None:
    problem = replace(mixed(1), queries=())
    target = frozenset("abcd")
    values = []
    for reads in (1, 6, 20, 1000):
        ticks = iter(range(10_000))
        planner = Heuristic(problem, Options(deadline=float(reads)), lambda ticks=ticks: float(next(ticks)))  # type: ignore[misc]
        decision = planner.submit(Query("q", target))
        weights = lambdas_of(problem, Weights())
        values.append(objective(problem, planner.plan, weights) if decision.admitted else -np.inf)
        assert decision.admitted or decision.why == "time was over before a plan was found"
    assert values == sorted(values)
    assert values[0] == -np.inf
    assert values[-1] > -np.inf


def test_eight_streams_end_without_a_deadline_too() -> None:
    problem = eight_streams()
    ticks = count()
    planner = Heuristic(problem, Options(), lambda: next(ticks) * DEADLINE / 50)
    assert planner.submit(problem.queries[0]).admitted
    assert next(ticks) < 60
    small = replace(problem, hosts=tuple(replace(host, cpu=60.0) for host in problem.hosts))
    ticks = count()
    planner = Heuristic(small, Options(), lambda: next(ticks) * DEADLINE / 50)
    assert planner.submit(small.queries[0]).why == "time was over before a plan was found"


def test_a_refusal_is_not_put_down_to_time_where_all_was_tried() -> None:
    problem = ab_problem(replace(WIDE, cpu=1.0), replace(WIDE, cpu=1.0))
    ticks = count()
    decision = Heuristic(problem, Options(deadline=1.0), lambda: float(next(ticks))).submit(
        problem.queries[0]
    )
    assert decision.why.startswith("no single host has room")


def test_a_stream_without_rates_is_refused_as_such() -> None:
    problem = replace(ab_problem(WIDE, WIDE), rates={})
    assert "known rates" in heuristic(problem).submit(problem.queries[0]).why


def test_a_stream_that_is_delivered_already_costs_nothing() -> None:
    problem = ab_problem(WIDE, WIDE)
    planner = heuristic(problem)
    planner.submit(problem.queries[0])
    before = planner.plan
    assert planner.submit(Query("again", AB)).admitted
    assert planner.plan == before


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (Query("q", frozenset({"a", "nope"})), 'stream "nope" does not exist'),
        (Query("q", frozenset()), "has no stream"),
        (Query("first", AB), "admitted already"),
    ],
)
def test_queries_that_are_wrong_in_themselves(query: Query, text: str) -> None:
    planner = heuristic(ab_problem(WIDE, WIDE))
    planner.submit(Query("first", AB))
    with pytest.raises(UserError, match=text):
        planner.submit(query)
