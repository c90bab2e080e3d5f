"""What is new is placed among what runs: against the patterns themselves, counts by hand, and every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from headrace.errors import InternalError, UserError
from headrace.planners.distribution import extended as module
from headrace.planners.distribution.balanced import balanced_or_best
from headrace.planners.distribution.extended import extended
from headrace.planners.distribution.patterns import grouping, round_robin
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.usage import Usage, usage
from tests.unit.planners.distribution.drawn import drawn

PATTERNS = {"round-robin": round_robin, "grouping": grouping, "balanced": balanced_or_best}


def jobs(count: int, sites: int, regions: str = "x", **held: str) -> Problem:
    """Jobs that read nothing of each other, each a core of a site of ten; `held`: where some are."""
    return Problem(
        tuple(Site(f"s{i}", 10.0, region=regions[i % len(regions)]) for i in range(sites)),
        tuple(Operator(f"o{i}", ("in",), 1.0) for i in range(count)),
        tuple(Query(f"q{i}", (f"o{i}",)) for i in range(count)),
        (Stream("in", 5.0),),
        table=held,
    )


@pytest.mark.parametrize("pattern", PATTERNS)
def test_where_nothing_runs_it_is_the_pattern_itself(pattern: str) -> None:
    for seed in range(4):
        problem = drawn(Random(seed), 7, 3)
        found = extended(problem, pattern)
        assert found.table == found.new == PATTERNS[pattern](problem)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_runs_stays_and_what_is_new_gets_a_site_that_answers(pattern: str) -> None:
    for seed in range(15):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(1, 7), rng.randint(2, 4), limits=rng.random() < 0.3)
        down = rng.choice([None, problem.sites[0].id])
        sites = tuple(replace(s, alive=s.id != down, region=rng.choice("xy")) for s in problem.sites)
        held = {one.id: rng.choice(sites).id for one in problem.operators if rng.random() < 0.5}
        problem = replace(problem, sites=sites, table=held)
        found = extended(problem, pattern)
        assert list(found.table) == [one.id for one in problem.operators]
        assert held.items() <= found.table.items() and set(found.new) == set(found.table) - set(held)
        assert down not in found.new.values()
        assert found.usage == usage(problem, found.table)


def test_round_robin_counts_those_that_run() -> None:
    found = extended(jobs(7, 3, o5="s0", o6="s0"), "round-robin").new
    assert list(found.values()) == ["s1", "s2", "s1", "s2", "s0"]


def test_grouping_fills_up_what_is_behind_one_site_after_another() -> None:
    found = extended(jobs(8, 3, o0="s0", o1="s0", o2="s0", o3="s1"), "grouping").new
    assert list(found.values()) == ["s1", "s1", "s2", "s2"]


def test_ours_against_every_table() -> None:
    """Of the tables with no more connections than grouping makes, one with the lowest highest load, in most
    cases; it never has more connections, nor a higher load than grouping."""
    best = 0
    for seed in range(40):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(3, 7), 3, alike=rng.random() < 0.5)
        names = [one.id for one in problem.operators]
        held = {name: rng.choice(problem.sites).id for name in names[: len(names) - rng.randint(1, 4)]}
        problem = replace(problem, table=held)
        ours, grouped = extended(problem, "balanced").usage, extended(problem, "grouping").usage
        assert ours.connections.total <= grouped.connections.total
        assert ours.max_load <= grouped.max_load * (1 + 1e-9)
        least = min(one.max_load for one in _tables(problem, held, grouped.connections.total))
        assert ours.max_load <= least * 1.2 + 1e-9
        best += ours.max_load <= least * (1 + 1e-6)
    assert best >= 36


def _tables(problem: Problem, held: Mapping[str, str], most: int) -> list[Usage]:
    new = [one.id for one in problem.operators if one.id not in held]
    sites = [site.id for site in problem.sites]
    every = (
        usage(problem, {**held, **dict(zip(new, at, strict=True))}) for at in product(sites, repeat=len(new))
    )
    return [one for one in every if one.connections.total <= most]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regions_share_by_what_they_have_to_do(pattern: str) -> None:
    """Four sites, two in each region; region x has four jobs to do already, so that y gets the first four."""
    problem = jobs(12, 4, "xxyy", o0="s0", o1="s0", o2="s1", o3="s1")
    table = extended(problem, pattern).table
    assert Counter(table.values()) == {"s0": 3, "s1": 3, "s2": 3, "s3": 3}


def test_a_query_is_in_one_region() -> None:
    for seed in range(20):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(2, 10), 4)
        sites = tuple(replace(site, region="xy"[i % 2]) for i, site in enumerate(problem.sites))
        problem = replace(problem, sites=sites)
        table = extended(problem, rng.choice(list(PATTERNS))).table
        for members in problem.members.values():
            assert len({problem.site[table[name]].region for name in members}) == 1


def test_nowhere_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = jobs(1, 1)
    with pytest.raises(UserError, match="no site answers"):
        extended(replace(problem, sites=(replace(problem.sites[0], alive=False),)), "grouping")
    monkeypatch.setattr(module, "_PLACE", {"grouping": lambda problem, running: {"o0": "s7"}})
    with pytest.raises(InternalError, match="grouping: operator o0 is at s7"):
        extended(problem, "grouping")
