"""The objects of a project against each other: what no object can know by itself.

Every check is one function from the project to its findings; `CHECKS` is all of them. Their order does
not matter, since the finding that stands first in the file is the one reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from headrace.catalog.document import Trail
from headrace.catalog.generators import check_generator
from headrace.catalog.model import FileSource, GeneratorSource, Project, RateSource, Stream
from headrace.catalog.paths import check_paths
from headrace.catalog.problems import Problem, shown
from headrace.catalog.redact import redact
from headrace.catalog.sections import RATE_COLUMNS, RATE_TIME
from headrace.catalog.values import check_table
from headrace.ids import did_you_mean
from headrace.plan.types import DataType

_ENDPOINT = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?|yarn|spark://[^\s/]+|k8s://\S+|sc://[^\s/;]+\S*"
)

_PORT = re.compile(r"(?:spark|sc)://[^\s/;,]*:(\d+)(?=[/;,]|$)")
_LAST_PORT = 65_535


def check_project(project: Project) -> list[Problem]:
    """Everything that is wrong between the parts of the project."""
    return [problem for check in CHECKS for problem in check(project)]


def check_times(project: Project) -> Iterator[Problem]:
    """The event time of a stream is one of its columns, and a timestamp."""
    for stream in project.streams.values():
        place = ("streams", stream.name, "time")
        found = stream.columns.get(stream.time)
        if found is None:
            times = [n for n, t in stream.columns.items() if t == DataType.TIMESTAMP]
            hint = did_you_mean(
                stream.time, times or stream.columns, "timestamp columns" if times else "columns"
            )
            yield Problem(place, f'stream "{stream.name}" has no column "{stream.time}"', hint)
        elif found != DataType.TIMESTAMP:
            message = (
                f'the event time "{stream.time}" of stream "{stream.name}" must be a timestamp, not {found}'
            )
            yield Problem(place, message, "Declare the column as timestamp, or name another one.")


def check_distinct(project: Project) -> Iterator[Problem]:
    """Numbers of different values are given for columns that exist."""
    for stream in project.streams.values():
        for column in stream.distinct:
            if column not in stream.columns:
                message = f'stream "{stream.name}" has no column "{column}"'
                hint = did_you_mean(column, stream.columns, "columns")
                yield Problem(("streams", stream.name, "distinct", column), message, hint, at_key=True)


def check_sources(project: Project) -> Iterator[Problem]:
    """A source can give the columns of its stream."""
    for stream in project.streams.values():
        match stream.source:
            case GeneratorSource() as source:
                yield from check_generator(stream, source)
            case RateSource():
                yield from _check_rate(stream)
            case FileSource() as source:
                yield from _check_csv(source, ("streams", stream.name, "source"))
    for table in project.tables.values():
        if table.source is not None:
            yield from _check_csv(table.source, ("tables", table.name, "source"))
        yield from check_table(table)


def _check_rate(stream: Stream) -> Iterator[Problem]:
    place = ("streams", stream.name)
    hint = "The rate source gives: timestamp timestamp, value bigint. Leave columns and time out."
    if stream.columns != RATE_COLUMNS:
        message = f'the columns of stream "{stream.name}" are not those of the rate source'
        yield Problem((*place, "columns"), message, hint, at_key=True)
    elif stream.time != RATE_TIME:
        yield Problem((*place, "time"), "the event time of the rate source is timestamp", hint)


def _check_csv(source: FileSource, place: Trail) -> Iterator[Problem]:
    """Options that only mean something for CSV are refused elsewhere, not ignored."""
    if source.format == "csv":
        return
    for field in ("header", "delimiter"):
        if field in source.model_fields_set:
            message = f'"{field}" means nothing for {source.format} files'
            yield Problem((*place, field), message, "Remove it, or say format: csv.", at_key=True)


def check_names(project: Project) -> Iterator[Problem]:
    """SQL and some file systems do not tell names apart by case; SQL not streams from tables."""
    relations = [("streams", n) for n in project.streams] + [("tables", n) for n in project.tables]
    yield from _check_distinct(relations)
    yield from _check_distinct([("queries", n) for n in project.queries])
    yield from _check_distinct([("sites", n) for n in project.sites])


def _check_distinct(names: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    seen: dict[str, tuple[str, str]] = {}
    for section, name in names:
        first = seen.setdefault(name.lower(), (section, name))
        if first != (section, name):
            message = f'the name "{name}" is taken by {shown(first)}'
            hint = "Names are compared without regard to case; rename one of them."
            yield Problem((section, name), message, hint, at_key=True)


def check_sites(project: Project) -> Iterator[Problem]:
    """Streams and queries are at sites that exist; an endpoint looks like one."""
    used: list[tuple[Trail, str]] = [(("streams", s.name, "site"), s.site) for s in project.streams.values()]
    used += [(("queries", q.name, "site"), q.site) for q in project.queries.values()]
    for place, name in used:
        if name not in project.sites:
            yield _no_site(name, project, place)
    for site in project.sites.values():
        if not _ENDPOINT.fullmatch(site.endpoint):
            message = f'"{redact(site.endpoint)}" is not an endpoint'
            hint = "An endpoint is local, local[N], local[*], spark://host:port, yarn, k8s://... or sc://host:port."
            yield Problem(("sites", site.name, "endpoint"), message, hint)
        elif (port := _PORT.match(site.endpoint)) and not 0 < int(port[1]) <= _LAST_PORT:
            message = f'"{redact(site.endpoint)}" has no port that exists'
            yield Problem(("sites", site.name, "endpoint"), message, f"Ports are 1 to {_LAST_PORT}.")


def check_storages(project: Project) -> Iterator[Problem]:
    """A storage is a folder that a site and Headrace see under the same path."""
    for site in project.sites.values():
        if site.storage is not None and not _is_whole_path(site.storage):
            hint = "Write the whole path of a folder, as in storage: /mnt/fast"
            yield Problem(("sites", site.name, "storage"), f'"{site.storage}" is not a whole path', hint)


def _is_whole_path(text: str) -> bool:
    return "://" not in text and text.isprintable() and PurePath(text).is_absolute()


def check_links(project: Project) -> Iterator[Problem]:
    """A link joins two different sites that exist, and no two sites are joined twice."""
    seen: set[frozenset[str]] = set()
    for number, link in enumerate(project.links):
        place: Trail = ("links", number, "between")
        missing = [(i, end) for i, end in enumerate(link.between) if end not in project.sites]
        for position, end in missing:
            yield _no_site(end, project, (*place, position))
        ends = frozenset(link.between)
        if missing:
            continue
        if len(ends) == 1:
            yield Problem(
                (*place, 1), f'a link cannot join "{link.between[0]}" with itself', "Name two sites."
            )
        elif ends in seen:
            message = f'"{link.between[0]}" and "{link.between[1]}" are linked already'
            yield Problem(place, message, "A link goes both ways; remove one of the two.", at_key=True)
        seen.add(ends)


LEAST_EVERY = 5_000_000


def check_rebalance(project: Project) -> Iterator[Problem]:
    """Rules of rebalancing name queries and sites that exist, and ranges that have something in them."""
    rules, place = project.planner.rebalance, ("planner", "rebalance")
    for number, name in enumerate(rules.sites or ()):
        if name not in project.sites:
            yield _no_site(name, project, (*place, "sites", number))
    for number, name in enumerate(rules.jobs or ()):
        if name not in project.queries:
            hint = did_you_mean(name, project.queries, "queries")
            yield Problem((*place, "jobs", number), f'query "{name}" does not exist', hint)
    if rules.every < LEAST_EVERY:
        yield Problem(
            (*place, "every"), f"{shown((*place, 'every'))} is too often", "Give 5 seconds or more."
        )
    if rules.state.most is not None and rules.state.most < rules.state.least:
        message = f"no job has {rules.state.least} bytes of state or more, and {rules.state.most} or less"
        yield Problem((*place, "state", "most"), message, "Make most larger than least.")


def _no_site(name: str, project: Project, place: Trail) -> Problem:
    return Problem(place, f'site "{name}" does not exist', did_you_mean(name, project.sites, "sites"))


CHECKS: tuple[Callable[[Project], Iterator[Problem]], ...] = (
    check_names,
    check_times,
    check_distinct,
    check_sources,
    check_sites,
    check_storages,
    check_links,
    check_rebalance,
    check_paths,
)
