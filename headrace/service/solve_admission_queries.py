"""Queries of an admission problem in order of arrival, and those that leave in between.

`{"remove": "q3"}` stands where q3 leaves. It must name a query that has arrived. Whether that was admitted is
for the planner to say, and no mistake in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile, Trail, check_ids, described, shown
from headrace.service.solve_admission_names import Known, Name
from headrace.service.solve_network import read_name

if TYPE_CHECKING:
    from headrace.planners.admission.problem import Query, Removal

LARGEST_PRIORITY = 1e12


@dataclass(frozen=True, slots=True)
class Asked:
    queries: tuple[Query, ...]
    names: tuple[Name, ...]
    """Of the queries, as they were written."""
    places: tuple[int, ...]
    """Of the queries in the list: removals stand there too."""
    removals: tuple[Removal, ...]


def read_queries(file: ProblemFile, value: object, streams: Known) -> Asked:
    """Raises UserError at the place of what is wrong."""
    from headrace.planners.admission.problem import Removal

    items = file.items(value, ("queries",), "query")
    queries: list[Query] = []
    places: list[int] = []
    removals: list[Removal] = []
    arrived: dict[Name, int] = {}
    left: dict[str, int] = {}
    ids: list[str | None] = []
    for number, item in enumerate(items):
        if isinstance(item, dict) and "remove" in item:
            name = _leaving(file, items, number, Known(file, "query", arrived), left)
            removals.append(Removal(name, len(queries)))
            ids.append(None)
            continue
        query, written = _query(file, item, number, streams)
        arrived.setdefault(written, len(queries))
        queries.append(query)
        places.append(number)
        ids.append(query.id)
    check_ids(file, ids, items)
    return Asked(tuple(queries), tuple(arrived), tuple(places), tuple(removals))


def _leaving(
    file: ProblemFile, items: list[object], number: int, arrived: Known, left: dict[str, int]
) -> str:
    """The id of a query that has arrived and not left; it has from now on."""
    trail: Trail = ("queries", number, "remove")
    name = file.mapping(items[number], trail[:2], ("remove",))["remove"]
    try:
        arrived.at(name, trail)
    except UserError:
        _check_no_later(file, items, name, trail)
        raise
    first = left.setdefault(str(name), number)
    if first != number:
        message = f"{shown(trail)}: query {described(name)} has left already"
        raise file.wrong(trail, message, f"queries[{first}] removes it.")
    return str(name)


def _check_no_later(file: ProblemFile, items: list[object], name: object, trail: Trail) -> None:
    """A name that is used later is no slip of the pen, and what is wrong with it is the order."""
    for number, item in enumerate(items):
        called = _called(item, number)
        if type(called) is type(name) and called == name and name is not None:
            message = f"{shown(trail)}: query {described(name)} has not arrived by then"
            raise file.wrong(trail, message, f"It is queries[{number}].") from None


def _called(item: object, number: int) -> object:
    return item.get("id", f"q{number + 1}") if isinstance(item, dict) and "remove" not in item else None


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
