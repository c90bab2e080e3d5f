"""The admission problem in a file: read strictly, each wrong value told with its place.

Hosts, streams and queries are named by texts or whole numbers, and written everywhere as where they are
given. A thousand queries with ten thousand rates must load at once, so nothing is looked at twice unless it
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.service.problem_file import ProblemFile, Trail, described, shown
from headrace.service.solve_admission_names import (
    LARGEST_LIMIT,
    LARGEST_RATE,
    LEAST_LIMIT,
    Known,
    Name,
    by_set,
    known,
    named,
)
from headrace.service.solve_admission_queries import Asked, read_queries
from headrace.service.solve_admission_running import Names, read_running
from headrace.service.solve_network import read_name

if TYPE_CHECKING:
    from headrace.planners.admission.observed import Running
    from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Query, Stream, Weights

LARGEST_COST = 1e12
LARGEST_WEIGHT = 1e12
MOST_HOSTS = 10_000

REQUIRED = ("hosts", "link_bandwidth", "streams", "queries")
OPTIONAL = ("rates", "selectivities", "operator_cost", "memory_cost", "running", "observed", "weights")


@dataclass(frozen=True, slots=True)
class Given:
    """A problem, and its streams and queries as they were written."""

    problem: AdmissionProblem
    streams: Mapping[str, Name]
    """In the order of the file."""
    queries: Mapping[str, Name]
    running: Running | None = None
    """To be adapted, in place of queries that arrive."""
    weights: Weights | None = None


def read_admission(file: ProblemFile) -> Given:
    """Raises UserError at the place of what is wrong."""
    from headrace.planners.admission.problem import AdmissionProblem

    body = file.mapping(file.body(), (), REQUIRED, OPTIONAL)
    hosts = _hosts(file, body["hosts"])
    known_hosts = known(file, "host", [host.id for host in hosts])
    bases, names = _streams(file, body["streams"], known_hosts)
    streams = known(file, "stream", names)
    asked = read_queries(file, body["queries"], streams)
    queries = asked.queries
    problem = AdmissionProblem(
        hosts=hosts,
        link_bandwidth=_links(file, body["link_bandwidth"], hosts),
        streams=bases,
        rates=_rates(file, body, streams, bases, queries),
        queries=queries,
        operator_cost=file.amount(body.get("operator_cost", 1), ("operator_cost",), LARGEST_COST),
        memory_cost=file.amount(body.get("memory_cost", 0), ("memory_cost",), LARGEST_COST),
        removals=asked.removals,
    )
    _check_makeable(file, problem, asked.places, "rates" if "rates" in body else "selectivities")
    by_name = {name: i for i, name in enumerate(asked.names)}
    all_known = Names(known_hosts, streams, Known(file, "query", by_name))
    _check_no_removals(file, body, asked)
    return Given(
        problem,
        {str(name): name for name in names},
        {str(name): name for name in asked.names},
        read_running(file, body, problem, all_known),
        _weights(file, body["weights"]) if "weights" in body else None,
    )


def _weights(file: ProblemFile, value: object) -> Weights:
    """Those that are not given are the paper's."""
    from headrace.planners.admission.problem import Weights

    body = file.mapping(value, ("weights",), (), ("admitted", "network", "cpu", "balance"))
    return Weights(**{key: file.amount(one, ("weights", key), LARGEST_WEIGHT) for key, one in body.items()})


def _hosts(file: ProblemFile, value: object) -> tuple[HostLimits, ...]:
    items = file.items(value, ("hosts",), "host")
    if len(items) > MOST_HOSTS:
        raise file.wrong(("hosts",), f"hosts must be at most {MOST_HOSTS:,}, not {len(items):,}")
    return tuple(_host(file, item, ("hosts", number)) for number, item in enumerate(items))


def _host(file: ProblemFile, value: object, trail: Trail) -> HostLimits:
    from headrace.planners.admission.problem import HostLimits

    host = file.mapping(value, trail, ("id", "cpu", "in", "out"), ("memory",))
    cpu, into, out = (_limit(file, host[key], (*trail, key)) for key in ("cpu", "in", "out"))
    memory = float("inf")
    if "memory" in host:
        memory = _limit(file, host["memory"], (*trail, "memory"))
    return HostLimits(read_name(file, host["id"], (*trail, "id")), cpu, into, out, memory)


def _links(file: ProblemFile, value: object, hosts: Sequence[HostLimits]) -> float | NDArray[np.float64]:
    trail: Trail = ("link_bandwidth",)
    if not isinstance(value, list):
        if isinstance(value, dict | str) or value is None:
            message = f"link_bandwidth must be a number or a matrix [[...]], not {described(value)}"
            raise file.wrong(trail, message)
        return _limit(file, value, trail)
    size = len(hosts)
    if len(value) != size:
        message = f"link_bandwidth must have one row for each of the {size:,} hosts, not {len(value):,}"
        raise file.wrong(trail, message)
    links = np.empty((size, size))
    for number, item in enumerate(value):
        row = file.items(item, (*trail, number))
        if len(row) != size:
            message = f"{shown((*trail, number))} must have one entry for each of the {size:,} hosts"
            raise file.wrong((*trail, number), f"{message}, not {len(row):,}")
        links[number] = _row(file, row, number)
    # Nothing goes from a host to itself; what stands there must never look like a narrow link.
    np.fill_diagonal(links, [min(host.incoming, host.outgoing) for host in hosts])
    return links


