"""Planners by their names: all queries submitted, the last plan checked, options they lack refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from headrace.errors import InternalError, UserError
from headrace.planners.admission import solve as solve_module
from headrace.planners.admission.bound import offline
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    Decision,
    HostLimits,
    Options,
    Plan,
    Query,
    Removal,
    operator,
)
from headrace.planners.admission.solve import PLANNERS, ceiling, solve
from tests.unit.planners.admission.tiny import ab_problem, crowded_problem, relay_problem

A, B = frozenset("a"), frozenset("b")


def ticks() -> Callable[[], float]:
    """A clock that shows a second more each time."""
    now = iter(range(10**6))
    return lambda: float(next(now))


def room() -> AdmissionProblem:
    """Host 0 can join a and b, for 8 CPU; nothing is left then for a second such query."""
    problem = ab_problem(HostLimits("x", 8.0, 9.0, 9.0), HostLimits("y", 0.0, 9.0, 9.0))
    more = {"c": Base("c", 0, 4.0), "d": Base("d", 1, 4.0)}
    rates = {**problem.rates, frozenset("cd"): 1.0}
    queries = [Query(f"q{i}", frozenset(some)) for i, some in enumerate(("ab", "cd", "ab"))]
    return replace(problem, streams={**problem.streams, **more}, rates=rates, queries=tuple(queries))


@pytest.mark.parametrize("name", PLANNERS)
def test_a_stream_with_a_rate_that_nothing_makes_is_no_way_to_a_query(name: str) -> None:
    """a*b*c has a rate, but none of a*b, b*c and a*c has; a*b*c*d is made by way of a*d and a*b*d."""
    streams = {one: Base(one, i % 2, 4.0) for i, one in enumerate("abcd")}
    rates = {frozenset(some): 1.0 for some in ("ad", "abc", "abd", "abcd")}
    queries = (Query("four", frozenset("abcd")), Query("three", frozenset("abc")))
    hosts = (HostLimits("x", 90.0, 90.0, 90.0), HostLimits("y", 90.0, 90.0, 90.0))
    problem = AdmissionProblem(hosts, 90.0, streams, rates, queries)
    answer = solve(problem, name, Options(), ticks() if name != "milp" else lambda: 0.0)
    assert [one.admitted for one in answer.decisions] == [True, False]
    assert offline(problem) == 1.0
    if name != "bound":
        made = {"".join(sorted(one.output)) for _, one in answer.plan.placements}
        assert made == {"ad", "abd", "abcd"}


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_decides_every_query(name: str) -> None:
    told: list[tuple[int, int]] = []
    clock = ticks() if name != "milp" else lambda: 0.0
    answer = solve(room(), name, Options(), clock, lambda *done: told.append(done))
    assert [(one.query, one.admitted) for one in answer.decisions] == [
        ("q0", True),
        ("q1", False),
        ("q2", True),
    ]
    assert (answer.planner, answer.admitted) == (name, 2)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert answer.decisions[1].why
    if name == "bound":
        assert answer.plan == Plan()
        assert answer.notes["plan"].startswith("none")
    else:
        assert answer.plan.placements == {(0, operator(A, B))}
        assert not answer.notes


def test_the_default_comes_first() -> None:
    assert list(PLANNERS) == ["headrace", "milp", "heuristic", "soda", "bound"]


def test_seconds_are_those_of_the_clock() -> None:
    """Two looks for each query, one before the first and one after the last."""
    assert solve(room(), "soda", Options(), ticks()).seconds == 7


@pytest.mark.parametrize("name", ["milp", "soda"])
def test_batches(name: str) -> None:
    told: list[tuple[int, int]] = []
    problem = room()
    answer = solve(problem, name, Options(batch=2), lambda: 0.0, lambda *done: told.append(done))
    assert told == [(2, 3), (3, 3)]
    assert [one.query for one in answer.decisions] == ["q0", "q1", "q2"]
    # Either of the first two fits; which one is the planner's choice.
    assert sum(one.admitted for one in answer.decisions[:2]) == 1


@pytest.mark.parametrize("name", ["headrace", "heuristic", "bound"])
def test_who_takes_no_batches_says_so(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} takes queries one by one, not 2 together"):
        solve(room(), name, Options(batch=2), ticks())


@pytest.mark.parametrize("name", ["milp", "heuristic", "soda", "bound"])
def test_only_ours_is_choosy(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} cannot be choosy"):
        solve(room(), name, Options(choosy=True), ticks())


class Careless:
    """Admits everything, with whatever plan it is told to have."""

    plan = Plan()

    def __init__(self, problem: AdmissionProblem, options: Options, clock: Callable[[], float]) -> None:
        pass

    def submit(self, query: Query) -> Decision:
        return Decision(query.id, True, 0.0)


class Forgetful(Careless):
    def submit_all(self, queries: Sequence[Query]) -> list[Decision]:
        return [self.submit(query) for query in queries[1:]]


BOTH = frozenset("ab")
WRONG = [
    (Plan(), "C1: q is admitted and a*b is delivered by no host"),
    (Plan(deliveries={BOTH: 0}), "host 0 delivers a*b and never has it"),
    (Plan(frozenset({(0, operator(A, B))}), frozenset({(1, 0, B)}), {BOTH: 0}), "uses 8 of 7 cpu"),
]


@pytest.mark.parametrize(("plan", "says"), WRONG)
def test_a_plan_that_cannot_run_is_our_bug(monkeypatch: pytest.MonkeyPatch, plan: Plan, says: str) -> None:
    monkeypatch.setattr(solve_module, "_loaded", lambda name: Careless)
    monkeypatch.setattr(Careless, "plan", plan)
    problem = ab_problem(HostLimits("x", 7.0, 9.0, 9.0), HostLimits("y", 9.0, 9.0, 9.0))
    with pytest.raises(InternalError, match="the plan of headrace cannot run") as wrong:
        solve(problem, "headrace", Options(), ticks())
    assert says in wrong.value.message


class Clinging(Careless):
    """Says that it removes a query, and goes on."""

    plan = Plan(frozenset({(0, operator(A, B))}), frozenset({(1, 0, B)}), {BOTH: 0})

    def remove(self, query_id: str) -> None:
        pass


def test_what_is_delivered_for_one_that_left_is_our_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_module, "_loaded", lambda name: Clinging)
    problem = ab_problem(HostLimits("x", 9.0, 9.0, 9.0), HostLimits("y", 9.0, 9.0, 9.0))
    assert solve(problem, "headrace", Options(), ticks()).admitted == 1
    with pytest.raises(InternalError, match=r"a\*b is delivered and nobody wants it"):
        solve(replace(problem, removals=(Removal("q", 1),)), "headrace", Options(), ticks())


@pytest.mark.parametrize("name", ["headrace", "milp", "heuristic", "soda"])
def test_room_that_is_freed_is_there_for_the_next(name: str) -> None:
    """q1 finds none, until q0 has gone; what was never admitted does not go."""
    problem = replace(room(), queries=(*room().queries[:2], Query("q3", frozenset("cd"))))
    removals = (Removal("q1", 2), Removal("q0", 2), Removal("q3", 3))
    answer = solve(replace(problem, removals=removals), name, Options(), lambda: 0.0)
    assert [one.admitted for one in answer.decisions] == [True, False, True]
    assert [(one.query, one.removed) for one in answer.removals] == [
        ("q1", False),
        ("q0", True),
        ("q3", True),
    ]
    assert answer.plan == Plan()


def test_the_bound_removes_nothing() -> None:
    with pytest.raises(UserError, match="bound cannot remove queries"):
        solve(replace(room(), removals=(Removal("q0", 1),)), "bound", Options(), ticks())


def test_a_query_left_out_is_our_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_module, "_loaded", lambda name: Forgetful)
    with pytest.raises(InternalError, match="milp does not decide every query once"):
        solve(room(), "milp", Options(batch=2), ticks())


@pytest.mark.parametrize("name", ["headrace", "milp"])
@pytest.mark.parametrize("problem", [relay_problem(), crowded_problem()])
def test_relays_and_moves_come_through(name: str, problem: AdmissionProblem) -> None:
    assert solve(problem, name, Options(), lambda: 0.0).admitted == 2


def test_the_ceiling_counts_base_streams_too() -> None:
    """Of two joins there is room for one and, in shares, no more; two queries want a base stream as it is."""
    joins = room()
    alone = (Query("a", A), Query("b", B))
    assert ceiling(joins) == pytest.approx(offline(joins))
    assert ceiling(joins) < 3
    assert ceiling(replace(joins, queries=(*joins.queries, *alone))) == pytest.approx(offline(joins) + 2)
    assert ceiling(replace(joins, queries=alone)) == 2
