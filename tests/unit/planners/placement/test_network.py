"""Distances, against networkx; with a matrix and without."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import InternalError
from headrace.planners.placement import network as module
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import Network
from tests.unit.planners.placement.exact_cases import KINDS, large_problem, small_problem
from tests.unit.planners.placement.exact_oracle import networkx_distances

INF = float("inf")


@pytest.fixture
def without_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DENSE", 0)


def test_small_networks_of_every_sort() -> None:
    for seed in range(60):
        network = small_problem(seed).network
        prepared = prepare(network)
        np.testing.assert_allclose(prepared.matrix(), networkx_distances(network), rtol=1e-12)


@pytest.mark.usefixtures("without_matrix")
def test_no_matrix_small_networks() -> None:
    for seed in range(60):
        network = small_problem(seed).network
        prepared, want = prepare(network), networkx_distances(network)
        every = range(network.size)
        # One by one, before any row is kept.
        found = [[prepared.distance(a, b) for b in every] for a in every]
        np.testing.assert_allclose(np.array(found), want, rtol=1e-12)
        np.testing.assert_allclose(prepared.between(every, every), want, rtol=1e-12)


@pytest.mark.usefixtures("without_matrix")
@pytest.mark.parametrize("kind", KINDS)
def test_no_matrix_larger_networks(kind: str) -> None:
    network = large_problem(3, kind).network
    prepared, want = prepare(network), networkx_distances(network)
    some = np.random.default_rng(0).integers(network.size, size=(40, 2)).tolist()
    for a, b in some:
        assert prepared.distance(a, b) == pytest.approx(want[a, b], rel=1e-12)
    few, many = [a for a, _ in some[:3]], list(range(network.size))
    np.testing.assert_allclose(prepared.between(few, many), want[few], rtol=1e-12)
    np.testing.assert_allclose(prepared.between(many, few), want[:, few], rtol=1e-12)
    with pytest.raises(InternalError):
        prepared.matrix()


@pytest.mark.usefixtures("without_matrix")
def test_kept_rows_are_few_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    network = large_problem(5, "grid").network
    monkeypatch.setattr(module, "KEPT_BYTES", 3 * network.size * 8)
    monkeypatch.setattr(module, "KEPT_PAIRS", 4)
    prepared, want = prepare(network), networkx_distances(network)
    for site in range(network.size):
        assert prepared.distance(site, 0) == pytest.approx(want[site, 0])
        np.testing.assert_allclose(prepared.row(site), want[site], rtol=1e-12)
        assert len(prepared._rows) <= 3
        assert len(prepared._pairs) <= 4


def test_costs_too_uneven_for_buckets() -> None:
    """Most links cost nearly nothing, one a million: the row comes from the heap."""
    links = (*((i, i + 1, 1e-3) for i in range(50)), (0, 30, 1e6), (50, 51, 1e6))
    network = Network(tuple(range(52)), links)
    np.testing.assert_allclose(prepare(network).row(3), networkx_distances(network)[3], rtol=1e-12)


def test_a_matrix_is_closed_over_relays_and_keeps_its_direction() -> None:
    costs = np.array([[7.0, 1.0, 9.0], [INF, 0.0, 0.0], [2.0, INF, 5.0]])
    want = [[0.0, 1.0, 1.0], [2.0, 0.0, 0.0], [2.0, 3.0, 0.0]]
    prepared = prepare(Network(("a", "b", "c"), costs=costs))
    assert prepared.matrix().tolist() == want
    assert prepared.distance(1, 0) == 2.0
    assert costs[0, 0] == 7.0, "the caller's matrix is not touched"
