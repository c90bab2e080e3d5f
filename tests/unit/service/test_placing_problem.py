"""Rates, widths, filters and factors of a placement problem, against sums done by hand and a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from headrace.catalog.model import Project
from headrace.planners.placement.rates import data_rate, wanted
from headrace.service.binding import plan_query
from headrace.service.placing_names import name_all
from headrace.service.placing_part import JoinPart, join_part
from headrace.service.placing_problem import Placeable, network_of, placeable
from tests.unit.service.network_sample import LINKS, project


def made(found: Project) -> Placeable:
    parts: dict[str, tuple[str, JoinPart]] = {}
    for name, query in found.queries.items():
        part = join_part(plan_query(found, query).plan)
        assert isinstance(part, JoinPart), part
        parts[name] = (query.site, part)
    return placeable(found, name_all(parts))


def bytes_of(found: Placeable, query: str, streams: str) -> float:
    """Bytes per second of some of a query's streams, joined."""
    problem = found.problem
    chosen = next(one for one in problem.queries if one.id == query)
    return found.scale * data_rate(problem, wanted(problem, chosen), streams.split())


def of(tmp_path: Path, queries: Mapping[str, str]) -> Placeable:
    return made(project(tmp_path, {name: ("south", sql) for name, sql in queries.items()}))


def test_one_and_two_streams_are_exact(tmp_path: Path) -> None:
    sql = (
        "SELECT a.v, b.s, c.v AS w FROM a [RANGE 30 SECONDS] AS a JOIN b [RANGE 20 SECONDS] AS b ON a.k = b.k"
    )
    sql += " JOIN c [RANGE 40 SECONDS] AS c ON b.m = c.m WHERE b.k = 3"
    found = of(tmp_path, {"q": sql})
    # Of a: ts, k, v; of b: ts, k, m, s, and every fifth of 20 rows; of c: ts, m, v.
    a, b, c = 8 + 4 + 8, 8 + 4 + 4 + 20, 8 + 4 + 8
    assert bytes_of(found, "q", "a") == pytest.approx(10 * a)
    assert bytes_of(found, "q", "b") == pytest.approx(20 / 5 * b)
    assert bytes_of(found, "q", "c") == pytest.approx(30 * c)
    assert bytes_of(found, "q", "a b") == pytest.approx(10 * 4 * 50 / 5 * (a + b), rel=1e-6)
    assert bytes_of(found, "q", "b c") == pytest.approx(4 * 30 * 60 / 20 * (b + c), rel=1e-6)
    assert bytes_of(found, "q", "a c") == pytest.approx(10 * 30 * 70 * (a + c), rel=1e-6), "no key: all pairs"


def test_a_pair_bounded_only_through_a_third_has_no_factor_of_time(tmp_path: Path) -> None:
    between = "{y}.ts BETWEEN {x}.ts AND {x}.ts + INTERVAL {n} SECONDS"
    sql = (
        f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {between.format(x='a', y='b', n=20)}"
        f" JOIN c ON b.m = c.m AND {between.format(x='b', y='c', n=5)}"
    )
    found = of(tmp_path, {"q": sql})
    rows = 10 * 20 * 30 * (20 / 5) * (5 / 20)
    width = (8 + 4 + 8) + (8 + 4 + 4) + (8 + 4)
    # The width of three is nearly exact, since these streams are alike when they are whole.
    assert bytes_of(found, "q", "a b c") == pytest.approx(rows * width, rel=1e-4)


@pytest.mark.parametrize(("streams", "low"), [(2, 0.0), (3, 0.0), (4, 0.16)])
def test_alike_windows_against_a_simulation(tmp_path: Path, streams: int, low: float) -> None:
    """How many rows a join gives, counted on random instants, against what the factors say."""
    names = "abcd"[:streams]
    tables = [f"{name} [RANGE 2 SECONDS] AS {name}" for name in names]
    sql = f"SELECT {', '.join(f'{n}.ts AS t{n}' for n in names)} FROM {' JOIN '.join(tables)}"
    found = of(tmp_path, {"q": sql})
    rng, seconds = np.random.default_rng(3), 20_000.0
    rates = [0.3, 0.4, 0.5, 0.6][:streams]
    times = [np.sort(rng.uniform(0, seconds, int(rate * seconds))) for rate in rates]
    counted = _count(times, 2.0) / seconds
    # Only times are read: 8 of the bytes of each.
    declared = [10.0, 20.0, 30.0, 40.0][:streams]
    ratio = float(np.prod(np.array(rates) / np.array(declared)))
    said = bytes_of(found, "q", " ".join(names)) * ratio / (8 * streams)
    # Rows and widths are each too low by this much.
    assert said == pytest.approx(counted * (1 - low) ** 2, rel=0.05)


def _count(times: list[np.ndarray], length: float) -> float:
    """Sets of one instant of each, all within `length` of each other."""
    count = 0.0
    for first, moments in enumerate(times):
        for moment in moments:
            product = 1.0
            for other, theirs in enumerate(times):
                if other == first:
                    continue
                # The instant is the earliest of its set, so all others follow it within the length.
                low, high = np.searchsorted(theirs, [moment, moment + length])
                product *= float(high - low)
            count += product
    return count


def test_filters_within_each_other(tmp_path: Path) -> None:
    join = "FROM a [RANGE 30 SECONDS] AS a JOIN b [RANGE 20 SECONDS] AS b ON a.k = b.k"
    found = of(
        tmp_path,
        {
            "weak": f"SELECT a.v {join} WHERE a.k = 1",
            "strong": f"SELECT a.v {join} WHERE a.m > 4 AND a.k = 1",
            "same": f"SELECT a.v {join} WHERE a.k = 1 AND a.m > 4",
            "other": f"SELECT a.v {join} WHERE a.m > 4",
            "none": f"SELECT a.v {join}",
        },
    )
    filters = {query.id: query.filters.get("a") for query in found.problem.queries}
    assert filters["strong"] == filters["same"] and filters["none"] is None
    strong, weak, other = (found.problem.filters[str(filters[q])] for q in ("strong", "weak", "other"))
    assert strong.within == {weak.name, other.name}
    assert not weak.within and not other.within
    assert [weak.selectivity, other.selectivity] == pytest.approx([1 / 5, 1 / 3])
    assert strong.selectivity == pytest.approx(1 / 15)


def test_static_tables_are_joined_at_the_stream(tmp_path: Path) -> None:
    sql = (
        "SELECT r.name, b.v FROM a [RANGE 30 SECONDS] AS a JOIN rooms AS r ON a.k = r.k"
        " JOIN b [RANGE 9 SECONDS] AS b ON a.m = b.m WHERE r.name = 'one'"
    )
    found = of(tmp_path, {"q": sql})
    assert found.problem.queries[0].streams == ("a+rooms", "b")
    stream = found.problem.streams["a+rooms"]
    assert found.problem.network.sites[stream.site] == "west"


def test_sites_and_links_of_the_project(tmp_path: Path) -> None:
    found = project(tmp_path, {})
    network = network_of(found)
    assert set(network.sites) == {"west", "north", "east", "mid", "south"}, "an undeclared local is no site"
    links = {frozenset((network.sites[a], network.sites[b])): cost for a, b, cost in network.links}
    assert links == {
        frozenset((x, y)): pytest.approx(float(latency.removesuffix("ms")) / 1000) for x, y, latency in LINKS
    }
