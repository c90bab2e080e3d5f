"""Queries that do not fit where their joins are cheapest: placed elsewhere by admission, or refused.

Loads are counted here from the deployed jobs and channels alone: rows and bytes of the sample by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

from headrace.catalog.model import Project, Query
from headrace.errors import UserError
from headrace.plan.channels import ChannelPlan
from headrace.plan.logical import IntervalJoin, nodes, streams_of
from headrace.planners.admission.check import violations
from headrace.planners.admission.problem import Options, operators_of
from headrace.planners.admission.solve import solve
from headrace.service.admission import ask
from headrace.service.admitting import spread_from_nothing
from headrace.service.admitting_flows import flows_of_plan
from headrace.service.admitting_problem import admission_problem, anchor
from headrace.service.changes import NewQuery, add_query
from headrace.service.cutting import spread
from headrace.service.foreseeing import foreseen
from headrace.service.placing import joins_of
from headrace.service.planning import plan_project
from headrace.service.run import Options as RunOptions
from headrace.service.spread_data import spread_data, spread_lines
from headrace.service.utilisation import Key
from tests.unit.service.capacity_sample import priced
from tests.unit.service.spread_sample import OF_A, OF_B, OF_JOIN, PAIR, STAR, write
from tests.unit.service.spread_world import World

ONE = {"pair": ("south", PAIR)}
SITES = ("west", "east", "mid", "south")
TRIANGLE = {
    ("west", "south"): "latency: 1ms, bandwidth: 500",
    ("west", "mid"): "latency: 10ms",
    ("mid", "south"): "latency: 10ms",
}
AT_ENDS = {"a": "west", "b": "south"}
ROW = 1e-3


def rows(project: Project) -> None:
    """0.001 core a row, at every site."""
    for site in project.sites:
        priced(project, site, plain_row=ROW)


def small_mid(folder: Path, queries: dict[str, tuple[str, str]] | None = None) -> Project:
    """The join needs 0.15 cores."""
    project = write(folder, ONE if queries is None else queries, mid="cpu: 0.1")
    rows(project)
    return project


def joins(plan: ChannelPlan) -> dict[str, str]:
    """Where joins are made: job -> site."""
    return {
        job.id: job.site
        for job in plan.jobs
        if any(isinstance(node, IntervalJoin) for node in nodes(job.plan))
    }


def loads(project: Project, plan: ChannelPlan) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Cores of sites and bytes of hops, by the figures of the sample and networkx."""
    amount = {"a": (100.0, OF_A), "b": (50.0, OF_B)}
    for stream in plan.streams:
        base = set(streams_of(stream.plan))
        amount[stream.id] = (10.0, OF_JOIN) if len(base) == 2 else amount[base.pop()]
    graph = nx.Graph()
    for link in project.links:
        graph.add_edge(*link.between, ms=link.latency)
    cores: dict[str, float] = {}
    hops: dict[tuple[str, str], float] = {}
    made = {stream.id: stream.site for stream in plan.streams}
    for job in plan.jobs:
        for name in streams_of(job.plan):
            cores[job.site] = cores.get(job.site, 0.0) + amount[name][0] * ROW
            source = made.get(name) or project.streams[name].site
            for hop in pairwise(nx.shortest_path(graph, source, job.site, weight="ms")):
                hops[hop] = hops.get(hop, 0.0) + amount[name][1]
    return cores, hops


def test_what_fits_is_where_it_is_cheapest(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, mid="cpu: 0.2")
    rows(project)
    placed = plan_project(project)
    found = spread_from_nothing(project, placed)
    assert found.plan == spread(project, placed) and (found.notes, found.no_room) == ((), "")


def test_too_much_for_the_cheapest_site_goes_to_another(tmp_path: Path) -> None:
    project = small_mid(tmp_path)
    placed = plan_project(project)
    cheapest = spread(project, placed)
    assert set(joins(cheapest).values()) == {"mid"} and loads(project, cheapest)[0]["mid"] > 0.1
    found = spread_from_nothing(project, placed)
    assert "mid" not in joins(found.plan).values()
    (note,) = found.notes
    assert note.startswith(
        "pair does not fit where its joins are cheapest (mid would need 0.15 cores and has 0.1 cores): "
        "admission has placed them at "
    )
    cores, _ = loads(project, found.plan)
    assert cores.get("mid", 0.0) <= 0.1 and all(cores.get(site, 0.0) <= 2 for site in SITES)
    again = spread_from_nothing(project, placed)
    assert again == found, "nothing depends on chance"


