"""Clusters and the hierarchy: caps and representatives, whatever joins and leaves; Theorem 1."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.placement.clusters import capped_groups, k_means
from headrace.planners.placement.hierarchy import Cluster, Hierarchy, build
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import Network, Site
from headrace.planners.placement.theorems import estimate_slack, lift
from headrace.planners.placement.topologies import grid, paper_network, random_geometric

CHAIN = Network(tuple(range(6)), tuple((i, i + 1, 10.0 if i == 2 else 1.0) for i in range(5)))
"""0 - 1 - 2 -- 3 - 4 - 5, the middle link long."""


def check(hierarchy: Hierarchy, sites: set[Site]) -> None:
    """Every invariant, from the tree of clusters alone."""
    at_level: dict[int, list[Cluster]] = {}
    waiting = [hierarchy.top]
    while waiting:
        cluster = waiting.pop()
        at_level.setdefault(cluster.level, []).append(cluster)
        waiting += cluster.parts
    assert sorted(at_level) == list(range(1, hierarchy.height + 1))
    assert len(at_level[hierarchy.height]) == 1
    nodes = sorted(sites)
    for level in range(1, hierarchy.height + 1):
        clusters = at_level[level]
        assert sorted(member for one in clusters for member in one.members) == nodes
        assert all(1 <= len(one.members) <= hierarchy.max_cs for one in clusters)
        assert all(one.coordinator in one.members for one in clusters)
        assert all((one.backup is None) == (len(one.members) == 1) for one in clusters)
        assert all(one.backup in {None, *one.members} - {one.coordinator} for one in clusters)
        assert all(one.members == tuple(p.coordinator for p in one.parts) for one in clusters if level > 1)
        nodes = sorted(one.coordinator for one in clusters)
    assert hierarchy.height == 1 or len(hierarchy.top.members) > 1


def test_a_group_is_never_above_its_cap() -> None:
    rng = np.random.default_rng(1)
    for cap in (2, 3, 7):
        for size in (1, 2, 8, 40):
            points = rng.uniform(0, 1, (size, 3)) ** 4
            groups = capped_groups(points, cap, rng)
            assert sorted(i for group in groups for i in group) == list(range(size))
            assert max(map(len, groups)) <= cap


def test_points_that_are_all_the_same_are_still_parted() -> None:
    rng = np.random.default_rng(1)
    assert sorted(map(len, capped_groups(np.ones((9, 2)), 3, rng))) == [3, 3, 3]


def test_k_means_finds_clear_groups() -> None:
    rng = np.random.default_rng(5)
    centres = np.array([[0, 0], [50, 0], [0, 50], [50, 50]])
    belongs = rng.permutation(np.repeat(np.arange(4), 9))
    found = k_means(centres[belongs] + rng.uniform(-1, 1, (36, 2)), 4, rng)
    assert all(len(set(found[belongs == group])) == 1 for group in range(4))
    assert len(set(found)) == 4


def test_a_chain_by_hand() -> None:
    hierarchy = build(prepare(CHAIN), 3)
    low, high = hierarchy.clusters(1)
    assert (low.members, low.coordinator, low.backup) == ((0, 1, 2), 1, 0)
    assert (high.members, high.coordinator, high.backup) == ((3, 4, 5), 4, 3)
    assert hierarchy.top.members == (1, 4)
    assert hierarchy.spreads == (2.0, 12.0)
    assert hierarchy.representative(5, 1) == 5
    assert hierarchy.representative(5, 2) == 4
    assert hierarchy.estimate(2, 3, 1) == 10
    assert hierarchy.estimate(2, 3, 2) == 12  # 1 to 4
    assert lift(hierarchy, 2) == 4
    assert estimate_slack(hierarchy) == 2  # 0 to 5 costs 14 and is estimated at 12; 2 to 3 costs 10


def test_few_sites_are_one_cluster() -> None:
    hierarchy = build(prepare(CHAIN), 32)
    assert hierarchy.height == 1
    assert hierarchy.top.members == hierarchy.sites == tuple(range(6))


def test_a_cap_below_two_is_refused() -> None:
    with pytest.raises(UserError, match="at most 1"):
        build(prepare(CHAIN), 1)


@pytest.mark.parametrize("max_cs", [3, 8, 32])
def test_the_paper_s_network(max_cs: int) -> None:
    network = paper_network(3)
    hierarchy = build(prepare(network), max_cs, seed=1)
    check(hierarchy, set(range(network.size)))
    assert estimate_slack(hierarchy) >= 0


def test_spreads_are_the_longest_ways_within_clusters() -> None:
    network = grid(6, 6, seed=2)
    graph = nx.Graph()
    graph.add_weighted_edges_from(network.links)
    ways = dict(nx.all_pairs_dijkstra_path_length(graph))
    hierarchy = build(prepare(network), 5)
    for level, spread in enumerate(hierarchy.spreads, start=1):
        longest = max(ways[a][b] for c in hierarchy.clusters(level) for a in c.members for b in c.members)
        assert spread == pytest.approx(longest)


def test_theorem_1_with_costs_that_differ_by_direction() -> None:
    costs = np.random.default_rng(4).uniform(1, 30, (24, 24))
    hierarchy = build(prepare(Network(tuple(range(24)), costs=costs)), 4)
    assert hierarchy.height > 2
    assert estimate_slack(hierarchy) >= 0


def test_a_new_site_goes_to_the_nearest_cluster() -> None:
    prepared = prepare(CHAIN)
    hierarchy = build(prepared, 3, sites=[0, 1, 2, 4, 5])
    joined = hierarchy.joined(3)
    assert {c.members for c in joined.clusters(1)} == {(0, 1, 2), (3, 4, 5)}
    # the cluster of 0, 1 and 2 was not asked for anything
    assert hierarchy.path(0)[0] is joined.path(0)[0]


def test_a_cluster_that_grows_too_large_is_parted() -> None:
    prepared = prepare(CHAIN)
    joined = build(prepared, 3, sites=[0, 1, 2]).joined(5)
    check(joined, {0, 1, 2, 5})
    assert joined.height == 2
    assert {c.members for c in joined.clusters(1)} == {(0, 1, 2), (5,)}
    assert joined.path(0)[0].coordinator == 1


def test_the_backup_takes_over_from_a_coordinator_that_fails() -> None:
    before = build(prepare(paper_network(1)), 8)
    for level in range(1, before.height + 1):
        for cluster in before.clusters(level):
            after = before.left(cluster.coordinator)
            check(after, set(before.sites) - {cluster.coordinator})
            below = [site for site in cluster.sites if site != cluster.coordinator]
            if cluster.backup is not None and after.height >= level:
                heir = after.path(cluster.backup)[level - 1]
                assert heir.coordinator == cluster.backup
                # all that the failed coordinator had advertised to it, but for what ran on it
                assert sorted(heir.sites) == below


def test_another_site_s_leaving_changes_no_coordinator() -> None:
    before = build(prepare(paper_network(1)), 8)
    coordinators = {c.coordinator for c in before.clusters(1)}
    for site in set(before.sites) - coordinators:
        after = before.left(site)
        assert {c.coordinator for c in after.clusters(1)} == coordinators


def test_the_last_site_cannot_leave() -> None:
    hierarchy = build(prepare(CHAIN), 3, sites=[4])
    with pytest.raises(UserError, match="last site"):
        hierarchy.left(4)


@pytest.mark.parametrize("seed", range(6))
def test_random_joins_and_departures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prepared = prepare(random_geometric(40, seed))
    present = {int(site) for site in rng.choice(40, size=int(rng.integers(1, 12)), replace=False)}
    hierarchy = build(prepared, int(rng.integers(2, 5)), seed, sorted(present))
    for _ in range(60):
        absent = sorted(set(range(40)) - present)
        if len(present) == 1 or (absent and rng.random() < 0.55):
            site = int(rng.choice(absent))
            hierarchy = hierarchy.joined(site)
            present.add(site)
        else:
            coordinators = [c.coordinator for c in hierarchy.top.walk()]
            site = int(rng.choice(coordinators if rng.random() < 0.5 else sorted(present)))
            hierarchy = hierarchy.left(site)
            present.remove(site)
        check(hierarchy, present)
    assert estimate_slack(hierarchy) >= -1e-9


def test_sites_without_a_path_are_clustered_apart() -> None:
    links = tuple((i, i + 1, 1.0) for i in range(9) if i != 4)
    hierarchy = build(prepare(Network(tuple(range(10)), links)), 5)
    assert {c.members for c in hierarchy.clusters(1)} == {(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)}
    assert hierarchy.spreads == (4.0, np.inf)
