"""Cut projects: evaluated job by job they answer as the whole queries do; what is made once, and where."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan, behind
from headrace.plan.logical import IntervalJoin, nodes, streams_of
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.service.binding import plan_query
from headrace.service.cutting import cut, spread
from headrace.service.placing import place_joins
from headrace.service.weaving import place
from tests.unit.service.network_sample import LINKS, placing, project, rows, whole
from tests.unit.service.random_joins import random_queries

PAIR = "FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 20 SECONDS"


def _homes(found: Project) -> dict[str, str]:
    return {name: stream.site for name, stream in found.streams.items()}


def _cut(found: Project, planner: str = "exact", *, relays: bool = False) -> ChannelPlan:
    everything = whole(found)
    placed = place_joins(found, everything, planner)
    network = placed.network if placed is not None else None
    names = {query.query for query in network.queries} if network else set()
    others = [job for job in everything.jobs if job.query not in names]
    return cut(network, others, _homes(found), relays=relays)


def _answers(plan: ChannelPlan, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The reference, job by job: what a job writes is a table for those that read it."""
    known, answers = dict(tables), {}
    for job in plan.jobs:
        given = evaluate(job.plan, known)
        if job.writes is not None:
            known[job.writes] = given
        else:
            answers[job.query or ""] = given
    return answers


