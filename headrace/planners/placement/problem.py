"""The placement problem as data: a network of sites, streams at sites, queries that join sets of streams.

    cost of a deployment = sum over its edges of  data rate * cheapest path from producer to consumer

An edge leads from a base stream, a join or a reused stream to the join that reads it, or to the sink. The
rate of a joined set of streams is the product of its rates and of the selectivities inside it, whatever the
order of the joins, so it belongs to the set. Every deployed join is a derived stream that later queries may
read where it is made, paying only for the way from there.

Sites are numbers here, positions in `Network.sites`; names belong to the edge of the program.

Symbols of the paper: K = streams of a query, N = sites, lambda = rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Site = int
Floats = NDArray[np.float64]
MOST_STREAMS = 12
"""Of one query: the exact planner looks at every subset of them."""


@dataclass(frozen=True)
class Network:
    """Sites and what a unit of data pays from one to another: either links, each in both directions, or a
    full matrix of one-way costs (`inf`: no link). Data takes the cheapest path in both cases."""

    sites: tuple[str | int, ...]
    links: tuple[tuple[Site, Site, float], ...] = ()
    costs: Floats | None = None

    @property
    def size(self) -> int:
        return len(self.sites)

    @cached_property
    def position(self) -> Mapping[str | int, Site]:
        return {name: i for i, name in enumerate(self.sites)}


@dataclass(frozen=True, slots=True)
class BaseStream:
    name: str
    site: Site
    rate: float
    """Rows per unit of time before any filter."""
    width: float = 1.0
    """Size of a whole row; only differences between widths matter, and only to queries that project."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A named condition on one stream and the share of its rows that pass. Every row that passes this filter
    also passes those named in `within`, which must be complete: if a is within b and b in c, a names c."""

    name: str
    stream: str
    selectivity: float
    within: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    streams: tuple[str, ...]
    """Distinct, in the order given."""
    sink: Site
    filters: Mapping[str, str] = field(default_factory=dict)
    """Stream -> name of its filter; a stream without one is taken whole."""
    widths: Mapping[str, float] = field(default_factory=dict)
    """Stream -> size of the columns of a row that the query wants; by default the whole row. Columns are
    nested: a stream cut to width w holds all that a query with width <= w wants."""


@dataclass(frozen=True)
class PlacementProblem:
    network: Network
    streams: Mapping[str, BaseStream]
    selectivities: Mapping[frozenset[str], float]
    """Of pairs of streams; a missing one is 1."""
    queries: tuple[Query, ...]
    reuse: bool = True
    sinks: bool = False
    """Whether a query's result may also be read at its sink, as the paper has it, not only where its last
    join runs."""
    filters: Mapping[str, Filter] = field(default_factory=dict)
    cpu: Mapping[Site, float] = field(default_factory=dict)
    """How many rows per unit of time the joins of a site may read together; a missing site has no limit."""
    forbidden: frozenset[Site] = frozenset()
    """Sites where no join may run; streams and sinks may still be there."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A base stream, read at its own site."""

    stream: str
    site: Site


@dataclass(frozen=True, slots=True)
class Reused:
    """A derived stream that runs already, read where it is made (or at a sink)."""

    derived: int
    """Its number in the table of advertisements (`deployed.Deployed`)."""
    query: str
    """Who deployed it."""
    streams: frozenset[str]
    site: Site
    extra: float = 0.0
    """What it adds to the cost upstream to have this stream hold more rows or columns than it did."""


@dataclass(frozen=True)
class Join:
    left: Tree
    right: Tree
    site: Site

    @cached_property
    def streams(self) -> frozenset[str]:
        return streams_of(self.left) | streams_of(self.right)


Tree = Leaf | Reused | Join


def streams_of(tree: Tree) -> frozenset[str]:
    return frozenset({tree.stream}) if isinstance(tree, Leaf) else tree.streams


def walk(tree: Tree) -> Iterator[Tree]:
    """Every node, inputs before the join that reads them."""
    if isinstance(tree, Join):
        yield from walk(tree.left)
        yield from walk(tree.right)
    yield tree


@dataclass(frozen=True, slots=True)
class Options:
    """How to search. A planner ignores what does not concern it."""

    seed: int = 0
    max_cs: int = 32
    """Top-Down, Bottom-Up, NPC: most sites in one cluster."""
    zones: int = 5
    """In-network."""
    iterations: int = 4000
    """Relaxation: steps of making the cost space, and of relaxing a query in it."""
    seconds: float | None = None
    """Joint optimisation: stop after this time."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The deployment of one query. `cost` is what it adds to the network, given all that ran before."""

    query: str
    tree: Tree
    cost: float
    plans_examined: int
    """Pairs of join order and placement that were compared (the paper's measure); where a dynamic programme
    compares many at once, the number of its comparisons."""
    seconds: float = 0.0
    certified: bool = False
    """No deployment of this query is cheaper, given all that ran before."""
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def reused(self) -> tuple[Reused, ...]:
        return tuple(node for node in walk(self.tree) if isinstance(node, Reused))


@dataclass(frozen=True)
class PlacementPlan:
    """All queries, in the order they were deployed. Costs are recomputed from the trees by `recompute`, which
    shares no code with any planner."""

    planner: str
    queries: tuple[Placed, ...]
    total_cost: float
    seconds: float
    """Planning alone: the network was prepared before."""
    prepare_seconds: float
    compile_seconds: float
    lower_bound: float | None = None
    """No deployment of all queries together is cheaper; None: not computed."""
    notes: Mapping[str, str] = field(default_factory=dict)
