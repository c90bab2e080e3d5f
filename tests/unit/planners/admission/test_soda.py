"""SODA: fixed templates, glued; admission by totals; placement that moves and swaps."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from headrace.planners.admission.check import usage, violations
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Base,
    Host,
    HostLimits,
    Operator,
    Options,
    Plan,
    Query,
    Stream,
    operator,
)
from headrace.planners.admission.soda import Soda, Templates
from headrace.planners.admission.soda_moves import Swaps
from headrace.planners.admission.soda_placing import Placing
from headrace.planners.admission.soda_workload import CLUSTER, EPOCH, cluster_problem
from headrace.planners.admission.state import State
from tests.unit.planners.admission.mixed import mixed
from tests.unit.planners.admission.tiny import ab_problem, relay_problem

A, B, C, D = (frozenset(name) for name in "abcd")
AB, BC, ABC, ABD = A | B, B | C, A | B | C, A | B | D
WIDE = HostLimits("x", 8.0, 4.0, 5.0)


def soda(problem: AdmissionProblem, **how: bool | dict[Stream, Operator]) -> Soda:
    return Soda(problem, Options(), lambda: 0.0, **how)  # type: ignore[arg-type]


def makers(problem: AdmissionProblem, plan: Plan) -> dict[Stream, list[Host]]:
    found: dict[Stream, list[Host]] = {frozenset({b.id}): [b.host] for b in problem.streams.values()}
    for host, one in plan.placements:
        found.setdefault(one.output, []).append(host)
    return found


@pytest.mark.parametrize("seed", range(16))
def test_plans_are_right_and_glued_after_every_query(seed: int) -> None:
    problem = mixed(seed)
    planner, admitted = soda(problem), list[str]()
    templates = Templates(problem, 0, {})
    for query in problem.queries:
        before = planner.plan
        decision = planner.submit(query)
        admitted += [query.id] if decision.admitted else []
        plan = planner.plan
        assert violations(problem, plan, admitted) == []
        assert decision.admitted != bool(decision.why)
        assert decision.admitted or plan == before
        assert all(one == templates[one.output] for _, one in plan.placements)
        made = makers(problem, plan)
        assert all(len(hosts) == 1 for hosts in made.values())
        assert all([sender] == made[stream] for sender, _, stream in plan.flows)


@pytest.mark.parametrize("seed", range(6))
def test_an_epoch_of_all_queries_is_right_too(seed: int) -> None:
    problem = mixed(seed)
    planner = soda(problem, named=True)
    decisions = planner.submit_all(problem.queries)
    assert [d.query for d in decisions] == [q.id for q in problem.queries]
    assert violations(problem, planner.plan, [d.query for d in decisions if d.admitted]) == []


def unlimited(**rates: float) -> AdmissionProblem:
    """Streams a to d, 2 each, at two hosts without limits."""
    hosts = (HostLimits("x", 100.0, 100.0, 100.0), HostLimits("y", 100.0, 100.0, 100.0))
    streams = {name: Base(name, i % 2, 2.0) for i, name in enumerate("abcd")}
    return AdmissionProblem(hosts, 100.0, streams, {frozenset(k): v for k, v in rates.items()}, ())


def test_templates_by_name_share_their_beginnings() -> None:
    problem = replace(unlimited(ab=1, abc=1, abd=1, bc=1), queries=(Query("1", ABC), Query("2", ABD)))
    planner = soda(problem, named=True)
    assert all(planner.submit(query).admitted for query in problem.queries)
    assert sorted(len(one.output) for _, one in planner.plan.placements) == [2, 3, 3]
    assert sum(usage(problem, planner.plan)["cpu"]) == 4.0 + 3.0 + 3.0


def test_a_given_template_is_kept_though_another_would_reuse_more() -> None:
    problem = replace(unlimited(ab=1, abc=1, bc=1), queries=(Query("1", AB), Query("2", ABC)))
    planner = soda(problem, templates={ABC: operator(A, BC)})
    assert all(planner.submit(query).admitted for query in problem.queries)
    assert {one for _, one in planner.plan.placements} == {operator(A, B), operator(B, C), operator(A, BC)}


def test_templates_take_what_has_rates() -> None:
    left_deep = Templates(unlimited(bc=1, abc=1), None, {})
    assert left_deep[ABC] == operator(A, BC)
    bushy = Templates(unlimited(ab=1, cd=1, abcd=1), None, {})
    assert bushy[AB | C | D] == operator(AB, C | D)
    assert not bushy.makes(ABC)
    with pytest.raises(KeyError):
        bushy[ABC]


def test_templates_are_drawn_from_the_seed() -> None:
    problem = unlimited(**dict.fromkeys(("ab", "ac", "bc", "abc"), 1.0))
    last = [
        min(Templates(problem, seed, {})[ABC].left, Templates(problem, seed, {})[ABC].right, key=len)
        for seed in range(40)
    ]
    assert {min(one) for one in last} == set("abc")


def knapsack(*priorities: float) -> AdmissionProblem:
    """Four streams at one host with CPU 9: ab takes 8, and each of cd and ce takes 4."""
    rate = {"a": 4.0, "b": 4.0, "c": 2.0, "d": 2.0, "e": 2.0}
    streams = {name: Base(name, 0, value) for name, value in rate.items()}
    sets = [frozenset(two) for two in ("ab", "cd", "ce")]
    queries = tuple(Query("".join(sorted(s)), s, p) for s, p in zip(sets, priorities, strict=True))
    return AdmissionProblem(
        (HostLimits("x", 9.0, 9.0, 9.0),), 9.0, streams, dict.fromkeys(sets, 0.1), queries
    )


@pytest.mark.parametrize(
    ("priorities", "admitted"), [((1.0, 1.0, 1.0), ["cd", "ce"]), ((3.0, 1.0, 1.0), ["ab"])]
)
def test_macro_q_takes_most_worth_for_its_part(priorities: tuple[float, ...], admitted: list[str]) -> None:
    problem = knapsack(*priorities)
    decisions = soda(problem).submit_all(problem.queries)
    assert [d.query for d in decisions if d.admitted] == admitted
    refused = "macroQ: all hosts together have 1 cpu left"
    assert all(d.why.startswith(refused) for d in decisions if not d.admitted)


def test_macro_q_refuses_what_is_too_much_for_all_hosts_together() -> None:
    problem = ab_problem(replace(WIDE, cpu=4.0), replace(WIDE, id="y", cpu=3.9))
    why = soda(problem).submit(problem.queries[0]).why
    assert why == "macroQ: all hosts together have 7.9 cpu left and it takes 8"


def test_a_query_that_totals_allow_may_have_no_place() -> None:
    problem = ab_problem(replace(WIDE, cpu=5.0), replace(WIDE, id="y", cpu=5.0))
    decision = soda(problem).submit(problem.queries[0])
    assert decision.why.startswith("miniW: no place")


def test_no_relays() -> None:
    """The MILP admits both, with a relay."""
    problem = relay_problem()
    planner = soda(problem)
    assert [planner.submit(query).admitted for query in problem.queries] == [True, False]


def crossed() -> AdmissionProblem:
    """ab (4 CPU) goes to y, the emptier by share; cd (8) then fits nowhere, until ab moves to x."""
    streams = {name: Base(name, 0, rate) for name, rate in zip("abcd", (2.0, 2.0, 4.0, 4.0), strict=True)}
    hosts = (HostLimits("x", 5.0, 20.0, 20.0), HostLimits("y", 9.0, 20.0, 20.0))
    queries = (Query("small", AB), Query("large", C | D))
    return AdmissionProblem(hosts, 100.0, streams, {AB: 1.0, C | D: 1.0}, queries)


def test_mini_w_moves_an_operator_of_another_query_to_make_room() -> None:
    problem = crossed()
    planner = soda(problem)
    assert planner.submit(problem.queries[0]).admitted
    assert planner.plan.placements == {(1, operator(A, B))}
    decision = planner.submit(problem.queries[1])
    assert decision.admitted
    assert decision.moved == 1
    assert planner.plan == Plan(
        frozenset({(0, operator(A, B)), (1, operator(C, D))}),
        frozenset({(0, 1, C), (0, 1, D)}),
        {AB: 0, C | D: 1},
    )


def test_mini_w_swaps_where_no_single_move_helps() -> None:
    """Hosts of 10 run 6, and 5 + 4; another 5 fits only if the 6 and the 5 change places."""
    halves = {"a": 3.0, "b": 2.5, "c": 2.0, "d": 2.5}
    streams = {f"{name}{i}": Base(f"{name}{i}", 0, rate) for name, rate in halves.items() for i in (1, 2)}
    joins = {name: operator(frozenset({f"{name}1"}), frozenset({f"{name}2"})) for name in halves}
    outputs = [one.output for one in joins.values()]
    hosts = (HostLimits("x", 10.0, 99.0, 99.0), HostLimits("y", 10.0, 99.0, 99.0))
    queries = tuple(Query(name, one.output) for name, one in joins.items())
    problem = AdmissionProblem(hosts, 99.0, streams, dict.fromkeys(outputs, 0.1), queries)
    placing = Placing(State(problem))
    for host, name in ((0, "a"), (1, "b"), (1, "c")):
        placing.put(host, joins[name])
        placing.state.deliver(joins[name].output, host)
    assert not placing.best([joins["d"]], joins["d"].output)
    assert Swaps(placing).make_room([joins["d"]], joins["d"].output)
    plan = placing.state.plan()
    assert violations(problem, plan, list(joins)) == []
    assert plan.placements == {(0, joins["b"]), (0, joins["d"]), (1, joins["a"]), (1, joins["c"])}


def placements_tried(
    problem: AdmissionProblem, placing: Placing, new: list[Operator], target: Stream
) -> list[float]:
    """Values of all ways to place operators that fit."""
    values, mark = list[float](), placing.state.mark()
    for hosts in product(range(len(problem.hosts)), repeat=len(new)):
        for host, one in zip(hosts, new, strict=True):
            placing.put(host, one)
        placing.state.deliver(target, hosts[-1])
        plan = placing.state.plan()
        if not violations(problem, plan):
            used = usage(problem, plan)
            shares = [(u / h.cpu) ** 2 for u, h in zip(used["cpu"], problem.hosts, strict=True)]
            values.append(sum(shares) + sum(used["in"]) / sum(h.outgoing for h in problem.hosts))
        placing.state.undo_to(mark)
    return values


@pytest.mark.parametrize("seed", range(12))
def test_macro_w_finds_the_best_of_all_placements(seed: int) -> None:
    """Of a three-way join, beside what other queries already run."""
    problem = mixed(seed, most=3, queries=24)
    templates = Templates(problem, None, {})
    planner = soda(problem, named=True)
    for query in problem.queries[:4]:
        planner.submit(query)
    made = planner.state.made
    wanted = [q.streams for q in problem.queries if len(q.streams) == 3 and q.streams not in made]
    target = next(stream for stream in wanted if templates.makes(stream))
    last = templates[target]
    new = [templates[part] for part in (last.left, last.right) if len(part) > 1 and part not in made] + [last]
    placing = Placing(planner.state)
    values = placements_tried(problem, placing, new, target)
    assert placing.best(new, target) == bool(values)
    if values:
        assert placing.value() == pytest.approx(min(values), rel=1e-6)


def test_the_papers_cluster() -> None:
    problem = cluster_problem(3)
    assert len(problem.hosts) == 15
    assert [len(problem.streams), len(problem.queries), EPOCH] == [300, 250, 50]
    assert sorted({len(query.streams) for query in problem.queries}) == [2, 3]
    per_host = np.bincount([base.host for base in problem.streams.values()])
    assert per_host.tolist() == [20] * 15
    assert problem.hosts[0].cpu == 15 * 2 * CLUSTER.rate
