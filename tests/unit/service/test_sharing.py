"""Projects woven: groups, units, sites, reasons; costs against counts that share no code with the planner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import PlannerChoices, Project, Query, Site
from headrace.errors import UserError
from headrace.plan.shared import MICROS, SharedPlan, Tree
from headrace.planners.sharing.brute_force import bitset_edge_rate, simulated_operations
from headrace.service.explain import explain_plan, explain_query
from headrace.service.sharing import expected_rate, heaviest, saving_of, share, spread, used_sites
from tests.unit.service.sample import STREAMS

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-plugs"
SUM = "SELECT k, sum(v) AS x FROM files [RANGE {0} SLIDE {1}] GROUP BY k"


def project(
    queries: Mapping[str, str], sites: tuple[Site, ...] = (Site(name="local"),), **planner: object
) -> Project:
    return Project(
        name="p",
        root=Path(),
        streams=STREAMS,
        tables={},
        sites={site.name: site for site in sites},
        links=(),
        queries={name: Query(name=name, sql=sql, site=sites[0].name) for name, sql in queries.items()},
        planner=PlannerChoices.model_validate(planner),
    )


def sums(*windows: tuple[str, str]) -> dict[str, str]:
    return {f"q{i}": SUM.format(*window) for i, window in enumerate(windows)}


def recomputed(tree: Tree, rate: float, unit: int) -> tuple[float, float, float]:
    """(edges, cost, cost with a tree each) per second, by bit sets and by walking along time."""
    windows = [(m.spec.range // unit, m.spec.slide // unit) for m in tree.members]
    per_second = MICROS / unit
    alone = [rate + per_second * float(simulated_operations([window])) for window in windows]
    shared = rate + per_second * float(simulated_operations(windows))
    return per_second * float(bitset_edge_rate(windows)), shared, sum(alone)


@pytest.fixture(scope="module")
def example() -> Project:
    return load_project(EXAMPLE)


@pytest.fixture(scope="module")
def woven(example: Project) -> SharedPlan:
    return share(example)


def test_every_query_of_the_example_is_somewhere(example: Project, woven: SharedPlan) -> None:
    found = [q for tree in woven.trees for q in tree.queries] + [u.query for u in woven.unshared]
    assert sorted(found) == sorted(example.queries)
    assert woven.cost < 0.65 * woven.unshared_cost


def test_the_costs_of_the_example_are_right(woven: SharedPlan) -> None:
    for tree in woven.trees:
        edges, cost, alone = recomputed(tree, 24.0, MICROS)
        assert float(tree.edge_rate) == pytest.approx(edges)
        assert tree.cost == pytest.approx(cost)
        assert tree.unshared_cost == pytest.approx(alone)


def test_the_same_plan_every_time(example: Project, woven: SharedPlan) -> None:
    assert share(example) == woven


def test_what_one_query_saves(woven: SharedPlan) -> None:
    tree = next(t for t in woven.trees if "household_odd_window" in t.queries)
    rest = tuple(m for m in tree.members if m.query != "household_odd_window")
    own = [m for m in tree.members if m not in rest]
    apart = sum(
        24.0 + float(simulated_operations([(m.spec.range // MICROS, m.spec.slide // MICROS) for m in part]))
        for part in (rest, own)
    )
    assert saving_of(24.0, tree, "household_odd_window") == pytest.approx(apart - tree.cost)
    alone = next(t for t in woven.trees if t.alone)
    assert saving_of(24.0, alone, alone.queries[0]) == 0.0


def test_the_unit_of_time_does_not_matter() -> None:
    """Windows of milliseconds and of hours, woven in a unit in which all are whole."""
    plan = share(project(sums(("3500 MILLISECONDS", "1500 MILLISECONDS"), ("1 HOUR", "30 SECONDS"))))
    (tree,) = plan.trees
    edges, cost, alone = recomputed(tree, 1000.0, 500_000)
    assert [float(tree.edge_rate), tree.cost] == pytest.approx([edges, cost])
    assert tree.unshared_cost == pytest.approx(alone)


def test_only_what_is_asked_for_is_woven() -> None:
    found = project(sums(("1 MINUTE", "1 MINUTE"), ("2 MINUTES", "1 MINUTE"), ("3 MINUTES", "1 MINUTE")))
    assert [tree.queries for tree in share(found).trees] == [("q0", "q1", "q2")]
    assert [tree.queries for tree in share(found, ["q2", "q0"]).trees] == [("q0", "q2")]


def test_a_query_that_does_not_bind() -> None:
    found = project({**sums(("1 MINUTE", "1 MINUTE")), "bad": "SELECT nothing FROM files"})
    with pytest.raises(UserError, match="nothing"):
        share(found)
    assert [tree.queries for tree in share(found, skip_wrong=True).trees] == [("q0",)]
    assert explain_query(found, "q0")["sharing"]["reason"].startswith("no partner")


def test_optimiser_and_switch_of_the_project_file() -> None:
    queries = sums(("1 MINUTE", "1 MINUTE"), ("2 MINUTES", "1 MINUTE"))
    apart = share(project(queries, optimiser="G_RR"))
    assert [len(tree.members) for tree in apart.trees] == [1, 1]
    assert "costs less" in apart.trees[0].alone
    off = share(project(queries, sharing=False))
    assert off.trees == () and {u.reason for u in off.unshared} == {"sharing is off in the project file"}


def test_the_rate_source_knows_its_rate() -> None:
    assert expected_rate(STREAMS["endless"]) == 10.0
    given = type(STREAMS["endless"]).model_validate({**STREAMS["endless"].model_dump(), "rate": 7.0})
    assert expected_rate(given) == 7.0
    assert expected_rate(STREAMS["files"]) == 1000.0


EDGE, CORE, LOCAL = Site(name="edge", cpu=1), Site(name="core", cpu=3), Site(name="local")


def test_an_undeclared_local_site_gets_no_work() -> None:
    queries = sums(("1 MINUTE", "1 MINUTE"))
    found = project(queries, (EDGE, CORE, LOCAL))
    at_edge = {n: s.model_copy(update={"site": "edge"}) for n, s in STREAMS.items()}
    assert used_sites(found.model_copy(update={"streams": at_edge})) == (EDGE, CORE)
    assert used_sites(found) == (EDGE, CORE, LOCAL), "streams of the sample are at local"
    assert used_sites(project(queries)) == (LOCAL,)


def test_trees_are_spread_over_sites() -> None:
    by_k = sums(*((f"{n} MINUTES", "1 MINUTE") for n in range(1, 9)))
    rows = {
        f"r{i}": f"SELECT sum(v) AS x FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE v > {i}"
        for i in range(8)
    }
    plan = share(project({**by_k, **rows}, (EDGE, CORE), balance=0))
    load = {"edge": 0.0, "core": 0.0}
    for tree in plan.trees:
        load[tree.site] += tree.cost
    # Nine trees of about 1000 each, on one core and on three.
    assert len(plan.trees) == 9
    assert load["core"] / 3 == pytest.approx(max(load["core"] / 3, load["edge"]), rel=0.4)
    assert heaviest(plan.trees, {"edge": 1, "core": 3}) < 3100


def test_several_sites_are_no_reason_to_read_a_stream_twice() -> None:
    """Two sites for two queries with the same edges: a tree each would double the passes and ease no site."""
    plan = share(project(sums(("1 MINUTE", "1 MINUTE"), ("2 MINUTES", "1 MINUTE")), (EDGE, CORE)))
    assert [(tree.queries, tree.site) for tree in plan.trees] == [(("q0", "q1"), "core")]


def test_spreading_never_makes_it_worse() -> None:
    plan = share(project(sums(("1 MINUTE", "1 MINUTE"), ("7 SECONDS", "7 SECONDS"))))
    (tree,) = plan.trees
    at_core = [Tree("core", t.members, t.edge_rate, t.edge_rate_low, t.cost, t.cost) for t in (tree,)]
    assert spread(at_core, (EDGE, CORE)) == at_core


def test_plan_and_explain_tell_the_same() -> None:
    raw = {"raw": "SELECT ts, v FROM files"}
    found = project({**sums(("1 MINUTE", "1 MINUTE"), ("5 MINUTES", "1 MINUTE")), **raw})
    plan = explain_plan(found)["sharing"]
    one = explain_query(found, "q0")["sharing"]
    assert one["tree"] in plan["trees"]
    assert one["shares_with"] == ["q1"]
    assert sum(tree["cost"] for tree in plan["trees"]) == pytest.approx(plan["cost"])
    assert explain_query(found, "raw")["sharing"]["reason"] == plan["unshared"]["raw"]
    assert "does not run trees yet" in plan["note"]
