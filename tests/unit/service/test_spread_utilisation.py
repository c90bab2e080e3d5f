"""What sites and links carry of queries that are spread: sums done by hand, for jobs as they are cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan
from headrace.plan.placed import PlacedPlan
from headrace.service.channel_rates import bytes_per_second, rows_per_second
from headrace.service.cutting import cut, spread
from headrace.service.foreseeing import foreseen
from headrace.service.placing import place_joins
from headrace.service.planning import plan_project, plan_query
from headrace.service.predict import lines, predicted
from headrace.service.utilisation import Use, head_line, uses_of
from tests.unit.service.capacity_sample import priced
from tests.unit.service.spread_sample import OF_A, OF_B, OF_JOIN, PAIR, write

ONE = {"pair": ("south", PAIR)}


def jobs(project: Project) -> PlacedPlan:
    return PlacedPlan(tuple(plan_query(project, query) for query in project.queries.values()))


def uses(project: Project, channels: ChannelPlan | None = None) -> dict[tuple[str, str], Use]:
    placed = jobs(project)
    channels = spread(project, placed) if channels is None else channels
    return {use.key: use for use in uses_of(project, placed, channels)}


def carried(found: dict[tuple[str, str], Use]) -> dict[tuple[str, str], float]:
    return {key: use.used for key, use in found.items() if key[0] not in ("cpu", "memory") and use.used}


def of(placed: dict[tuple[str, str], float]) -> object:
    # Bounds are closed to the microsecond: 2.000001 seconds.
    return pytest.approx(placed, rel=1e-5)


def test_every_stream_from_where_it_is_made_to_who_reads_it(tmp_path: Path) -> None:
    project = write(tmp_path, ONE)
    (join,) = [job for job in spread(project, jobs(project)).makers if job.joins]
    assert join.site == "mid"
    assert carried(uses(project)) == of(
        {
            ("out", "west"): OF_A,
            ("out", "east"): OF_B,
            ("in", "mid"): OF_A + OF_B,
            ("out", "mid"): OF_JOIN,
            ("in", "south"): OF_JOIN,
            ("link", "west > mid"): OF_A,
            ("link", "east > mid"): OF_B,
            ("link", "mid > south"): OF_JOIN,
        }
    )


def test_cores_of_senders_joins_and_readers(tmp_path: Path) -> None:
    """0.001 core a row: each job pays what it reads, at the prices of its own site."""
    project = write(tmp_path, ONE)
    for site in ("west", "east", "mid", "south"):
        priced(project, site, plain_row=2e-3 if site == "mid" else 1e-3, engine_memory=1e6)
    found = uses(project)
    cores = {site: found["cpu", site].used for site in project.sites if ("cpu", site) in found}
    assert cores == pytest.approx({"west": 0.1, "east": 0.05, "mid": 0.3, "south": 0.01}, rel=1e-5)
    assert {site: found["memory", site].used for site in cores} == dict.fromkeys(cores, 1e6)
    (end,) = found["cpu", "south"].jobs
    assert end == "pair"


def test_batches_of_every_job_count_with_a_trigger(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, more="planner: {spread: true, trigger: 2 seconds}\n")
    for site in ("west", "east", "mid", "south"):
        priced(project, site, plain_batch=0.4)
    found = uses(project)
    assert {s: found["cpu", s].used for s in ("west", "east", "mid", "south")} == pytest.approx(
        dict.fromkeys(("west", "east", "mid", "south"), 0.2)
    )


def test_a_join_is_counted_once_for_all_its_readers(tmp_path: Path) -> None:
    """Whole, each query would bring both streams; the join makes one stream, which each of them reads."""
    two = {"pair": ("south", PAIR), "again": ("south", PAIR)}
    project = write(tmp_path, two)
    priced(project, "mid", plain_row=1e-3)
    found = uses(project)
    assert found["cpu", "mid"].used == pytest.approx(0.15)
    assert carried(found)["in", "mid"] == pytest.approx(OF_A + OF_B)
    assert carried(found)["out", "mid"] == pytest.approx(2 * OF_JOIN, rel=1e-5)
    assert found["link", "mid > south"].jobs == pytest.approx({"pair": OF_JOIN, "again": OF_JOIN}, rel=1e-5)
    whole = {use.key: use.used for use in uses_of(project, jobs(project))}
    assert whole["in", "south"] == 2 * (OF_A + OF_B)


def test_a_relay_pays_both_ways_and_once_for_all_behind_it(tmp_path: Path) -> None:
    """west - mid - far - south: with relays the join's stream passes mid and far once, for two readers."""
    line = {("west", "mid"): "latency: 10ms", ("mid", "far"): "latency: 10ms", ("far", "south"): ""}
    two = {"pair": ("south", PAIR), "again": ("south", PAIR)}
    project = write(tmp_path, two, links=line, homes={"a": "west", "b": "west"})
    priced(project, "mid", plain_row=1e-3)
    placed = jobs(project)
    placing = place_joins(project, placed)
    assert placing is not None
    direct = carried(uses(project, cut(placing.network)))
    for a, b in (("west", "mid"), ("mid", "far"), ("far", "south")):
        assert direct["link", f"{a} > {b}"] == pytest.approx(2 * OF_JOIN, rel=1e-5)
    relayed = uses(project, cut(placing.network, relays=True))
    assert carried(relayed) == of(
        {
            ("out", "west"): OF_JOIN,
            ("in", "mid"): OF_JOIN,
            ("out", "mid"): OF_JOIN,
            ("in", "far"): OF_JOIN,
            ("out", "far"): 2 * OF_JOIN,
            ("in", "south"): 2 * OF_JOIN,
            ("link", "west > mid"): OF_JOIN,
            ("link", "mid > far"): OF_JOIN,
            ("link", "far > south"): 2 * OF_JOIN,
        }
    )
    assert relayed["cpu", "mid"].used == pytest.approx(0.01, rel=1e-5), "it reads what it passes on"


