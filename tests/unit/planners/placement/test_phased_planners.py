"""Plan-then-deploy, in-network, relaxation: right costs, none below the optimum, each does what it says."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf, isfinite

import numpy as np
import pytest
from scipy.optimize import minimize

from headrace.errors import NotSupported, UserError
from headrace.planners.placement import network as networks
from headrace.planners.placement.cost_space import embed
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.fixed_order import fix_order
from headrace.planners.placement.in_network import InNetwork, divide
from headrace.planners.placement.join_order import Order, smallest_intermediates
from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.plan_then_deploy import PlanThenDeploy
from headrace.planners.placement.problem import (
    BaseStream,
    Floats,
    Join,
    Leaf,
    Network,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Reused,
    Tree,
    streams_of,
    walk,
)
from headrace.planners.placement.rates import by_subset
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.relaxation import Relaxation, _Springs
from headrace.planners.placement.spread import Spread
from headrace.planners.placement.topologies import grid, paper_network, random_geometric
from headrace.planners.placement.workloads import airline, synthetic
from tests.unit.planners.placement.small_problems import deployments, price, random_problem

Phased = type[PlanThenDeploy] | type[InNetwork] | type[Relaxation]
PLANNERS: tuple[Phased, ...] = (PlanThenDeploy, InNetwork, Relaxation)
QUICK = Options(iterations=200, zones=2)


def run(planner: Phased, problem: PlacementProblem, options: Options = QUICK) -> list[Placed]:
    """All queries in turn; every cost is checked."""
    prepared = prepare(problem.network)
    made, deployed = planner(problem, prepared, options), Deployed(problem, prepared.distance)
    found = []
    for query in problem.queries:
        found.append(made.place(query, deployed))
        deployed.add(query, found[-1].tree)
    total, added = recompute(problem, [(one.query, one.tree) for one in found], prepared.distance)
    assert [one.cost for one in found] == pytest.approx(added) and isfinite(total)
    assert deployed.total_cost() == pytest.approx(total)
    return found


def line(*queries: Query, reuse: bool = True, forbidden: frozenset[int] = frozenset()) -> PlacementProblem:
    """Five sites in a row. a and b at the left, c at the right; the join of a and b is small."""
    network = Network(tuple(range(5)), tuple((i, i + 1, 1.0) for i in range(4)))
    streams = {n: BaseStream(n, site, 10.0) for n, site in (("a", 0), ("b", 1), ("c", 4))}
    pairs = {frozenset("ab"): 0.01, frozenset("bc"): 0.02, frozenset("ac"): 0.05}
    return PlacementProblem(network, streams, pairs, queries, reuse=reuse, forbidden=forbidden)


@pytest.mark.parametrize("seed", range(40))
def test_costs_are_right_and_never_below_all_deployments(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed), sites=4, streams=3)
    prepared = prepare(problem.network)
    for planner in PLANNERS:
        deployed = Deployed(problem, prepared.distance)
        for query, placed in zip(problem.queries, run(planner, problem), strict=True):
            least = min(
                price(problem, query, tree, prepared) for tree in deployments(problem, query, deployed)
            )
            assert placed.cost >= least - 1e-9
            assert not placed.certified
            deployed.add(query, placed.tree)


@pytest.mark.parametrize("seed", range(30))
def test_plan_then_deploy_is_the_best_for_its_order(seed: int) -> None:
    """Of all deployments with this join order, where reuse may stand for a part of it."""
    problem = random_problem(np.random.default_rng(100 + seed), sites=4, streams=4, queries=3)
    prepared = prepare(problem.network)
    planner, deployed = PlanThenDeploy(problem, prepared, QUICK), Deployed(problem, prepared.distance)
    for query in problem.queries:
        parts = _parts(fix_order(problem, query, deployed).order, query)
        trees = [
            t for t in deployments(problem, query, deployed) if {streams_of(n) for n in walk(t)} <= parts
        ]
        placed = planner.place(query, deployed)
        assert {streams_of(node) for node in walk(placed.tree)} <= parts
        assert placed.cost == pytest.approx(min(price(problem, query, tree, prepared) for tree in trees))
        deployed.add(query, placed.tree)


def _parts(order: Order, query: Query) -> set[frozenset[str]]:
    names = frozenset(name for i, name in enumerate(query.streams) if order.mask >> i & 1)
    return {names}.union(*(_parts(part, query) for part in order.parts))


@pytest.mark.parametrize("seed", range(20))
def test_the_order_has_the_least_intermediate_data_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    rates = np.concatenate(([0.0], rng.uniform(0.1, 10, (1 << size) - 1)))
    order, examined = smallest_intermediates(rates)
    found = sum(rates[join.mask] for join in order.joins() if join is not order)
    assert found == pytest.approx(min(_intermediate(frozenset(1 << i for i in range(size)), rates)))
    assert examined == (3**size - 2 ** (size + 1) + 1) // 2


def _intermediate(left: frozenset[int], rates: Floats) -> list[float]:
    """For every way to join two of these, and so on: the data between."""
    if len(left) <= 2:
        return [0.0]
    found: list[float] = []
    for one, two in combinations(sorted(left), 2):
        both = left - {one, two} | {one | two}
        found += [float(rates[one | two]) + rest for rest in _intermediate(both, rates)]
    return found


@pytest.mark.parametrize("planner", PLANNERS)
def test_one_stream_needs_no_join(planner: Phased) -> None:
    (placed,) = run(planner, line(Query("q", ("a",), 3)))
    assert placed.tree == Leaf("a", 0) and placed.cost == pytest.approx(30)


@pytest.mark.parametrize("planner", PLANNERS)
def test_two_queries_alike_share_the_join(planner: Phased) -> None:
    one, two = (Query(name, ("a", "b", "c"), 4) for name in ("one", "two"))
    first, second = run(planner, line(one, two))
    assert isinstance(second.tree, Reused) and second.cost < first.cost
    first, second = run(planner, line(one, two, reuse=False))
    assert not second.reused and second.cost == pytest.approx(first.cost)


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_stream_too_far_away_is_made_again(planner: Phased) -> None:
    """The join of a and b is more than both; the first query has it at site 4, right where it is wanted."""
    base = line(Query("right", ("a", "b"), 4), Query("left", ("a", "b"), 0))
    grown = replace(base, selectivities={frozenset("ab"): 5.0})
    first, second = run(planner, grown)
    assert first.tree.site == 4
    assert not second.reused and second.tree.site == 0


@pytest.mark.parametrize("planner", PLANNERS)
def test_no_join_at_a_forbidden_site(planner: Phased) -> None:
    problem = line(Query("q", ("a", "b", "c"), 4), forbidden=frozenset({0, 1, 4}))
    (placed,) = run(planner, problem)
    assert {node.site for node in walk(placed.tree) if isinstance(node, Join)} <= {2, 3}


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_stream_without_a_path_is_named(planner: Phased) -> None:
    problem = line(Query("q", ("a", "c"), 4))
    cut = Network(problem.network.sites, problem.network.links[1:])
    apart = replace(problem, network=cut)
    with pytest.raises(UserError, match='"q": stream "a" cannot reach the sink'):
        run(planner, apart)
    everywhere = line(Query("q", ("a", "c"), 4), forbidden=frozenset(range(5)))
    with pytest.raises(UserError, match="cannot reach the sink joined"):
        run(planner, everywhere)


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", range(6))
def test_one_way_networks_with_missing_links(planner: Phased, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = np.where(rng.random((7, 7)) < 0.3, rng.uniform(1, 9, (7, 7)), inf)
    costs[np.arange(7), (np.arange(7) + 1) % 7] = 2.0
    base = random_problem(rng, sites=7)
    run(planner, replace(base, network=Network(tuple(range(7)), costs=costs), forbidden=frozenset()))


@pytest.mark.parametrize("planner", PLANNERS)
def test_sites_with_no_way_between_them(planner: Phased) -> None:
    """Streams at 0, 1, 2 reach 3 and 4, and these the sink, but not each other. 3 is near to a and b, which
    are joined first, 4 to c, which is more data than their join."""
    costs = np.full((6, 6), inf)
    costs[:2, 3], costs[:2, 4], costs[2, 3], costs[2, 4], costs[3:5, 5] = 1.0, 9.0, 9.0, 1.0, 5.0
    streams = {name: BaseStream(name, site, 10.0) for site, name in enumerate("abc")}
    pairs = {frozenset("ab"): 0.01, frozenset("bc"): 0.01}
    query, network = Query("q", ("a", "b", "c"), 5), Network(tuple(range(6)), costs=costs)
    run(planner, PlacementProblem(network, streams, pairs, (query,)))


@pytest.mark.parametrize("planner", PLANNERS)
def test_sites_without_a_path_are_never_used(planner: Phased) -> None:
    """Two sites and the join at rest between them; around it sixty more that nothing leads to."""
    streams = {name: BaseStream(name, site, 10.0) for name, site in (("a", 0), ("b", 1))}
    network, pairs = Network(tuple(range(62)), ((0, 1, 10.0),)), {frozenset("ab"): 0.01}
    (placed,) = run(planner, PlacementProblem(network, streams, pairs, (Query("q", ("a", "b"), 0),)))
    assert placed.tree.site in (0, 1)


@pytest.mark.parametrize("planner", PLANNERS)
def test_costs_are_right_on_both_workloads(planner: Phased) -> None:
    network, options = paper_network(1), Options(iterations=300)
    run(planner, synthetic(network, np.random.default_rng(1), queries=20), options)
    run(planner, airline(network, np.random.default_rng(1), queries=40), options)


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_same_again(planner: Phased) -> None:
    problem = synthetic(paper_network(2), np.random.default_rng(2), queries=8)
    assert run(planner, problem) == run(planner, problem)


def test_zones_part_what_is_far_apart() -> None:
    """Two squares of sites with a long link between them."""
    links = [
        (0, 1, 1.0),
        (1, 2, 1.0),
        (2, 3, 1.0),
        (3, 0, 1.0),
        (4, 5, 1.0),
        (5, 6, 1.0),
        (6, 7, 1.0),
        (7, 4, 1.0),
    ]
    network = Network(tuple(range(8)), (*links, (3, 4, 50.0)))
    centres, zone_of = divide(prepare(network).matrix(), 2)
    assert sorted(site < 4 for site in centres) == [False, True]
    assert len(set(zone_of[:4])) == 1 == len(set(zone_of[4:])) and zone_of[0] != zone_of[7]


@pytest.mark.parametrize("seed", range(25))
def test_in_network_does_its_two_steps(seed: int) -> None:
    """By enumeration. Three groups of sites; direct links are always cheapest, so no two placements cost the
    same."""
    rng = np.random.default_rng(200 + seed)
    base = random_problem(rng, sites=9, streams=4, queries=6)
    near = np.arange(9)[:, None] // 3 == np.arange(9)[None] // 3
    network = Network(
        tuple(range(9)), costs=np.where(near, rng.uniform(1, 2, (9, 9)), rng.uniform(10, 11, (9, 9)))
    )
    problem = replace(base, network=network, forbidden=frozenset(), reuse=True)
    prepared, options = prepare(network), Options(zones=3)
    planner, deployed = InNetwork(problem, prepared, options), Deployed(problem, prepared.distance)
    for query in problem.queries:
        placed = planner.place(query, deployed)
        tree = _two_steps(problem, query, deployed, prepared)
        assert placed.cost == pytest.approx(price(problem, query, tree, prepared))
        deployed.add(query, placed.tree)


def _two_steps(problem: PlacementProblem, query: Query, deployed: Deployed, prepared: Prepared) -> Tree:
    centres, zone_of = divide(prepared.matrix(), 3)
    parts = _parts(fix_order(problem, query, deployed).order, query)
    on_centres = replace(problem, forbidden=frozenset(range(9)) - frozenset(centres))
    rough = min(
        (t for t in deployments(on_centres, query, deployed) if {streams_of(n) for n in walk(t)} <= parts),
        key=lambda tree: price(problem, query, tree, prepared),
    )
    if not isinstance(rough, Join):
        return rough

    def settle(top: Join, target: int) -> Tree:
        return min(
            ways(top, top.site), key=lambda tree: price(problem, replace(query, sink=target), tree, prepared)
        )

    def ways(node: Tree, centre: int) -> list[Tree]:
        if not isinstance(node, Join):
            return [node]
        if node.site != centre:
            return [settle(node, centre)]
        zone = [site for site in range(9) if centres[zone_of[site]] == centre]
        offers = [one for one in deployed.offers(query) if one.streams == node.streams and one.site in zone]
        lefts, rights = ways(node.left, centre), ways(node.right, centre)
        return [
            *(offer.as_leaf() for offer in offers),
            *(Join(left, right, site) for left in lefts for right in rights for site in zone),
        ]

    return settle(rough, query.sink)


def test_more_zones_than_sites_and_one_zone_is_plan_then_deploy() -> None:
    problem = synthetic(grid(3, 4, 1), np.random.default_rng(5), queries=10)
    best = sum(one.cost for one in run(PlanThenDeploy, problem))
    assert sum(one.cost for one in run(InNetwork, problem, Options(zones=1))) == pytest.approx(best)
    assert len(run(InNetwork, problem, Options(zones=99))) == 10


def test_in_network_looks_at_fewer_placements() -> None:
    problem = synthetic(paper_network(3), np.random.default_rng(3), queries=10, reuse=False)
    few = sum(one.plans_examined for one in run(InNetwork, problem, Options()))
    assert few < sum(one.plans_examined for one in run(PlanThenDeploy, problem)) / 5


def test_a_space_that_exists_is_found() -> None:
    """Distances between points of a space, and of a tree-like network closely enough."""
    points = np.random.default_rng(0).uniform(0, 10, (30, 3))
    between = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert embed(between, np.random.default_rng(1), 2000).error < 0.02
    assert embed(prepare(paper_network(0)).matrix(), np.random.default_rng(1), 2000).error < 0.15


def test_springs_come_to_rest_where_the_energy_is_least() -> None:
    problem = synthetic(random_geometric(40, 2), np.random.default_rng(2), queries=3, reuse=False)
    prepared = prepare(problem.network)
    space = embed(prepared.matrix(), np.random.default_rng(0), 500)
    for query in problem.queries:
        fixed = fix_order(problem, query, Deployed(problem, prepared.distance))
        springs = _Springs(fixed, space, 4000)
        springs.relax_and_reuse()
        joins = [join.mask for join in fixed.order.joins()]
        rest = np.concatenate([springs.places[mask] for mask in joins])
        least = minimize(lambda flat, one=springs: _energy(one, flat), rest + 1.0).fun
        assert _energy(springs, rest) == pytest.approx(least, rel=1e-4)


def _energy(springs: _Springs, flat: Floats) -> float:
    """Sum of rate * distance^2 over the tree's edges, with its joins at these places."""
    fixed, points = springs.fixed, springs.space.points
    joins = list(fixed.order.joins())
    places = springs.places | {j.mask: at for j, at in zip(joins, flat.reshape(-1, 3), strict=True)}
    edges = [(part.mask, places[join.mask]) for join in joins for part in join.parts]
    total = sum(fixed.rates[a] * ((places[a] - there) ** 2).sum() for a, there in edges)
    last = places[joins[-1].mask] - points[fixed.query.sink]
    return float(total + fixed.rates[-1] * (last**2).sum())


