"""Rates change under a running plan: what is picked, moved, dropped, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.admission.adaptive import Adapted, Picked, Policy, Way, adapt
from headrace.planners.admission.changes import Change, Price, StateSize
from headrace.planners.admission.check import usage, violations
from headrace.planners.admission.demands import Demands, Ledger
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.observed import Observed, observed_problem
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    Decision,
    HostLimits,
    Options,
    Plan,
    Query,
    operator,
)
from headrace.planners.admission.reduction import trimmed
from tests.unit.planners.admission.mixed import mixed
from tests.unit.planners.admission.replay import replayed
from tests.unit.planners.admission.tiny import ab_problem

A, B, AB = frozenset("a"), frozenset("b"), frozenset("ab")
JOIN = operator(A, B)
SIZE = StateSize(window=10.0, bytes_of_rate=100.0)
PLAN = Plan(frozenset({(0, JOIN)}), frozenset({(1, 0, B)}), {AB: 0})
"""a and b, 4 each, are joined at x for 8 CPU."""


def two(x: float, y: float) -> AdmissionProblem:
    return ab_problem(HostLimits("x", x, 9.0, 9.0), HostLimits("y", y, 9.0, 9.0))


def adapted(
    problem: AdmissionProblem, observed: Observed, ways: tuple[Way, ...] = ("least",)
) -> tuple[Plan, Adapted]:
    return adapt(problem, PLAN, ["q"], observed, lambda: 0.0, policy=Policy(0.1, SIZE, ways))


def test_a_small_difference_is_nothing() -> None:
    plan, answer = adapted(two(9.0, 9.0), Observed({A: 4.5}))
    assert plan == PLAN
    assert (answer.picked, answer.changes, answer.kept) == ((), (), ("q",))
    assert answer.price == Price(0, 0, 0, 0, 0.0, 0.0)


def test_a_query_that_deviates_and_fits_is_named_and_left_alone() -> None:
    plan, answer = adapted(two(20.0, 20.0), Observed({A: 6.0}))
    assert answer.picked == (Picked("q", "deviates", "cpu: 10 where 8 was estimated"),)
    assert answer.replanned == ()
    assert plan == PLAN


def test_less_than_estimated_is_a_deviation_too() -> None:
    _, answer = adapted(two(9.0, 9.0), Observed({B: 2.0}))
    assert answer.picked == (Picked("q", "deviates", "cpu: 6 where 8 was estimated"),)


def test_all_that_are_picked_are_planned_again_on_demand() -> None:
    _, answer = adapted(two(20.0, 20.0), Observed({A: 6.0}), ("all",))
    assert (answer.way, answer.replanned, answer.kept) == ("all", ("q",), ("q",))


def test_a_starving_query_moves_with_its_state() -> None:
    """9 CPU and x has 8: the join goes to y, which gets a and need not send b any more."""
    plan, answer = adapted(two(8.0, 10.0), Observed({A: 5.0}))
    assert answer.picked == (Picked("q", "starves", "cpu of host x: 9 needed of 8"),)
    assert plan == Plan(frozenset({(1, JOIN)}), frozenset({(0, 1, A)}), {AB: 1})
    inputs = (("a",), ("b",))
    assert answer.changes == (
        Change("start flow", ("a",), source="x", target="y"),
        Change("move operator", ("a", "b"), inputs, "x", "y", bytes=9.0 * 10.0 * 100.0),
        Change("deliver", ("a", "b"), source="x", target="y"),
        Change("stop operator", ("a", "b"), inputs, "x"),
        Change("stop flow", ("b",), source="y", target="x"),
    )
    assert answer.price == Price(moved=1, started=0, stopped=0, flows=2, bytes=9000.0, seconds_to_fill=0.0)


def test_a_query_that_fits_nowhere_is_dropped_with_the_reason() -> None:
    plan, answer = adapted(two(8.0, 8.0), Observed({A: 5.0}))
    assert plan == Plan()
    assert answer.kept == ()
    (lost,) = answer.dropped
    assert lost.query == "q"
    assert "cpu" in lost.why
    assert [change.kind for change in answer.changes] == ["end", "stop operator", "stop flow"]
    assert answer.price.stopped == 1


def test_a_host_that_takes_more_cpu_than_its_rates_explain_is_slower() -> None:
    """10 CPU where 8 are explained: of its 9 there is work for 7.2 only."""
    problem = two(9.0, 9.0)
    now = observed_problem(problem, Observed(cpu={0: 10.0}), PLAN)
    assert now.hosts[0].cpu == pytest.approx(7.2)
    plan, answer = adapted(problem, Observed(cpu={0: 10.0}))
    assert answer.picked[0].reason == "starves"
    assert plan.placements == {(1, JOIN)}


def test_what_was_not_measured_changes_as_its_base_streams_do() -> None:
    problem = two(9.0, 9.0)
    now = observed_problem(problem, Observed({A: 8.0}), PLAN)
    assert now.rate(AB) == 1.0 * 12.0 / 8.0
    assert observed_problem(problem, Observed({A: 8.0, AB: 0.0}), PLAN).rate(AB) == 0.0
    assert (AB in now.rates, A in now.rates, list(now.rates), len(now.rates)) == (True, False, [AB], 1)


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        (Observed({A: -1.0}), 'rate of "a" is -1'),
        (Observed({frozenset("az"): 1.0}), "no stream of this problem"),
        (Observed(cpu={7: 1.0}), "host 7"),
        (Observed(cpu={0: float("nan")}), "nan CPU"),
    ],
)
def test_observations_that_cannot_be(observed: Observed, text: str) -> None:
    with pytest.raises(UserError, match=text):
        adapted(two(9.0, 9.0), observed)


def test_only_queries_that_run_can_be_adapted() -> None:
    with pytest.raises(UserError, match='"nobody" does not run'):
        adapt(two(9.0, 9.0), PLAN, ["nobody"], Observed(), lambda: 0.0)
    with pytest.raises(UserError, match=r'delivers "a\*b", which none'):
        adapt(two(9.0, 9.0), PLAN, [], Observed(), lambda: 0.0)


class Reluctant(Ours):
    """Admits nothing it has to do something for, the first time it is asked."""

    def submit(self, query: Query) -> Decision:
        asked = vars(self).setdefault("asked", set())
        if query.streams in self.plan.deliveries or query.id in asked:
            return super().submit(query)
        asked.add(query.id)
        return Decision(query.id, False, 0.0, "not yet")


def test_a_query_without_a_place_is_tried_once_more() -> None:
    observed = Observed({A: 5.0})
    _, answer = adapt(two(8.0, 10.0), PLAN, ["q"], observed, lambda: 0.0, make=Reluctant)
    assert (answer.kept, answer.dropped) == (("q",), ())


def busy(seed: int) -> tuple[AdmissionProblem, Plan, list[str], Observed]:
    """A full system, and the rates of a part of its streams up to twice what they were."""
    problem = mixed(seed, queries=16)
    planner = Ours(problem, Options(), lambda: 0.0)
    admitted = [query.id for query in problem.queries if planner.submit(query).admitted]
    rng = np.random.default_rng([seed, 9])
    changed = [name for name in problem.streams if rng.random() < 0.4]
    rates = {frozenset({n}): problem.streams[n].rate * float(rng.uniform(0.5, 2.0)) for n in changed}
    return problem, planner.plan, admitted, Observed(rates)


@pytest.mark.parametrize("make", [Ours, Heuristic])
@pytest.mark.parametrize("seed", range(10))
def test_limits_hold_again_and_the_changes_lead_there(
    seed: int, make: Callable[..., Ours | Heuristic]
) -> None:
    problem, plan, admitted, observed = busy(seed)
    after, answer = adapt(
        problem, plan, admitted, observed, lambda: 0.0, policy=Policy(ways=("least", "all")), make=make
    )
    now = observed_problem(problem, observed, plan)
    assert violations(now, after, answer.kept) == []
    assert sorted([*answer.kept, *(one.query for one in answer.dropped)]) == sorted(admitted)
    assert all(one.why for one in answer.dropped)
    assert replayed(now, plan, answer.changes) == (after, [])
    assert json.loads(json.dumps(asdict(answer)))["kept"] == list(answer.kept)


@pytest.mark.parametrize("seed", range(10))
def test_few_are_taken_out_and_none_that_could_stay(seed: int) -> None:
    """Without them all limits hold; with any one of them put back, some limit does not."""
    problem, plan, _, observed = busy(seed)
    now = observed_problem(problem, observed, plan)
    taken = Ledger(Demands(now, plan)).least_to_take()
    assert bool(taken) == bool(violations(now, plan))
    rest = [stream for stream in plan.deliveries if stream not in taken]
    assert violations(now, trimmed(now, plan, rest)) == []
    for stream in taken:
        assert violations(now, trimmed(now, plan, [*rest, stream])) != []


def test_the_one_that_brings_most_relief_is_taken() -> None:
    """Joins of 8, 4 and 4 at a host that has 11 left: without the first the others can stay."""
    streams = {name: Base(name, 0, 4.0 if name in "ab" else 2.0) for name in "abcdef"}
    sets = [frozenset(two) for two in ("ab", "cd", "ef")]
    hosts = (HostLimits("x", 11.0, 9.0, 9.0),)
    queries = tuple(Query(str(i), one) for i, one in enumerate(sets))
    problem = AdmissionProblem(hosts, 9.0, streams, dict.fromkeys(sets, 0.1), queries)
    joins = frozenset((0, operator(*(frozenset({name}) for name in one))) for one in sets)
    ledger = Ledger(Demands(problem, Plan(joins, deliveries=dict.fromkeys(sets, 0))))
    assert list(ledger.over.values()) == [pytest.approx(5.0)]
    assert ledger.least_to_take() == [sets[0]]
    assert ledger.over == {}


@pytest.mark.parametrize("seed", range(5))
def test_the_ledger_counts_as_the_checker_does(seed: int) -> None:
    problem, plan, _, _ = busy(seed)
    demands = Demands(problem, plan)
    ledger, used = Ledger(demands), usage(problem, demands.plan)
    for number, one in enumerate(demands.resources):
        if one.kind != "link":
            assert ledger.used[number] == pytest.approx(used[one.kind][one.host])


def test_a_query_of_more_worth_goes_first() -> None:
    """x has become too slow for either of two equal queries, and y has room for one."""
    problem = two(16.5, 9.5)
    cd, last = frozenset("cd"), operator(frozenset("c"), frozenset("d"))
    other = {"c": replace(problem.streams["a"], id="c"), "d": replace(problem.streams["b"], id="d")}
    queries = (Query("q", AB, 1.0), Query("dear", cd, 2.0))
    both = replace(problem, streams={**problem.streams, **other}, rates={AB: 1.0, cd: 1.0}, queries=queries)
    plan = Plan(PLAN.placements | {(0, last)}, PLAN.flows | {(1, 0, frozenset("d"))}, {AB: 0, cd: 0})
    assert violations(both, plan, ["q", "dear"]) == []
    after, answer = adapt(both, plan, ["q", "dear"], Observed(cpu={0: 40.0}), lambda: 0.0)
    assert answer.replanned == ("dear", "q")
    assert answer.kept == ("dear",)
    assert after == Plan(frozenset({(1, last)}), frozenset({(0, 1, frozenset("c"))}), {cd: 1})
