"""The network, prepared once for many queries: cheapest paths between sites, and its blocks.

Up to MOST_DENSE sites all distances are one matrix, made when first asked for. Beyond that there is no
matrix: rows are found on demand and the last ones are kept, and a single distance looks only at the blocks
between its two sites. The exact planner uses links, not distances, so it needs neither.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from headrace.errors import InternalError
from headrace.planners.placement.candidates import Graph, Regions, graph_of
from headrace.planners.placement.graph_kernels import close, distance_row, distance_to
from headrace.planners.placement.problem import Floats, Network, Site

MOST_DENSE = 4096
"""Sites of a network given by links that may have a matrix: 134 MB."""
KEPT_BYTES = 128_000_000
"""For rows of larger networks."""
KEPT_PAIRS = 200_000


class Prepared:
    """What planners ask about the network. Distances are what a unit of data pays; inf: no path."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.graph: Graph | None = graph_of(network) if network.costs is None else None
        """The links without doubles; None: the network is a matrix."""
        self._rows: OrderedDict[Site, Floats] = OrderedDict()
        self._pairs: dict[tuple[Site, Site], float] = {}

    @property
    def size(self) -> int:
        return self.network.size

    @property
    def dense(self) -> bool:
        return self.graph is None or self.size <= MOST_DENSE

    @cached_property
    def regions(self) -> Regions:
        if self.graph is None:
            raise InternalError("placement: a matrix has no blocks")
        return Regions(self.graph)

    def distance(self, a: Site, b: Site) -> float:
        if self.dense:
            return float(self._matrix[a, b])
        if a == b:
            return 0.0
        for one, other in ((a, b), (b, a)):
            if one in self._rows:
                return float(self._rows[one][other])
        return self._pair(min(a, b), max(a, b))

    def between(self, sources: Sequence[Site], targets: Sequence[Site]) -> Floats:
        """A row for each source."""
        if self.dense:
            return self._matrix[np.ix_(list(sources), list(targets))]
        # Links lead both ways, so rows of the fewer will do.
        if len(set(targets)) < len(set(sources)):
            return self.between(targets, sources).T
        columns = np.asarray(targets, dtype=np.int64)
        found = np.empty((len(sources), len(columns)))
        for i, site in enumerate(sources):
            found[i] = self.row(site)[columns]
        return found

    def row(self, site: Site) -> Floats:
        """From a site to every site."""
        if self.dense or self.graph is None:
            found: Floats = self._matrix[site]
            return found
        if site not in self._rows:
            while len(self._rows) * self.size * 8 >= KEPT_BYTES:
                self._rows.popitem(last=False)
            self._rows[site] = distance_row(self.graph.starts, self.graph.indices, self.graph.costs, site)
        self._rows.move_to_end(site)
        return self._rows[site]

    def matrix(self) -> Floats:
        """From every site to every site. Only for networks up to MOST_DENSE sites, or given as a matrix."""
        if not self.dense:
            raise InternalError(f"placement: no matrix of {self.size} x {self.size} distances")
        return self._matrix

    @cached_property
    def _matrix(self) -> Floats:
        if self.graph is None:
            return _closed(np.array(self.network.costs, dtype=float))
        parts = (self.graph.costs, self.graph.indices, self.graph.starts)
        return np.asarray(dijkstra(csr_array(parts, shape=(self.size, self.size)), directed=True))

    def _pair(self, a: Site, b: Site) -> float:
        if (a, b) not in self._pairs:
            if len(self._pairs) >= KEPT_PAIRS:
                self._pairs.clear()
            self._pairs[a, b] = self._between_two(a, b)
        return self._pairs[a, b]

    def _between_two(self, a: Site, b: Site) -> float:
        if not self.regions.connected(a, b):
            return float("inf")
        part = self.regions.between(np.array([a, b]))
        one, two = part.places([a, b])
        return float(distance_to(part.graph.starts, part.graph.indices, part.graph.costs, one, two)[0])


def prepare(network: Network) -> Prepared:
    return Prepared(network)


def _closed(costs: Floats) -> Floats:
    """Cheapest paths through any relays; what the diagonal says does not matter."""
    np.fill_diagonal(costs, 0.0)
    close(costs)
    return costs
