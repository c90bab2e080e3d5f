"""A placement plan as what runs and what travels: each join once with all who read it, each edge with its
data rate and the sites it passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.errors import InternalError
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.problem import (
    Join,
    Network,
    Placed,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    streams_of,
)
from headrace.planners.placement.rates import Held, data_rate, together, wanted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_NOWHERE = -9999
"""What scipy says in the place of a predecessor that is not there."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream from where it is made to one who reads it."""

    streams: frozenset[str]
    source: Site
    target: Site
    rate: float
    made_by: int | None
    """The join that makes it; None: a base stream."""


Route = Callable[[Edge], tuple[Site, ...]]
"""The sites that an edge passes, both ends included."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A join that runs, once for all its readers."""

    number: int
    streams: frozenset[str]
    site: Site
    inputs: tuple[Edge, Edge]
    readers: tuple[str, ...]
    """Queries, in the order of the problem; the first made it."""
    holding: Mapping[str, Held]
    """What it keeps of each stream."""
    rate: float
    """Of its output, as its readers together want it."""


@dataclass(frozen=True, slots=True)
class Flows:
    operators: Mapping[int, Operator]
    """By number, inputs before their readers."""
    results: Mapping[str, Edge]
    """Query -> its way to the sink."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        inner = (edge for one in self.operators.values() for edge in one.inputs)
        return (*inner, *self.results.values())


def flows_of(problem: PlacementProblem, placed: Sequence[Placed]) -> Flows:
    """The plan of queries in the order they were deployed."""
    queries = {query.id: query for query in problem.queries}
    deployed, numbers = Deployed(problem, lambda a, b: 0.0), dict[tuple[frozenset[str], Site, str], int]()
    tops: dict[str, int | None] = {}
    for one in placed:
        tree = _renumbered(one.tree, numbers)
        deployed.add(queries[one.query], tree)
        for number, made in deployed.derived.items():
            numbers.setdefault((made.streams, made.site, made.query), number)
        tops[one.query] = _top(tree, numbers, one.query)
    at_sinks = {number: made for number, made in deployed.derived.items() if made.at_sink}
    order = [query.id for query in problem.queries]
    operators: dict[int, Operator] = {}
    for number, made in deployed.derived.items():
        if number in at_sinks:
            continue
        readers = tuple(name for name in order if name in made.readers)
        holding = held_by(problem, [queries[name] for name in readers], made.streams)
        edges = tuple(
            Edge(streams, site, made.site, data_rate(problem, holding, streams), _origin(source, deployed))
            for streams, site, source in made.inputs
        )
        rate = data_rate(problem, holding, made.streams)
        operators[number] = Operator(
            number, made.streams, made.site, (edges[0], edges[1]), readers, holding, rate
        )
    results = {
        one.query: _result(problem, queries[one.query], one, tops[one.query], deployed) for one in placed
    }
    return Flows(operators, results)


def _renumbered(tree: Tree, numbers: Mapping[tuple[frozenset[str], Site, str], int]) -> Tree:
    """What is reused by its number here: a planner that deployed queries again counts otherwise."""
    if isinstance(tree, Join):
        return Join(_renumbered(tree.left, numbers), _renumbered(tree.right, numbers), tree.site)
    if isinstance(tree, Reused):
        found = numbers.get((tree.streams, tree.site, tree.query))
        if found is None:
            raise InternalError(f"placement: nobody made {', '.join(sorted(tree.streams))} before")
        return replace(tree, derived=found)
    return tree


def _top(tree: Tree, numbers: Mapping[tuple[frozenset[str], Site, str], int], query: str) -> int | None:
    if isinstance(tree, Reused):
        return tree.derived
    return numbers[tree.streams, tree.site, query] if isinstance(tree, Join) else None


def _origin(number: int | None, deployed: Deployed) -> int | None:
    """The join behind a result that is read at its sink."""
    while number is not None and deployed.derived[number].at_sink:
        number = deployed.derived[number].inputs[0][2]
    return number


def held_by(problem: PlacementProblem, readers: Sequence[Query], streams: frozenset[str]) -> dict[str, Held]:
    """What a join of these streams keeps of each, for all its readers."""
    every = [wanted(problem, reader) for reader in readers]
    return {name: together(problem, [one[name] for one in every]) for name in sorted(streams)}


def _result(
    problem: PlacementProblem, query: Query, placed: Placed, top: int | None, deployed: Deployed
) -> Edge:
    rate = data_rate(problem, wanted(problem, query), query.streams)
    streams = streams_of(placed.tree)
    return Edge(streams, placed.tree.site, query.sink, rate, _origin(top, deployed))


@dataclass(slots=True)
class Paths:
    """The cheapest path between two sites, site by site. A source is searched from once."""

    network: Network
    _graph: csr_array = field(init=False)
    _before: dict[Site, NDArray[np.int32]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._graph = _graph(self.network)

    def between(self, source: Site, target: Site) -> tuple[Site, ...]:
        """Both ends included; one site where they are the same. Raises InternalError where there is none."""
        from scipy.sparse.csgraph import dijkstra

        if source not in self._before:
            self._before[source] = dijkstra(
                self._graph, directed=True, indices=source, return_predecessors=True
            )[1]
        path = [target]
        while path[-1] != source:
            previous = int(self._before[source][path[-1]])
            if previous == _NOWHERE:
                raise InternalError(f"no path from site {source} to site {target}")
            path.append(previous)
        return tuple(reversed(path))


def _graph(network: Network) -> csr_array:
    from scipy.sparse import csr_array

    size = network.size
    if network.costs is not None:
        rows, columns = np.nonzero(np.isfinite(network.costs) & ~np.eye(size, dtype=bool))
        return csr_array((network.costs[rows, columns], (rows, columns)), shape=(size, size))
    cheapest: dict[tuple[Site, Site], float] = {}
    for a, b, cost in network.links:
        for pair in ((a, b), (b, a)):
            cheapest[pair] = min(cost, cheapest.get(pair, cost))
    ends = np.array(list(cheapest), dtype=np.int64).reshape(-1, 2)
    return csr_array((np.array(list(cheapest.values()), dtype=float), ends.T), shape=(size, size))
