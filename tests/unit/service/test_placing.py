"""Placed projects: answers as before, costs worked out again from the paths, and why a query stays whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import Placement, Project
from headrace.errors import InternalError, UserError
from headrace.plan.data import from_data, to_data
from headrace.plan.placed import PlacedPlan
from headrace.plan.placed_network import Channel, PlacedNetwork
from headrace.planners.placement.solve import PLANNERS
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.service.binding import plan_query
from headrace.service.explain import explain_plan
from headrace.service.placing import Placing, place_joins
from headrace.service.placing_data import KEPT_WHOLE, head_lines, placement_data, placement_map, tables
from headrace.service.planning import plan_network
from tests.unit.service.network_sample import LINKS, placing, project, rows, whole

PAIR = "FROM a [RANGE 30 SECONDS] AS a JOIN b [RANGE 20 SECONDS] AS b ON a.k = b.k"
QUERIES = {
    "pair": ("south", f"SELECT a.ts, a.v, b.s {PAIR}"),
    "narrow": ("south", f"SELECT a.ts, b.m {PAIR} WHERE a.s = 'x'"),
    "narrower": ("east", f"SELECT a.ts, b.v {PAIR} WHERE a.s = 'x' AND a.m > 3 AND b.m < 15"),
    "three": ("south", f"SELECT a.m AS am, c.v {PAIR} JOIN c [RANGE 10 SECONDS] AS c ON b.m = c.m"),
    "chain": (
        "west",
        "SELECT a.v + d.v AS both, d.s FROM a JOIN b ON a.k = b.k"
        " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 20 SECONDS"
        "\nJOIN d ON d.m = b.m AND d.ts BETWEEN b.ts AND b.ts + INTERVAL 10 SECONDS WHERE a.m + d.m > 12",
    ),
    "selves": (
        "north",
        "SELECT x.v, y.v AS later FROM a [RANGE 9 SECONDS] AS x JOIN a [RANGE 5 SECONDS] AS y ON x.k = y.k"
        " AND x.m < y.m",
    ),
    "other": (
        "south",
        "SELECT a.v, b.v AS w FROM a [RANGE 7 SECONDS] AS a JOIN b [RANGE 7 SECONDS] AS b ON a.m = b.m",
    ),
    "counted": (
        "south",
        "SELECT window.start, b.s, count(*) AS n, sum(a.v) AS total FROM a JOIN b ON a.k = b.k"
        " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 20 SECONDS"
        "\nGROUP BY window(a.ts, '30 seconds', '10 seconds'), b.s",
    ),
    "rooms": (
        "south",
        "SELECT a.ts, r.name, b.v FROM a [RANGE 30 SECONDS] AS a JOIN rooms AS r ON a.k = r.k"
        " JOIN b [RANGE 9 SECONDS] AS b ON a.m = b.m WHERE r.name <> 'two'",
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project(tmp_path_factory.mktemp("net"), QUERIES)


@pytest.fixture(scope="module")
def placed(found: Project) -> Placing:
    return placing(found)


@pytest.mark.parametrize("planner", ["exact", "plan-then-deploy"])
def test_answers_are_those_of_the_whole_query(found: Project, planner: str) -> None:
    network, tables_ = placing(found, planner).network, rows(7)
    assert {query.query for query in network.queries} == set(QUERIES)
    some = 0
    for query in network.queries:
        plan = plan_query(found, found.queries[query.query]).plan
        wanted, given = evaluate(plan, tables_), evaluate(query.plan, tables_)
        assert not multiset_difference(wanted, given), query.query
        some += wanted.num_rows > 0
    assert some == len(QUERIES), "a query without rows proves nothing"


def test_cost_is_what_the_channels_pay(found: Project, placed: Placing) -> None:
    latency = {frozenset((x, y)): float(ms.removesuffix("ms")) / 1000 for x, y, ms in LINKS}
    paid = sum(
        channel.rate * sum(latency[frozenset(hop)] for hop in pairwise(channel.path))
        for channel in placed.network.channels
    )
    assert placed.cost == pytest.approx(paid)
    assert placed.cost <= placed.alone <= placed.at_sinks
    assert placed.cost < 0.9 * placed.alone, "sharing joins saves something here"


def test_data_on_links_is_that_of_the_channels(found: Project, placed: Placing) -> None:
    data = placement_data(found, placed)
    hops = sum(channel.rate * (len(channel.path) - 1) for channel in placed.network.channels)
    assert sum(link["forth"] + link["back"] for link in data["links"]) == pytest.approx(hops)
    assert len(data["links"]) == len(LINKS)
    assert sum(query["added_cost"] for query in data["queries"]) == pytest.approx(data["cost"])


def test_a_join_is_used_again_with_a_stronger_filter_below_it(found: Project, placed: Placing) -> None:
    readers = [join.queries for join in placed.network.joins if join.streams == ("a", "b")]
    assert any({"pair", "narrow"} <= set(queries) for queries in readers)
    data = placement_data(found, placed)
    reuses = {query["query"]: query["reuses"] for query in data["queries"]}
    assert reuses["narrow"] and not reuses["pair"], "who comes first brings the join"


def test_joins_in_another_way_are_told_apart(placed: Placing) -> None:
    names = {one.query: one.names for one in placed.found.named.values()}
    assert names["pair"] == names["narrow"] == ("a", "b")
    assert names["selves"] == ("a", "a#2")
    assert names["chain"][:2] == names["counted"] == ("a", "b#2"), "same bounds, written the same way"
    assert names["other"] == ("a", "b#3")
    assert names["rooms"][0] == "a+rooms"
    assert names["three"] == ("a", "b", "c")


def test_every_join_stands_in_the_plan_of_its_queries(placed: Placing) -> None:
    for join in placed.network.joins:
        assert join.queries
        for channel in (placed.network.channel(one) for one in join.inputs):
            assert channel.path[-1] == join.site


def test_as_data_and_back(placed: Placing) -> None:
    text = json.dumps(to_data(placed.network))
    assert from_data(json.loads(text)) == placed.network


def test_same_plan_again(found: Project, placed: Placing) -> None:
    assert placing(found).network == placed.network


def _with_channel(network: PlacedNetwork, channel: Channel) -> PlacedNetwork:
    changed = tuple(channel if one.id == channel.id else one for one in network.channels)
    return replace(network, channels=changed)


def test_wrong_networks_are_refused(placed: Placing) -> None:
    network = placed.network
    join = network.joins[0]
    first, second = (network.channel(one) for one in join.inputs)
    query = network.queries[0]
    wrong: dict[str, Callable[[], object]] = {
        "stands twice": lambda: replace(network, joins=(*network.joins, join)),
        "which nothing before it makes": lambda: replace(network, streams=()),
        "others than it says": lambda: replace(
            network, joins=(replace(join, queries=("nobody",)), *network.joins[1:])
        ),
        "does not lead": lambda: _with_channel(network, replace(first, path=("south",))),
        "is no path": lambda: replace(first, path=("west", "west")),
        "bytes per second": lambda: replace(first, rate=float("nan")),
        "channel of another": lambda: _with_channel(network, replace(first, reader="nobody")),
        "carries something else": lambda: _with_channel(network, replace(first, plan=second.plan)),
        "something else with its inputs": lambda: replace(
            network, joins=(replace(join, plan=network.joins[-1].plan), *network.joins[1:])
        ),
        "other streams": lambda: replace(network, joins=(replace(join, streams=("zz",)), *network.joins[1:])),
        "does not read its channel": lambda: replace(
            network, queries=(replace(query, plan=second.plan), *network.queries[1:])
        ),
        "has no reader": lambda: replace(network, channels=(*network.channels, replace(first, id="another"))),
    }
    for says, make in wrong.items():
        with pytest.raises(InternalError, match=says):
            make()


def test_one_site_has_nothing_to_place(tmp_path: Path) -> None:
    one = dict.fromkeys("abcd", "south")
    found = project(tmp_path, {"pair": QUERIES["pair"]}, links=(), homes=one)
    assert place_joins(found, whole(found)) is None
    assert "placement" not in explain_plan(found)
    assert plan_network(found).network is None


def test_without_joins_there_is_nothing_to_place(tmp_path: Path) -> None:
    found = project(tmp_path, {"alone": ("south", "SELECT v FROM a WHERE k = 1")})
    assert place_joins(found, whole(found)) is None


def test_without_links_all_sites_are_near(tmp_path: Path) -> None:
    found = project(tmp_path, {"pair": QUERIES["pair"]}, links=())
    placed = placing(found)
    assert any("1 ms apart" in note for note in placed.notes)
    assert all(len(channel.path) <= 2 for channel in placed.network.channels)


def test_what_stays_whole_says_why(tmp_path: Path) -> None:
    more = {
        "pair": QUERIES["pair"],
        "one": ("south", "SELECT v, k FROM a"),
        "windows": (
            "east",
            "SELECT x.n FROM (SELECT window_end, k, count(*) AS n FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS]"
            " GROUP BY k) AS x JOIN (SELECT window_end, k, max(v) AS top FROM b [RANGE 1 MINUTE SLIDE 10"
            " SECONDS] GROUP BY k) AS y ON x.k = y.k AND x.window_end = y.window_end",
        ),
        "between": (
            "south",
            f"SELECT c.v {PAIR} JOIN rooms AS r ON a.k = r.k JOIN c [RANGE 5 SECONDS] AS c ON b.m = c.m",
        ),
        "triple": (
            "south",
            f"SELECT c.v {PAIR} JOIN c [RANGE 5 SECONDS] AS c ON b.m = c.m WHERE a.v + b.v < c.v",
        ),
        "lost": ("away", f"SELECT a.v {PAIR}"),
        "far": ("away", "SELECT k FROM c"),
    }
    found = project(tmp_path, more, links=(*LINKS, ("away", "moon", "1ms")))
    data = placement_data(found, placing(found))
    assert [query["query"] for query in data["queries"]] == ["pair"]
    why = {one["job"]: one["reason"] for one in data["whole"]}
    assert "one stream" in why["one"] and "one stream" in why["far"]
    assert "joins windows" in why["windows"]
    assert "static table between" in why["between"]
    assert "more than two streams" in why["triple"]
    assert why["lost"] == "no links lead from west, where a comes from, to away"
    brought = {one["job"]: one["brought"] for one in data["whole"]}
    # v (8 bytes), k (4) and ts (8) of 10 rows a second; 6 + 9 ms over east are less than 20.
    assert brought["one"] == [{"source": "a", "path": ["west", "mid", "east", "south"], "rate": 200.0}]
    assert brought["far"] == [{"source": "c", "path": [], "rate": 360.0}]
    assert "cannot reach it" in str(tables(data)[-1].rows)


def test_planners_have_the_names_of_the_catalog() -> None:
    assert set(get_args(Placement)) == set(PLANNERS)


def test_planner_by_name(tmp_path: Path) -> None:
    found = project(tmp_path, {"pair": QUERIES["pair"]}, more="planner: {placement: top-down}\n")
    assert placing(found).planner == "top-down"
    assert placing(found, "npc").planner == "npc"
    with pytest.raises(UserError, match="no placement planner"):
        place_joins(found, whole(found), "exat")


def test_told_in_words(found: Project, placed: Placing) -> None:
    data = placement_data(found, placed)
    first, second = head_lines(data)
    assert first.startswith(f"placement: {len(placed.network.joins)} joins for 9 queries at ")
    assert "B in flight instead of" in second
    assert data["notes"] == [KEPT_WHOLE]
    titles = [table.title for table in tables(data)]
    assert titles == ["joins", "results", "links"]
    assert "placement" in explain_plan(found)


def test_cost_of_a_link_is_no_latency(tmp_path: Path) -> None:
    found = project(tmp_path, {"pair": QUERIES["pair"]})
    assert placement_data(found, placing(found))["unit"] == "B in flight"
    yaml = tmp_path / "headrace.yaml"
    yaml.write_text(yaml.read_text().replace("latency: 20ms}", "latency: 20ms, cost: 0.001}"))
    found = load_project(tmp_path)
    placed = placing(found)
    ends = [channel.path[-2:] for channel in placed.network.channels if len(channel.path) > 1]
    assert ends and all(path == ("mid", "south") for path in ends), "not over east any more"
    assert placement_data(found, placed)["unit"] == ""


def test_map_of_a_placement(found: Project, placed: Placing) -> None:
    data = placement_data(found, placed)
    drawn = placement_map("net", data)
    spots = {spot.name: spot for spot in drawn.spots}
    assert spots["west"].streams == ("a",)
    assert set(spots["south"].sinks) == {q for q, (site, _) in QUERIES.items() if site == "south"}
    assert sum(len(spot.joins) for spot in drawn.spots) == len(placed.network.joins)
    assert sum(flow.rate for flow in drawn.flows) == pytest.approx(
        sum(channel.rate for channel in placed.network.channels)
    )
    assert {wire.words for wire in drawn.wires} == {"10 ms", "4 ms", "6 ms", "20 ms", "9 ms"}


def test_trees_stay_whole(tmp_path: Path) -> None:
    window = "SELECT k, count(*) AS n FROM a [RANGE {} SECONDS SLIDE 10 SECONDS] GROUP BY k"
    queries = {
        "pair": QUERIES["pair"],
        "t1": ("south", window.format(30)),
        "t2": ("south", window.format(60)),
    }
    data = explain_plan(project(tmp_path, queries))
    (tree,) = data["placement"]["whole"]
    assert set(tree["queries"]) == {"t1", "t2"}
    assert [one["source"] for one in tree["brought"]] == ["a"], "one read for both"


def test_only_what_is_asked_for(found: Project) -> None:
    data = explain_plan(found, ["pair", "three"])
    assert [query["query"] for query in data["placement"]["queries"]] == ["pair", "three"]
    assert isinstance(plan_network(found, ["pair"]), PlacedPlan)
