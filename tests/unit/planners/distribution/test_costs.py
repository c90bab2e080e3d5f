"""Cost tables of every model, against examples worked by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest

from headrace.planners.distribution.costs import MODELS, Costing, CostTable
from headrace.planners.distribution.observed import (
    Observations,
    OperatorSeen,
    SiteSeen,
    with_observations,
)
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream, Table
from headrace.planners.distribution.usage import usage
from tests.unit.planners.distribution.drawn import drawn

PLAN = Problem(
    (Site("a", cpu=2.0, memory=1000.0, network=100.0), Site("b", cpu=1.0, memory=500.0, network=100.0)),
    (
        Operator("f", ("s",), cpu=0.5, rate=40.0),
        Operator("g", ("s",), cpu=0.25, rate=10.0),
        Operator("j", ("f", "g"), cpu=0.75, rate=20.0, state_bytes=300.0),
        Operator("k", ("j",), cpu=0.25, rate=5.0, state_bytes=100.0),
    ),
    (Query("q", ("k",)),),
    (Stream("s", 100.0),),
)
TABLE = {"f": "a", "g": "b", "j": "a", "k": "a"}


def costs(model: str, problem: Problem = PLAN, table: Table = TABLE) -> CostTable:
    return Costing(problem, MODELS[model]).table(table)


def test_cpu() -> None:
    found = costs("cpu")
    assert {s: c.cost for s, c in found.sites.items()} == {"a": pytest.approx(0.75), "b": 0.25}
    assert found.sites["a"].operators == {"f": 0.25, "j": 0.375, "k": 0.125}
    assert found.sites["a"].share("j") == pytest.approx(0.5)
    assert found.difference == pytest.approx(0.5)


def test_memory_is_the_share_that_is_filled() -> None:
    found = costs("memory")
    assert (found.sites["a"].cost, found.sites["b"].cost) == pytest.approx((0.4, 0.0))


def test_network_is_equations_4_and_5() -> None:
    """Over the network go k (to the client) at a, and g at b; f and j stay at a."""
    found = costs("network")
    assert (found.sites["a"].cost, found.sites["b"].cost) == pytest.approx((0.05, 0.1))
    assert found.sites["a"].share("k") == 1.0
    assert found.sites["a"].share("f") == 0.0
    apart = costs("network", table={"f": "a", "g": "a", "j": "b", "k": "b"}).sites["a"]
    assert apart.cost == pytest.approx(0.5)
    assert (apart.share("f"), apart.share("g")) == pytest.approx((0.8, 0.2))


def test_an_operator_with_two_remote_readers_is_counted_once() -> None:
    plan = replace(PLAN, operators=(*PLAN.operators, Operator("l", ("f",), rate=1.0)))
    found = costs("network", plan, {"f": "a", "g": "a", "j": "b", "k": "b", "l": "b"})
    assert found.sites["a"].cost == pytest.approx(0.5)
    # One reader elsewhere is enough.
    half = costs("network", plan, {"f": "a", "g": "a", "j": "a", "k": "a", "l": "b"})
    assert half.sites["a"].cost == pytest.approx((40 + 5) / 100)


def test_combined_is_the_scarcest() -> None:
    found = costs("combined")
    assert found.sites["a"].resource == "cpu"
    assert found.sites["a"].cost == pytest.approx(0.75)
    tight = replace(PLAN, sites=(replace(PLAN.sites[0], memory=410.0), PLAN.sites[1]))
    found = costs("combined", tight)
    assert found.sites["a"].resource == "memory"
    assert found.sites["a"].cost == pytest.approx(400 / 410)
    assert found.sites["a"].share("j") == pytest.approx(0.75)


def test_without_limits_costs_are_shares_of_everything() -> None:
    free = replace(PLAN, sites=(Site("a"), Site("b", network=7.0)))
    assert costs("memory", free).sites["a"].cost == pytest.approx(1.0)
    assert costs("network", free).sites["b"].cost == pytest.approx(10 / 75)
    # There is no share of no limit: cpu is all that can be scarce.
    assert costs("combined", free).sites["a"].resource == "cpu"


def test_sites_that_do_not_answer_have_no_cost() -> None:
    half = replace(PLAN, sites=(PLAN.sites[0], replace(PLAN.sites[1], alive=False)))
    assert set(costs("cpu", half).sites) == {"a"}


def test_the_cpu_model_agrees_with_usage() -> None:
    for seed in range(30):
        rng = Random(seed)
        problem = drawn(rng, 7, 3)
        table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
        used, found = usage(problem, table), costs("cpu", problem, table)
        for site, one in found.sites.items():
            assert one.cost == pytest.approx(used.sites[site].load)


def test_a_move_changes_the_costs_of_two_sites_only() -> None:
    """What policies rely on."""
    for seed in range(40):
        rng = Random(seed)
        problem = drawn(rng, 8, 4, limits=bool(seed % 2))
        table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
        moved = rng.choice(problem.operators).id
        after = {**table, moved: rng.choice(problem.sites).id}
        for model in MODELS:
            old, new = costs(model, problem, table), costs(model, problem, after)
            for site in old.sites.keys() - {table[moved], after[moved]}:
                assert new.sites[site].cost == pytest.approx(old.sites[site].cost)


def test_how_far_behind_is_a_number_whatever_was_seen() -> None:
    assert OperatorSeen(rows_in=60.0, arriving=90.0).behind == 1.5
    assert OperatorSeen(rows_in=90.0, arriving=60.0).behind == OperatorSeen(rows_in=1.0).behind == 1.0
    assert OperatorSeen(rows_in=1e-320, arriving=1e15).behind == 1e6


def test_what_was_seen_takes_the_place_of_what_was_assumed() -> None:
    seen = Observations(
        {
            "f": OperatorSeen(rows_in=50.0, rows_out=30.0),
            "g": OperatorSeen(batch_seconds=0.2, batches=2.0, state_rows=7.0),
            "j": OperatorSeen(cpu=0.5, rows_in=60.0, arriving=90.0, rows_out=20.0, state_bytes=0.0),
        },
        {"a": SiteSeen(cpu=1.1, memory=900.0)},
        {"s": 60.0},
        row_bytes=10.0,
    )
    found = with_observations(replace(PLAN, table=TABLE), seen)
    f, g, j, k = found.operators
    assert (f.cpu, f.rate) == (0.25, 30.0)  # half of the rows that were assumed
    assert (g.cpu, g.rate, g.state_bytes) == (0.4, 10.0, 70.0)
    assert (j.cpu, j.rate, j.state_bytes) == (0.75, 30.0, 0.0)  # falls behind by half
    assert k == PLAN.operators[3]
    assert found.streams[0].rate == 60.0
    # Of the cpu in use at a, j has a half, and f and k are taken to have a quarter each; k has 100 bytes.
    assert found.sites[0].cpu_other == pytest.approx(0.1)
    assert found.sites[0].memory_other == 800.0
    assert found.sites[1] == PLAN.sites[1]
    assert seen.operators["f"].selectivity == 0.6
    assert seen.operators["g"].selectivity is None


def test_a_stream_at_home_that_is_read_elsewhere_is_sent() -> None:
    """Once, as an operator's output: 100 rows of s, 10 of f."""
    sites = (Site("a", network=200.0), Site("b", network=100.0), Site("c", network=50.0))
    operators = (Operator("f", ("s",), rate=10.0), Operator("g", ("s", "f")), Operator("h", ("f",)))
    problem = Problem(sites, operators, (), (Stream("s", 100.0, "a"),))
    away = costs("network", problem, {"f": "b", "g": "c", "h": "c"})
    assert [one.cost for one in away.sites.values()] == [0.5, 0.1, 0.0]
    home = costs("network", problem, {"f": "a", "g": "a", "h": "c"})
    assert [one.cost for one in home.sites.values()] == [0.05, 0.0, 0.0]
    free = replace(problem, sites=(Site("a"), Site("b"), Site("c")))
    shares = costs("network", free, {"f": "b", "g": "c", "h": "c"})
    assert [one.cost for one in shares.sites.values()] == pytest.approx([100 / 110, 10 / 110, 0.0])


