"""The distribution problem as data: operators of query plans, the sites they may run on, where they run now.

A plan is a graph: an operator reads streams and other operators, and several queries may share one. The
paper's query processor is a site, its distribution table a mapping from operator to site.

    load of a site = (cpu of its operators + connection_cpu * its connections
                      + row_cpu * rows it sends and receives over them + what others use there) / its cpu

Rates are rows per second, cpu is cores (seconds of processor time a second), state and memory are bytes;
`width` turns rows into whatever the network capacities count (1: rows).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

Table = Mapping[str, str]
"""Operator -> site: the distribution table."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A base stream. It comes from outside of all sites unless it has a home among them."""

    id: str
    rate: float
    site: str | None = None
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class Operator:
    id: str
    inputs: tuple[str, ...]
    """Operators or streams, in the order of its ports; one may stand there twice."""
    cpu: float = 1.0
    rate: float = 0.0
    """Of its output."""
    state_bytes: float = 0.0
    kind: str = "operator"
    width: float = 1.0
    movable: bool = True


@dataclass(frozen=True, slots=True)
class Query:
    """A plan, named by the operators that give its results; everything they read belongs to it."""

    id: str
    outputs: tuple[str, ...]
    site: str | None = None
    """Where the results are wanted; None: outside of all sites, as in the paper."""


@dataclass(frozen=True, slots=True)
class Site:
    """A query processor. `inf`: no limit."""

    id: str
    cpu: float = 1.0
    memory: float = inf
    network: float = inf
    """Of what leaves it, in rows (times width) a second."""
    connections: float = inf
    """How many remote connections it can serve; the paper's machines took 8 to 12."""
    alive: bool = True
    region: str = ""
    cpu_other: float = 0.0
    """Used there by what is not in this problem, and not to be moved."""
    memory_other: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """What may flow from one site to another, in rows (times width) a second; a missing link has no limit."""

    source: str
    target: str
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Edge:
    """One connection of the plan: `rate` rows a second from a producer to a reader. `None` stands for the
    world outside; a fixed end is the home of a stream or the site of a result."""

    producer: str | None
    reader: str | None
    rate: float
    width: float = 1.0
    fixed: str | None = None
    stream: str | None = None
    """The base stream that is read, where there is no producer."""

    @property
    def operators(self) -> tuple[str, ...]:
        """Those at its ends."""
        return tuple(name for name in (self.producer, self.reader) if name is not None)

    @property
    def given(self) -> str:
        """What flows over it, by name: an operator or a stream."""
        return self.producer or self.stream or ""


