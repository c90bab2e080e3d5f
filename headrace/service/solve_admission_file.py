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

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, check_ids, described, shown
from headrace.service.solve_network import MOST_OFFERED, read_name

if TYPE_CHECKING:
    from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Query, Stream

LARGEST_RATE = 1e12
LARGEST_LIMIT = 1e15
LEAST_LIMIT = 1e-100
"""Or 0. Rates are divided by limits."""
LARGEST_COST = 1e12
LARGEST_PRIORITY = 1e12
MOST_HOSTS = 10_000

REQUIRED = ("hosts", "link_bandwidth", "streams", "queries")
OPTIONAL = ("rates", "selectivities", "operator_cost", "memory_cost")

Name = str | int
_NAMES = {str, int}


@dataclass(frozen=True, slots=True)
class Given:
    """A problem, and its streams and queries as they were written."""

    problem: AdmissionProblem
    streams: Mapping[str, Name]
    """In the order of the file."""
    queries: Mapping[str, Name]


@dataclass(frozen=True, slots=True)
class Known:
    """Hosts or streams, by the names they were given."""

    file: ProblemFile
    what: str
    position: Mapping[Name, int]

    def at(self, value: object, trail: Trail) -> int:
        """The position of the one that is named at `trail`."""
        # true would be found as 1, and 1.0 too.
        found = self.position.get(value) if type(value) is str or type(value) is int else None
        if found is None:
            raise self._unknown(value, trail)
        return found

    def set_of(self, value: object, trail: Trail) -> Stream:
        """Some of them, none twice, in any order."""
        items = self.file.items(value, trail, self.what)
        if set(map(type, items)) <= _NAMES and self.position.keys() >= set(items):
            found = frozenset(map(str, items))
            if len(found) == len(items):
                return found
        raise self._wrong(items, trail)

    def _wrong(self, items: Sequence[object], trail: Trail) -> UserError:
        seen: set[int] = set()
        for number, item in enumerate(items):
            at = self.at(item, (*trail, number))
            if at in seen:
                break
            seen.add(at)
        hint = f"A {self.what} joined with itself is two: give the second a name of its own."
        message = f"{shown(trail)} names {self.what} {described(item)} twice"
        return self.file.wrong((*trail, number), message, hint)

    def _unknown(self, value: object, trail: Trail) -> UserError:
        if type(value) is not str and type(value) is not int:
            message = (
                f"{shown(trail)} must name a {self.what}, a text or a whole number, not {described(value)}"
            )
            return self.file.wrong(trail, message)
        message = f"{shown(trail)}: there is no {self.what} {described(value)}"
        return self.file.wrong(trail, message, self._hint(value))

    def _hint(self, value: Name) -> str:
        for other in (name for name in self.position if str(name) == str(value)):
            return f"Write it as in {self.what}s: {described(other)}."
        if len(self.position) > MOST_OFFERED:
            return f"There are {len(self.position):,} {self.what}s, and this is none of them."
        return did_you_mean(str(value), map(str, self.position), f"{self.what}s")


def read_admission(file: ProblemFile) -> Given:
    """Raises UserError at the place of what is wrong."""
    from headrace.planners.admission.problem import AdmissionProblem

    body = file.mapping(file.body(), (), REQUIRED, OPTIONAL)
    hosts = _hosts(file, body["hosts"])
    known_hosts = _known(file, "host", [host.id for host in hosts])
    bases, names = _streams(file, body["streams"], known_hosts)
    known = _known(file, "stream", names)
    queries, ids = _queries(file, body["queries"], known)
    problem = AdmissionProblem(
        hosts=hosts,
        link_bandwidth=_links(file, body["link_bandwidth"], hosts),
        streams=bases,
        rates=_rates(file, body, known, bases, queries),
        queries=queries,
        operator_cost=file.amount(body.get("operator_cost", 1), ("operator_cost",), LARGEST_COST),
        memory_cost=file.amount(body.get("memory_cost", 0), ("memory_cost",), LARGEST_COST),
    )
    _check_makeable(file, problem, "rates" if "rates" in body else "selectivities")
    return Given(problem, {str(name): name for name in names}, {str(name): name for name in ids})


