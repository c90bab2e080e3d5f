"""A placement as plain data: the same facts for the terminal, `--json` and the page with the map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.plan.placed_network import Channel, PlacedJoin, PlacedQuery
from headrace.plan.text import format_plan
from headrace.service.network_picture import Flow, NetworkMap, Spot, Table, Wire, amount
from headrace.service.placing import Placing, Whole
from headrace.service.placing_problem import UNLINKED

KEPT_WHOLE = (
    "This says where streams are best joined. `run` keeps each query whole at its own site; "
    "with `planner: {spread: true}` it goes by this."
)
SPREAD = "`run` goes by this (`planner: {spread: true}`), for queries that have not run yet."


class ChannelData(TypedDict):
    """Data on its way; rates are bytes per second, estimated."""

    source: str
    """A stream, or the id of a join."""
    path: list[str]
    rate: float


class StreamData(TypedDict):
    id: str
    """More than its name where it is joined in another way, or twice in a query."""
    stream: str
    site: str


class JoinData(TypedDict):
    join: str
    site: str
    streams: list[str]
    inputs: list[ChannelData]
    rate: float
    queries: list[str]
    text: str
    """Its plan, from the scans up."""


class PlacedQueryData(TypedDict):
    query: str
    site: str
    input: ChannelData
    added_cost: float
    """What it adds to all that was placed before it."""
    reuses: list[str]
    """Joins that other queries brought."""


class WholeData(TypedDict):
    """A job or a tree that is not placed."""

    job: str
    queries: list[str]
    site: str
    reason: str
    brought: list[ChannelData]
    """Streams that come from other sites; an empty path: no links lead there."""


class LinkData(TypedDict):
    between: list[str]
    cost: float
    forth: float
    """Bytes per second, in the order of `between`."""
    back: float
    used: float
    """The larger of the two, as a part of the bandwidth."""


class PlacementData(TypedDict):
    planner: str
    sites: list[str]
    streams: list[StreamData]
    joins: list[JoinData]
    queries: list[PlacedQueryData]
    whole: list[WholeData]
    links: list[LinkData]
    unit: str
    """Of costs: bytes in flight, or nothing where a link has a cost of its own."""
    cost: float
    at_sinks_cost: float
    alone_cost: float
    certified: bool
    """Whether each query is placed as cheaply as can be, given those before it."""
    seconds: float
    notes: list[str]


def placement_data(project: Project, found: Placing) -> PlacementData:
    channels = {channel.id: channel for channel in found.network.channels}
    return PlacementData(
        planner=found.planner,
        sites=[str(site) for site in found.found.problem.network.sites],
        streams=_streams(project, found),
        joins=[_join(join, channels) for join in found.network.joins],
        queries=[_query(found, query, channels) for query in found.network.queries],
        whole=[_whole(one) for one in found.whole],
        links=_links(project, found),
        unit="" if any(link.cost is not None for link in project.links) else "B in flight",
        cost=found.cost,
        at_sinks_cost=found.at_sinks,
        alone_cost=found.alone,
        certified=all(placed.certified for placed in found.plan.queries),
        seconds=found.plan.seconds,
        notes=[*found.notes, SPREAD if project.planner.spread else KEPT_WHOLE],
    )


def _channel(channel: Channel) -> ChannelData:
    return ChannelData(source=channel.source, path=list(channel.path), rate=channel.rate)


def _join(join: PlacedJoin, channels: Mapping[str, Channel]) -> JoinData:
    return JoinData(
        join=join.id,
        site=join.site,
        streams=list(join.streams),
        inputs=[_channel(channels[one]) for one in join.inputs],
        rate=join.rate,
        queries=list(join.queries),
        text=format_plan(join.plan),
    )


def _query(found: Placing, query: PlacedQuery, channels: Mapping[str, Channel]) -> PlacedQueryData:
    placed = next(one for one in found.plan.queries if one.query == query.query)
    reused = [
        join.id
        for join in found.network.joins
        if query.query in join.queries and _first(found, join) != query.query
    ]
    return PlacedQueryData(
        query=query.query,
        site=query.site,
        input=_channel(channels[query.input]),
        added_cost=placed.cost * found.found.scale,
        reuses=reused,
    )


def _first(found: Placing, join: PlacedJoin) -> str:
    """Who brought a join: of its readers the one that was placed first."""
    return next(one.query for one in found.plan.queries if one.query in join.queries)


def _whole(one: Whole) -> WholeData:
    brought = [ChannelData(source=b.stream, path=list(b.path or ()), rate=b.rate) for b in one.brought]
    return WholeData(
        job=one.name, queries=list(one.queries), site=one.site, reason=one.reason, brought=brought
    )


def _links(project: Project, found: Placing) -> list[LinkData]:
    """All links, the most used first."""
    network = found.found.problem.network
    bandwidth = {frozenset(link.between): link.bandwidth for link in project.links}
    rates = _rates(found)
    links: list[LinkData] = []
    for x, y, cost in network.links:
        a, b = str(network.sites[x]), str(network.sites[y])
        forth, back = rates.get((a, b), 0.0), rates.get((b, a), 0.0)
        used = max(forth, back) / bandwidth.get(frozenset((a, b)), UNLINKED.bandwidth)
        links.append(LinkData(between=[a, b], cost=cost, forth=forth, back=back, used=used))
    return sorted(links, key=lambda link: (-max(link["forth"], link["back"]), link["between"]))


def _rates(found: Placing) -> dict[tuple[str, str], float]:
    """Bytes per second from one site to its neighbour."""
    ways = [(channel.path, channel.rate) for channel in found.network.channels]
    ways += [(brought.path or (), brought.rate) for whole in found.whole for brought in whole.brought]
    rates: dict[tuple[str, str], float] = {}
    for path, rate in ways:
        for hop in pairwise(path):
            rates[hop] = rates.get(hop, 0.0) + rate
    return rates


def _streams(project: Project, found: Placing) -> list[StreamData]:
    """Placed ones, and those that are brought to what stays whole."""
    placed = [StreamData(id=one.id, stream=one.stream, site=one.site) for one in found.network.streams]
    names = {brought.stream for whole in found.whole for brought in whole.brought}
    others = sorted(names - {one["id"] for one in placed})
    return placed + [StreamData(id=name, stream=name, site=project.streams[name].site) for name in others]


def placement_map(title: str, data: PlacementData) -> NetworkMap:
    """The network with all that is placed on it."""
    sinks = {one["query"]: one["site"] for one in data["queries"]}
    sinks |= {query: whole["site"] for whole in data["whole"] for query in whole["queries"]}
    spots = tuple(
        Spot(
            site,
            tuple(dict.fromkeys(one["stream"] for one in data["streams"] if one["site"] == site)),
            tuple(_told(join) for join in data["joins"] if join["site"] == site),
            tuple(query for query, at in sinks.items() if at == site),
        )
        for site in data["sites"]
    )
    wires = tuple(
        Wire(link["between"][0], link["between"][1], link["cost"], _price(link["cost"], data["unit"]))
        for link in data["links"]
    )
    return NetworkMap(title, spots, wires, tuple(_flows(data)), "B/s", tuple(head_lines(data)))


def _flows(data: PlacementData) -> Iterator[Flow]:
    of = {join["join"]: f"{', '.join(join['streams'])} ({join['join']})" for join in data["joins"]}
    read = [(join["join"], channel) for join in data["joins"] for channel in join["inputs"]]
    read += [(query["query"], query["input"]) for query in data["queries"]]
    read += [(whole["job"], channel) for whole in data["whole"] for channel in whole["brought"]]
    for reader, channel in read:
        what = f"{of.get(channel['source'], channel['source'])} to {reader}"
        yield Flow(tuple(channel["path"]), channel["rate"], what)


def _told(join: JoinData) -> str:
    return f"{', '.join(join['streams'])} for {', '.join(join['queries'])} ({join['join']})"


def _price(cost: float, unit: str) -> str:
    """Where costs are bytes in flight, that of a link is its latency."""
    return f"{cost * 1000:g} ms" if unit else f"cost {cost:g}"


def head_lines(data: PlacementData) -> list[str]:
    """What it comes to, in two lines."""
    joins, sites = len(data["joins"]), len({join["site"] for join in data["joins"]})
    certified = ", each query as cheaply as can be given those before it" if data["certified"] else ""
    cost, at_sinks, alone = (
        _cost(data[key], data["unit"]) for key in ("cost", "at_sinks_cost", "alone_cost")
    )
    return [
        f"placement: {_count(joins, 'join')} for {_count(len(data['queries']), 'query')} at "
        f"{_count(sites, 'site')} ({data['planner']}{certified})",
        f"{cost}{' in flight' if data['unit'] else ''} instead of {at_sinks} with everything joined at the "
        f"sinks, and {alone} with each query placed alone",
    ]


def _cost(value: float, unit: str) -> str:
    return amount(value, unit.partition(" ")[0])


def _count(number: int, what: str) -> str:
    many = "queries" if what == "query" else f"{what}s"
    return f"{number} {what if number == 1 else many}"


def tables(data: PlacementData) -> list[Table]:
    """Joins, results, links and what stays whole, as cells of text."""
    found = [
        Table(
            "joins",
            ("join", "site", "of", "reads", "makes", "for"),
            tuple(_join_cells(join) for join in data["joins"]),
        ),
        Table(
            "results",
            ("query", "site", "reads", "adds", "reuses"),
            tuple(_query_cells(query, data["unit"]) for query in data["queries"]),
        ),
        Table(
            "links",
            ("link", "there", "back", "of its bandwidth"),
            tuple(_link_cells(link) for link in data["links"] if link["forth"] or link["back"]),
        ),
    ]
    if data["whole"]:
        cells = tuple(_whole_cells(one) for one in data["whole"])
        found.append(Table("not placed", ("job", "site", "why", "brings"), cells))
    return found


def _join_cells(join: JoinData) -> tuple[str, ...]:
    reads = "; ".join(map(_from, join["inputs"]))
    made = amount(join["rate"], "B/s")
    return join["join"], join["site"], ", ".join(join["streams"]), reads, made, ", ".join(join["queries"])


def _query_cells(query: PlacedQueryData, unit: str) -> tuple[str, ...]:
    added = _cost(query["added_cost"], unit)
    return query["query"], query["site"], _from(query["input"]), added, ", ".join(query["reuses"])


def _link_cells(link: LinkData) -> tuple[str, ...]:
    forth, back = (amount(link[way], "B/s") if link[way] else "" for way in ("forth", "back"))
    return " - ".join(link["between"]), forth, back, f"{link['used']:.2g}"


def _whole_cells(one: WholeData) -> tuple[str, ...]:
    return one["job"], one["site"], one["reason"], "; ".join(map(_from, one["brought"]))


def _from(channel: ChannelData) -> str:
    """Where a stream is read from, with its rate."""
    rate = amount(channel["rate"], "B/s")
    path = channel["path"]
    if not path:
        return f"{channel['source']} cannot reach it"
    where = "here" if len(path) == 1 else f"from {path[0]}"
    return f"{channel['source']} {where} {rate}"


def query_lines(data: PlacementData, name: str) -> list[str]:
    """Where the joins of one query are best done, or why it stays whole."""
    for one in data["queries"]:
        if one["query"] == name:
            joins = [_line(join, name) for join in data["joins"] if name in join["queries"]]
            added = _cost(one["added_cost"], data["unit"])
            return [
                *joins,
                f"result at {one['site']}: {_from(one['input'])}, adding {added}",
                data["notes"][-1],
            ]
    return [
        f"whole at {whole['site']}: {'; '.join([whole['reason'], *map(_from, whole['brought'])])}"
        for whole in data["whole"]
        if name in whole["queries"]
    ]


def _line(join: JoinData, name: str) -> str:
    others = [query for query in join["queries"] if query != name]
    shared = f", also for {', '.join(others)}" if others else ""
    return f"{join['join']} at {join['site']}: {'; '.join(map(_from, join['inputs']))}{shared}"
