"""The policy that keeps room for cheap queries: off unless asked for, and it says what it does."""

from __future__ import annotations

from headrace.planners.admission.ours import Ours
from headrace.planners.admission.ours_choosy import EASY, Choosy
from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Options, Query
from headrace.planners.admission.state import State


def dear_then_cheap() -> AdmissionProblem:
    """Queries of 100 and of 20, for 300 CPU."""
    streams = {f"s{i}": Base(f"s{i}", 0, 10.0) for i in range(60)}
    streams |= {f"big{i}": Base(f"big{i}", 0, 50.0) for i in range(4)}
    small = [frozenset({f"s{2 * i}", f"s{2 * i + 1}"}) for i in range(30)]
    large = [frozenset({f"big{2 * i}", f"big{2 * i + 1}"}) for i in range(2)]
    wanted = [large[0], *small[:4], large[1], *small[4:]]
    queries = tuple(Query(f"q{i}", streams_) for i, streams_ in enumerate(wanted))
    hosts = (HostLimits(0, 300.0, 0.0, 1000.0),)
    return AdmissionProblem(hosts, 1.0, streams, dict.fromkeys(wanted, 1.0), queries)


def run(choosy: bool) -> list[tuple[bool, str]]:
    problem = dear_then_cheap()
    planner = Ours(problem, Options(choosy=choosy), lambda: 0.0)
    return [(one.admitted, one.why) for one in map(planner.submit, problem.queries)]


def test_off_by_default() -> None:
    assert Options().choosy is False
    assert run(choosy=False)[5] == (True, "")


def at(share: float) -> Choosy:
    """A policy that has seen queries of 20 and of 100, with this share of 300 CPU in use now."""
    state = State(dear_then_cheap())
    policy = Choosy(state, 10.0)
    assert policy.refusal(Query("cheap", frozenset()), 20.0) == ""
    assert policy.refusal(Query("dear", frozenset()), 100.0) == ""
    state.total_cpu = 300.0 * share
    return policy


def test_dear_queries_are_refused_when_room_is_short() -> None:
    last = 1.0 - 1e-9
    dear, cheap = Query("dear", frozenset()), Query("cheap", frozenset())
    assert at(EASY).refusal(dear, 0.0) == at(EASY).refusal(dear, 100.0) == ""
    late = at(last + 100.0 / 300.0)
    assert late.refusal(dear, 100.0) == (
        "fits but is expensive (choosy): it takes 100 CPU for a priority of 1,"
        " and with 100% of all CPU in use at most 20 is spent on that"
    )
    assert at(last).refusal(cheap, 20.0) == ""


def test_priority_is_worth_cpu() -> None:
    late = at(1.0 + 100.0 / 300.0)
    assert late.refusal(Query("dear", frozenset(), priority=1.0), 100.0)
    assert late.refusal(Query("urgent", frozenset(), priority=5.1), 100.0) == ""


def test_more_queries_get_in() -> None:
    with_, without = run(choosy=True), run(choosy=False)
    assert sum(admitted for admitted, _ in without) == 7
    assert sum(admitted for admitted, _ in with_) >= 7
