"""Ours against every table there is, and its parts against definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from random import Random

import pytest

from headrace.errors import UserError
from headrace.planners.distribution.balanced import balanced, balanced_or_best
from headrace.planners.distribution.cutting import lightest_limit, pieces_within
from headrace.planners.distribution.draft import Allowed, Draft
from headrace.planners.distribution.exhaustive import best_table, exhaustive
from headrace.planners.distribution.patterns import grouping, round_robin
from headrace.planners.distribution.plans import paper_plan, sites
from headrace.planners.distribution.problem import Link, Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.usage import faults, passed, usage
from tests.unit.planners.distribution.drawn import drawn

KINDS = [{"alike": True, "tree": True}, {"alike": True}, {}, {"limits": True}]


@pytest.mark.parametrize("kind", KINDS, ids=["trees", "alike", "differing", "limits"])
def test_against_every_table(kind: dict[str, bool]) -> None:
    """Never lower than the optimum, nearly always at it, and a table that keeps limits is found where one
    is there."""
    at_it, count = 0, 0
    for seed in range(25):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(1, 6), rng.randint(1, 3), **kind)
        table = balanced(problem)
        try:
            best = usage(problem, exhaustive(problem)).max_load
        except UserError:
            continue
        assert not list(faults(problem, table))
        load = usage(problem, table).max_load
        assert best * (1 - 1e-9) <= load <= best * 1.2
        at_it, count = at_it + (load <= best * (1 + 1e-9)), count + 1
    assert count > 20 and at_it >= 0.9 * count


@pytest.mark.parametrize("kind", KINDS, ids=["trees", "alike", "differing", "limits"])
def test_where_there_are_few_tables_it_is_the_best_of_them(kind: dict[str, bool]) -> None:
    """By `usage` of every table, and by nothing that the search goes by."""
    tight = 0
    for seed in range(40):
        rng = Random(500 + seed)
        problem = drawn(rng, rng.randint(1, 5), rng.randint(2, 3), **kind)
        names = [one.id for one in problem.operators]
        of_sites = product([site.id for site in problem.alive], repeat=len(names))
        made = [usage(problem, dict(zip(names, chosen, strict=True))) for chosen in of_sites]
        grouped, turns = (usage(problem, made_by(problem)) for made_by in (grouping, round_robin))
        if passed(problem, grouped):
            continue
        found = usage(problem, balanced_or_best(problem))
        most = grouped.connections.total
        within = [one for one in made if not passed(problem, one) and one.connections.total <= most]
        narrow = [one.max_load for one in within if one.max_connections <= grouped.max_connections]
        low = min(narrow) * (1 + 1e-9)
        lowest = min(one.max_load for one in within)
        if low < min(1.0, grouped.max_load, turns.max_load):
            assert found.max_load <= low
            tight += 1
        else:
            assert found.max_load == pytest.approx(lowest)
        assert not passed(problem, found) and found.connections.total <= most
    assert tight


@pytest.mark.parametrize("kind", KINDS, ids=["trees", "alike", "differing", "limits"])
def test_never_worse_than_grouping(kind: dict[str, bool]) -> None:
    for seed in range(12):
        rng = Random(1000 + seed)
        problem = drawn(rng, rng.randint(1, 15), rng.randint(1, 4), **kind)
        ours, grouped = usage(problem, balanced(problem)), usage(problem, grouping(problem))
        if passed(problem, grouped):
            continue
        assert ours.connections.total <= grouped.connections.total
        assert ours.max_load <= grouped.max_load * (1 + 1e-9)


def test_a_plan_of_the_paper() -> None:
    problem = paper_plan(20, 3, Random(0))
    ours, grouped, turns = (usage(problem, p(problem)) for p in (balanced, grouping, round_robin))
    assert ours.connections.total <= grouped.connections.total < turns.connections.total
    assert ours.max_connections <= grouped.max_connections
    assert ours.max_load < min(grouped.max_load, turns.max_load)


def test_a_draft_says_what_usage_says() -> None:
    for seed in range(40):
        rng = Random(seed)
        problem = drawn(rng, 8, 3, limits=bool(seed % 2))
        names = [site.id for site in problem.sites]
        start = {one.id: rng.choice(names) for one in problem.operators}
        draft = Draft(problem, problem.sites, start, Allowed(9, 5))
        for _ in range(12):
            draft.move(rng.sample(range(8), 2), rng.randrange(3))
            score, used = draft.score(), usage(problem, draft.table())
            over = used.connections.total - 9, used.max_connections - 5
            assert score.too_many == sum(max(0, beyond) for beyond in over)
            assert score.max_load == pytest.approx(used.max_load)
            assert (score.connections, score.busiest) == (used.connections.total, used.max_connections)
            beyond = sum(share for share, _ in passed(problem, used).values())
            assert score.beyond == pytest.approx(beyond)


def test_a_draft_knows_what_flows_to_sites_that_are_gone() -> None:
    """Results and streams at home where nothing answers, networks of nothing, and many moves."""
    passed_at_all = 0
    for seed in range(40):
        rng = Random(seed)
        problem = drawn(rng, 12, 5, limits=True)
        gone = [replace(site, alive=i < 3) for i, site in enumerate(problem.sites)]
        gone[0] = replace(gone[0], network=rng.choice([0.0, gone[0].network]))
        ends = [one.outputs[0] for one in problem.queries]
        more = [Query(f"also{i}", (rng.choice(ends),), site.id) for i, site in enumerate(gone)]
        links = [Link("s0", "s2", 0.0), Link("s1", "s0", rng.uniform(10, 200)), Link("s1", "s4", 1.0)]
        problem = replace(problem, sites=tuple(gone), queries=(*problem.queries, *more), links=tuple(links))
        start = {one.id: rng.choice(problem.alive).id for one in problem.operators}
        draft = Draft(problem, problem.alive, start)
        for _ in range(60):
            draft.move(rng.sample(range(12), 3), rng.randrange(3))
            score, used = draft.score(), usage(problem, draft.table())
            beyond = passed(problem, used)
            passed_at_all += any(key[1] in ("rows a second of network", "s0", "s2") for key in beyond)
            assert score.beyond == pytest.approx(sum(share for share, _ in beyond.values()), abs=1e-9)
            assert score.connections == used.connections.total
    assert passed_at_all > 100


def heaviest(problem: Problem, weights: Sequence[float], most: int) -> float:
    """The least heaviest piece of at most `most`, over all ways to cut a tree."""
    edges = [(low, one.id) for one in problem.operators for low in one.inputs if low in problem.operator]
    weight = dict(zip(problem.operator, weights, strict=True))
    best = float("inf")
    for count in range(min(most, len(edges) + 1)):
        for cut in combinations(edges, count):
            root = {name: name for name in weight}
            for low, high in reversed([edge for edge in edges if edge not in cut]):
                root = {name: root[high] if at == root[low] else at for name, at in root.items()}
            sums = [sum(weight[n] for n in weight if root[n] == r) for r in set(root.values())]
            if len(sums) <= most:
                best = min(best, max(sums))
    return best


def test_cutting_is_exact_on_trees() -> None:
    for seed in range(40):
        rng = Random(seed)
        count = rng.randint(1, 8)
        # Hang each below a later one: a tree with the last at its top.
        above: dict[int, list[str]] = {}
        for i in range(count - 1):
            above.setdefault(rng.randint(i + 1, count - 1), []).append(f"o{i}")
        operators = [Operator(f"o{i}", tuple(above.get(i, ["s"]))) for i in range(count)]
        problem = Problem(sites(1), tuple(operators), (), (Stream("s", 1.0),))
        weights = [rng.uniform(0.1, 3) for _ in operators]
        most = rng.randint(1, 4)
        pieces = lightest_limit(problem, weights, most)
        assert sorted(name for piece in pieces for name in piece) == sorted(problem.operator)
        assert len(pieces) <= most
        top = max(sum(weights[int(name[1:])] for name in piece) for piece in pieces)
        assert top <= heaviest(problem, weights, most) * (1 + 2e-6)
        within = pieces_within(problem, weights, max(weights))
        assert all(sum(weights[int(n[1:])] for n in piece) <= max(weights) * (1 + 1e-9) for piece in within)


@pytest.mark.parametrize("least", [5e-324, 1e-310])
def test_cutting_ends_at_the_smallest_numbers(least: float) -> None:
    operators = (Operator("o0", ("s",)), Operator("o1", ("o0",)), Operator("o2", ("o1",)))
    problem = Problem(sites(1), operators, (), (Stream("s", 1.0),))
    assert lightest_limit(problem, [least] * 3, 1) == [["o2", "o1", "o0"]]


def test_too_many_tables_are_refused() -> None:
    problem = paper_plan(20, 3, Random(0))
    with pytest.raises(UserError, match="more than 200,000 tables"):
        exhaustive(problem)


def test_limits_come_before_load() -> None:
    """The state of both joins fits only on the slow site."""
    operators = tuple(Operator(name, ("s",), cpu=1.0, state_bytes=600.0) for name in "ab")
    problem = Problem(
        (Site("fast", 4.0, memory=500.0), Site("slow", 1.0)), operators, (), (Stream("s", 1.0),)
    )
    assert set(balanced(problem).values()) == {"slow"}


def test_every_table_is_looked_at_where_grouping_passes_a_limit() -> None:
    """g fits beside neither neighbour: two connections, and grouping has one."""
    operators = (
        Operator("f", (), cpu=0.1, state_bytes=5.0),
        Operator("g", ("f",), cpu=0.1, state_bytes=8.0),
        Operator("h", ("g",), cpu=0.1, state_bytes=5.0),
    )
    problem = Problem((Site("a", memory=10.0), Site("b", memory=10.0)), operators)
    assert usage(problem, grouping(problem)).connections.total == 1
    assert not list(faults(problem, exhaustive(problem)))
    with pytest.raises(UserError, match="no table with at most 1 connections keeps all limits"):
        exhaustive(problem, most_connections=1)


def test_links_that_take_nothing_do_not_hide_a_table_within_limits() -> None:
    """Moves alone lead there nearly always, and then all tables are looked at."""
    alone = []
    for seed in range(8, 16):
        rng = Random(seed)
        problem = drawn(rng, 5, 3, limits=True)
        names = [site.id for site in problem.sites]
        pairs = [rng.sample(names, 2) for _ in range(2)]
        links = tuple(Link(source, target, 0.0) for source, target in pairs)
        problem = replace(problem, links=links)
        if best_table(problem) is not None:
            assert not list(faults(problem, balanced_or_best(problem)))
            alone.append(not list(faults(problem, balanced(problem))))
    assert alone.count(True) >= 4 and alone.count(False) == 1
