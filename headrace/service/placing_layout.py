"""Where the sites of a network stand on a page: near each other where data passes cheaply between them.

Positions are those whose distances fit the cheapest paths best (stress majorisation, weights 1/d^2, from the
classical scaling on), then turned to lie flat and pushed apart where two would cover each other. No chance is
in it: the same network gives the same page.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROUNDS = 150
_PUSHES = 200
_BENT = 0.6
"""Distances are drawn to this power: a site beside another is then seen apart from it although a third one is
a hundred times farther."""


def lay_out_network(
    size: int, links: Sequence[tuple[int, int, float]], box: tuple[float, float], apart: float
) -> Floats:
    """(x, y) of every site inside a box of that width and height; no two nearer than `apart`, where there is
    room for that."""
    if size == 1:
        return np.array([[box[0] / 2, box[1] / 2]])
    wanted = _wanted(size, links)
    flat = _flat(_majorised(_scaled(wanted), wanted))
    return _pushed(_fitted(flat, box), box, apart)


def _wanted(size: int, links: Sequence[tuple[int, int, float]]) -> Floats:
    """How far any two should be apart. Parts of a network without a path between them stand beside it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    cheapest: dict[tuple[int, int], float] = {}
    for a, b, cost in links:
        for pair in ((a, b), (b, a)):
            cheapest[pair] = min(cost, cheapest.get(pair, cost))
    rows, columns = np.array(list(cheapest), dtype=int).reshape(-1, 2).T
    graph = csr_array((np.array(list(cheapest.values()), dtype=float), (rows, columns)), shape=(size, size))
    costs = np.asarray(dijkstra(graph, directed=False))
    known = costs[np.isfinite(costs) & (costs > 0)]
    far = 1.3 * float(known.max()) if known.size else 1.0
    least = float(np.median(known)) / 20 if known.size else 1.0
    costs = np.where(np.isfinite(costs), costs, far)
    bent: Floats = np.maximum(costs, least) ** _BENT
    np.fill_diagonal(bent, 0.0)
    return bent


def _scaled(wanted: Floats) -> Floats:
    """Classical scaling: the two directions in which the sites differ most."""
    size = len(wanted)
    middle = np.eye(size) - 1.0 / size
    values, vectors = np.linalg.eigh(-0.5 * middle @ (wanted**2) @ middle)
    first: Floats = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 1e-9))
    # Eigenvectors come with any sign; and sites alike in all would stand on one point and never part.
    first *= np.where(first[np.abs(first).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    turn = np.arange(size) * 2.399963
    spread: Floats = np.stack((np.cos(turn), np.sin(turn)), axis=1) * wanted.max() * 1e-3
    return first + spread


def _majorised(places: Floats, wanted: Floats) -> Floats:
    weights = np.zeros_like(wanted)
    np.divide(1.0, wanted**2, out=weights, where=wanted > 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        gaps = np.linalg.norm(places[:, None] - places[None, :], axis=2)
        ratio = np.zeros_like(wanted)
        np.divide(weights * wanted, gaps, out=ratio, where=gaps > 1e-12)
        moved: Floats = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ places)
        if np.abs(moved - places).max() < 1e-4 * wanted.max():
            return moved
        places = moved
    return places


def _flat(places: Floats) -> Floats:
    """Turned so that the longest stretch lies across the page."""
    centred = places - places.mean(axis=0)
    _, _, turn = np.linalg.svd(centred, full_matrices=False)
    turned: Floats = centred @ turn.T
    turned *= np.where(turned[np.abs(turned).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return turned


def _fitted(places: Floats, box: tuple[float, float]) -> Floats:
    """Stretched to the box, up to half as much again in one direction as in the other."""
    low, high = places.min(axis=0), places.max(axis=0)
    spans = np.maximum(high - low, 1e-9)
    scales = np.array(box) / spans
    scales = np.minimum(scales, scales.min() * 1.5)
    fitted: Floats = (places - (low + high) / 2) * scales + np.array(box) / 2
    return fitted


def _pushed(places: Floats, box: tuple[float, float], apart: float) -> Floats:
    room = 0.8 * float(np.sqrt(box[0] * box[1] / len(places)))
    least = min(apart, room)
    for _ in range(_PUSHES):
        gaps = places[:, None] - places[None, :]
        lengths = np.linalg.norm(gaps, axis=2)
        np.fill_diagonal(lengths, np.inf)
        if lengths.min() >= 0.98 * least:
            break
        push = np.clip(least - lengths, 0.0, None) / 2
        away = gaps / np.maximum(lengths, 1e-9)[:, :, None]
        places = np.clip(places + (away * push[:, :, None]).sum(axis=1), 0.0, np.array(box))
    return places