def test_plan_shows_what_would_run(tmp_path: Path) -> None:
    project = small_mid(tmp_path)
    found = foreseen(project)["utilisation"]
    assert not any(one["cpu"]["over"] for one in found["sites"])
    text = spread_lines(spread_data(project, plan_project(project)))
    assert text[-1].strip().startswith("pair does not fit where its joins are cheapest")


def test_a_full_link_is_passed_by_with_a_relay(tmp_path: Path) -> None:
    """`a` over the direct link is 1,200 B/s of 500; mid has room to pass it on, and none to join."""
    project = write(tmp_path, ONE, links=TRIANGLE, homes=AT_ENDS, mid="cpu: 0.11", west="cpu: 0.12")
    rows(project)
    found = spread_from_nothing(project, plan_project(project))
    assert found.notes, found.no_room
    assert found.notes[0].endswith("admission has placed them at south; what they read is passed on by mid")
    (relay,) = [job for job in found.plan.jobs if job.id.startswith("relay-")]
    assert relay.site == "mid" and set(joins(found.plan).values()) == {"south"}
    cores, hops = loads(project, found.plan)
    assert hops == pytest.approx({("west", "mid"): OF_A, ("mid", "south"): OF_A})
    assert cores == pytest.approx({"west": 0.1, "mid": 0.1, "south": 0.15})


def test_only_who_is_placed_elsewhere_is_told_of(tmp_path: Path) -> None:
    """`near` joins at west whatever comes; mid is too small for `pair`."""
    own = "SELECT a.ts, c.v FROM a JOIN c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS"
    homes = {"a": "west", "b": "east", "c": "west"}
    queries = {"near": ("mid", own), "pair": ("south", PAIR)}
    project = write(tmp_path, queries, homes=homes, mid="cpu: 0.1")
    rows(project)
    found = spread_from_nothing(project, plan_project(project))
    assert [note.partition(" ")[0] for note in found.notes] == ["pair"], (found.notes, found.no_room)


def test_a_query_whose_streams_are_among_those_of_another(tmp_path: Path) -> None:
    """At one site: the larger one is not made of the answer of the smaller one."""
    three = f"{PAIR} JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 2 SECONDS"
    homes = {"a": "west", "b": "east", "c": "mid"}
    queries = {"pair": ("south", PAIR), "three": ("south", three)}
    project = write(tmp_path, queries, homes=homes, mid="cpu: 0.1")
    rows(project)
    placed = plan_project(project)
    found = joins_of(project, placed)
    assert found is not None
    problem = admission_problem(project, found, {("cpu", "mid"): 0.1})
    assert len({name for name in problem.streams if name.startswith("@")}) == 2
    for streams in (query.streams for query in problem.queries):
        last = [one for one in operators_of(problem, streams) if one.output == streams]
        assert [sum(name.startswith("@") for name in (*one.left, *one.right)) for one in last] == [1]
    fitted = spread_from_nothing(project, placed)
    assert fitted.notes and fitted.plan.ends == {"pair", "three"}


def test_a_query_that_is_added_is_placed_where_it_fits(tmp_path: Path) -> None:
    project = small_mid(tmp_path, {})
    told: list[str] = []
    assert ask(project, Query(name="pair", sql=PAIR, site="south"), note=told.append) == []
    (note,) = told
    assert "admission has placed them at" in note


def test_refused_with_what_binds_and_what_would_have_to_be_freed(tmp_path: Path) -> None:
    project = write(tmp_path, {}, each="cpu: 0.1")
    rows(project)
    with pytest.raises(UserError) as raised:
        ask(project, Query(name="pair", sql=PAIR, site="south"))
    error = raised.value
    assert error.message == 'query "pair" does not fit: mid would need 0.15 cores and has 0.1 cores'
    assert "0.05 cores would have to be freed" in error.detail
    assert error.detail.splitlines()[-1] == (
        "no other placement of the joins fits either; pair: binding: cpu of host south (0.05 missing) "
        "(cores, bytes per second)"
    )


