"""The placement problem in a file: read strictly, each wrong value told with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING

from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, check_ids, described, shown
from headrace.service.solve_network import MOST_OFFERED, Sites, read_name, read_network, three

if TYPE_CHECKING:
    from headrace.planners.placement.problem import BaseStream, Filter, PlacementProblem, Query

LARGEST_RATE = 1e12
LARGEST_SELECTIVITY = 1e12
LARGEST_WIDTH = 1e12
LARGEST_CPU = 1e300
SAFE_DIGITS = 280
"""Products of fewer decimal digits than that stay far from what a float can hold, whatever they cost."""
ROUNDING = 1e-9

REQUIRED = ("sites", "streams", "queries")
OPTIONAL = ("links", "costs", "selectivities", "reuse", "sinks", "filters", "cpu", "forbidden")


@dataclass(frozen=True, slots=True)
class Given:
    """A problem, and the ids of its queries as they were written: texts or numbers."""

    problem: PlacementProblem
    ids: Mapping[str, str | int]


def read_placement(file: ProblemFile) -> Given:
    """Raises UserError at the place of what is wrong."""
    from headrace.planners.placement.problem import PlacementProblem

    body = file.mapping(file.body(), (), REQUIRED, OPTIONAL)
    network, sites = read_network(file, body)
    streams = _streams(file, body["streams"], sites)
    filters = _filters(file, body.get("filters", {}), streams)
    items = file.items(body["queries"], ("queries",), "query")
    ids = _ids(file, items)
    queries = tuple(
        _query(file, item, number, str(ids[number]), sites, streams, filters)
        for number, item in enumerate(items)
    )
    problem = PlacementProblem(
        network=network,
        streams=streams,
        selectivities=_selectivities(file, body.get("selectivities", []), streams),
        queries=queries,
        reuse=file.flag(body.get("reuse", True), ("reuse",)),
        sinks=file.flag(body.get("sinks", False), ("sinks",)),
        filters=filters,
        cpu=_cpu(file, body.get("cpu", {}), sites),
        forbidden=_forbidden(file, body.get("forbidden", []), sites),
    )
    _check_rates(file, problem)
    return Given(problem, {str(name): name for name in ids})


def _streams(file: ProblemFile, value: object, sites: Sites) -> dict[str, BaseStream]:
    from headrace.planners.placement.problem import BaseStream

    found: dict[str, BaseStream] = {}
    for name, item in file.entries(value, ("streams",)).items():
        trail: Trail = ("streams", name)
        stream = file.mapping(item, trail, ("site", "rate"), ("width",))
        site = sites.at(stream["site"], (*trail, "site"))
        rate = file.number(stream["rate"], (*trail, "rate"), 0, LARGEST_RATE)
        width = file.number(stream.get("width", 1), (*trail, "width"), 0, LARGEST_WIDTH)
        found[name] = BaseStream(name, site, rate, width)
    return found


def _selectivities(
    file: ProblemFile, value: object, streams: Mapping[str, BaseStream]
) -> dict[frozenset[str], float]:
    """Above 0: a join that never gives a row would make every way to its reader free, also one that does not
    exist."""
    found: dict[frozenset[str], float] = {}
    first: dict[frozenset[str], int] = {}
    for number, item in enumerate(file.items(value, ("selectivities",))):
        trail: Trail = ("selectivities", number)
        a, b, share = three(file, item, trail, "[stream, stream, selectivity]")
        pair = frozenset((_known(file, a, (*trail, 0), streams), _known(file, b, (*trail, 1), streams)))
        if len(pair) == 1:
            raise file.wrong((*trail, 1), f"{shown(trail)} names stream {described(a)} twice")
        if first.setdefault(pair, number) != number:
            hint = f"selectivities[{first[pair]}] gives it too; the order of the two does not matter."
            raise file.wrong(
                trail, f"the selectivity of {described(a)} and {described(b)} is given twice", hint
            )
        found[pair] = file.number(share, (*trail, 2), 0, LARGEST_SELECTIVITY)
    return found


def _known(
    file: ProblemFile, value: object, trail: Trail, streams: Iterable[str], what: str = "stream"
) -> str:
    """The name of something that the problem has."""
    if not isinstance(value, str):
        raise file.wrong(trail, f"{shown(trail)} must be the name of a {what}, not {described(value)}")
    names = streams if isinstance(streams, Mapping) else list(streams)
    if value not in names:
        hint = did_you_mean(value, names, f"{what}s") if len(names) <= MOST_OFFERED else ""
        raise file.wrong(trail, f"{shown(trail)}: there is no {what} {described(value)}", hint)
    return value


def _ids(file: ProblemFile, items: list[object]) -> list[str | int]:
    found: list[str | int] = []
    for number, item in enumerate(items):
        given = isinstance(item, dict) and "id" in item
        name = item["id"] if isinstance(item, dict) and given else f"q{number + 1}"
        found.append(read_name(file, name, ("queries", number, "id")))
    check_ids(file, [str(name) for name in found], items)
    return found


def _query(
    file: ProblemFile,
    item: object,
    number: int,
    id: str,
    sites: Sites,
    streams: Mapping[str, BaseStream],
    filters: Mapping[str, Filter],
) -> Query:
    from headrace.planners.placement.problem import Query

    trail: Trail = ("queries", number)
    query = file.mapping(item, trail, ("streams", "sink"), ("id", "filters", "widths"))
    names = _joined(file, query["streams"], (*trail, "streams"), streams)
    sink = sites.at(query["sink"], (*trail, "sink"))
    own = _own_filters(file, query.get("filters", {}), (*trail, "filters"), names, filters)
    widths = _widths(file, query.get("widths", {}), (*trail, "widths"), names, streams)
    return Query(id, names, sink, own, widths)


def _joined(
    file: ProblemFile, value: object, trail: Trail, streams: Mapping[str, BaseStream]
) -> tuple[str, ...]:
    from headrace.planners.placement.problem import MOST_STREAMS

    items = file.items(value, trail, "stream")
    if len(items) > MOST_STREAMS:
        raise file.wrong(trail, f"{shown(trail)} must be at most {MOST_STREAMS}, not {len(items)}")
    found: list[str] = []
    for i, item in enumerate(items):
        name = _known(file, item, (*trail, i), streams)
        if name in found:
            hint = "A stream joined with itself is two streams: give the second a name of its own."
            raise file.wrong((*trail, i), f'{shown(trail)} names stream "{name}" twice', hint)
        found.append(name)
    return tuple(found)


def _own_filters(
    file: ProblemFile,
    value: object,
    trail: Trail,
    names: tuple[str, ...],
    filters: Mapping[str, Filter],
) -> dict[str, str]:
    found: dict[str, str] = {}
    for stream, item in file.entries(value, trail).items():
        _of_query(file, stream, (*trail, stream), names)
        name = _known(file, item, (*trail, stream), filters, "filter")
        if filters[name].stream != stream:
            message = f'filter "{name}" is one of stream "{filters[name].stream}", not of "{stream}"'
            raise file.wrong((*trail, stream), message)
        found[stream] = name
    return found


def _widths(
    file: ProblemFile,
    value: object,
    trail: Trail,
    names: tuple[str, ...],
    streams: Mapping[str, BaseStream],
) -> dict[str, float]:
    found: dict[str, float] = {}
    for stream, item in file.entries(value, trail).items():
        _of_query(file, stream, (*trail, stream), names)
        found[stream] = file.number(item, (*trail, stream), 0, LARGEST_WIDTH)
        if found[stream] > streams[stream].width:
            message = f'{shown((*trail, stream))} is {described(item)}, more than the whole row of "{stream}"'
            hint = f"Its width is {streams[stream].width:g}."
            raise file.wrong((*trail, stream), message, hint)
    return found


def _of_query(file: ProblemFile, stream: str, trail: Trail, names: tuple[str, ...]) -> None:
    if stream not in names:
        message = f'"{stream}" is not one of the streams of {shown(trail[:2])}'
        raise file.wrong(trail, message, did_you_mean(stream, names, "streams"), at_key=True)


def _filters(file: ProblemFile, value: object, streams: Mapping[str, BaseStream]) -> dict[str, Filter]:
    from headrace.planners.placement.problem import Filter

    items = file.entries(value, ("filters",))
    found: dict[str, Filter] = {}
    for name, item in items.items():
        trail: Trail = ("filters", name)
        one = file.mapping(item, trail, ("stream", "selectivity"), ("within",))
        stream = _known(file, one["stream"], (*trail, "stream"), streams)
        share = file.number(one["selectivity"], (*trail, "selectivity"), 0, 1)
        wider = file.items(one.get("within", []), (*trail, "within"))
        within = frozenset(
            _known(file, other, (*trail, "within", i), items, "filter") for i, other in enumerate(wider)
        )
        found[name] = Filter(name, stream, share, within)
    return {name: _closed(file, one, found) for name, one in found.items()}


def _closed(file: ProblemFile, one: Filter, filters: Mapping[str, Filter]) -> Filter:
    """The filter with all it is within, directly or not."""
    from headrace.planners.placement.problem import Filter

    trail: Trail = ("filters", one.name, "within")
    found: set[str] = set()
    left = sorted(one.within)
    while left:
        other = filters[left.pop()]
        if other.name == one.name:
            raise file.wrong(trail, f'filter "{one.name}" is within itself', "That goes round in a circle.")
        if other.stream != one.stream:
            message = f'filter "{one.name}" of stream "{one.stream}" cannot be within "{other.name}"'
            raise file.wrong(trail, message, f'That is a filter of stream "{other.stream}".')
        if one.selectivity > other.selectivity * (1 + ROUNDING):
            message = f'filter "{one.name}" takes more rows than "{other.name}", which it is within'
            hint = f"Their selectivities are {one.selectivity:g} and {other.selectivity:g}."
            raise file.wrong(trail, message, hint)
        left += sorted(other.within - found - {other.name})
        found.add(other.name)
    return Filter(one.name, one.stream, one.selectivity, frozenset(found))


def _cpu(file: ProblemFile, value: object, sites: Sites) -> dict[int, float]:
    found: dict[int, float] = {}
    for name, item in file.entries(value, ("cpu",)).items():
        trail: Trail = ("cpu", name)
        site = sites.by_text(name, trail)
        if item == 0 and not isinstance(item, bool):
            raise file.wrong(trail, f"{shown(trail)} must be above 0", 'List the site in "forbidden".')
        found[site] = file.number(item, trail, 0, LARGEST_CPU)
    return found


def _forbidden(file: ProblemFile, value: object, sites: Sites) -> frozenset[int]:
    items = file.items(value, ("forbidden",))
    return frozenset(sites.at(item, ("forbidden", i)) for i, item in enumerate(items))


def _check_rates(file: ProblemFile, problem: PlacementProblem) -> None:
    """Raises UserError where the data of some streams joined may be more, or less, than a float can hold, in
    whatever order rates and selectivities are multiplied."""
    for number, query in enumerate(problem.queries):
        if _digits(problem, query) >= SAFE_DIGITS:
            message = f"the rates and selectivities of queries[{number}] multiply to too much or too little"
            raise file.wrong(("queries", number), message, "Rates of joined streams must fit in a float.")


def _digits(problem: PlacementProblem, query: Query) -> float:
    """At least as many decimal digits, before or after the point, as a product of any of them has."""
    sizes = [problem.streams[name].rate for name in query.streams]
    sizes += [problem.filters[name].selectivity for name in query.filters.values()]
    sizes += [query.widths[name] / problem.streams[name].width for name in query.widths]
    if problem.selectivities:
        pairs = (frozenset((a, b)) for i, a in enumerate(query.streams) for b in query.streams[:i])
        sizes += [problem.selectivities.get(pair, 1.0) for pair in pairs]
    powers = [log10(size) for size in sizes]
    return max(sum(p for p in powers if p > 0), -sum(p for p in powers if p < 0))
