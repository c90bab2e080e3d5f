"""Units and limits of nothing: what does not fit is refused, what fits is not, whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import pytest

from headrace.planners.admission import exhaustive
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    Decision,
    HostLimits,
    Options,
    Query,
    Stream,
)
from headrace.planners.admission.solve import BOUND, PLANNERS, ceiling, solve
from headrace.planners.admission.sqpr import Sqpr
from tests.unit.planners.admission.tiny import ab_problem, tiny
from tests.unit.planners.admission.units import in_units

UNITS = (2.0**-35, 2.0**35)
AB = frozenset("ab")


def one_host(
    rates: dict[str, float], joins: dict[str, float], wanted: str, **limits: float
) -> AdmissionProblem:
    streams = {name: Base(name, 0, rate) for name, rate in rates.items()}
    sets: dict[Stream, float] = {frozenset(some): rate for some, rate in joins.items()}
    host = HostLimits("h", **{"cpu": 20.0, "incoming": 20.0, "outgoing": 20.0, **limits})
    return AdmissionProblem((host,), 0.0, streams, sets, (Query("q", frozenset(wanted)),))


def by_milp(problem: AdmissionProblem, *, printed: bool = False) -> list[Decision]:
    planner = Sqpr(problem, Options(), perf_counter, printed=printed)
    return [planner.submit(query) for query in problem.queries]


def admitted(decisions: list[Decision]) -> list[bool]:
    return [decision.admitted for decision in decisions]


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("factor", UNITS)
def test_the_models_do_not_depend_on_units(factor: float, printed: bool) -> None:
    problems = [
        one_host({"a": 1.0, "b": 1.0}, {"ab": 1.0}, "ab"),
        one_host({"a": 10.0, "b": 1.0, "c": 3.0}, {"ac": 0, "abc": 0, "ab": 11.0, "bc": 0}, "abc"),
        tiny(0),
        tiny(3, links=True),
    ]
    for problem in problems:
        usual, other = (by_milp(one, printed=printed) for one in (problem, in_units(problem, factor)))
        assert admitted(other) == admitted(usual)
        assert [one.proven for one in other] == [one.proven for one in usual]


@pytest.mark.parametrize("factor", UNITS)
def test_a_refusal_tells_the_same_share(factor: float) -> None:
    host = HostLimits("x", 7.0, 4.0, 5.0)
    (decision,) = by_milp(in_units(ab_problem(host, replace(host, id="y", cpu=4.0)), factor))
    assert decision.why == f"no plan fits; it would with {factor:.6g} more cpu at host x"


@pytest.mark.parametrize("factor", UNITS)
@pytest.mark.parametrize("planner", [name for name in PLANNERS if name != "milp"])
def test_planners_do_not_depend_on_units(planner: str, factor: float) -> None:
    for seed in range(12):
        problem = tiny(seed, links=seed % 2 == 0)
        usual, other = (
            solve(one, planner, Options(), perf_counter) for one in (problem, in_units(problem, factor))
        )
        assert admitted(list(other.decisions)) == admitted(list(usual.decisions))


@pytest.mark.parametrize("factor", UNITS)
def test_the_ceiling_does_not_depend_on_units(factor: float) -> None:
    for seed in range(6):
        problem = tiny(seed)
        assert ceiling(in_units(problem, factor)) == pytest.approx(ceiling(problem), abs=1e-6)


@pytest.mark.parametrize("planner", [name for name in PLANNERS if name != BOUND])
@pytest.mark.parametrize("kind", ["cpu", "incoming", "outgoing", "memory", "link"])
def test_a_limit_of_nothing_lets_nothing_through(planner: str, kind: str) -> None:
    hosts = [HostLimits(name, 20.0, 20.0, 20.0, 20.0) for name in "xy"]
    if kind != "link":
        hosts = [replace(host, **{kind: 0.0}) for host in hosts]  # type: ignore[arg-type]
    problem = replace(ab_problem(*hosts, link=0.0 if kind == "link" else 100.0), memory_cost=1.0)
    little = replace(
        problem,
        streams={name: replace(base, rate=1e-9) for name, base in problem.streams.items()},
        rates={AB: 1e-10},
    )
    assert exhaustive.most_admitted(little) == 0
    (decision,) = solve(little, planner, Options(), perf_counter).decisions
    assert not decision.admitted
    assert decision.why


@pytest.mark.parametrize("printed", [False, True])
def test_what_is_far_too_large_hides_nothing(printed: bool) -> None:
    # Making a*b*c of a*b would take 10^16 times what the host has: no solver reads such a number.
    joins = {"ab": 1e12, "ac": 1e-5, "bc": 1e-5, "abc": 1e-5}
    problem = one_host(dict.fromkeys("abc", 1e-5), joins, "abc", cpu=1e-4)
    (decision,) = by_milp(problem, printed=printed)
    assert (decision.admitted, decision.proven) == (True, True)
