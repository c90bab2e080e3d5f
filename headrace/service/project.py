"""Open, create and look into projects, for the skins.

A project is what its file says, without the queries dropped by command, with those added by command. This is
the one place that puts the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headrace import __version__
from headrace.catalog.load import load_project
from headrace.catalog.model import Project, Query, Sink, SinkKind
from headrace.catalog.starter import write_starter
from headrace.errors import UserError
from headrace.ids import did_you_mean, is_name
from headrace.service.layout import state_file
from headrace.state.records import AddedQuery, Deployment, Edits
from headrace.state.store import Store

VERSION = __version__
ANYWHERE = ""
"""The site of an added query that names none: the default site, or where `planner.distribution` puts it."""

__all__ = [
    "ANYWHERE",
    "VERSION",
    "Project",
    "as_added",
    "check_sites",
    "create_project",
    "deployment_of",
    "differs",
    "edits_of",
    "file_project",
    "open_project",
    "query_named",
    "query_of",
    "selected",
    "with_edits",
]


def open_project(path: Path) -> Project:
    """The project of a folder or of a headrace.yaml. Raises UserError."""
    found = file_project(path)
    edits = edits_of(found)
    for added in edits.added:
        _check_same(found, added)
    check_sites(found, edits)
    return with_edits(found, edits)


def file_project(path: Path) -> Project:
    """What the project file says, whatever commands have made of it."""
    return load_project(path)


def edits_of(project: Project) -> Edits:
    """Reads only: no state file is made."""
    path = state_file(project)
    if not path.exists():
        return Edits()
    with Store(path) as store:
        return store.edits()


def deployment_of(project: Project) -> Deployment:
    """Reads only, too."""
    path = state_file(project)
    if not path.exists():
        return Deployment()
    with Store(path) as store:
        return store.deployment()


def with_edits(project: Project, edits: Edits) -> Project:
    """The project after these edits, whatever earlier edits it has already."""
    leaving = {change.query for change in edits.pending if change.kind == "drop"}
    added = {one.name: query_of(one, project) for one in edits.added}
    kept = {
        name: query
        for name, query in project.queries.items()
        if name in added or not (name in edits.dropped | leaving or query.sql_file == _origin(name))
    }
    return project.model_copy(update={"queries": kept | added})


def query_of(added: AddedQuery, project: Project) -> Query:
    sink, free = Sink(kind=SinkKind(added.sink), path=added.path), added.site == ANYWHERE
    return Query(
        name=added.name,
        sql=added.sql,
        site=project.default_site if free else added.site,
        free=free and project.distributes,
        sink=sink,
        sql_file=_origin(added.name),
    )


def _origin(name: str) -> str:
    """What an error in the SQL names in the place of a file."""
    return f'added query "{name}"'


def differs(project: Project, added: AddedQuery) -> bool:
    """Whether the project file has another query by the name of one that was added."""
    written = project.queries.get(added.name)
    return written is not None and _settled(as_added(written), project) != _settled(added, project)


def _check_same(project: Project, added: AddedQuery) -> None:
    """A query that was added and is later written into the file, as it is, may stand in both."""
    if not differs(project, added):
        return
    raise UserError(
        f'query "{added.name}" is in the project file, and another one of that name was added by command',
        hint=f"Rename the one in the file, or drop the added one with: headrace drop {added.name}",
    )


def check_sites(project: Project, edits: Edits) -> None:
    """Queries that were added for a site are there as long as the site is. Raises UserError."""
    for added in edits.added:
        if added.site != ANYWHERE and added.site not in project.sites:
            raise UserError(
                f'query "{added.name}" was added for site "{added.site}", which is no more',
                hint=f"Drop it with: headrace drop {added.name}; or put {added.site} back into the file.",
            )


def _settled(added: AddedQuery, project: Project) -> AddedQuery:
    """Without a site it is the same whether `planner.distribution` was on when it was added, or not."""
    return replace(added, site=added.site or project.default_site)


def as_added(query: Query) -> AddedQuery:
    site = ANYWHERE if query.free else query.site
    return AddedQuery(query.name, query.sql, query.sink.kind.value, query.sink.path, site)


def create_project(folder: Path) -> list[Path]:
    """Write a commented starter project; its name is the folder's, as far as that is a legal name."""
    name = folder.resolve().name
    return write_starter(folder, name if is_name(name) else "starter")


def query_named(project: Project, name: str) -> Query:
    """The query of that name. Raises UserError that offers the nearest one."""
    if name not in project.queries:
        raise UserError(f'query "{name}" does not exist', hint=did_you_mean(name, project.queries, "queries"))
    return project.queries[name]


def selected(project: Project, only: Sequence[str]) -> tuple[Query, ...]:
    """The queries asked for, in the project's order; all of them when none is named."""
    wanted = {query_named(project, name).name for name in only}
    return tuple(q for q in project.queries.values() if not only or q.name in wanted)
