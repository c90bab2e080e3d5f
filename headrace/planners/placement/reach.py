"""Whether a query can be deployed at all.

Holds exactly when there is a site that may join, that all streams of the query reach, and that reaches the
sink: then all joins can run there. Reused streams change nothing: where one can be read, its base streams
can be brought too. A query over one stream needs no join, only a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from headrace.errors import UserError
from headrace.planners.placement.problem import Network, PlacementProblem, Query, Site

Mask = NDArray[np.bool_]


class NoDeployment(UserError):
    """A query that cannot be deployed, by its position, and why."""

    def __init__(self, query: int, stream: int | None, message: str, hint: str, detail: str = "") -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.query = query
        self.stream = stream
        """Position of the stream that does not reach the sink; None: all do, but no site may join
        them, or has the CPU to."""


def check_reach(problem: PlacementProblem) -> None:
    """Raises NoDeployment for the first query that cannot be deployed. O(sites + links), and as much again
    for each stream's site that is not connected with all others."""
    reach = _Reach(problem.network)
    allowed = np.ones(problem.network.size, dtype=np.bool_)
    allowed[list(problem.forbidden)] = False
    for number, query in enumerate(problem.queries):
        at = [problem.streams[name].site for name in query.streams]
        lost = next((i for i, site in enumerate(at) if not reach.reaches(site, query.sink)), None)
        if lost is not None:
            raise _no_path(problem, query, number, lost)
        if len(at) > 1 and not allowed[query.sink] and not reach.meets(at, query.sink, allowed):
            says = f'query "{query.id}" cannot be deployed: no site that may join is on the way to its sink'
            raise NoDeployment(number, None, says, "Every such site is forbidden.")


def _no_path(problem: PlacementProblem, query: Query, number: int, lost: int) -> NoDeployment:
    name, sites = query.streams[lost], problem.network.sites
    source = sites[problem.streams[name].site]
    says = f'query "{query.id}" cannot be deployed: stream "{name}" cannot reach its sink'
    return NoDeployment(number, lost, says, f"There is no path from {source} to {sites[query.sink]}.")


@dataclass(slots=True)
class _Reach:
    network: Network
    _graph: csr_array = field(init=False)
    _part: NDArray[np.int32] = field(init=False)
    """Sites with the same number reach each other."""
    _from: dict[Site, Mask] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._graph = _graph(self.network)
        self._part = connected_components(self._graph, directed=True, connection="strong")[1]

    def reaches(self, source: Site, target: Site) -> bool:
        return bool(self._part[source] == self._part[target] or self.reached(source)[target])

    def reached(self, source: Site) -> Mask:
        if source not in self._from:
            self._from[source] = _found(self._graph, source)
        return self._from[source]

    def meets(self, sources: Sequence[Site], sink: Site, allowed: Mask) -> bool:
        """Whether some allowed site is reached by all sources and reaches the sink."""
        if (allowed & (self._part == self._part[sink])).any():
            return True
        common = allowed & _found(self._graph.T.tocsr(), sink)
        for source in set(sources):
            common &= self.reached(source)
        return bool(common.any())


def _found(graph: csr_array, start: Site) -> Mask:
    """The sites that a search from `start` finds."""
    found = np.zeros(graph.shape[0], dtype=np.bool_)
    found[breadth_first_order(graph, start, return_predecessors=False)] = True
    return found


def _graph(network: Network) -> csr_array:
    """Who is linked to whom. Every link weighs 1: one that costs nothing is still a link."""
    if network.costs is not None:
        rows, columns = np.nonzero(np.isfinite(network.costs))
    else:
        ends = np.array([(a, b) for a, b, _ in network.links], dtype=np.int64).reshape(-1, 2)
        rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(network.size, network.size))
