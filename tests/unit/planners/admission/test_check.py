"""The checker finds a violation of every kind, planted into a plan that had none."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from headrace.planners.admission.check import usage, violations
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    Host,
    HostLimits,
    Operator,
    Plan,
    Query,
    Stream,
    operator,
)

A, B, C = (frozenset(name) for name in "abc")
AB, ABC = A | B, A | B | C
JOIN, LAST = operator(A, B), operator(AB, C)

Placements = set[tuple[Host, Operator]]
Flows = set[tuple[Host, Host, Stream]]

HOSTS = (HostLimits("x", 20.0, 10.0, 10.0, 30.0), HostLimits("y", 20.0, 10.0, 10.0), HostLimits("z", 9, 9, 9))
PROBLEM = AdmissionProblem(
    HOSTS,
    np.full((3, 3), 6.0),
    {"a": Base("a", 0, 4.0), "b": Base("b", 1, 4.0), "c": Base("c", 2, 4.0)},
    {AB: 2.0, ABC: 1.0},
    (Query("q", AB), Query("all", ABC)),
    operator_cost=2.0,
    memory_cost=3.0,
)
# b goes to x, which joins it with a and delivers; the join goes to z by way of y, is joined with c there.
PLACEMENTS: Placements = {(0, JOIN), (1, LAST)}
FLOWS: Flows = {(1, 0, B), (0, 2, AB), (2, 1, AB), (2, 1, C)}
DELIVERIES = {AB: 0, ABC: 1}


def plan(
    placements: Iterable[tuple[Host, Operator]] = PLACEMENTS,
    flows: Iterable[tuple[Host, Host, Stream]] = FLOWS,
    deliveries: dict[Stream, Host] = DELIVERIES,
) -> Plan:
    return Plan(frozenset(placements), frozenset(flows), deliveries)


def test_a_plan_with_a_relay_is_right_and_its_use_is_counted_by_hand() -> None:
    assert violations(PROBLEM, plan(), ["q", "all"]) == []
    used = usage(PROBLEM, plan())
    assert used["cpu"] == [16.0, 12.0, 0.0]
    assert used["memory"] == [24.0, 18.0, 0.0]
    assert used["in"] == [4.0, 6.0, 2.0]
    assert used["out"] == [4.0, 5.0, 6.0]


def test_nothing_runs_and_nothing_is_wrong() -> None:
    assert violations(PROBLEM, Plan()) == []


BROKEN: dict[str, tuple[Plan, list[str], str]] = {
    "query not delivered": (plan(deliveries={AB: 0}), ["q", "all"], "C1"),
    "unknown query": (plan(), ["nobody"], "does not exist"),
    "nobody wants it": (plan(deliveries={**DELIVERIES, A: 0}), ["q"], "III.4a"),
    "delivered from nowhere": (plan(deliveries={AB: 0, ABC: 2}), ["q"], "III.4a"),
    "delivered by no host": (plan(deliveries={AB: 7, ABC: 1}), ["q"], "delivered by host 7"),
    "join without its input": (plan(flows=FLOWS - {(1, 0, B)}), ["q"], "III.5b"),
    "sent without having it": (plan(flows=FLOWS | {(2, 0, A)}), ["q"], "III.5c"),
    "joined with itself": (plan(PLACEMENTS | {(0, Operator(A, AB))}), ["q"], "C2"),
    "no such rate": (plan(PLACEMENTS | {(0, operator(A, C))}), ["q"], "no rate"),
    "flow of no rate": (plan(flows=FLOWS | {(0, 1, A | C)}), ["q"], "no rate"),
    "operator at no host": (plan(PLACEMENTS | {(3, JOIN)}), ["q"], "host 3"),
    "flow to itself": (plan(flows=FLOWS | {(0, 0, A)}), ["q"], "flow of a"),
    "flow to no host": (plan(flows=FLOWS | {(0, 5, A)}), ["q"], "flow of a"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_planted_violations_are_found(name: str) -> None:
    broken, admitted, text = BROKEN[name]
    found = violations(PROBLEM, broken, admitted)
    assert any(text in one for one in found), found


def test_two_hosts_that_send_a_stream_to_each_other_have_it_from_nowhere() -> None:
    loop = plan({(0, LAST)}, {(0, 1, AB), (1, 0, AB), (2, 0, C)}, {ABC: 0})
    found = violations(PROBLEM, loop, ["all"])
    assert any("III.5b" in one for one in found)
    assert sum("III.7" in one for one in found) == 2


@pytest.mark.parametrize(
    ("resource", "limits", "text"),
    [
        ("cpu", HostLimits("x", 15.9, 10.0, 10.0, 30.0), "III.6d"),
        ("memory", HostLimits("x", 20.0, 10.0, 10.0, 23.9), "memory"),
        ("in", HostLimits("x", 20.0, 3.9, 10.0, 30.0), "III.6b"),
        ("out", HostLimits("x", 20.0, 10.0, 3.9, 30.0), "III.6c"),
    ],
)
def test_every_limit_of_a_host_counts(resource: str, limits: HostLimits, text: str) -> None:
    tight = AdmissionProblem(
        (limits, *HOSTS[1:]), 6.0, PROBLEM.streams, PROBLEM.rates, PROBLEM.queries, 2.0, 3.0
    )
    found = violations(tight, plan(), ["q", "all"])
    assert len(found) == 1
    assert text in found[0]
    assert f"host x uses {usage(tight, plan())[resource][0]:g}" in found[0]


def test_a_link_carries_no_more_than_it_can() -> None:
    width = np.full((3, 3), 6.0)
    width[2, 1] = 5.9
    narrow = AdmissionProblem(HOSTS, width, PROBLEM.streams, PROBLEM.rates, PROBLEM.queries, 2.0, 3.0)
    assert violations(narrow, plan(), ["q"]) == ["III.6a: link 2 -> 1 carries 6 of 5.9"]
