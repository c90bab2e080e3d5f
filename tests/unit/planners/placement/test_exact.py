"""The exact planner: worked examples, brute force on small cases, a plain programme on larger ones."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import NotSupported, UserError
from headrace.planners.placement import exact as module
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Leaf,
    Network,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Reused,
)
from tests.unit.planners.placement.exact_cases import KINDS, check, large_problem, small_problem
from tests.unit.planners.placement.exact_oracle import plain


def line(*queries: Query, forbidden: tuple[int, ...] = ()) -> PlacementProblem:
    """Sites 0 - 1 - 2 - 3 - 4 in a row, 1 apart; a (rate 10) at 0, b (10) at 2, c (1) at 4; a joined with b
    gives 10 * 10 * 0.02 = 2, all three 2 * 1 * 0.5 = 1."""
    streams = {"a": BaseStream("a", 0, 10.0), "b": BaseStream("b", 2, 10.0), "c": BaseStream("c", 4, 1.0)}
    pairs = {frozenset("ab"): 0.02, frozenset("bc"): 0.5}
    links = tuple((i, i + 1, 1.0) for i in range(4))
    network = Network(tuple(range(5)), links)
    return PlacementProblem(network, streams, pairs, queries, forbidden=frozenset(forbidden))


def placed(problem: PlacementProblem) -> list[Placed]:
    prepared = prepare(problem.network)
    planner, deployed, found = Exact(problem, prepared, Options()), Deployed(problem, prepared.distance), []
    for query in problem.queries:
        found.append(planner.place(query, deployed))
        deployed.add(query, found[-1].tree)
    return found


def test_by_hand() -> None:
    """c goes to b (2), their 5 go to a (10), the result goes to the sink (4). The smaller first result, 2 of
    a and b, costs 20 to make and 24 in all."""
    (found,) = placed(line(Query("q", ("a", "b", "c"), 4)))
    assert found.cost == pytest.approx(16.0)
    assert isinstance(found.tree, Join)
    assert found.tree.site == 0
    (inner,) = (part for part in (found.tree.left, found.tree.right) if isinstance(part, Join))
    assert (inner.site, inner.streams) == (2, frozenset("bc"))
    assert found.certified


def test_a_join_that_runs_is_read_where_it_is_made() -> None:
    first, second = placed(line(Query("q", ("a", "b"), 2), Query("r", ("b", "a"), 4)))
    assert first.cost == pytest.approx(20.0)
    assert second.cost == pytest.approx(4.0)
    assert isinstance(second.tree, Reused)
    assert (second.tree.query, second.tree.site) == ("q", 2)


def test_a_forbidden_site_is_passed_but_does_not_join() -> None:
    (found,) = placed(line(Query("q", ("a", "b"), 2), forbidden=(0, 1, 2)))
    assert found.tree.site == 3
    assert found.cost == pytest.approx(30.0 + 10.0 + 2.0)


def test_one_stream() -> None:
    (found,) = placed(line(Query("q", ("a",), 3), forbidden=(0, 1, 2, 3, 4)))
    assert found.tree == Leaf("a", 0)
    assert found.cost == pytest.approx(30.0)


def test_costs_that_depend_on_the_direction() -> None:
    """From 0 to 1 is dear, from 1 to 0 is cheap: b comes to a though it is the larger one."""
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 1, 5.0)}
    network = Network((0, 1), costs=np.array([[0.0, 100.0], [1.0, 0.0]]))
    (found,) = placed(PlacementProblem(network, streams, {}, (Query("q", ("a", "b"), 0),)))
    assert found.cost == pytest.approx(5.0)
    assert found.tree.site == 0


def test_small_problems_against_brute_force() -> None:
    deployed = [check(small_problem(seed)) for seed in range(60)]
    assert sum(good for good, _ in deployed) > 100
    assert any(bad for _, bad in deployed)


def test_small_problems_with_a_first_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the network is too small for it to be worth anything."""
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "HUBS", 2)
    for seed in range(100, 150):
        check(small_problem(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_larger_networks_against_a_plain_programme(kind: str) -> None:
    for seed, forbidden in ((0, 0.0), (1, 0.4)):
        check(large_problem(seed, kind, forbidden=forbidden), plain)


def test_links_and_their_matrix_give_the_same() -> None:
    problem = large_problem(8, "multi-homed")
    matrix = Network(problem.network.sites, costs=prepare(problem.network).matrix())
    same = PlacementProblem(matrix, problem.streams, problem.selectivities, problem.queries)
    by_links = PlacementProblem(problem.network, problem.streams, problem.selectivities, problem.queries)
    for one, two in zip(placed(by_links), placed(same), strict=True):
        assert one.cost == pytest.approx(two.cost, rel=1e-9)


def test_many_streams() -> None:
    names = [f"s{i}" for i in range(9)]
    streams = {name: BaseStream(name, 3 * i, 1.0 + i) for i, name in enumerate(names)}
    pairs = {frozenset({a, b}): 0.3 for a in names for b in names if a < b}
    network = large_problem(2, "grid").network
    problem = PlacementProblem(network, streams, pairs, (Query("q", tuple(names), 40),))
    check(problem, plain)


def test_the_bounds_prune_and_the_region_is_small() -> None:
    """What makes large networks fast: on stubs tied by one link or two, few of the states are looked at."""
    problem = large_problem(4, "multi-homed")
    sizes = [int(one.notes["sites"]) for one in placed(problem)]
    assert max(sizes) < problem.network.size
    for one, query in zip(placed(problem), problem.queries, strict=True):
        assert int(one.notes["states"]) < int(one.notes["sites"]) << len(query.streams)


def test_the_same_twice() -> None:
    problem = large_problem(4, "random")
    assert placed(problem) == placed(problem)


def test_cut_off_stream_is_named() -> None:
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 1, 1.0)}
    for network in (Network(("x", "y")), Network(("x", "y"), costs=np.array([[0.0, 1.0], [np.inf, 0.0]]))):
        problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b"), 0),))
        with pytest.raises(UserError, match="query q: stream b cannot reach the sink") as caught:
            placed(problem)
        assert "site y" in caught.value.detail


def test_too_many_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STATES", 39)
    with pytest.raises(NotSupported, match="query q: 3 streams are too many on 5 sites"):
        placed(line(Query("q", ("a", "b", "c"), 4)))


def test_no_site_may_join() -> None:
    with pytest.raises(UserError, match="no site where its streams a, b can be joined"):
        placed(line(Query("q", ("a", "b"), 2), forbidden=(0, 1, 2, 3, 4)))


def test_of_two_ways_at_the_same_cost_the_one_that_runs_already() -> None:
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 0, 1.0)}
    both = tuple(Query(name, ("a", "b"), 0) for name in "xy")
    _, second = placed(PlacementProblem(Network((0,)), streams, {}, both))
    assert isinstance(second.tree, Reused)


def test_every_site_that_was_compared_counts() -> None:
    links = tuple((i, i + 1, 1.0) for i in range(49))
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 40, 3.0)}
    problem = PlacementProblem(Network(tuple(range(50)), links), streams, {}, (Query("q", ("a", "b"), 49),))
    (found,) = placed(problem)
    # The 50 sites without those beyond both streams and the sink, of which there are none.
    assert found.plans_examined >= 50
