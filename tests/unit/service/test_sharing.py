"""Projects woven: who shares, units, sites, reasons, figures against counts that share no code with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import PlannerChoices, Project, Query, Site
from headrace.errors import UserError
from headrace.plan.shared import MICROS, SharedPlan, Tree
from headrace.planners.sharing.brute_force import bitset_edge_rate
from headrace.service.explain import explain_plan, explain_query
from headrace.service.sharing import saving_of, share
from headrace.service.spreading import advice, heaviest, spread, used_sites
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


@pytest.fixture(scope="module")
def example() -> Project:
    return load_project(EXAMPLE)


@pytest.fixture(scope="module")
def woven(example: Project) -> SharedPlan:
    return share(example)


def test_every_query_of_the_example_is_somewhere(example: Project, woven: SharedPlan) -> None:
    found = [q for tree in woven.trees for q in tree.queries] + [u.query for u in woven.unshared]
    assert sorted(found) == sorted(example.queries)
    assert len(woven.trees) + len(woven.unshared) < 10, "of 43 queries"
    assert woven.cost < 0.3 * woven.unshared_cost


def test_edges_of_the_example_by_bit_sets(woven: SharedPlan) -> None:
    for tree in woven.trees:
        specs = [member.window.spec for member in tree.members]
        windows = [(spec.range // MICROS, spec.slide // MICROS) for spec in specs]
        assert tree.edge_rate == tree.edge_rate_low == bitset_edge_rate(windows)


def test_the_same_plan_every_time(example: Project, woven: SharedPlan) -> None:
    assert share(example) == woven


def test_what_one_query_saves(example: Project, woven: SharedPlan) -> None:
    """The others without it and it alone, planned apart, against all together."""
    tree = next(t for t in woven.trees if "house_sum_1m" in t.queries)
    rest = [query for query in tree.queries if query != "house_sum_1m"]
    apart = sum(one.cost for names in (rest, ["house_sum_1m"]) for one in share(example, names).trees)
    assert saving_of(example, tree, "house_sum_1m") == pytest.approx(apart - tree.cost)
    alone = next(t for t in woven.trees if t.alone)
    assert saving_of(example, alone, alone.queries[0]) == 0.0


def test_the_unit_of_time_does_not_matter() -> None:
    """Windows of milliseconds and of hours, woven in a unit in which all are whole."""
    plan = share(project(sums(("3500 MILLISECONDS", "1500 MILLISECONDS"), ("1 HOUR", "30 SECONDS"))))
    (tree,) = plan.trees
    assert tree.edge_rate == 2 * bitset_edge_rate([(7, 3), (7200, 60)])


def test_only_what_is_asked_for_is_woven() -> None:
    found = project(sums(("1 MINUTE", "1 MINUTE"), ("2 MINUTES", "1 MINUTE"), ("3 MINUTES", "1 MINUTE")))
    assert [tree.queries for tree in share(found).trees] == [("q0", "q1", "q2")]
    assert [tree.queries for tree in share(found, ["q2", "q0"]).trees] == [("q0", "q2")]


def test_a_query_that_does_not_bind() -> None:
    wrong = {"bad": "SELECT nothing FROM files", "worse": "SELECT"}
    found = project({**sums(("1 MINUTE", "1 MINUTE")), **wrong})
    with pytest.raises(UserError, match="nothing") as error:
        share(found)
    assert error.value.detail.splitlines()[-1] == "1 more query is wrong: worse"
    assert [tree.queries for tree in share(found, skip_wrong=True).trees] == [("q0",)]
    assert explain_query(found, "q0")["sharing"]["reason"].startswith("no partner")


def test_optimiser_and_switches_of_the_project_file() -> None:
    queries = sums(("1 MINUTE", "1 MINUTE"), ("2 MINUTES", "1 MINUTE"))
    apart = share(project(queries, optimiser="G_RR"))
    assert [len(tree.members) for tree in apart.trees] == [1, 1], "an optimiser of the paper is obeyed"
    assert apart.trees[0].alone == "the chosen optimiser found no tree for it"
    off = share(project(queries, sharing=False))
    assert off.trees == () and {u.reason for u in off.unshared} == {"sharing is off in the project file"}
    raw = share(project(queries, rewrite=False))
    assert raw.trees == () and all("rewriting is off" in u.reason for u in raw.unshared)


EDGE, CORE, LOCAL = Site(name="edge", cpu=1), Site(name="core", cpu=3), Site(name="local")


def test_an_undeclared_local_site_gets_no_work() -> None:
    queries = sums(("1 MINUTE", "1 MINUTE"))
    found = project(queries, (EDGE, CORE, LOCAL))
    at_edge = {n: s.model_copy(update={"site": "edge"}) for n, s in STREAMS.items()}
    assert used_sites(found.model_copy(update={"streams": at_edge})) == (EDGE, CORE)
    assert used_sites(found) == (EDGE, CORE, LOCAL), "streams of the sample are at local"
    assert used_sites(project(queries)) == (LOCAL,)


def _four() -> list[Tree]:
    """Four trees of the same cost, all at edge."""
    found = project(sums(*[("1 MINUTE", "1 MINUTE")] * 4), (EDGE, CORE), optimiser="G_RR")
    return list(share(found).trees)


def test_trees_would_be_spread_over_sites() -> None:
    trees = _four()
    assert {tree.site for tree in trees} == {"edge"}, "a tree runs where its queries are"
    wanted = spread(trees, (EDGE, CORE))
    assert [tree.queries for tree in wanted] == [tree.queries for tree in trees]
    assert [tree.site for tree in wanted].count("core") == 3
    assert heaviest(wanted, {"edge": 1, "core": 3}) == pytest.approx(trees[0].cost)
    assert spread(wanted, (EDGE, CORE)) == wanted, "spreading never makes it worse"


def test_where_trees_would_go_is_told() -> None:
    queries = sums(*[("1 MINUTE", "1 MINUTE")] * 4)
    (note,) = explain_plan(project(queries, (EDGE, CORE), optimiser="G_RR"))["sharing"]["notes"]
    assert note.count("would be moved from edge to core") == 3 and "headrace move" in note
    assert explain_plan(project(queries))["sharing"]["notes"] == []
    assert advice(project(queries, (EDGE, CORE)), {}) == []


def test_plan_and_explain_tell_the_same() -> None:
    raw = {"raw": "SELECT ts, v FROM files"}
    found = project({**sums(("1 MINUTE", "1 MINUTE"), ("5 MINUTES", "1 MINUTE")), **raw})
    told = explain_plan(found)
    plan, one = told["sharing"], explain_query(found, "q0")
    assert one["sharing"]["tree"] in plan["trees"]
    assert one["sharing"]["shares_with"] == ["q1"]
    assert one["job"] == plan["trees"][0]["tree"]
    assert told["steps"] == [f"start {one['job']} on local for 2 queries", "start raw on local"]
    assert sum(tree["cost"] for tree in plan["trees"]) == pytest.approx(plan["cost"])
    assert explain_query(found, "raw")["sharing"]["reason"] == plan["unshared"]["raw"]


EXPLAINED = """\
tree {tree} on local, with fine, other
scan: one read of files for 3 queries
fragments: by (k), 0.1 a second
own filter: v > 5.0, in partial columns of its own class of rows
keys: rolled up from (k) to ()
partial columns: 1 of 2 also serve other"""


def test_what_is_shared_with_whom_is_told() -> None:
    queries = {
        "fine": SUM.format("1 MINUTE", "10 SECONDS"),
        "total": "SELECT sum(v) AS x, max(v) AS y FROM files [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE v > 5.0",
        "other": "SELECT k, sum(v) AS x FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE v > 5.0 GROUP BY k",
    }
    told = explain_query(project(queries), "total")["sharing"]
    assert told["tree"] is not None
    assert "\n".join(told["lines"][:-2]) == EXPLAINED.format(tree=told["tree"]["tree"])
    assert (told["partials"], told["partials_shared"], told["partials_with"]) == (2, 1, ["other"])
    assert told["lines"][-1] == f"in the tree this query saves {told['saves']:.3g} cores"