def test_a_link_that_binds_is_named_without_anchors(tmp_path: Path) -> None:
    narrow = {ends: f"{body}, bandwidth: 100" for ends, body in STAR.items()}
    project = write(tmp_path, {}, links=narrow)
    with pytest.raises(UserError) as raised:
        ask(project, Query(name="pair", sql=PAIR, site="south"))
    told = raised.value.detail.splitlines()[-1]
    assert told.startswith("no other placement of the joins fits either; pair: binding: no link has room")
    assert "@" not in told and "the parts of a*b together" in told


def test_what_stands_already_is_used_capacity(tmp_path: Path) -> None:
    """The first query takes mid; the second finds it full, and west has room for the join."""
    project = write(tmp_path, ONE, mid="cpu: 0.2", east="cpu: 0.06", south="cpu: 0.05")
    rows(project)
    told: list[str] = []
    other = Query(name="other", sql=PAIR.replace("b.v", "b.v * 2 AS w"), site="south")
    assert ask(project, other, note=told.append) == []
    assert told == [], "planned together they share the join"


def test_a_batch_costs_too_and_the_planner_does_not_know(tmp_path: Path) -> None:
    """With a trigger every job costs 0.1 cores for its batches. mid is too small for the join; west has the
    0.15 for its rows and 0.1 for its batches only just."""
    project = write(
        tmp_path,
        ONE,
        more="planner: {spread: true, trigger: 1 second}\n",
        mid="cpu: 0.2",
        west="cpu: 0.24",
        east="cpu: 0.24",
        south="cpu: 2",
    )
    for site in SITES:
        priced(project, site, plain_row=ROW, plain_batch=0.1)
    found = spread_from_nothing(project, plan_project(project))
    assert found.notes, found.no_room
    cores, _ = loads(project, found.plan)
    for job in found.plan.jobs:
        cores[job.site] = cores.get(job.site, 0.0) + 0.1
    limits = {site: project.sites[site].cpu for site in SITES}
    assert all(cores.get(site, 0.0) <= limits[site] * (1 + 1e-9) for site in SITES), cores


def test_a_site_without_room_for_spark_itself_gets_nothing(tmp_path: Path) -> None:
    project = write(tmp_path, ONE, mid="memory: 100m")
    for site in SITES:
        priced(project, site, plain_row=ROW, engine_memory=float(200 << 20))
    found = spread_from_nothing(project, plan_project(project))
    assert found.notes, found.no_room
    assert "mid" not in {job.site for job in found.plan.jobs}


def test_the_problem_by_hand(tmp_path: Path) -> None:
    project = small_mid(tmp_path)
    found = joins_of(project, plan_project(project))
    assert found is not None
    left: dict[Key, float] = {("cpu", "mid"): 0.1, ("out", "west"): 5000.0, ("link", "west > mid"): 2000.0}
    problem = admission_problem(project, found, left)
    at = {str(host.id): number for number, host in enumerate(problem.hosts)}
    assert list(at) == [*map(str, found.problem.network.sites)]
    assert {name: base.rate for name, base in problem.streams.items() if name in "ab"} == pytest.approx(
        {"a": OF_A, "b": OF_B}
    )
    assert problem.rates[frozenset("ab")] == pytest.approx(OF_JOIN, rel=1e-5)
    assert problem.operator_cost == pytest.approx(ROW * 150 / (OF_A + OF_B))
    assert problem.hosts[at["mid"]].cpu == pytest.approx(0.1)
    assert problem.hosts[at["west"]].cpu == float("inf") and problem.hosts[
        at["west"]
    ].outgoing == pytest.approx(5000.0, rel=1e-3)
    assert problem.link(at["west"], at["mid"]) == 2000.0
    assert problem.link(at["west"], at["south"]) == 0.0, "no link leads there"
    name = anchor("south", "ab")
    anchored = problem.streams[name]
    assert anchored.host == at["south"] and problem.queries[0].streams == {"a", "b", name}
    widest = max(problem.link(x, y) for x in range(len(at)) for y in range(len(at)))
    assert anchored.rate > widest, "it cannot leave its site"