def test_spreading_over_links_is_the_same_as_a_matrix() -> None:
    """With two sites that have no links."""
    network = Network(tuple(range(122)), random_geometric(120, 3).links)
    prepared, rng = prepare(network), np.random.default_rng(3)
    assert prepared.graph is not None
    start = np.where(rng.random(122) < 0.3, rng.uniform(0, 50, 122), inf)
    start[120:] = inf
    for rate in (2.5, 0.5):
        found, origin = Spread(prepared.graph).carry(start, rate)
        wanted = (start[:, None] + rate * prepared.matrix()).min(axis=0)
        assert found == pytest.approx(wanted)
        assert origin[120:].tolist() == [-1, -1]
        come = start[origin] + rate * prepared.matrix()[origin, np.arange(122)]
        assert come[:120] == pytest.approx(wanted[:120])
    found, _ = Spread(prepared.graph).carry(start, 0.0)
    assert found[:120] == pytest.approx(start.min()) and not np.isfinite(found[120:]).any()


@pytest.fixture
def no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "MOST_DENSE", 10)


@pytest.mark.parametrize("forbidden", [frozenset[int](), frozenset({1, 2, 5})])
def test_plan_then_deploy_without_a_matrix(
    forbidden: frozenset[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = synthetic(paper_network(4), np.random.default_rng(4), queries=15)
    problem = replace(base, forbidden=forbidden, sinks=True)
    dense = [one.cost for one in run(PlanThenDeploy, problem)]
    monkeypatch.setattr(networks, "MOST_DENSE", 10)
    assert not Prepared(base.network).dense
    assert [one.cost for one in run(PlanThenDeploy, problem)] == pytest.approx(dense)


@pytest.mark.parametrize("planner", [InNetwork, Relaxation])
@pytest.mark.usefixtures("no_matrix")
def test_the_others_need_a_matrix_and_say_so(planner: Phased) -> None:
    problem = synthetic(paper_network(4), np.random.default_rng(4), queries=1)
    with pytest.raises(NotSupported, match="needs the distances"):
        run(planner, problem)


def test_trees_are_joined_in_the_fixed_order() -> None:
    """By hand: a and b first, since their join is 1 row (b and c: 2, a and c: 5)."""
    problem = line(Query("q", ("a", "b", "c"), 4))
    assert by_subset(problem, problem.queries[0]).tolist() == pytest.approx([0, 10, 10, 1, 10, 5, 2, 0.01])
    for planner in PLANNERS:
        (placed,) = run(planner, problem)
        assert frozenset("ab") in {streams_of(node) for node in walk(placed.tree)}
    # a over one link to b's site, their join over three links to c's.
    (best,) = run(PlanThenDeploy, problem)
    tree: Tree = Join(Join(Leaf("a", 0), Leaf("b", 1), 1), Leaf("c", 4), 4)
    assert best.tree in (tree, Join(Join(Leaf("a", 0), Leaf("b", 1), 0), Leaf("c", 4), 4))
    assert best.cost == pytest.approx(10 + 3)
