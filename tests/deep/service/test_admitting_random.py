"""Random projects with too little room for the cheapest placement: what admission places instead fits, gives
the answers of the whole queries, and is the same every time."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan
from headrace.plan.logical import streams_of
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.service.admitting import spread_from_nothing
from headrace.service.binding import plan_query
from headrace.service.channel_rates import bytes_per_second
from headrace.service.cutting import spread
from headrace.service.spread_records import Fitted
from headrace.service.utilisation import uses_of
from tests.deep.service.test_cutting import _answers
from tests.unit.service.network_sample import project, rows, whole
from tests.unit.service.random_joins import random_queries

MORE = (("west", "north", "12ms"), ("north", "east", "8ms"), ("west", "south", "40ms"))
"""The last one is nobody's cheapest way."""
LINKS = (
    ("west", "mid", "10ms"),
    ("north", "mid", "4ms"),
    ("east", "mid", "6ms"),
    ("mid", "south", "20ms"),
    ("east", "south", "9ms"),
    *MORE,
)


def _tightened(found: Project, rng: random.Random) -> Project:
    """One or two of the links have less than the cheapest placement sends over them, all else is ample."""
    used = {use.key: use.used for use in uses_of(found, whole(found), spread(found, whole(found)))}
    busy = sorted(key[1] for key, rate in used.items() if key[0] == "link" and rate)
    small = {}
    for way in rng.sample(busy, min(len(busy), rng.randint(1, 2))):
        small[frozenset(way.split(" > "))] = max(1, int(used["link", way] * rng.uniform(0.3, 0.95)))
    links = (
        link.model_copy(update={"bandwidth": small.get(frozenset(link.between), 10**9)})
        for link in found.links
    )
    sites = {name: site.model_copy(update={"bandwidth": 10**9}) for name, site in found.sites.items()}
    return found.model_copy(update={"links": tuple(links), "sites": sites})


def _carried(found: Project, plan: ChannelPlan) -> dict[tuple[str, str], float]:
    """Over each link in each direction, by the shortest ways of networkx. Base streams are read at home."""
    graph = nx.Graph()
    for link in found.links:
        graph.add_edge(*link.between, ms=link.latency)
    homes = {stream.id: stream.site for stream in plan.streams}
    carried: dict[tuple[str, str], float] = {}
    for job in plan.jobs:
        for name in streams_of(job.plan):
            if name not in homes:
                assert found.streams[name].site == job.site
                continue
            rate = bytes_per_second(found, plan.stream(name).plan)
            for hop in pairwise(nx.shortest_path(graph, homes[name], job.site, weight="ms")):
                carried[hop] = carried.get(hop, 0.0) + rate
    return carried


def _check(found: Project, fitted: Fitted, seed: int) -> None:
    over = [use for use in uses_of(found, whole(found), fitted.plan) if use.over and use.counts]
    assert not over, over
    tables = rows(seed, 40)
    for name, given in _answers(fitted.plan, tables).items():
        wanted = evaluate(plan_query(found, found.queries[name]).plan, tables)
        difference = multiset_difference(wanted, given)
        assert not difference, f"{name}: {difference.text()}"
    for (a, b), rate in _carried(found, fitted.plan).items():
        (link,) = [link for link in found.links if set(link.between) == {a, b}]
        assert rate <= link.bandwidth * (1 + 1e-9), (a, b)


@pytest.mark.parametrize("block", range(4))
def test_what_admission_places_fits_and_answers(block: int, tmp_path: Path) -> None:
    placed = refused = 0
    for seed in range(block * 10, block * 10 + 10):
        rng = random.Random(seed)
        given = project(tmp_path / str(seed), random_queries(rng, rng.randint(1, 4)), links=LINKS)
        found = _tightened(given, rng)
        fitted = spread_from_nothing(found, whole(found))
        if fitted.notes:
            placed += 1
            _check(found, fitted, seed)
            assert spread_from_nothing(found, whole(found)) == fitted
        refused += bool(fitted.no_room)
        assert "@" not in fitted.no_room
        assert fitted.notes or fitted.plan == spread(found, whole(found)), "else it stays as it was"
    assert placed >= 4, f"{refused} refused"
