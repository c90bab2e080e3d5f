"""What ours weighs: pipelines as fast as their slowest site, moves of a round together, and what is bound."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.planners.distribution.anew import placed_anew, surrounded
from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.exhaustive import exhaustive
from headrace.planners.distribution.patterns import round_robin
from headrace.planners.distribution.pipelines import Pipelines
from headrace.planners.distribution.plans import paper_plan
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream, Table
from headrace.planners.distribution.redistribute import redistribute
from headrace.planners.distribution.rules import Decision, History, Rules
from headrace.planners.distribution.running import Running
from headrace.planners.distribution.usage import usage
from tests.unit.planners.distribution.drawn import drawn

CPU = MODELS["cpu"]
SEEDS = st.integers(0, 10**9)


def chain(table: str, *cpus: float, sites: int = 3) -> Problem:
    """o0 reads a stream of 100 rows a second, every next one the one before it; all give 50."""
    return Problem(
        tuple(Site(f"s{i}") for i in range(sites)),
        tuple(Operator(f"o{i}", (f"o{i - 1}" if i else "in",), cpu, 50.0) for i, cpu in enumerate(cpus)),
        (Query("q", (f"o{len(cpus) - 1}",)),),
        (Stream("in", 100.0),),
        table={f"o{i}": f"s{at}" for i, at in enumerate(table)},
    )


def highest(problem: Problem, table: Table) -> float:
    return usage(problem, table).max_load


def scattered(operators: int, sites: int, seed: int, filled: float = 0.95) -> Problem:
    """In turn on sites that our own placement fills so far."""
    priced = replace(paper_plan(operators, sites, Random(seed)), connection_cpu=0.01, row_cpu=1e-5)
    cpu = highest(priced, balanced(priced)) / filled
    sized = replace(priced, sites=tuple(replace(site, cpu=cpu) for site in priced.sites))
    return replace(sized, table=round_robin(sized))


def rounds(problem: Problem, rules: Rules, most: int = 20) -> list[Decision]:
    """Until nothing moves, a minute each."""
    found: list[Decision] = []
    history, table = History(), problem.table
    for number in range(most):
        now = replace(problem, table=table)
        found.append(redistribute(now, "pays", CPU, rules, history, 60.0 * number))
        table, history = found[-1].table, found[-1].history
        if not found[-1].moves:
            return found
    raise AssertionError("it never comes to rest")


def test_a_pipeline_is_as_fast_as_its_slowest_site() -> None:
    """The three operators read 200 rows a second. Site s1 at 1.6 halves all of it, whatever s0 does."""
    pipelines = Pipelines(problem := chain("011", 1.0, 0.8, 0.8), problem.table)
    for other in (0.1, 1.0, 1.6):
        assert pipelines.held_up({"s0": other, "s1": 1.6, "s2": 9.0}, 0.8) == pytest.approx(100)
    assert pipelines.held_up({"s0": 0.8, "s1": 0.8}, 0.8) == 0
    assert pipelines.slowest({"s0": 1.0, "s1": 1.6, "s2": 9.0}, 0.8) == {"s1"}
    assert pipelines.rows_slowed({"s0": 1.0, "s1": 0.7}, 0.8) == 200
    pipelines.move("o0", "s0", "s2")
    assert pipelines.held_up({"s0": 9.0, "s1": 0.8, "s2": 1.6}, 0.8) == pytest.approx(100)


def test_pipelines_that_were_moved_are_as_if_made_anew() -> None:
    for seed in range(30):
        rng = Random(seed)
        problem = drawn(rng, 10, 4)
        names = [site.id for site in problem.sites]
        table = {one.id: rng.choice(names) for one in problem.operators}
        moved = Pipelines(problem, table)
        for _ in range(40):
            name, target = rng.choice(list(table)), rng.choice(names)
            moved.move(name, table[name], target)
            table[name] = target
            costs = {site: rng.choice([0.5, 0.9, rng.uniform(0, 2)]) for site in names[:3]}
            anew = Pipelines(problem, table)
            assert moved.slowest(costs, 0.8) == anew.slowest(costs, 0.8)
            rows = problem.rows_in
            slow = held = 0.0
            for number in set(anew.of.values()):
                own = [name for name in table if anew.of[name] == number]
                fullest = max(costs.get(table[name], 0.0) for name in own)
                read = sum(rows[name] for name in own)
                slow += read if fullest > 0.8 else 0.0
                held += read * max(0.0, 1 - 0.8 / fullest) if fullest else 0.0
            assert moved.rows_slowed(costs, 0.8) == pytest.approx(slow)
            assert moved.held_up(costs, 0.8) == pytest.approx(held)


def test_moves_of_a_round_hold_a_pipeline_up_once() -> None:
    problem = chain("011", 1.0, 0.8, 0.8)
    rules = Rules(pause=2.0, pauses={"o1": 3.0})
    running = Running(problem, CPU, rules, History(), 0.0)
    assert running.standstill([(("o0",), "s1")]) == pytest.approx(200 * 2)
    assert running.standstill([(("o0",), "s1"), (("o1",), "s2")]) == pytest.approx(200 * 3)


def test_no_site_is_given_up_for_the_others() -> None:
    """Sites at 1.2, 1.2 and 1.0. Summed over sites, one at 2.2 and two at 0.6 would hold up less."""
    problem = chain("001122", 0.6, 0.6, 0.6, 0.6, 0.5, 0.5)
    decision = redistribute(problem, "pays", CPU, Rules(0.0))
    assert max(one.cost for one in decision.after.sites.values()) <= 1.2 + 1e-9


def test_gain_and_cost_are_those_of_the_pipeline() -> None:
    """s0 at 1.6 of 0.8: half of 150 rows a second wait, for 100 s. To move o1 takes 2 s of all of them."""
    decision = redistribute(chain("00", 0.8, 0.8), "pays", CPU, Rules(horizon=100.0, pause=2.0))
    (move,) = decision.moves
    assert move.gain == pytest.approx(100 * 75)
    assert "7,500 rows less wait, and 300 while this is moved" in move.why
    never = redistribute(chain("00", 0.8, 0.8), "pays", CPU, Rules(horizon=7.9, pause=2.0))
    assert not never.moves and "would spare 592 rows in 7.9 s and hold up 300: it must spare 2" in never.why


def test_what_was_scattered_is_gathered() -> None:
    for sites in (2, 3):
        problem = scattered(20, sites, 0)
        found = rounds(problem, Rules(full=0.95))
        assert highest(problem, problem.table) > 1.2
        assert highest(problem, found[-1].table) <= 0.95 / 0.9


def test_what_is_bound_stays_and_is_reckoned_with() -> None:
    """A table made anew keeps to Table 5: operators, their state, and sites."""
    problem = scattered(20, 3, 0)
    states = sorted(one.state_bytes for one in problem.operators)
    rules = Rules(
        full=0.5,
        operators=frozenset(list(problem.operator)[4:]),
        sites=frozenset({"s1", "s3"}),
        state_bytes=(0.0, states[-2]),
    )
    running = Running(problem, CPU, rules, History(), 0.0)
    table = placed_anew(running)
    assert table is not None
    allowed = {n for n in list(problem.operator)[4:] if problem.operator[n].state_bytes <= states[-2]}
    assert table.keys() == allowed and set(table.values()) <= {"s1", "s3"}
    decision = redistribute(problem, "pays", CPU, rules)
    assert decision.moves and {name for move in decision.moves for name in move.operators} <= allowed
    assert {move.target for move in decision.moves} <= {"s1", "s3"}


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_surroundings_weigh_what_they_did(seed: int) -> None:
    """The loads of the smaller problem are those of the whole."""
    rng = Random(seed)
    problem = drawn(rng, rng.randint(2, 9), rng.randint(2, 4))
    table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
    free = [name for name in table if rng.random() < 0.6]
    part = surrounded(problem, table, free, list(problem.site))
    whole = usage(problem, table).sites
    for name, one in usage(part, {name: table[name] for name in free}).sites.items():
        assert one.load == pytest.approx(whole[name].load)
        assert one.memory == pytest.approx(whole[name].memory)


@given(SEEDS, st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_fullest_site_never_gets_fuller(seed: int, limits: bool) -> None:
    rng = Random(seed)
    problem = drawn(rng, rng.randint(1, 9), rng.randint(2, 4), limits=limits)
    table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
    rules = Rules(0.0, full=rng.uniform(0.1, 1), rest=0.0)
    decision = redistribute(replace(problem, table=table), "pays", CPU, rules)
    before, after = (max(c.cost for c in t.sites.values()) for t in (decision.before, decision.after))
    assert after <= max(before, rules.full) * (1 + 1e-9)
    held = [
        Pipelines(problem, t).held_up({s: c.cost for s, c in costs.sites.items()}, rules.full)
        for t, costs in ((table, decision.before), (decision.table, decision.after))
    ]
    gain = (held[0] - held[1]) * rules.horizon
    assert sum(move.gain for move in decision.moves) == pytest.approx(gain, abs=1e-6)
    assert not decision.moves or gain > rules.margin * sum(move.cost for move in decision.moves)


def test_tiny_problems_come_near_the_best_table() -> None:
    """Sites are full where the best of all tables fills them; 90 % of its throughput must come back."""
    for seed in range(12):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(3, 6), 2, alike=True)
        best = highest(problem, exhaustive(problem, 10**6))
        start = {one.id: rng.choice(problem.sites).id for one in problem.operators}
        found = rounds(replace(problem, table=start), Rules(0.0, full=best, rest=0.0))
        assert best / max(best, highest(problem, found[-1].table)) >= 0.9, seed


def test_pays_moves_what_hangs_together() -> None:
    """With a connection at 0.2 of a core, neither half of the chain may go alone."""
    problem = Problem(
        (Site("s0"), Site("s1")),
        (
            Operator("rest", ("in",), 0.7, 10.0),
            Operator("low", ("in",), 0.2, 10.0),
            Operator("high", ("low",), 0.2, 1.0),
        ),
        (),
        (Stream("in", 100.0, "s0"),),
        connection_cpu=0.05,
        row_cpu=0.0,
        table={"rest": "s0", "low": "s0", "high": "s0"},
    )
    decision = redistribute(problem, "pays", CPU, Rules(margin=1.0))
    assert len(decision.moves) == 1
    assert max(cost.cost for cost in decision.after.sites.values()) <= 0.8


@given(SEEDS)
@settings(max_examples=5, deadline=None)
def test_pays_never_goes_back_and_forth_between_two_loads(seed: int) -> None:
    """Two loads in turn, however far apart: every move gains something, and an operator that was moved stays
    for as long as it rests."""
    rng = Random(seed)
    problem = drawn(rng, rng.randint(2, 9), rng.randint(2, 3))
    table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
    other = replace(
        problem,
        operators=tuple(replace(one, cpu=one.cpu * rng.uniform(0.1, 5)) for one in problem.operators),
    )
    rules, history, when = Rules(rest=100.0), History(), dict[str, float]()
    for number in range(16):
        now = 20.0 * number
        asked = replace((problem, other)[number % 2], table=table)
        decision = redistribute(asked, "pays", CPU, rules, history, now)
        for move in decision.moves:
            assert move.gain > 0
            for name in move.operators:
                assert now - when.get(name, -1e9) >= rules.rest
                when[name] = now
        table, history = dict(decision.table), decision.history
