"""PlacedNetwork: joins of streams on sites, and the channels between them.

    PlacedStream --Channel--> PlacedJoin --Channel--> ... --Channel--> PlacedQuery

A channel carries what its reader wants of a stream or of a join, cut out where that is made: `Channel.plan`
is its rows, from the scans up. A join's plan is an interval join of the plans of its two channels; a query's
plan is the whole query over the plan of its one. So a job can be cut out of it at any channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from headrace.errors import InternalError
from headrace.plan.logical import IntervalJoin, LogicalPlan, nodes, streams_of


@dataclass(frozen=True, slots=True)
class PlacedStream:
    """A base stream at its home. Its id is more than its name where it is joined in several ways."""

    id: str
    stream: str
    site: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A stream on its way from who makes it to one who reads it."""

    id: str
    source: str
    """Id of a stream or of a join."""
    reader: str
    """Id of a join, or name of a query."""
    path: tuple[str, ...]
    """Every site it passes, both ends included."""
    rate: float
    """Bytes per second."""
    plan: LogicalPlan

    def __post_init__(self) -> None:
        if not self.path or any(a == b for a, b in pairwise(self.path)):
            raise InternalError(f"Channel {self.id}: {' - '.join(self.path)} is no path")
        if not isfinite(self.rate) or self.rate < 0:
            raise InternalError(f"Channel {self.id}: {self.rate} bytes per second")


@dataclass(frozen=True, slots=True)
class PlacedJoin:
    """A join at a site, once for all queries that read it."""

    id: str
    site: str
    inputs: tuple[str, str]
    """Ids of channels."""
    streams: tuple[str, ...]
    """Ids of all base streams below it, sorted."""
    rate: float
    """Bytes per second that it makes: what its readers want together."""
    queries: tuple[str, ...]
    """That read it, directly or through other joins; the first one brought it."""
    plan: IntervalJoin

    def __post_init__(self) -> None:
        if not self.queries or list(self.streams) != sorted(set(self.streams)):
            raise InternalError(f"PlacedJoin {self.id}: no query, or streams twice or in the wrong order")


@dataclass(frozen=True, slots=True)
class PlacedQuery:
    """A query that reads one channel; what it does above its joins is done where its answer goes."""

    query: str
    site: str
    input: str
    """Id of a channel."""
    plan: LogicalPlan
    """The whole query, as it is deployed."""


@dataclass(frozen=True, slots=True)
class PlacedNetwork:
    streams: tuple[PlacedStream, ...]
    joins: tuple[PlacedJoin, ...]
    """A join stands behind those that it reads."""
    queries: tuple[PlacedQuery, ...]
    channels: tuple[Channel, ...]

    def __post_init__(self) -> None:
        made = [one.id for one in self.streams] + [one.id for one in self.joins]
        read = [one.query for one in self.queries]
        for ids in (made, read, [one.id for one in self.channels]):
            if len(set(ids)) != len(ids):
                raise InternalError("PlacedNetwork: an id stands twice")
        _Check(self).all()

    def channel(self, channel_id: str) -> Channel:
        return next(one for one in self.channels if one.id == channel_id)

    def join(self, join_id: str) -> PlacedJoin:
        return next(one for one in self.joins if one.id == join_id)


class _Check:
    """What must hold between the parts. Raises InternalError that names the part."""

    def __init__(self, network: PlacedNetwork) -> None:
        self._all = network
        self._channels = {one.id: one for one in network.channels}
        self._sites = {one.id: one.site for one in network.streams}
        self._below: dict[str, tuple[str, ...]] = {one.id: (one.id,) for one in network.streams}
        self._plans: dict[str, LogicalPlan] = {}
        self._names = {one.id: one.stream for one in network.streams}

    def all(self) -> None:
        for join in self._all.joins:
            self._join(join)
        for query in self._all.queries:
            self._query(query)
        inputs = [c for join in self._all.joins for c in join.inputs] + [q.input for q in self._all.queries]
        if sorted(inputs) != sorted(self._channels):
            raise InternalError("PlacedNetwork: a channel has no reader, or two")
        self._readers()

    def _join(self, join: PlacedJoin) -> None:
        where = f"PlacedNetwork: {join.id}"
        left, right = (self._input(one, join.id, join.site, where) for one in join.inputs)
        streams = (*self._below[left.source], *self._below[right.source])
        if sorted(streams) != list(join.streams):
            raise InternalError(f"{where} joins other streams than its inputs have")
        if join.plan.inputs != (left.plan, right.plan):
            raise InternalError(f"{where} does something else with its inputs than join them")
        self._sites[join.id], self._below[join.id] = join.site, join.streams
        self._plans[join.id] = join.plan

    def _query(self, query: PlacedQuery) -> None:
        where = f"PlacedNetwork: {query.query}"
        channel = self._input(query.input, query.query, query.site, where)
        if channel.plan not in set(nodes(query.plan)):
            raise InternalError(f"{where} does not read its channel")

    def _input(self, channel_id: str, reader: str, site: str, where: str) -> Channel:
        channel = self._channels.get(channel_id)
        if channel is None or channel.reader != reader:
            raise InternalError(f"{where} reads the channel of another")
        source = self._sites.get(channel.source)
        if source is None:
            raise InternalError(f"{where} reads {channel.source}, which nothing before it makes")
        if (channel.path[0], channel.path[-1]) != (source, site):
            raise InternalError(f"{where}: the path of {channel_id} does not lead from {source} to {site}")
        self._rows(channel, where)
        return channel

    def _rows(self, channel: Channel, where: str) -> None:
        """A channel carries rows of its source and of nothing else."""
        made = self._plans.get(channel.source)
        below = {self._names[one] for one in self._below[channel.source]}
        if (made is not None and made not in set(nodes(channel.plan))) or below != set(
            streams_of(channel.plan)
        ):
            raise InternalError(f"{where}: {channel.id} carries something else than {channel.source}")

    def _readers(self) -> None:
        readers: dict[str, set[str]] = {join.id: set() for join in self._all.joins}
        for query in self._all.queries:
            open_ = [self._channels[query.input].source]
            while open_:
                source = open_.pop()
                if source in readers:
                    readers[source].add(query.query)
                    open_ += [self._channels[c].source for c in self._all.join(source).inputs]
        for join in self._all.joins:
            if readers[join.id] != set(join.queries):
                raise InternalError(f"PlacedNetwork: {join.id} is read by others than it says")
