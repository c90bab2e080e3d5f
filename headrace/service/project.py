"""Open, create and look into projects, for the skins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace import __version__
from headrace.catalog.load import load_project
from headrace.catalog.model import Project, Query
from headrace.catalog.starter import write_starter
from headrace.errors import UserError
from headrace.ids import did_you_mean, is_name

VERSION = __version__

__all__ = ["VERSION", "Project", "create_project", "open_project", "query_named", "selected"]


def open_project(path: Path) -> Project:
    """The project of a folder or of a headrace.yaml. Raises UserError."""
    return load_project(path)


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
