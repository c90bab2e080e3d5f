"""The part of a network that can matter to a query: the blocks on paths between its terminals.

Terminals are the sites where the query's streams can be had, and the sink. A block is a largest part that no
single site cuts in two. Blocks and the sites they share form a tree.

**No join needs a site outside.** Let P be a part that hangs at a site c, with no terminal in it but maybe c.
All data of joins in P enters and leaves through c. Move these joins to c: an edge between them now costs
nothing, an edge to or from x outside ran over c, so it does not get longer. If no join may run at c, move
them to q, the nearest site to c that may: an edge between x and a join at p in P cost its rate times
d(x, c) + d(c, p), and d(c, q) <= d(c, p), so it does not get longer either. Hence all joins can be in the
region R of the terminals, or at q(c) of a forbidden c in R; and data between such sites stays in the region
of the terminals and these q. The region has all distances right: a cheapest path between two sites of a
block stays in the block, or can. (Needs links that lead both ways at one cost, as `Network.links` do.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.planners.placement.graph_kernels import blocks_of, part_of, region_of, spread
from headrace.planners.placement.jit import Floats, Small
from headrace.planners.placement.problem import Network, Site


@dataclass(frozen=True, slots=True)
class Graph:
    """Links of site u: indices and costs at starts[u]:starts[u + 1]. No loops, no doubles."""

    starts: Small
    indices: Small
    costs: Floats

    @property
    def size(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True)
class Region:
    """Some sites, and the links between them; inside they are numbered by their place in `sites`."""

    sites: Small
    """By rising number."""
    graph: Graph

    def places(self, sites: Sequence[Site] | NDArray[np.integer]) -> list[int]:
        return [int(place) for place in np.searchsorted(self.sites, sites)]


def graph_of(network: Network) -> Graph:
    """The cheapest of parallel links counts; a link from a site to itself says nothing."""
    links = np.array(network.links, dtype=np.float64).reshape(-1, 3)
    links = links[(links[:, 0] != links[:, 1]) & (links[:, 2] < np.inf)]
    tails = np.concatenate((links[:, 0], links[:, 1])).astype(np.int64)
    heads = np.concatenate((links[:, 1], links[:, 0])).astype(np.int64)
    costs = np.concatenate((links[:, 2], links[:, 2]))
    order = np.lexsort((costs, heads, tails))
    tails, heads, costs = tails[order], heads[order], costs[order]
    first = np.ones(len(tails), dtype=np.bool_)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    starts = np.zeros(network.size + 1, dtype=np.int32)
    starts[1:] = np.cumsum(np.bincount(tails[first], minlength=network.size))
    return Graph(starts, heads[first].astype(np.int32), costs[first])


class Regions:
    """The tree of blocks, made once for a network. A region is found in O(sites) simple steps."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._home, self._top, self._component, self._first, self._members = blocks_of(
            graph.starts, graph.indices
        )
        self._scratch = np.full(graph.size, -1, dtype=np.int32)

    def connected(self, a: Site, b: Site) -> bool:
        return bool(self._component[a] == self._component[b])

    def between(self, terminals: NDArray[np.integer]) -> Region:
        """The region of terminals that are all connected."""
        sites = self._sites(terminals)
        graph = self._graph
        return Region(sites, Graph(*part_of(graph.starts, graph.indices, graph.costs, sites, self._scratch)))

    def for_joins(self, terminals: NDArray[np.integer], nearest: Small | None) -> Region:
        """The region where a query's joins can be. `nearest`: for every site the nearest one that may join,
        -1 if there is none; None: all may."""
        if nearest is None:
            return self.between(terminals)
        sites = self._sites(terminals)
        other = nearest[sites]
        more = other[(other >= 0) & (other != sites)]
        return self.between(np.concatenate((terminals, more)))

    def nearest_allowed(self, forbidden: Iterable[Site]) -> Small:
        """For every site the nearest one that is not forbidden; -1: none can be reached."""
        graph = self._graph
        nearest = np.arange(graph.size, dtype=np.int32)
        label = np.zeros(graph.size)
        label[list(forbidden)], nearest[list(forbidden)] = np.inf, -1
        first = np.flatnonzero(label == 0.0).astype(np.int32)
        spread(graph.starts, graph.indices, graph.costs, label, nearest, first)
        return nearest

    def _sites(self, terminals: NDArray[np.integer]) -> Small:
        where = np.unique(terminals).astype(np.int32)
        return region_of(where, self._home, self._top, self._first, self._members, self._graph.size)