def test_a_filter_is_cut_where_the_stream_comes_from(tmp_path: Path) -> None:
    """One in 1,000 keys of `a`, and of `b` all: 0.1 rows a second of 12 bytes leave west."""
    project = write(tmp_path, {"few": ("south", f"{PAIR} WHERE a.k = 7")})
    found = carried(uses(project))
    assert found["out", "west"] == pytest.approx(0.1 * 12)


def test_a_tree_is_fed_by_what_was_cut(tmp_path: Path) -> None:
    sql = "SELECT k, count(*) AS n FROM a [RANGE 60 SECONDS SLIDE 10 SECONDS] WHERE k = 7 GROUP BY k"
    project = write(tmp_path, {"counted": ("south", sql)})
    placed = plan_project(project)
    (tree,) = placed.trees
    channels = spread(project, placed)
    (stream,) = channels.streams
    assert bytes_per_second(project, stream.plan) == pytest.approx(0.1 * sum((8, 4, 8)))
    data = foreseen(project)["utilisation"]
    assert {f"{one['source']} > {one['target']}": one["used"] for one in data["links"]} == pytest.approx(
        {"west > mid": 2.0, "mid > south": 2.0}
    )
    whole = predicted(project, placed)["jobs"][0]
    (fed, sender) = predicted(project, placed, channels)["jobs"]
    assert fed == whole and (sender["site"], sender["queries"]) == ("west", [])
    assert tree.id == fed["job"]


def test_rows_of_three_streams_are_those_of_the_placement(tmp_path: Path) -> None:
    """Three alike bounds: rows are exact then. n * R^(n-1) for windows of R seconds that all overlap, for two
    sided bounds of 2 seconds, over the keys of two equalities."""
    homes = {"a": "west", "b": "east", "c": "mid"}
    sql = (
        "SELECT a.ts, b.v, c.v FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS], c [RANGE 2 SECONDS] "
        "WHERE a.k = b.k AND b.k = c.k"
    ).replace("c.v", "c.v AS w")
    project = write(tmp_path, {"three": ("south", sql)}, homes=homes)
    plan = plan_query(project, project.queries["three"]).plan
    exact = 100 * 50 * 20 * 3 * 2.0**2 / 1000**2
    assert rows_per_second(project, plan) == pytest.approx(exact, rel=1e-3)


def test_conditions_above_the_joins_let_their_share_pass(tmp_path: Path) -> None:
    """Two readers want different keys: their stream carries the rows that either wants, 2 in 1,000; and where
    all rows are joined for another one, a stream of its own for one key carries 1 in 1,000."""
    queries = {"one": ("south", f"{PAIR} WHERE a.k = 1"), "two": ("south", f"{PAIR} WHERE a.k = 2")}
    project = write(tmp_path, queries, homes={"a": "west", "b": "west"})
    (made,) = spread(project, jobs(project)).streams
    assert rows_per_second(project, made.plan) == pytest.approx(10 * 2 / 1000, rel=1e-2)
    queries = {"one": ("south", f"{PAIR} WHERE a.k = 1"), "all": ("south", PAIR)}
    project = write(tmp_path, queries, homes={"a": "west", "b": "west"})
    found = sorted(rows_per_second(project, stream.plan) for stream in spread(project, jobs(project)).streams)
    assert found == pytest.approx([10 / 1000, 10], rel=1e-2)


def test_without_spread_nothing_changes(tmp_path: Path) -> None:
    whole = write(tmp_path, ONE, more="")
    data = foreseen(whole)["utilisation"]
    assert not data["spread"] and head_line(data).startswith("utilisation, with every query whole")
    south = next(one for one in data["sites"] if one["site"] == "south")
    assert south["bytes_in"]["used"] == OF_A + OF_B


def test_in_words(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, west="bandwidth: 100")
    found = foreseen(project)
    assert (
        head_line(found["utilisation"]) == "utilisation, with jobs as they are spread over sites: 1 over 100%"
    )
    told = [line.strip() for line in lines(found["predicted"])]
    assert sum(line.endswith("makes a stream for others") for line in told) == 3
    assert any(line.startswith("pair:") and line.endswith("1 query") for line in told)