def _known(file: ProblemFile, what: str, names: Sequence[Name]) -> Known:
    """Raises UserError where two have one name; 1 and "1" are one."""
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        other = first.setdefault(str(name), number)
        if other != number:
            trail: Trail = (f"{what}s", number, "id")
            hint = f"It is read like that of {what}s[{other}]."
            raise file.wrong(trail, f"two {what}s have the id {described(name)}", hint)
    return Known(file, what, {name: i for i, name in enumerate(names)})


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


def _queries(file: ProblemFile, value: object, streams: Known) -> tuple[tuple[Query, ...], list[Name]]:
    items = file.items(value, ("queries",), "query")
    ids: list[Name] = []
    found: list[Query] = []
    for number, item in enumerate(items):
        query, name = _query(file, item, number, streams)
        found.append(query)
        ids.append(name)
    check_ids(file, [str(name) for name in ids], items)
    return tuple(found), ids


def _query(file: ProblemFile, item: object, number: int, streams: Known) -> tuple[Query, Name]:
    from headrace.planners.admission.problem import MOST_STREAMS, Query

    trail: Trail = ("queries", number)
    query = file.mapping(item, trail, ("streams",), ("id", "priority"))
    name = read_name(file, query.get("id", f"q{number + 1}"), (*trail, "id"))
    wanted = streams.set_of(query["streams"], (*trail, "streams"))
    if len(wanted) > MOST_STREAMS:
        message = f"{shown((*trail, 'streams'))} must be at most {MOST_STREAMS}, not {len(wanted)}"
        raise file.wrong((*trail, "streams"), message)
    priority = file.number(query.get("priority", 1), (*trail, "priority"), 0, LARGEST_PRIORITY)
    return Query(str(name), wanted, priority), name


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
        return _by_set(file, "rates", body["rates"], streams)
    value = body["selectivities"]
    if isinstance(value, list):
        given = _by_set(file, "selectivities", value, streams)
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


def _by_set(file: ProblemFile, key: str, value: object, streams: Known) -> dict[Stream, float]:
    found: dict[Stream, float] = {}
    for number, item in enumerate(file.items(value, (key,))):
        trail: Trail = (key, number)
        if not isinstance(item, list) or len(item) != 2:
            what = described(item) if not isinstance(item, list) else f"a list of {len(item)}"
            raise file.wrong(trail, f"{shown(trail)} must be [[streams], value], not {what}")
        some = streams.set_of(item[0], (*trail, 0))
        if len(some) == 1:
            hint = "The rate of one stream stands in streams."
            raise file.wrong((*trail, 0), f"{shown((*trail, 0))} must name at least two streams", hint)
        if some in found:
            first = list(found).index(some)
            hint = f"{key}[{first}] gives it too; the order of the streams does not matter."
            raise file.wrong(trail, f"{shown(trail)}: the set {_named(some)} is given twice", hint)
        found[some] = file.amount(item[1], (*trail, 1), LARGEST_RATE)
    return found


def _check_makeable(file: ProblemFile, problem: AdmissionProblem, key: str) -> None:
    """Raises UserError at a query that no chain of joins can ever answer."""
    makes = _Makes(problem.rates)
    for number, query in enumerate(problem.queries):
        if makes(query.streams):
            continue
        trail: Trail = ("queries", number, "streams")
        if query.streams not in problem.rates:
            message = f"{shown(trail)}: the set {_named(query.streams)} has no rate"
            raise file.wrong(trail, message, f"{key} must have an entry for it.")
        message = f"{shown(trail)}: no chain of joins makes {_named(query.streams)}"
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


def _named(stream: Stream) -> str:
    return "*".join(sorted(stream))