def test_a_site_is_as_full_as_it_was_seen_to_be() -> None:
    """Whatever else was seen or assumed of its operators and connections; or as full as these make it."""
    for seed in range(40):
        rng = Random(seed)
        problem = drawn(rng, 7, 3)
        table = {one.id: rng.choice(problem.sites).id for one in problem.operators}
        operators = {
            one.id: OperatorSeen(
                cpu=rng.choice((None, 0.3)),
                rows_out=rng.choice((None, 20.0)),
                state_rows=rng.choice((None, 5.0)),
                state_bytes=rng.choice((None, 400.0)),
            )
            for one in problem.operators
            if rng.random() < 0.7
        }
        sites = {site.id: SiteSeen(rng.uniform(0, 8), rng.uniform(0, 4000)) for site in problem.sites[:2]}
        found = with_observations(replace(problem, table=table), Observations(operators, sites))
        empty = replace(found, sites=tuple(Site(site.id) for site in problem.sites))
        used, own = usage(found, table).sites, usage(empty, table).sites
        for name, seen in sites.items():
            assert seen.cpu is not None and seen.memory is not None
            assert used[name].cpu == pytest.approx(max(seen.cpu, own[name].cpu))
            assert used[name].memory == pytest.approx(max(seen.memory, own[name].memory))


def test_what_a_site_uses_is_taken_apart_before_all_operators_have_one() -> None:
    found = with_observations(replace(PLAN, table={"f": "a"}), Observations(sites={"a": SiteSeen(cpu=2.0)}))
    assert found.sites[0].cpu_other == 1.5


def test_combined_keeps_a_limit_that_not_every_site_has() -> None:
    sites = (replace(PLAN.sites[0], memory=800.0, network=inf), Site("b", cpu=1.0))
    found = costs("combined", replace(PLAN, sites=sites), {**TABLE, "f": "b"})
    assert (found.sites["a"].cost, found.sites["a"].resource) == (0.5, "cpu")
    sites = (replace(sites[0], memory=500.0), sites[1])
    found = costs("combined", replace(PLAN, sites=sites), {**TABLE, "f": "b"})
    assert (found.sites["a"].cost, found.sites["a"].resource) == (0.8, "memory")
    assert (found.sites["b"].cost, found.sites["b"].resource) == (0.75, "cpu")
