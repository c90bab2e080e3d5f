"""Networks to plan on: transit-stub in the paper's shape or any size, multi-homed stubs, grids, random
geometric graphs and random trees.

All are connected, have links in both directions, and are the same for the same seed. Work is O(links) in
numpy, with no loop over sites or pairs. Transit sites have the lowest numbers, then come the
stub domains, each a run of neighbouring numbers.

Shape of a transit-stub network (GT-ITM): transit domains of a few sites; at each transit site some stub
domains, each tied to it by one access link from a random member. A domain is a random tree, so that it is
connected, with random links on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay, cKDTree

from headrace.errors import UserError
from headrace.planners.placement.problem import Network

Pairs = NDArray[np.int64]
"""One row per link: its two ends."""
Ints = NDArray[np.int64]
Span = tuple[float, float]

PAPER_SITES = 128
PER_TRANSIT = 33
"""A transit site and its four stub domains of eight."""


@dataclass(frozen=True, slots=True)
class LinkCosts:
    """Uniform ranges; a stub's links are far cheaper than long hauls. The paper gives no numbers."""

    stub: Span = (1.0, 5.0)
    access: Span = (5.0, 15.0)
    """From a stub domain to its transit site."""
    transit: Span = (20.0, 60.0)
    """Within and between transit domains."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """Links per site, on average. GT-ITM's sample configuration has 0.6 of the pairs of 4 transit sites and
    0.42 of those of 8 stub sites linked."""

    stub: float = 2.94
    transit: float = 1.8
    domains: float = 3.0
    """Of a transit domain to other transit domains."""


def paper_network(seed: int) -> Network:
    """Section 4.1: "a 128-node network", one transit domain of 4, at each transit site 4 stub domains of 8.

    That makes 132 with the transit sites. We keep 128 sites in all, transit sites included, and take one site
    from one stub domain of each transit site (12 domains of 8, 4 of 7); the other reading, transit nodes that
    are no sites, would let no operator run on the backbone."""
    return transit_stub_of(PAPER_SITES, seed)


def transit_stub_of(sites: int, seed: int) -> Network:
    """More of the paper's shape: one transit site for 33 sites, one transit domain for 4 transit sites, stub
    domains as even as they can be."""
    return _of_size(sites, np.random.default_rng(seed), homes=(1, 1))


def multi_homed(sites: int, seed: int, homes: tuple[int, int] = (2, 3)) -> Network:
    """As `transit_stub_of`, with every stub domain linked to 2 or 3 different transit sites, so that nearly
    no site cuts the network in two."""
    return _of_size(sites, np.random.default_rng(seed), homes=homes)


def _of_size(sites: int, rng: np.random.Generator, homes: tuple[int, int]) -> Network:
    _at_least(sites, homes[1])
    transit = max(homes[1], round(sites / PER_TRANSIT))
    stubs = _even(sites - transit, 4 * transit)
    return transit_stub(rng, _even(transit, max(1, round(transit / 4))), stubs, homes=homes)


def transit_stub(
    rng: np.random.Generator,
    transit: Sequence[int] = (4,),
    stubs: Sequence[int] = (8,) * 16,
    *,
    homes: tuple[int, int] = (1, 1),
    costs: LinkCosts | None = None,
    degrees: Degrees | None = None,
) -> Network:
    """`transit` and `stubs` are the sizes of the domains; stub domain d belongs to transit site d modulo
    their number. By default GT-ITM's own 132 sites. `homes`: least and most access links of a stub domain."""
    ranges, degree = costs or LinkCosts(), degrees or Degrees()
    backbone = sum(transit)
    _at_least(backbone, homes[1])
    firsts = np.concatenate(([0], np.cumsum(transit)[:-1])).astype(np.int64)
    inner = [_in_domains(rng, firsts, np.asarray(transit), degree.transit)]
    inner.append(_between_domains(rng, firsts, np.asarray(transit), degree.domains))
    sizes = np.asarray([size for size in stubs if size], dtype=np.int64)
    starts = backbone + np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)[: len(sizes)]
    access = _access(rng, starts, sizes, backbone, homes)
    local = _in_domains(rng, starts, sizes, degree.stub)
    parts = ((np.concatenate(inner), ranges.transit), (access, ranges.access), (local, ranges.stub))
    pairs = np.concatenate([part for part, _ in parts])
    prices = np.concatenate([rng.uniform(*span, size=len(part)) for part, span in parts])
    return _network(backbone + int(sizes.sum()), pairs, prices)


def grid(rows: int, columns: int, seed: int, costs: Span = (1.0, 10.0)) -> Network:
    """Sites in rows and columns, each linked to the next in both."""
    _at_least(rows * columns, 1)
    number = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack((number[:, :-1].ravel(), number[:, 1:].ravel()), axis=1)
    down = np.stack((number[:-1].ravel(), number[1:].ravel()), axis=1)
    pairs = np.concatenate((across, down))
    rng = np.random.default_rng(seed)
    return _network(rows * columns, pairs, rng.uniform(*costs, size=len(pairs)))