def _row(file: ProblemFile, row: list[object], number: int) -> NDArray[np.float64]:
    """The entry of the host itself may be anything."""
    row = [*row[:number], 0, *row[number + 1 :]]
    if set(map(type, row)) <= {int, float}:
        values = np.array(row, dtype=np.float64)
        if ((values == 0) | ((values >= LEAST_LIMIT) & (values <= LARGEST_LIMIT))).all():
            return values
    return np.array([_limit(file, entry, ("link_bandwidth", number, i)) for i, entry in enumerate(row)])


def _limit(file: ProblemFile, value: object, trail: Trail) -> float:
    return file.amount(value, trail, LARGEST_LIMIT, LEAST_LIMIT)


def _streams(file: ProblemFile, value: object, hosts: Known) -> tuple[dict[str, Base], list[Name]]:
    from headrace.planners.admission.problem import Base

    names: list[Name] = []
    found: dict[str, Base] = {}
    for number, item in enumerate(file.items(value, ("streams",), "stream")):
        trail: Trail = ("streams", number)
        stream = file.mapping(item, trail, ("id", "host", "rate"))
        name = read_name(file, stream["id"], (*trail, "id"))
        host = hosts.at(stream["host"], (*trail, "host"))
        rate = file.amount(stream["rate"], (*trail, "rate"), LARGEST_RATE)
        names.append(name)
        found[str(name)] = Base(str(name), host, rate)
    return found, names


def _rates(
    file: ProblemFile,
    body: Mapping[str, object],
    streams: Known,
    bases: Mapping[str, Base],
    queries: Sequence[Query],
) -> dict[Stream, float]:
    """Of composite streams: as given, or selectivity x the sum of the base rates."""
    if ("rates" in body) == ("selectivities" in body):
        both = (
            "both rates and selectivities are" if "rates" in body else "neither rates nor selectivities are"
        )
        raise file.wrong((), f"{both} given", "Give one of them: [[[streams], value], ...].")
    if "rates" in body:
        return by_set(file, ("rates",), body["rates"], streams)
    value = body["selectivities"]
    if isinstance(value, list):
        given = by_set(file, ("selectivities",), value, streams)
    else:
        share = file.amount(value, ("selectivities",), LARGEST_RATE)
        given = dict.fromkeys(_parts(queries), share)
    return {some: share * sum(bases[name].rate for name in sorted(some)) for some, share in given.items()}


def _parts(queries: Sequence[Query]) -> Iterator[Stream]:
    """Every set that can be part of a plan; some more than once."""
    for streams in dict.fromkeys(query.streams for query in queries):
        names = sorted(streams)
        for size in range(2, len(names) + 1):
            yield from map(frozenset, combinations(names, size))


def _check_no_removals(file: ProblemFile, body: Mapping[str, object], asked: Asked) -> None:
    if asked.removals and "running" in body:
        trail: Trail = ("queries", asked.removals[0].after, "remove")
        hint = "Of what runs, say in running.queries that it is not admitted, and leave out its delivery."
        raise file.wrong(trail, f"{shown(trail)}: nobody arrives or leaves while a plan is adapted", hint)


def _check_makeable(file: ProblemFile, problem: AdmissionProblem, places: Sequence[int], key: str) -> None:
    """Raises UserError at a query that no chain of joins can ever answer."""
    makes = _Makes(problem.rates)
    for number, query in zip(places, problem.queries, strict=True):
        if makes(query.streams):
            continue
        trail: Trail = ("queries", number, "streams")
        if query.streams not in problem.rates:
            message = f"{shown(trail)}: the set {named(query.streams)} has no rate"
            raise file.wrong(trail, message, f"{key} must have an entry for it.")
        message = f"{shown(trail)}: no chain of joins makes {named(query.streams)}"
        raise file.wrong(trail, message, "Two parts of it that are joined last must have rates themselves.")


class _Makes:
    """Whether a stream can be made from base streams by joins whose results have rates."""

    def __init__(self, rates: Mapping[Stream, float]) -> None:
        self._rates = rates
        self._known: dict[Stream, bool] = {}

    def __call__(self, stream: Stream) -> bool:
        if len(stream) == 1:
            return True
        if stream not in self._rates:
            return False
        known = self._known.get(stream)
        if known is None:
            known = self._known[stream] = any(
                self(part) and self(stream - part)
                for size in range(1, len(stream) // 2 + 1)
                for part in map(frozenset, combinations(stream, size))
            )
        return known
