"""What sites and links carry, against sums done by hand and ways found by networkx."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan
from headrace.service.foreseeing import foreseen
from headrace.service.planning import plan_query
from headrace.service.utilisation import Use, head_line, notes, tables, uses_of
from tests.unit.service.capacity_sample import ALL, EDGE_CORE, FIVE, MINUTE, TWO, priced, write


def uses(project: Project) -> dict[tuple[str, str], Use]:
    placed = PlacedPlan(tuple(plan_query(project, query) for query in project.queries.values()))
    return {use.key: use for use in uses_of(project, placed)}


def rates(project: Project) -> dict[tuple[str, str], float]:
    return {key: use.used for key, use in uses(project).items() if key[0] not in ("cpu", "memory")}


def test_every_job_brings_its_streams(tmp_path: Path) -> None:
    queries = {"a": ("core", ALL), "b": ("core", TWO), "home": ("edge", ALL)}
    assert rates(write(tmp_path, queries)) == {
        ("in", "core"): 32_000,
        ("out", "core"): 0,
        ("in", "edge"): 0,
        ("out", "edge"): 32_000,
        ("link", "edge > core"): 32_000,
    }


def test_a_tree_brings_a_stream_once(tmp_path: Path) -> None:
    """And with all columns: members that come later may want others."""
    found = foreseen(write(tmp_path, {"a": ("core", MINUTE), "b": ("core", FIVE)}))["utilisation"]
    (link,) = found["links"]
    assert (link["source"], link["target"], link["used"]) == ("edge", "core", 20_000)
    assert link["share"] == pytest.approx(20_000 / 125e6)


def test_a_site_on_the_way_carries_it_too(tmp_path: Path) -> None:
    links = "links:\n  - {between: [edge, mid]}\n  - {between: [mid, core], bandwidth: 30000}\n"
    found = uses(write(tmp_path, {"a": ("core", ALL), "b": ("core", ALL)}, links=links, mid="bandwidth: 1m"))
    assert {place: found["in", place].used for place in ("edge", "mid", "core")} == {
        "edge": 0,
        "mid": 40_000,
        "core": 40_000,
    }
    assert found["out", "mid"].used == 40_000
    assert not found["link", "edge > mid"].over and found["link", "mid > core"].over
    assert found["link", "mid > core"].jobs == {"a": 20_000, "b": 20_000}
    assert ("memory", "mid") in found and found["memory", "mid"].used == 0


def test_where_no_links_lead_both_ends_carry_it(tmp_path: Path) -> None:
    links = "links:\n  - {between: [edge, mid]}\n"
    found = rates(write(tmp_path, {"a": ("core", ALL)}, links=links, mid=""))
    assert (found["out", "edge"], found["in", "core"]) == (20_000, 20_000)
    assert not [key for key in found if key[0] == "link"]


def test_cores_and_memory_are_those_predicted(tmp_path: Path) -> None:
    trigger = "planner: {trigger: 2 seconds}\n"
    project = write(tmp_path, {"a": ("core", ALL), "b": ("core", TWO), "w": ("core", MINUTE)}, more=trigger)
    prices = {"plain_batch": 1.0, "plain_row": 1e-3, "worker_memory": 5e7, "engine_memory": 2e8}
    priced(project, "core", **prices)
    found = foreseen(project)["utilisation"]["sites"][0]
    assert found["cpu"]["used"] == pytest.approx(2 * (0.5 + 1.0))
    assert found["memory"]["used"] == pytest.approx(3e8)
    at_will = write(tmp_path, {"a": ("core", ALL), "b": ("core", TWO), "w": ("core", MINUTE)})
    assert foreseen(at_will)["utilisation"]["sites"][0]["cpu"]["used"] == pytest.approx(2.0)


@pytest.mark.parametrize("calibrated", [False, True])
def test_which_capacities_count(tmp_path: Path, calibrated: bool) -> None:
    links = "links:\n  - {between: [edge, mid], bandwidth: 1m}\n  - {between: [mid, core]}\n"
    project = write(tmp_path, {"a": ("core", ALL)}, links=links, mid="", core="cpu: 4")
    if calibrated:
        priced(project, "core")
    found = {key: use.counts for key, use in uses(project).items()}
    assert found["cpu", "core"] and found["link", "edge > mid"]
    assert not found["link", "mid > core"], "nobody has measured it"
    assert found["memory", "core"] is found["in", "core"] is calibrated
    assert not found["out", "edge"]


def test_a_calibration_of_another_endpoint_does_not_count(tmp_path: Path) -> None:
    priced(write(tmp_path, {"a": ("core", ALL)}), "core")
    moved = write(tmp_path, {"a": ("core", ALL)}, core='endpoint: "local[7]"')
    assert not uses(moved)["memory", "core"].counts


def test_exactly_full_is_not_over(tmp_path: Path) -> None:
    for limit, over in ((20_000, False), (19_999, True)):
        found = uses(write(tmp_path, {"a": ("core", ALL)}, core=f"bandwidth: {limit}"))
        assert found["in", "core"].over is over


def test_in_words(tmp_path: Path) -> None:
    project = write(tmp_path, {"a": ("core", ALL)}, links=EDGE_CORE, core="bandwidth: 10000")
    data = foreseen(project)["utilisation"]
    sites, links = tables(data)
    core = dict(zip(sites.columns, sites.rows[0], strict=True))
    assert core["in"] == "20 kB/s of 10 kB/s, 200% OVER" and core["out"] == ""
    assert core["memory"].endswith("4.0 GiB*, 28%")
    assert links.rows == (("edge > core", "20 kB/s of 125 MB/s*, <1%"),)
    assert head_line(data).endswith("1 over 100%")
    assert notes(data)[0].startswith("* only a default")
    assert [table.title for table in tables(data, brief=True)] == ["sites"]


@pytest.mark.parametrize("seed", range(5))
def test_ways_are_the_cheapest(tmp_path: Path, seed: int) -> None:
    """Distances are distinct sums, so there is one cheapest way, and networkx finds it too."""
    rng = np.random.default_rng(seed)
    names = ["edge", "core", *(f"n{i}" for i in range(5))]
    graph = nx.random_labeled_tree(len(names), seed=seed)
    graph.add_edges_from(tuple(map(int, rng.choice(len(names), 2, replace=False))) for _ in range(4))
    for number, ends in enumerate(graph.edges):
        graph.edges[ends]["ms"] = 1000 + 2**number
    lines = [
        f"  - {{between: [{names[a]}, {names[b]}], latency: {d}ms}}\n" for a, b, d in graph.edges(data="ms")
    ]
    queries = {f"q{i}": (name, ALL) for i, name in enumerate(names[1:])}
    more = dict.fromkeys(names[2:], "")
    found = rates(write(tmp_path, queries, links="links:\n" + "".join(lines), **more))
    wanted: dict[tuple[str, str], float] = {}
    for target in range(1, len(names)):
        for a, b in pairwise(nx.shortest_path(graph, 0, target, weight="ms")):
            for key in (("link", f"{names[a]} > {names[b]}"), ("out", names[a]), ("in", names[b])):
                wanted[key] = wanted.get(key, 0) + 20_000
    assert {key: used for key, used in found.items() if used} == wanted
