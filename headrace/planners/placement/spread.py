"""Data that can start at many sites, each at a price, carried over the links to every site.

    f(n) = min over m of  start(m) + rate * distance(m, n)

One search for cheapest paths from an imagined site that is linked to every m at start(m): O(links * log
sites), where a matrix of distances would be too large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from headrace.planners.placement.candidates import Graph
from headrace.planners.placement.problem import Floats

Ints = NDArray[np.int64]


class Spread:
    def __init__(self, graph: Graph) -> None:
        self._size = len(graph.starts) - 1
        self._costs = np.asarray(graph.costs, dtype=float)
        self._indices = np.asarray(graph.indices, dtype=np.int32)
        self._starts = np.asarray(graph.starts, dtype=np.int32)

    def carry(self, start: Floats, rate: float) -> tuple[Floats, Ints]:
        """f, and for each site the m it comes from (-1: no path). `start`: inf where nothing starts."""
        size, at = self._size, np.flatnonzero(np.isfinite(start)).astype(np.int32)
        graph = csr_array(
            (
                np.concatenate((self._costs * rate, start[at])),
                np.concatenate((self._indices, at)),
                np.concatenate((self._starts, [len(self._costs) + len(at)])),
            ),
            shape=(size + 1, size + 1),
        )
        found, before = dijkstra(graph, indices=size, return_predecessors=True)
        return np.asarray(found[:size]), _origins(np.asarray(before, dtype=np.int64), size)


def _origins(before: Ints, root: int) -> Ints:
    """Follows every path back to the site after the root, all paths at once and twice as far each time."""
    everyone = np.arange(root)
    known = before[:root]
    jump = np.where((known == root) | (known < 0), everyone, known)
    while True:
        further = jump[jump]
        if np.array_equal(further, jump):
            return np.where(known < 0, -1, jump)
        jump = further
