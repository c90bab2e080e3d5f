"""The queries of a project with where they run and what is known of their last run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.service.layout import state_file
from headrace.service.moving import moves_of, site_of
from headrace.state.records import Deployment, Edits, JobRecord
from headrace.state.store import Store
from headrace.units import format_instant


class QueryData(TypedDict):
    name: str
    site: str
    sink: str
    desired: str | None
    """None: never started."""
    observed: str | None
    batch: int | None
    input_rows: int | None
    output_rows: int | None
    late_rows: int | None
    watermark: int | None
    error: str
    updated: str | None
    tree: str | None
    """Or the split job that it is in. None: a job of its own, or no place yet."""
    valid_from: str | None
    """It gives the windows that start then or later. None: all of them."""
    by: str
    """Who put it into the project: `file` or `command`."""
    pending: bool
    """Whether it was added and no run has taken it yet."""


def list_queries(project: Project) -> list[QueryData]:
    """Every query, in the project's order. Reads only: no state file is made."""
    path = state_file(project)
    if not path.exists():
        return [_data(project, name, None, Deployment(), Edits(), {}) for name in project.queries]
    with Store(path) as store, moves_of(project) as moves:
        known = {record.id: record for record in store.all()}
        deployment, edits, homes = store.deployment(), store.edits(), moves.homes()
    return [_data(project, name, known.get(name), deployment, edits, homes) for name in project.queries]


def dropped_queries(project: Project) -> list[str]:
    """Queries of the project file that a command has dropped."""
    path = state_file(project)
    if not path.exists():
        return []
    with Store(path) as store:
        edits = store.edits()
    return sorted(edits.dropped - {added.name for added in edits.added})


def _data(
    project: Project,
    name: str,
    record: JobRecord | None,
    deployment: Deployment,
    edits: Edits,
    homes: Mapping[str, str],
) -> QueryData:
    query, place = project.queries[name], deployment.place(name)
    job = name if place is None else place.tree or place.federated or name
    valid_from = None if record is None else record.valid_from
    return QueryData(
        name=name,
        site=site_of(project, deployment, homes, job),
        sink=query.sink.kind.value,
        desired=record.desired if record else None,
        observed=record.observed if record else None,
        batch=record.batch if record else None,
        input_rows=record.input_rows if record else None,
        output_rows=record.output_rows if record else None,
        late_rows=record.late_rows if record else None,
        watermark=record.watermark if record else None,
        error=record.error if record else "",
        updated=record.updated if record else None,
        tree=None if place is None else place.tree or place.federated,
        valid_from=None if valid_from is None else format_instant(valid_from),
        by="command" if name in {added.name for added in edits.added} else "file",
        pending=any(change.query == name for change in edits.pending),
    )
