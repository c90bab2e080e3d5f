"""Where queries write and streams read: no query may write what another writes, or what a stream reads.

A stream that reads the results of a query would read rows before they are final, or for ever its own
output; two queries in one folder would each take the other's files for its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from headrace.catalog.document import Trail
from headrace.catalog.model import FileSource, Project, Query, SinkKind
from headrace.catalog.problems import Problem, shown

FILE_SINKS = frozenset({SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV})
_GLOB = frozenset("*?[{")


def is_remote(path: str) -> bool:
    """Whether the path is a URL of another file system, which is not looked at here."""
    return "://" in path


def sink_path(query: Query) -> str | None:
    """Where the query's results go; None where they go to no files."""
    return (query.sink.path or f"results/{query.name}") if query.sink.kind in FILE_SINKS else None


def check_paths(project: Project) -> Iterator[Problem]:
    yield from _check_tables(project)
    yield from _check_empty(project)
    yield from _check_sinks(project)


def _check_tables(project: Project) -> Iterator[Problem]:
    """A static table is read once, so its file must be there."""
    for table in project.tables.values():
        if table.source is None or is_remote(table.source.path) or not table.source.path:
            continue
        if not exists(project.root, table.source.path):
            place = ("tables", table.name, "source", "path")
            message = f'table "{table.name}": there is no file {table.source.path}'
            yield Problem(place, message, f"Paths start at the project's folder, {project.root}.")


def exists(root: Path, path: str) -> bool:
    """Whether the path, or at least one file of the glob, is there."""
    if not _GLOB & set(path):
        return (root / path).exists()
    full = PurePath(os.path.normpath(root / path))
    return any(Path(full.anchor).glob(str(full.relative_to(full.anchor))))


def _check_empty(project: Project) -> Iterator[Problem]:
    sources: list[tuple[Trail, str | None]] = [
        (("streams", s.name, "source", "path"), s.source.path)
        for s in project.streams.values()
        if isinstance(s.source, FileSource)
    ]
    sources += [
        (("tables", t.name, "source", "path"), t.source.path) for t in project.tables.values() if t.source
    ]
    sources += [(("queries", q.name, "sink", "path"), q.sink.path) for q in project.queries.values()]
    for place, path in sources:
        if path is not None and not path.strip():
            yield Problem(place, f"{shown(place)} is empty", "Name a folder or file.")


def _check_sinks(project: Project) -> Iterator[Problem]:
    taken: dict[tuple[str, ...], str] = {}
    for query in project.queries.values():
        place: Trail = ("queries", query.name, "sink", "path")
        path = sink_path(query)
        if path is None:
            if query.sink.path is not None:
                hint = f"Remove it, or choose a sink of {', '.join(sorted(FILE_SINKS))}."
                yield Problem(place, f"a {query.sink.kind} sink takes no path", hint, at_key=True)
            continue
        parts = _parts(project.root, path)
        yield from _check_apart(query.name, parts, taken, place)
        taken.setdefault(parts, query.name)
        yield from _check_unread(project, path, parts, place)


def _check_apart(
    name: str, parts: tuple[str, ...], taken: dict[tuple[str, ...], str], place: Trail
) -> Iterator[Problem]:
    """No sink is the folder of another, or inside it."""
    for other, owner in taken.items():
        shared = min(len(other), len(parts))
        if other[:shared] == parts[:shared]:
            how = "the same folder as" if other == parts else "a folder inside or around that of"
            message = f'query "{name}" writes to {how} query "{owner}"'
            yield Problem(place, message, "Give each query its own folder.")


def _check_unread(project: Project, path: str, parts: tuple[str, ...], place: Trail) -> Iterator[Problem]:
    for stream in project.streams.values():
        if isinstance(stream.source, FileSource) and _reads(_parts(project.root, stream.source.path), parts):
            message = f'the sink {path} is inside what stream "{stream.name}" reads ({stream.source.path})'
            yield Problem(place, message, "Write somewhere else: the stream would read these results.")


def _parts(root: Path, path: str) -> tuple[str, ...]:
    """The parts of a path from the root of its file system."""
    if is_remote(path):
        return tuple(part for part in path.split("/") if part)
    return PurePath(os.path.normpath(root / path)).parts


def _reads(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a reader of the pattern reads the folder: it, or a folder around it, matches."""
    return len(parts) >= len(pattern) and all(
        part == wanted or fnmatchcase(part, wanted) for part, wanted in zip(parts, pattern, strict=False)
    )
