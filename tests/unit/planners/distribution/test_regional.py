"""Two tiers of managers: inside a region by its own, between regions only where a whole one is too full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.redistribute import POLICIES, redistribute
from headrace.planners.distribution.regional import label, redistribute_tiers, region_part, regions_as_sites
from headrace.planners.distribution.rules import Decision, History, Rules
from headrace.planners.distribution.usage import misplaced, usage
from tests.unit.planners.distribution.drawn import drawn

CPU = MODELS["cpu"]
RULES = Rules(rest=0.0)


def jobs(at: Mapping[str, list[float]], cpu: float = 1.0) -> Problem:
    """Jobs of so many cores at sites n1, n2 (north) and s1, s2 (south)."""
    operators, table = [], {}
    for site, cores in at.items():
        for i, one in enumerate(cores):
            operators.append(Operator(f"{site}-{i}", ("in",), one, state_bytes=10.0))
            table[f"{site}-{i}"] = site
    regions = {"n1": "north", "n2": "north", "s1": "south", "s2": "south"}
    return Problem(
        tuple(Site(name, cpu, 1000.0, region=region) for name, region in regions.items()),
        tuple(operators),
        tuple(Query(one.id, (one.id,)) for one in operators),
        (Stream("in", 100.0),),
        table=table,
    )


def decided(problem: Problem, policy: str = "balance", rules: Rules = RULES, **more: object) -> Decision:
    return redistribute_tiers(problem, policy, CPU, rules, **more)  # type: ignore[arg-type]


def ways(decision: Decision) -> list[tuple[tuple[str, ...], str, str]]:
    return [(move.operators, move.source, move.target) for move in decision.moves]


@pytest.mark.parametrize("policy", POLICIES)
def test_one_region_has_one_manager(policy: str) -> None:
    for seed in range(4):
        rng = Random(seed)
        problem = drawn(rng, 6, 3)
        problem = replace(problem, table={one.id: rng.choice(problem.sites).id for one in problem.operators})
        assert redistribute_tiers(problem, policy, CPU, RULES) == redistribute(problem, policy, CPU, RULES)


def test_a_region_evens_out_its_own_sites_only() -> None:
    """The north is fuller than the south, and still has room: nothing goes south."""
    problem = jobs({"n1": [0.4, 0.4, 0.3], "n2": [0.1], "s1": [], "s2": [0.1]})
    found = decided(problem)
    assert ways(found) == [(("n1-0",), "n1", "n2")]
    assert redistribute(problem, "balance", CPU, RULES).moves[0].target == "s1", "one manager would"


def test_a_region_that_is_too_full_gives_jobs_away() -> None:
    """1.9 of 2 cores are 95 %: jobs go to the emptiest site of the other region."""
    problem = jobs({"n1": [0.5, 0.5], "n2": [0.5, 0.4], "s1": [0.3], "s2": [0.1]})
    found = decided(problem)
    assert found.moves and all(site.startswith("n") for _, site, _ in ways(found))
    assert ways(found)[0][2] == "s2" and all(site.startswith("s") for _, _, site in ways(found))
    used = usage(problem, found.table)
    assert used.sites["n1"].cpu + used.sites["n2"].cpu < 1.6
    assert found.after.sites["s2"].cost == pytest.approx(used.sites["s2"].load)
    assert "region north" in found.moves[0].why


def test_what_nobody_can_take_stays_and_the_regions_go_on() -> None:
    problem = jobs({"n1": [0.9, 0.9], "n2": [0.1], "s1": [0.9, 0.9], "s2": [0.9]})
    found = decided(problem, "pays")
    assert ways(found) == [(("n1-0",), "n1", "n2")] or ways(found) == [(("n1-1",), "n1", "n2")]
    assert "between regions: " in decided(problem, "pays", Rules(rest=0.0, margin=1e9)).why


def test_no_single_site_has_room() -> None:
    """The south has memory for it as a whole, and no site of it has: nothing is remembered as moved."""
    problem = jobs({"n1": [0.9, 0.9], "n2": [0.9], "s1": [0.1], "s2": [0.1]})
    operators = tuple(
        replace(one, state_bytes=600.0 if one.id[0] == "s" else 500.0) for one in problem.operators
    )
    memory = tuple(replace(site, memory=1000.0 if site.id[0] == "s" else 5000.0) for site in problem.sites)
    problem = replace(problem, operators=operators, sites=memory)
    found = decided(problem, "pays")
    assert all(move.target.startswith("n") for move in found.moves)
    assert "no single site of another region has room" in found.why
    assert not {name for move in found.moves for name in move.operators} ^ set(found.history.moved)


def test_a_lost_site_gives_to_its_region_and_a_lost_region_to_another() -> None:
    problem = jobs({"n1": [0.1, 0.1], "n2": [], "s1": [], "s2": []})
    one = replace(problem, sites=(replace(problem.sites[0], alive=False), *problem.sites[1:]))
    assert {site for _, _, site in ways(decided(one))} == {"n2"}
    both = replace(problem, sites=(*(replace(s, alive=False) for s in problem.sites[:2]), *problem.sites[2:]))
    found = decided(both)
    assert sorted(site for _, _, site in ways(found)) == ["s1", "s2"]


def test_rules_hold_between_regions_too() -> None:
    problem = jobs({"n1": [0.5, 0.5], "n2": [0.5, 0.4], "s1": [0.3], "s2": [0.1]})
    only = decided(problem, rules=Rules(rest=0.0, sites=frozenset({"n1", "n2", "s1"})))
    assert only.moves and {site for _, _, site in ways(only)} == {"s1"}
    bound = decided(problem, rules=Rules(rest=0.0, operators=frozenset({"n2-1", "s1-0"})))
    assert {name for names, _, _ in ways(bound) for name in names} == {"n2-1"}
    waits = decided(problem, rules=Rules(patience=10.0), now=5.0)
    assert not waits.moves and waits.history.uneven_since == 5.0
    acts = decided(problem, rules=Rules(patience=10.0), now=15.0, history=waits.history)
    assert acts.moves and acts.history.uneven_since is None
    rested = decided(problem, rules=Rules(), now=16.0, history=acts.history)
    assert not {n for ns, _, _ in ways(rested) for n in ns} & {n for ns, _, _ in ways(acts) for n in ns}


def test_regions_that_differ_and_have_room_begin_no_patience() -> None:
    found = decided(jobs({"n1": [0.6], "n2": [0.6], "s1": [], "s2": []}))
    assert not found.moves and found.history.uneven_since is None
    assert set(found.history.baseline) == {"n1", "n2", "s1", "s2", label("north"), label("south")}


def test_degradation_compares_a_region_with_what_it_was() -> None:
    before = jobs({"n1": [0.3], "n2": [0.3], "s1": [0.1], "s2": [0.1]})
    first = decided(before, "degradation")
    grown = tuple(replace(o, cpu=3 * o.cpu) if o.id[0] == "n" else o for o in before.operators)
    worse = replace(before, operators=grown)
    second = decided(worse, "degradation", history=first.history, now=100.0)
    assert {site for _, _, site in ways(second)} <= {"s1", "s2"} and second.moves
    assert not decided(worse, "degradation", now=100.0).moves, "nothing to compare with"


def test_a_region_as_a_site_is_the_sum_of_its_own() -> None:
    problem = jobs({"n1": [0.5], "n2": [0.4], "s1": [], "s2": []})
    whole = regions_as_sites(problem)
    used = usage(whole, whole.table).sites
    assert used[label("north")].load == pytest.approx(0.45) and whole.site[label("south")].memory == 2000.0
    part = region_part(problem, "north")
    assert [site.id for site in part.sites] == ["n1", "n2"] and part.table == problem.table


@pytest.mark.parametrize("policy", POLICIES)
def test_random_rounds_come_to_rest_and_each_move_is_its_managers(policy: str) -> None:
    for seed in range(4 if policy == "pays" else 12):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(3, 8), 4, limits=rng.random() < 0.3)
        sites = tuple(replace(site, region="xy"[i // 2]) for i, site in enumerate(problem.sites))
        table = {one.id: rng.choice(sites).id for one in problem.operators}
        problem, history, seen = replace(problem, sites=sites, table=table), History(), [table]
        for turn in range(20):
            found = redistribute_tiers(problem, policy, CPU, RULES, history, float(turn))
            _check(problem, found)
            if not found.moves:
                break
            assert found.table not in seen
            seen.append(dict(found.table))
            problem, history = replace(problem, table=found.table), found.history
        else:
            raise AssertionError("it never comes to rest")


def _check(problem: Problem, found: Decision) -> None:
    """Moves lead from the one table to the other, which is valid; between regions only from one too full."""
    assert not list(misplaced(problem, found.table))
    table = dict(problem.table)
    for move in found.moves:
        assert {table[name] for name in move.operators} == {move.source}
        table |= dict.fromkeys(move.operators, move.target)
    assert table == found.table
    for move in found.moves:
        source, target = problem.site[move.source].region, problem.site[move.target].region
        if source != target:
            used = usage(regions_as_sites(problem), regions_as_sites(problem).table)
            assert used.sites[label(source)].load > RULES.full
