"""Our planner: plans that hold after every query, against all plans on tiny problems, and what it says."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.admission.bound import optimistic
from headrace.planners.admission.check import violations
from headrace.planners.admission.exhaustive import most_admitted
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    HostLimits,
    Options,
    Plan,
    Query,
    operator,
)
from headrace.planners.admission.workload import Setup, paper_problem
from tests.unit.planners.admission.tiny import ab_problem, crowded_problem, relay_problem, tiny

A, B = frozenset("a"), frozenset("b")
WIDE = HostLimits("x", 8.0, 4.0, 5.0)


def ours(problem: AdmissionProblem, **options: float | bool) -> Ours:
    return Ours(problem, Options(**options), perf_counter)  # type: ignore[arg-type]


def run(problem: AdmissionProblem, every: int = 1, **options: float | bool) -> tuple[Ours, list[str]]:
    """Submit all, checking the plan after every so many queries, and that refusals change nothing."""
    planner, admitted = ours(problem, **options), []
    for number, query in enumerate(problem.queries, start=1):
        check = number % every == 0
        before = planner.plan if check else None
        decision = planner.submit(query)
        assert decision.admitted == (not decision.why)
        if decision.admitted:
            admitted.append(query.id)
        elif check:
            assert planner.plan == before
        if check or number == len(problem.queries):
            assert violations(problem, planner.plan, admitted) == []
    return planner, admitted


def mixed(seed: int) -> AdmissionProblem:
    """Hosts, rates and links of many sizes, memory, streams that cannot be made, queries of up to five."""
    rng = np.random.default_rng(seed)
    setup = Setup(hosts=6, streams=14, queries=40, ways=(1, 2, 3, 4, 5), selectivity=(0.01, 0.6))
    problem = paper_problem(seed, setup)
    sizes = rng.uniform(20.0, 200.0, size=(6, 4)).tolist()
    hosts = tuple(
        HostLimits(f"h{i}", cpu, into, out, memory) for i, (cpu, into, out, memory) in enumerate(sizes)
    )
    rate = {name: Base(name, base.host, float(rng.uniform(1, 20))) for name, base in problem.streams.items()}
    links = rng.uniform(5.0, 80.0, size=(6, 6))
    return replace(problem, hosts=hosts, streams=rate, link_bandwidth=links, memory_cost=1.0)


@pytest.mark.parametrize("seed", range(8))
def test_plans_hold_whatever_binds(seed: int) -> None:
    _, admitted = run(mixed(seed))
    assert 0 < len(admitted) < 40


@pytest.mark.parametrize("bandwidth", [1000.0, 100.0, 40.0])
def test_plans_hold_on_a_small_simulation(bandwidth: float) -> None:
    problem = paper_problem(7, Setup(hosts=8, streams=80, queries=160, bandwidth=bandwidth))
    _, admitted = run(problem, every=10)
    assert len(admitted) >= optimistic(problem) * 0.95
    assert len(admitted) < 160


def test_tiny_problems_are_solved_nearly_as_well_as_possible() -> None:
    problems = [tiny(seed, links=bool(seed % 2)) for seed in range(40)]
    got = [len(run(problem)[1]) for problem in problems]
    most = [most_admitted(problem) for problem in problems]
    assert all(g <= m for g, m in zip(got, most, strict=True))
    assert sum(got) >= 0.93 * sum(most)


def test_a_deadline_buys_more_rounds() -> None:
    """Time is what a look at the clock takes, so that there are always as many rounds."""
    problems = [tiny(seed) for seed in range(300, 360)]
    quick = sum(len(run(problem)[1]) for problem in problems)
    looks = iter(range(1_000_000))
    long = 0
    for problem in problems:
        planner = Ours(problem, Options(deadline=7.0), lambda: float(next(looks)))
        long += sum(planner.submit(query).admitted for query in problem.queries)
    assert long > quick


def test_relays_are_used() -> None:
    planner, admitted = run(relay_problem())
    assert admitted == ["q1", "q2"]
    assert {(a, b) for a, b, s in planner.plan.flows if s == A} in ({(0, 1), (1, 2)}, {(0, 2), (2, 1)})


def test_operators_move_to_make_room() -> None:
    problem = crowded_problem()
    planner = ours(problem)
    first, second = (planner.submit(query) for query in problem.queries)
    assert (first.admitted, first.moved, second.admitted, second.moved) == (True, 0, True, 1)
    assert (1, operator(A, B)) in planner.plan.placements


def test_what_is_made_changes_when_a_better_part_comes() -> None:
    """abc is made of some pair; when another pair is wanted too, abc is made of that and the first goes."""
    streams = {name: Base(name, 0, 10.0) for name in "abc"}
    pairs = [frozenset(p) for p in ("ab", "bc", "ac")]
    rates = dict.fromkeys([*pairs, frozenset("abc")], 0.1)
    hosts = (HostLimits(0, 30.2, 100.0, 100.0),)
    for last in pairs:
        queries = (Query("whole", frozenset("abc")), Query("pair", last))
        problem = AdmissionProblem(hosts, 100.0, streams, rates, queries)
        planner, admitted = run(problem)
        assert admitted == ["whole", "pair"]
        rest = frozenset("abc") - last
        assert {one for _, one in planner.plan.placements} == {
            operator(last, rest),
            operator(*(frozenset(name) for name in sorted(last))),
        }


def test_a_stream_that_is_delivered_already_costs_nothing() -> None:
    problem = replace(ab_problem(WIDE, WIDE), queries=(Query("q", A | B), Query("again", A | B)))
    planner = ours(problem)
    assert planner.submit(problem.queries[0]).admitted
    before = planner.plan
    assert planner.submit(problem.queries[1]).admitted
    assert planner.plan == before


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"cpu": 5.0}, "binding: cpu of host x (8 needed of 5, 3 missing)"),
        ({"outgoing": 3.0}, "binding: outgoing bandwidth of host x (4 needed of 3, 1 missing)"),
        ({"incoming": 3.0}, "binding: incoming bandwidth of host y (4 needed of 3, 1 missing)"),
        ({"memory": 2.0}, "binding: memory of host x (8 needed of 2, 6 missing)"),
    ],
)
def test_a_refusal_names_what_binds(limits: dict[str, float], why: str) -> None:
    hosts = [replace(WIDE, id=name, **limits) for name in "xy"]
    problem = replace(ab_problem(*hosts), memory_cost=1.0)
    planner = ours(problem)
    said = planner.submit(problem.queries[0]).why
    assert said.replace("host y", "host x").replace("host x", "host h") == why.replace(
        "host y", "host x"
    ).replace("host x", "host h")
    assert planner.plan == Plan()


def test_a_refusal_names_a_link_or_what_has_no_rate() -> None:
    links = np.array([[0.0, 1.0], [3.0, 0.0]])
    narrow = replace(ab_problem(WIDE, replace(WIDE, id="y")), link_bandwidth=links)
    assert ours(narrow).submit(narrow.queries[0]).why == (
        "binding: no link has room to bring the parts of a*b together;"
        " b comes nearest over the link from host y to host x (4 needed of 3 left)"
    )
    unknown = replace(narrow, rates={})
    assert "no chain of joins with known rates" in ours(unknown).submit(unknown.queries[0]).why


def test_a_refusal_names_two_copies_that_are_too_much_for_a_link() -> None:
    streams = {"a": Base("a", 0, 4.0), "b": Base("b", 0, 4.0)}
    hosts = (HostLimits("x", 0.0, 9.0, 9.0), HostLimits("y", 9.0, 9.0, 9.0))
    problem = AdmissionProblem(hosts, 6.0, streams, {A | B: 1.0}, (Query("q", A | B),))
    why = ours(problem).submit(problem.queries[0]).why
    assert why == "binding: the link from host x to host y (8 needed of 6)"


def test_a_refusal_tells_limits_as_they_were_given() -> None:
    none = replace(WIDE, cpu=0.0)
    problem = ab_problem(none, none)
    assert "(8 needed of 0, 8 missing)" in ours(problem).submit(problem.queries[0]).why


def test_what_others_use_can_be_freed() -> None:
    hosts = (HostLimits("x", 15.0, 9.0, 9.0),)
    streams = {name: Base(name, 0, 4.0) for name in "abcd"}
    wanted = [A | B, frozenset("cd")]
    queries = tuple(Query(f"q{i}", one) for i, one in enumerate(wanted))
    problem = AdmissionProblem(hosts, 9.0, streams, dict.fromkeys(wanted, 1.0), queries)
    planner = ours(problem)
    assert planner.submit(queries[0]).admitted
    assert planner.submit(queries[1]).why == "binding: cpu of host x (16 needed of 15, 1 to be freed)"


def test_a_query_beyond_all_sums_leaves_them_exact() -> None:
    """1e17 and 8.3, taken apart again, would be 0."""
    streams = {"a": Base("a", 0, 4.0), "b": Base("b", 0, 4.3), "c": Base("c", 0, 1e17)}
    hosts = (HostLimits("x", 10.0, 9.0, 9.0),)
    wanted = [A | B, frozenset("bc")]
    queries = tuple(Query(f"q{i}", one) for i, one in enumerate(wanted))
    problem = AdmissionProblem(hosts, 9.0, streams, dict.fromkeys(wanted, 1.0), queries)
    planner = ours(problem)
    assert planner.submit(queries[0]).admitted
    assert "binding: cpu of host x (1e+17 needed of 10" in planner.submit(queries[1]).why
    assert planner.state.cpu.tolist() == [8.3]


@pytest.mark.parametrize("seed", range(60))
def test_the_first_query_is_never_refused_if_one_host_can_do_it(seed: int) -> None:
    problem = tiny(1000 + seed, links=bool(seed % 4), most=4)
    first = problem.queries[0]
    if Heuristic(problem, Options(), perf_counter).submit(first).admitted:
        planner = ours(problem)
        assert planner.submit(first).admitted
        assert violations(problem, planner.plan, [first.id]) == []


def test_all_of_it_at_one_host_is_the_last_resort() -> None:
    """The first plan sends two copies of which z can send one; where links never bind no copy is barred."""
    streams = {"a": Base("a", 2, 10.0), "b": Base("b", 2, 5.0), "c": Base("c", 1, 5.0)}
    hosts = (
        HostLimits("x", 48.1, 13.0, 26.3),
        HostLimits("y", 46.7, 17.6, 21.6),
        HostLimits("z", 23.4, 17.2, 10.0),
    )
    problem = AdmissionProblem(hosts, 1000.0, streams, {A | B: 2.0}, (Query("q", A | B),))
    planner, admitted = run(problem)
    assert admitted == ["q"]
    assert planner.plan.placements == {(2, operator(A, B))}


def two_copies(link: float) -> AdmissionProblem:
    """a and b enter at y, and x has more to offer; both over the link are too much for it."""
    streams = {"b": Base("b", 1, 10.0), "a": Base("a", 1, 5.0)}
    hosts = (HostLimits("x", 45.0, 30.0, 1000.0), HostLimits("y", 1000.0, 6.0, 24.0))
    return AdmissionProblem(hosts, link, streams, {A | B: 2.0}, (Query("q", A | B),))


def test_a_link_that_is_too_narrow_for_two_copies_is_done_without() -> None:
    planner, admitted = run(two_copies(12.0))
    assert admitted == ["q"]
    assert planner.plan == Plan(frozenset({(1, operator(A, B))}), frozenset(), {A | B: 1})


def test_an_operator_that_is_too_much_for_its_host_is_done_without() -> None:
    """The cheapest is all of it at y, which has CPU for one join; ab is made there in the end."""
    streams = {"a": Base("a", 1, 10.0), "c": Base("c", 0, 5.0), "b": Base("b", 1, 10.0)}
    sets = [frozenset(names) for names in ("ab", "ac", "bc", "abc")]
    rates = {one: 0.2 * sum(streams[name].rate for name in one) for one in sets}
    hosts = (HostLimits("x", 19.0, 9.0, 30.0), HostLimits("y", 11.2, 26.0, 22.0))
    for link in (12.0, 1000.0):
        problem = AdmissionProblem(hosts, link, streams, rates, (Query("q", sets[-1]),), operator_cost=0.5)
        planner, admitted = run(problem)
        assert admitted == ["q"]
        assert planner.plan.flows == {(1, 0, A | B)}


@pytest.mark.parametrize("seed", range(3))
def test_what_nobody_needs_any_more_is_gone(seed: int) -> None:
    problem = paper_problem(seed, Setup(hosts=5, streams=20, queries=60, bandwidth=60.0))
    planner, admitted = run(problem, every=60)
    rng = np.random.default_rng(seed)
    for name in rng.permutation(admitted).tolist():
        planner.remove(name)
        admitted.remove(name)
        if len(admitted) % 8 == 0:
            assert violations(problem, planner.plan, admitted) == []
    assert planner.plan == Plan()
    assert np.allclose(planner.state.cpu, 0.0, atol=1e-9)


def test_room_that_is_freed_is_used_again() -> None:
    problem = ab_problem(WIDE, WIDE)
    planner = ours(problem)
    planner.submit(problem.queries[0])
    first = planner.plan
    planner.remove("q")
    assert planner.submit(problem.queries[0]).admitted
    assert planner.plan == first


def test_a_shared_stream_stays_until_its_last_query_goes() -> None:
    problem = replace(ab_problem(WIDE, WIDE), queries=(Query("q", A | B), Query("again", A | B)))
    planner, _ = run(problem)
    planner.remove("q")
    assert planner.plan.deliveries.keys() == {A | B}
    planner.remove("again")
    assert planner.plan == Plan()


def test_wrong_questions() -> None:
    problem = ab_problem(WIDE, WIDE)
    planner = ours(problem)
    with pytest.raises(UserError, match='stream "z" does not exist'):
        planner.submit(Query("other", frozenset("az")))
    with pytest.raises(UserError, match="has no stream"):
        planner.submit(Query("other", frozenset()))
    with pytest.raises(UserError, match="not admitted"):
        planner.remove("q")
    planner.submit(problem.queries[0])
    with pytest.raises(UserError, match="admitted already"):
        planner.submit(problem.queries[0])


def test_a_base_stream_can_be_asked_for() -> None:
    problem = replace(ab_problem(WIDE, WIDE), queries=(Query("base", A),))
    planner, admitted = run(problem)
    assert admitted == ["base"]
    assert planner.plan == Plan(deliveries={A: 0})


def test_hosts_without_limits_and_hosts_without_anything() -> None:
    free = HostLimits("free", float("inf"), float("inf"), float("inf"))
    nothing = HostLimits("nothing", 0.0, 0.0, 5.0)
    _, admitted = run(ab_problem(nothing, free))
    assert admitted == ["q"]
    _, admitted = run(ab_problem(nothing, nothing))
    assert admitted == []