@pytest.mark.parametrize("seed", range(4))
def test_jobs_together_answer_as_whole_queries(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    found = project(tmp_path, random_queries(rng, 5))
    plan = _cut(found, "exact" if seed % 2 else "plan-then-deploy", relays=seed % 3 == 0)
    tables = rows(seed, 50)
    answers = _answers(plan, tables)
    assert {job.query for job in plan.jobs} >= set(answers)
    for name, given in answers.items():
        wanted = evaluate(plan_query(found, found.queries[name]).plan, tables)
        difference = multiset_difference(wanted, given)
        assert not difference, f"{name}: {difference.text()}"
    for job in plan.jobs:
        mine = {s for s in streams_of(job.plan) if s in found.streams}
        assert all(found.streams[name].site == job.site for name in mine), "base streams are read at home"
        if job.writes is not None:
            assert set(behind(job.plan)) == set(job.plan.times)


def test_a_join_with_several_readers_is_made_once(tmp_path: Path) -> None:
    queries = {
        "wide": ("south", f"SELECT a.ts, a.v, b.s {PAIR}"),
        "narrow": ("south", f"SELECT a.ts, b.m {PAIR} WHERE a.s = 'x'"),
        "counted": (
            "south",
            f"SELECT window.start, count(*) AS n {PAIR}\nGROUP BY window(a.ts, '30 seconds', '30 seconds')",
        ),
    }
    plan = _cut(project(tmp_path, queries))
    joins = [job for job in plan.jobs if any(isinstance(node, IntervalJoin) for node in nodes(job.plan))]
    assert len(joins) == 1
    (stream,) = [one for one in plan.streams if one.id == joins[0].writes]
    assert {job.id for job in plan.readers(stream.id)} == set(queries)
    assert set(stream.plan.times) == {"a/ts", "b/ts"}, "all event times travel"
    needed = {"a/ts", "b/ts", "a/v", "b/s", "b/m", "a/s"}
    assert needed <= set(stream.plan.schema.names)
    assert stream.never_late


def test_a_window_query_is_fed_by_a_remote_filter(tmp_path: Path) -> None:
    sql = "SELECT window.start, count(*) AS n FROM a WHERE s = 'x'"
    sql += "\nGROUP BY window(ts, '30 seconds', '10 seconds')"
    near = sql.replace("'x'", "'y'")
    found = project(tmp_path, {"far": ("south", sql), "also": ("mid", sql), "near": ("west", near)})
    plan = cut(None, whole(found).jobs, _homes(found))
    assert [(job.site, job.query) for job in plan.jobs] == [("west", None), ("south", "far"), ("mid", "also")]
    maker, reader, _ = plan.jobs
    assert evaluate(maker.plan, rows(3)).num_rows < 60, "the filter is done where the stream is"
    assert reader.reads == (maker.writes,)
    assert not plan.streams[0].never_late, "rows of a filtered stream can still be late"
    assert behind(maker.plan) == {"ts": 0}


def test_a_tree_is_fed_by_a_remote_filter(tmp_path: Path) -> None:
    sql = "SELECT window.start, k, count(*) AS n FROM a WHERE s = 'x'{}"
    sql += "\nGROUP BY window(ts, '{} seconds', '10 seconds'), k"
    queries = {"one": ("south", sql.format("", 30)), "two": ("south", sql.format(" AND m > 3", 20))}
    found = project(tmp_path, queries)
    trees = place(found, list(queries)).trees
    plan = cut(None, (), _homes(found), trees=trees)
    (tree,), (maker,) = plan.trees, plan.jobs
    assert maker.site == "west" and tree.site == "south"
    assert plan.readers(maker.writes or "") == (tree,)
    assert "a" not in streams_of(tree.shape.rows) and tree.fingerprint != trees[0].fingerprint
    tables = rows(4)
    sent = evaluate(maker.plan, tables)
    assert sent.num_rows < tables["a"].num_rows
    for member in tree.members:
        wanted = evaluate(plan_query(found, found.queries[member.query]).plan, tables)
        given = evaluate(member.plan, {maker.writes or "": sent})
        assert wanted.num_rows and not multiset_difference(wanted, given), member.query
    assert not cut(None, (), {"a": "south"}, trees=trees).trees, (
        "a tree that reads no other site stays as it is"
    )


def test_readers_that_want_much_less_get_their_own(tmp_path: Path) -> None:
    queries = {
        "all": ("south", f"SELECT a.ts, a.v, a.s, b.s AS bs {PAIR}"),
        "few": ("mid", f"SELECT a.ts {PAIR} WHERE a.s = 'x' AND a.m = 3 AND b.m = 4 AND b.s = 'y'"),
    }
    found = project(tmp_path, queries, homes={"a": "west", "b": "west"}, links=LINKS[:1] + LINKS[3:])
    network = placing(found).network
    plan = cut(network)
    tables = rows(5)
    by_site = {name: plan.job(name).reads for name in queries}
    assert not set(by_site["all"]) & set(by_site["few"])
    for name, given in _answers(plan, tables).items():
        wanted = evaluate(plan_query(found, found.queries[name]).plan, tables)
        assert not multiset_difference(wanted, given), name


def test_a_relay_passes_a_stream_on_once(tmp_path: Path) -> None:
    queries = {
        "one": ("south", f"SELECT a.ts, b.s {PAIR}"),
        "two": (
            "east",
            "SELECT a.ts, c.v FROM a JOIN c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS",
        ),
    }
    found = project(tmp_path, queries)
    direct, passed = _cut(found), _cut(found, relays=True)
    relays = [job for job in passed.jobs if job.id.startswith("relay-")]
    assert relays and len(passed.jobs) == len(direct.jobs) + len(relays)
    assert len({(job.site, passed.stream(job.writes or "").plan) for job in relays}) == len(relays)
    for job in relays:
        assert job.plan == passed.stream(job.reads[0]).scan()


def test_what_is_spread_and_what_runs_as_it_is(tmp_path: Path) -> None:
    count = "SELECT window.start, count(*) AS n FROM a\nGROUP BY window(ts, '30 seconds', '10 seconds')"
    queries = {
        "joined": ("south", f"SELECT a.ts, b.s {PAIR}"),
        "far": ("south", count),
        "near": ("west", count),
        "rows": ("north", "SELECT ts, v FROM b WHERE m > 3"),
    }
    found = project(tmp_path, queries)
    channels = spread(found, place(found, list(queries)))
    assert {job.query for job in channels.jobs if job.query} == {"joined"}
    assert [m.query for tree in channels.trees for m in tree.members] == ["far"]
    assert all(len(job.reads) > 0 for job in channels.jobs if job.query), "the others run as they are"
    tables = rows(2)
    (given,) = _answers(channels, tables).values()
    assert not multiset_difference(evaluate(plan_query(found, found.queries["joined"]).plan, tables), given)


def test_ids_that_are_taken_are_not_given_again(tmp_path: Path) -> None:
    queries = {"joined": ("south", f"SELECT a.ts, b.s {PAIR}"), "far": ("south", "SELECT ts, v FROM a")}
    found = project(tmp_path, queries)
    placed = place(found, list(queries))
    first = spread(found, placed)
    taken = {job.id for job in first.makers} | {stream.id for stream in first.streams}
    second = spread(found, placed, taken)
    assert not taken & ({job.id for job in second.makers} | {stream.id for stream in second.streams})
    assert [job.site for job in second.jobs] == [job.site for job in first.jobs]
    tables = rows(5)
    assert all(
        not multiset_difference(one, other)
        for one, other in zip(
            _answers(first, tables).values(), _answers(second, tables).values(), strict=True
        )
    )


def test_the_same_again(tmp_path: Path) -> None:
    found = project(tmp_path, random_queries(random.Random(99), 4))
    assert _cut(found) == _cut(found)
