"""The optimistic bound against all trees, and the offline bound against all plans."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from headrace.planners.admission.bound import Bound, least_cpu, offline, optimistic
from headrace.planners.admission.check import violations
from headrace.planners.admission.exhaustive import most_admitted
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Operator,
    Options,
    Plan,
    Query,
    Stream,
    cpu_of,
)
from headrace.planners.admission.workload import Setup, paper_problem
from tests.unit.planners.admission.tiny import tiny


def all_trees(problem: AdmissionProblem, stream: Stream, made: set[Stream]) -> float:
    """The least CPU over every tree, by recursion from the top."""
    if len(stream) == 1 or stream in made:
        return 0.0
    found = []
    for size in range(1, len(stream)):
        for part in map(frozenset, combinations(sorted(stream), size)):
            read = problem.rate(part) + problem.rate(stream - part)
            below = all_trees(problem, part, made) + all_trees(problem, stream - part, made)
            found.append(problem.operator_cost * read + below)
    return min(found)


@pytest.mark.parametrize("seed", range(15))
def test_least_cpu_is_the_least_over_all_trees(seed: int) -> None:
    problem = paper_problem(seed, Setup(streams=9, queries=12, ways=(2, 3, 4, 5), selectivity=(0.05, 0.9)))
    made: set[Stream] = set()
    for query in problem.queries:
        cpu, operators = least_cpu(problem, query.streams, made)
        assert cpu == pytest.approx(all_trees(problem, query.streams, made))
        assert cpu == pytest.approx(sum(cpu_of(problem, one) for one in operators))
        made.update(one.output for one in operators)


def pairs() -> AdmissionProblem:
    """ab takes 20, abc 10 more, cd and bd 20 each; there are 50 in all."""
    streams = {name: Base(name, 0, 10.0) for name in "abcd"}
    wanted = [frozenset(names) for names in ("ab", "cd", "abc", "ab", "bd")]
    rates = dict.fromkeys([*wanted, *map(frozenset, ("ac", "bc"))], 0.0)
    queries = tuple(Query(f"q{i}", streams_) for i, streams_ in enumerate(wanted))
    hosts = (HostLimits(0, 25.0, 99.0, 99.0), HostLimits(1, 25.0, 99.0, 99.0))
    return AdmissionProblem(hosts, 1.0, streams, rates, queries)


def test_the_optimistic_bound_by_hand() -> None:
    problem = pairs()
    bound = Bound(problem, Options(), lambda: 0.0)
    decisions = [bound.submit(query) for query in problem.queries]
    assert [one.admitted for one in decisions] == [True, True, True, True, False]
    assert bound.room == 0.0
    assert decisions[-1].why == "all hosts together have 0 CPU left and it takes 20"
    assert bound.plan == Plan()
    assert optimistic(problem) == 4


def test_an_exact_fit_is_not_refused_for_its_rounding() -> None:
    streams = {name: Base(name, 0, 0.1) for name in "abcdefgh"}
    wanted = [frozenset(names) for names in ("ab", "cd", "ef", "gh")]
    queries = tuple(Query(names, one) for names, one in zip("1234", wanted, strict=True))
    problem = AdmissionProblem(
        (HostLimits(0, 0.6, 1.0, 9.0),), 1.0, streams, dict.fromkeys(wanted, 0.01), queries
    )
    bound = Bound(problem, Options(), lambda: 0.0)
    decisions = [bound.submit(query) for query in queries]
    assert [one.admitted for one in decisions] == [True, True, True, False]
    assert decisions[-1].why == "all hosts together have 0 CPU left and it takes 0.2"


def test_the_offline_bound_by_hand() -> None:
    """ab counts twice. Of 50 CPU it takes 20; then abc 10 and cd 20, which leaves nothing for bd."""
    assert offline(pairs(), seconds=5.0) == pytest.approx(4.0)
    assert 4.0 <= offline(pairs()) <= 4.5 + 1e-6


@pytest.mark.parametrize("seed", range(30))
def test_no_plan_passes_the_offline_bound(seed: int) -> None:
    problem = tiny(seed)
    most = most_admitted(problem)
    assert most <= offline(problem) + 1e-6
    assert most <= offline(problem, seconds=5.0) + 1e-6


def test_bandwidth_can_bind_the_offline_bound() -> None:
    """One stream is read for 100 CPU at hosts of 20: five hosts have it, four of them receive it."""
    names = [f"p{i}" for i in range(5)]
    streams = {"a": Base("a", 0, 10.0)} | {name: Base(name, i, 10.0) for i, name in enumerate(names)}
    wanted = [frozenset({"a", name}) for name in names]
    queries = tuple(Query(name, streams_) for name, streams_ in zip(names, wanted, strict=True))
    hosts = tuple(HostLimits(i, 20.0, 8.0, 100.0) for i in range(5))
    problem = AdmissionProblem(hosts, 100.0, streams, dict.fromkeys(wanted, 1.0), queries)
    # A plan may use a millionth more than there is, and the bound knows it.
    assert offline(problem) == pytest.approx(5.0, rel=1e-5)
    for into, most in ((4.0, 3.0), (2.0, 2.0), (0.0, 1.0)):
        less = replace(problem, hosts=tuple(replace(host, incoming=into) for host in hosts))
        assert most <= offline(less) == pytest.approx(most, rel=1e-5)
    silent = replace(problem, hosts=tuple(replace(host, outgoing=0.4) for host in hosts))
    assert offline(silent) == pytest.approx(1.0 + 1.0 / 11.0, rel=1e-5)


def test_a_plan_within_the_tolerance_does_not_pass_the_offline_bound() -> None:
    """The join takes a ten-millionth more CPU than the host has: plans are allowed that."""
    streams = {"a": Base("a", 0, 5.0), "b": Base("b", 0, 5.000001)}
    both = frozenset(streams)
    hosts = (HostLimits("h", 10.0, 100.0, 100.0),)
    problem = AdmissionProblem(hosts, 100.0, streams, {both: 1.0}, (Query("q", both),))
    join = Operator(frozenset("a"), frozenset("b"))
    plan = Plan(placements=frozenset({(0, join)}), deliveries={both: 0})
    assert violations(problem, plan, ["q"]) == []
    assert offline(problem) >= 1.0