def test_the_planner_joins_at_no_site_that_is_full_and_ends_at_the_sink(tmp_path: Path) -> None:
    project = small_mid(tmp_path)
    found = joins_of(project, plan_project(project))
    assert found is not None
    problem = admission_problem(project, found, {("cpu", "mid"): 0.1})
    answer = solve(problem, "headrace", Options(), lambda: 0.0)
    assert answer.admitted == 1 and violations(problem, answer.plan, ["pair"]) == []
    admitted = flows_of_plan(found.problem, problem, answer.plan)
    sites = [str(site) for site in found.problem.network.sites]
    (join,) = admitted.flows.operators.values()
    assert sites[join.site] != "mid"
    result = admitted.flows.results["pair"]
    assert sites[result.target] == "south" and admitted.route(result)[0] == join.site
    for edge in admitted.flows.edges:
        for a, b in pairwise(admitted.route(edge)):
            assert frozenset((sites[a], sites[b])) in {frozenset(link) for link in STAR}


def test_a_run_deploys_what_add_has_promised(tmp_path: Path) -> None:
    """On the fake engine: the joins of what is deployed are where the command said, and every load fits."""
    world = World(tmp_path / "w")
    world.project = small_mid(tmp_path / "w", {})
    told: list[str] = []
    query = Query(name="pair", sql=PAIR, site="south")
    ask(world.project, query, note=told.append)
    promised = told[0].rpartition(" at ")[2].split(", ")
    assert promised != ["mid"]
    world.add("pair", PAIR)
    outcome = world.run(RunOptions(drain=True))
    assert outcome.exit_code == 0 and told[0] in world.notes
    plan = world.plan
    assert set(joins(plan).values()) == set(promised)
    cores, hops = loads(world.project, plan)
    assert cores.get("mid", 0.0) <= 0.1 and sum(cores.values()) > 0 and hops
    assert {job.id for job in plan.jobs} == set(world.started())
    world.check()
    # Deployed, it keeps its place, and is what the next one finds used.
    before = plan
    assert world.run(RunOptions(drain=True)).exit_code == 0
    assert world.plan == before


def test_two_that_are_added_before_a_run_fit_together(tmp_path: Path) -> None:
    """They want other columns of the same join. A third one needs 0.15 cores for a join of its own, beside
    the senders' 0.1 and 0.05, and no site has that left."""
    world = World(tmp_path / "w")
    world.project = write(
        tmp_path / "w", {}, west="cpu: 0.2", east="cpu: 0.15", mid="cpu: 0.1", south="cpu: 0.2"
    )
    rows(world.project)
    for name, sql in (("pair", PAIR), ("other", PAIR.replace("b.v", "b.v, a.v AS w"))):
        add_query(world.root, NewQuery(name, sql, "json", site="south"))
    outcome = world.run(RunOptions(drain=True))
    assert outcome.exit_code == 0 and len(world.plan.ends) == 2
    assert "mid" not in joins(world.plan).values()
    before = world.plan
    with pytest.raises(UserError, match="does not fit"):
        add_query(world.root, NewQuery("third", PAIR, "json", site="south"))
    assert world.run(RunOptions(drain=True)).exit_code == 0 and world.plan == before


def test_room_that_others_have_taken(tmp_path: Path) -> None:
    """A deployed query joins at mid. Another one, with makers of its own, does not fit there any more."""
    world = World(tmp_path / "w")
    world.project = write(tmp_path / "w", {"pair": ("south", PAIR)}, mid="cpu: 0.2")
    rows(world.project)
    assert world.run(RunOptions(drain=True)).exit_code == 0
    assert set(joins(world.plan).values()) == {"mid"}
    told: list[str] = []
    ask(world.project, Query(name="more", sql=PAIR, site="south"), note=told.append)
    assert told and told[0].startswith("more does not fit where its joins are cheapest")
    assert "mid would need 0.3 cores and has 0.2 cores" in told[0]
    world.add("more", PAIR)
    assert world.run(RunOptions(drain=True)).exit_code == 0
    own = world.plan.jobs
    assert sum(site == "mid" for site in joins(world.plan).values()) == 1 and len(own) > 4
    assert loads(world.project, world.plan)[0]["mid"] <= 0.2 * (1 + 1e-9)
