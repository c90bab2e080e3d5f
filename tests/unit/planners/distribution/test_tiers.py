"""Whole queries to regions, operators inside; the parts make a whole."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.errors import InternalError, UserError
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.patterns import grouping
from headrace.planners.distribution.plans import paper_plan
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.redistribute import redistribute
from headrace.planners.distribution.tiers import (
    assign_queries,
    check_whole,
    distribute_tiers,
    families,
    part_of,
)
from headrace.planners.distribution.usage import faults, misplaced, usage
from tests.unit.planners.distribution.drawn import drawn

PLAN = Problem(
    (Site("e1", region="east"), Site("e2", region="east"), Site("w1", region="west", cpu=2.0)),
    (
        Operator("a", ("s",), 0.5, 1.0),
        Operator("b", ("a",), 0.5, 1.0),
        Operator("c", ("a",), 0.2, 1.0),
        Operator("d", ("t",), 1.1, 1.0),
        Operator("e", ("t",), 0.1, 1.0),
    ),
    (Query("x", ("b",)), Query("y", ("c",), "e1"), Query("z", ("d",)), Query("v", ("e",))),
    (Stream("s", 10.0, "e1"), Stream("t", 20.0, "w1")),
)


def test_queries_that_share_stay_together() -> None:
    assert [{q.id for q in family} for family in families(PLAN)] == [{"x", "y"}, {"z"}, {"v"}]
    assert assign_queries(PLAN) == {"x": "east", "y": "east", "z": "west", "v": "west"}


def test_streams_decide_where_loads_are_nearly_alike() -> None:
    plan = Problem(
        (Site("e", 1.05, region="east"), Site("w", 1.0, region="west")),
        (Operator("o", ("t",), 0.5),),
        (Query("q", ("o",)),),
        (Stream("s", 10.0, "e"), Stream("t", 20.0, "w")),
    )
    assert assign_queries(plan) == {"q": "west"}
    larger = replace(plan, sites=(replace(plan.sites[0], cpu=2.0), plan.sites[1]))
    assert assign_queries(larger) == {"q": "east"}


def test_a_region_gets_a_problem_of_its_own() -> None:
    assigned = assign_queries(PLAN)
    west = part_of(PLAN, assigned, "west")
    assert [site.id for site in west.sites] == ["w1"]
    assert [one.id for one in west.operators] == ["d", "e"]
    assert west.streams == (Stream("t", 20.0, "w1"),)
    # East has a client at one of its sites.
    assert part_of(PLAN, assigned, "east").queries[1].site == "e1"


def test_parts_make_a_whole() -> None:
    for seed in range(25):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(2, 12), rng.randint(2, 5))
        sites = tuple(replace(site, region=rng.choice("xy")) for site in problem.sites)
        problem = replace(problem, sites=sites)
        assigned, table = distribute_tiers(problem)
        assert not list(misplaced(problem, table))
        for query in problem.queries:
            regions = {problem.site[table[name]].region for name in problem.members[query.id]}
            assert regions == {assigned[query.id]}


def test_each_region_may_use_its_own_pattern_and_rebalance() -> None:
    problem = paper_plan(80, 4, Random(3))
    regions = tuple(replace(site, region="ab"[i // 2]) for i, site in enumerate(problem.sites))
    problem = replace(problem, sites=regions)
    assigned, table = distribute_tiers(problem, grouping)
    assert sorted(assigned.values()) == ["a", "b"]
    assert not list(faults(problem, table))
    part = part_of(replace(problem, table=table), assigned, "a")
    decision = redistribute(part, "balance", MODELS["cpu"])
    whole = {**table, **decision.table}
    check_whole(problem, assigned, whole)
    assert decision.moves and usage(problem, whole).max_load <= usage(problem, table).max_load


def test_what_is_no_whole_is_found() -> None:
    assigned, table = distribute_tiers(PLAN)
    with pytest.raises(InternalError, match="d of z is outside of region west"):
        check_whole(PLAN, assigned, {**table, "d": "e2"})
    with pytest.raises(InternalError, match="e has no site"):
        check_whole(PLAN, assigned, {name: at for name, at in table.items() if name != "e"})


def test_what_cannot_be_divided() -> None:
    with pytest.raises(UserError, match='"e" belongs to no query'):
        distribute_tiers(replace(PLAN, queries=PLAN.queries[:3]))
    gone = replace(PLAN, sites=tuple(replace(site, alive=False) for site in PLAN.sites))
    with pytest.raises(UserError, match="no site answers in any region"):
        assign_queries(gone)
    half = replace(PLAN, sites=(*PLAN.sites[:2], replace(PLAN.sites[2], alive=False)))
    assert set(assign_queries(half).values()) == {"east"}