@dataclass(frozen=True)
class Problem:
    """Raises ValueError where ids repeat, an input does not exist or the plan goes round in a circle."""

    sites: tuple[Site, ...]
    operators: tuple[Operator, ...]
    queries: tuple[Query, ...] = ()
    streams: tuple[Stream, ...] = ()
    links: tuple[Link, ...] = ()
    connection_cpu: float = 0.0
    row_cpu: float = 0.0
    table: Table = field(default_factory=dict)
    """Where operators run now; empty before the first distribution."""

    def __post_init__(self) -> None:
        for what, ids in (
            ("site", [site.id for site in self.sites]),
            ("operator or stream", [*(one.id for one in self.operators), *(one.id for one in self.streams)]),
            ("query", [query.id for query in self.queries]),
        ):
            if len(set(ids)) != len(ids):
                twice = next(name for name in ids if ids.count(name) > 1)
                raise ValueError(f'{what} "{twice}" is given twice')
        known = self.operator.keys() | self.stream.keys()
        for operator in self.operators:
            for name in operator.inputs:
                if name not in known:
                    raise ValueError(f'operator "{operator.id}" reads "{name}", which does not exist')
        for query in self.queries:
            for name in query.outputs:
                if name not in self.operator:
                    raise ValueError(f'query "{query.id}" gives "{name}", which is no operator')
        _ = self.order

    @cached_property
    def operator(self) -> Mapping[str, Operator]:
        return {one.id: one for one in self.operators}

    @cached_property
    def stream(self) -> Mapping[str, Stream]:
        return {one.id: one for one in self.streams}

    @cached_property
    def site(self) -> Mapping[str, Site]:
        return {one.id: one for one in self.sites}

    @cached_property
    def alive(self) -> tuple[Site, ...]:
        return tuple(site for site in self.sites if site.alive)

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """The operators that read an operator, each once for every time it does."""
        found: dict[str, list[str]] = {one.id: [] for one in self.operators}
        for one in self.operators:
            for name in one.inputs:
                if name in found:
                    found[name].append(one.id)
        return {name: tuple(readers) for name, readers in found.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Operators, each after all it reads; otherwise as they are listed. Raises ValueError."""
        waiting = {one.id: len({n for n in one.inputs if n in self.operator}) for one in self.operators}
        found: list[str] = [name for name, count in waiting.items() if count == 0]
        for name in found:
            for reader in dict.fromkeys(self.readers[name]):
                waiting[reader] -= 1
                if not waiting[reader]:
                    found.append(reader)
        if len(found) != len(self.operators):
            circle = self._circle({name for name, count in waiting.items() if count})
            raise ValueError(f'operator "{circle}" reads itself, directly or not')
        return tuple(found)

    def _circle(self, waiting: Collection[str]) -> str:
        """An operator of a circle, and not one that only reads from it. Each of these reads another one."""
        at = next(one.id for one in self.operators if one.id in waiting)
        seen: set[str] = set()
        while at not in seen:
            seen.add(at)
            at = next(name for name in self.operator[at].inputs if name in waiting)
        return at

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every connection of the plans, as Algorithm 4 of the paper makes them: one for each input of each
        operator and one for each result."""
        return tuple(self._edges())

    def _edges(self) -> Iterator[Edge]:
        for one in self.operators:
            for name in one.inputs:
                stream = self.stream.get(name)
                if stream is None:
                    source = self.operator[name]
                    yield Edge(name, one.id, source.rate, source.width)
                else:
                    yield Edge(None, one.id, stream.rate, stream.width, stream.site, name)
        for query in self.queries:
            for name in query.outputs:
                given = self.operator[name]
                yield Edge(name, None, given.rate, given.width, query.site)

    @cached_property
    def edges_of(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges at an operator; one that reads itself twice from another has both."""
        found: dict[str, list[Edge]] = {one.id: [] for one in self.operators}
        for edge in self.edges:
            for end in (edge.producer, edge.reader):
                if end is not None:
                    found[end].append(edge)
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def rows_in(self) -> Mapping[str, float]:
        """Rows a second that an operator reads."""
        found = dict.fromkeys(self.operator, 0.0)
        for edge in self.edges:
            if edge.reader is not None:
                found[edge.reader] += edge.rate
        return found

    def below(self, outputs: tuple[str, ...]) -> frozenset[str]:
        """The operators that these are made of, themselves included."""
        found: set[str] = set()
        left = list(outputs)
        while left:
            name = left.pop()
            if name in self.operator and name not in found:
                found.add(name)
                left += self.operator[name].inputs
        return frozenset(found)

    @cached_property
    def members(self) -> Mapping[str, frozenset[str]]:
        """Query -> its operators."""
        return {query.id: self.below(query.outputs) for query in self.queries}

    @cached_property
    def plans(self) -> tuple[tuple[str, ...], ...]:
        """The operators query by query, each where it comes first, in the order they are listed; those that
        belong to no query come last."""
        place = {one.id: i for i, one in enumerate(self.operators)}
        seen: set[str] = set()
        found: list[tuple[str, ...]] = []
        for members in (*self.members.values(), frozenset(place)):
            own = sorted(members - seen, key=place.__getitem__)
            seen |= members
            if own:
                found.append(tuple(own))
        return tuple(found)