def random_tree(sites: int, seed: int, costs: Span = (1.0, 10.0)) -> Network:
    """Every site is linked to a random one before it."""
    _at_least(sites, 1)
    rng = np.random.default_rng(seed)
    before = (rng.random(sites - 1) * np.arange(1, sites)).astype(np.int64)
    pairs = np.stack((before, np.arange(1, sites)), axis=1)
    return _network(sites, pairs, rng.uniform(*costs, size=sites - 1))


def random_geometric(sites: int, seed: int, degree: float = 6.0) -> Network:
    """Random points in a square of side 100; near ones are linked, at their distance. The shortest tree over
    all of them is linked too, since near ones alone need not hang together."""
    _at_least(sites, 1)
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 100.0, size=(sites, 2))
    reach = 100.0 * np.sqrt(degree / (np.pi * sites))
    near = cKDTree(points).query_pairs(reach, output_type="ndarray").astype(np.int64)
    pairs = np.unique(np.concatenate((near, _shortest_tree(points))), axis=0)
    length = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    return _network(sites, pairs, np.maximum(length, 1e-3))


def _shortest_tree(points: NDArray[np.float64]) -> Pairs:
    """It is part of the Delaunay triangulation; fewer than four points need none."""
    count = len(points)
    if count < 4:
        pairs = np.array([(a, b) for a in range(count) for b in range(a + 1, count)], dtype=np.int64)
    else:
        corners = Delaunay(points).simplices
        pairs = np.concatenate((corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]))
    pairs = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0).astype(np.int64)
    length = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    tree = minimum_spanning_tree(coo_array((length, (pairs[:, 0], pairs[:, 1])), shape=(count, count)))
    return np.sort(np.stack(tree.nonzero(), axis=1), axis=1).astype(np.int64)


def _in_domains(rng: np.random.Generator, starts: Ints, sizes: Ints, degree: float) -> Pairs:
    """Links inside domains, drawn for all domains of one size at once."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for size in np.unique(sizes):
        which = starts[sizes == size]
        found.append(_connected(rng, which, int(size), degree))
    return np.concatenate(found)


def _connected(rng: np.random.Generator, starts: Ints, size: int, degree: float) -> Pairs:
    """A random tree in each domain, and each other pair with the chance that gives the wanted degree."""
    if size < 2:
        return np.zeros((0, 2), dtype=np.int64)
    a, b = np.triu_indices(size, 1)
    spare = len(a) - (size - 1)
    more = max(0.0, degree * size / 2 - (size - 1)) / spare if spare else 0.0
    linked = rng.random((len(starts), len(a))) < more
    position = np.zeros((size, size), dtype=np.int64)
    position[a, b] = np.arange(len(a))
    for child in range(1, size):
        parent = rng.integers(0, child, size=len(starts))
        linked[np.arange(len(starts)), position[parent, child]] = True
    domain, pair = np.nonzero(linked)
    return np.stack((starts[domain] + a[pair], starts[domain] + b[pair]), axis=1)


def _between_domains(rng: np.random.Generator, starts: Ints, sizes: Ints, degree: float) -> Pairs:
    """Links between transit domains, each between random members."""
    ends = _connected(rng, np.zeros(1, dtype=np.int64), len(starts), degree)
    return starts[ends] + (rng.random(ends.shape) * sizes[ends]).astype(np.int64)


def _access(
    rng: np.random.Generator, starts: Ints, sizes: Ints, backbone: int, homes: tuple[int, int]
) -> Pairs:
    """From random members of each stub domain to its own transit site, and to others if it has more homes."""
    count = len(starts)
    wanted = rng.integers(homes[0], homes[1] + 1, size=count)
    own, turn = np.arange(count) % backbone, rng.integers(0, max(1, backbone - 1), size=count)
    found = []
    for home in range(homes[1]):
        # Never twice the same: the others are taken in turn from a random one on.
        other = own if home == 0 else (own + 1 + (turn + home - 1) % (backbone - 1)) % backbone
        member = starts + (rng.random(count) * sizes).astype(np.int64)
        found.append(np.stack((other, member), axis=1)[wanted > home])
    return np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int64)


def _even(total: int, parts: int) -> list[int]:
    """Sizes that differ by one at most, the larger ones first."""
    size, over = divmod(total, parts)
    return [size + 1] * over + [size] * (parts - over)


def _network(sites: int, pairs: Pairs, prices: NDArray[np.float64]) -> Network:
    """Costs with three decimals: what a file shows is what is planned with."""
    links = zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), np.round(prices, 3).tolist(), strict=True)
    return Network(tuple(range(sites)), tuple(links))


def _at_least(sites: int, least: int) -> None:
    if sites < max(1, least):
        raise UserError(f"a network of {sites} sites is too small", hint=f"At least {max(1, least)}.")
