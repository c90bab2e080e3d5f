"""What may change and what stays when a query arrives; and that nothing useless is kept."""

from __future__ import annotations

import numpy as np

from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Plan, Query, operator
from headrace.planners.admission.reduction import reduce, trimmed

A, B, C, D = (frozenset(name) for name in "abcd")
STREAMS = {name: Base(name, host, 4.0) for host, name in enumerate("abcd")}
RATES = {A | B: 1.0, B | C: 1.0, A | B | C: 0.5, C | D: 1.0}
HOSTS = tuple(HostLimits(i, 100.0, 10.0, 10.0) for i in range(4))
PROBLEM = AdmissionProblem(
    HOSTS, 10.0, STREAMS, RATES, (Query("abc", A | B | C), Query("cd", C | D), Query("ab", A | B))
)
# a*b at 0 with c of 2 gives a*b*c there; c*d at 3.
RUNNING = Plan(
    frozenset({(0, operator(A, B)), (0, operator(A | B, C)), (3, operator(C, D))}),
    frozenset({(1, 0, B), (2, 0, C), (2, 3, C)}),
    {A | B | C: 0, C | D: 3, A | B: 0},
)


def test_only_related_streams_and_operators_may_change() -> None:
    scope = reduce(PROBLEM, RUNNING, [Query("bc", B | C)])
    assert scope.streams == (B, C, B | C)
    assert scope.operators == (operator(B, C),)
    assert scope.wanted == (B | C,)
    assert scope.kept == ()
    assert scope.loose == Plan(frozenset(), frozenset({(1, 0, B), (2, 0, C), (2, 3, C)}), {})
    assert scope.needs == {(0, B), (0, C), (3, C)}
    assert scope.joined(scope.loose) == RUNNING


def test_queries_inside_the_new_one_are_planned_anew_and_kept() -> None:
    scope = reduce(PROBLEM, RUNNING, [Query("abc", A | B | C)])
    assert scope.wanted == ()
    assert scope.kept == (A | B, A | B | C)
    assert scope.fixed.placements == {(3, operator(C, D))}
    assert scope.needs == {(3, C)}


def test_room_is_what_the_fixed_part_leaves() -> None:
    scope = reduce(PROBLEM, RUNNING, [Query("ab", A | B)])
    assert scope.room["cpu"].tolist() == [95.0, 100.0, 100.0, 92.0]
    assert scope.room["in"].tolist() == [6.0, 10.0, 10.0, 6.0]
    assert scope.room["out"].tolist() == [9.5, 10.0, 2.0, 9.0]
    assert scope.link_room[2, 3] == 6.0
    assert scope.link_room[3, 2] == 10.0


def test_a_link_is_tight_only_if_it_could_carry_too_much() -> None:
    width = np.full((4, 4), 9.5)
    width[0, 1], width[2, 3] = 8.0, 12.0
    narrow = AdmissionProblem(HOSTS, width, STREAMS, RATES, PROBLEM.queries)
    scope = reduce(narrow, RUNNING, [Query("ab", A | B)])
    # All of S(q) once is 9: 9.5 is enough for it, though hosts could send 10. From 2 to 0 c takes 4 of them.
    assert np.argwhere(scope.tight_links).tolist() == [[0, 1], [2, 0]]


def test_a_link_as_wide_as_its_ends_is_narrow_where_these_may_be_passed() -> None:
    narrow = AdmissionProblem(HOSTS, 10.0, STREAMS, RATES, PROBLEM.queries)
    scope = reduce(narrow, RUNNING, [Query("ab", A | B)])
    # All of S(q) once is 9; c takes 4 of the 10 from 2 to 3.
    assert not scope.tight_links.any()
    taken = {(sender, receiver) for sender, receiver, _ in scope.fixed.flows}
    assert {tuple(link) for link in np.argwhere(scope.narrow_links).tolist()} == taken


def test_what_serves_nobody_is_trimmed() -> None:
    useless = Plan(
        RUNNING.placements | {(1, operator(B, C)), (2, operator(C, D))},
        RUNNING.flows | {(2, 1, C), (3, 2, D), (0, 3, A)},
        RUNNING.deliveries,
    )
    assert trimmed(PROBLEM, useless, RUNNING.deliveries) == RUNNING
    assert trimmed(PROBLEM, RUNNING, [C | D]) == Plan(
        frozenset({(3, operator(C, D))}), frozenset({(2, 3, C)}), {C | D: 3}
    )
    assert trimmed(PROBLEM, RUNNING, []) == Plan()


def test_of_two_origins_one_is_kept_and_never_a_circle() -> None:
    twice = Plan(RUNNING.placements, RUNNING.flows | {(0, 3, B), (3, 0, B), (3, 1, B)}, RUNNING.deliveries)
    assert trimmed(PROBLEM, twice, RUNNING.deliveries) == RUNNING
