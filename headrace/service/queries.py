"""The queries of a project with what is known of their last run."""

from __future__ import annotations

from typing import TypedDict

from headrace.catalog.model import Project
from headrace.service.layout import state_file
from headrace.state.store import JobRecord, Store


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


def list_queries(project: Project) -> list[QueryData]:
    """Every declared query, in the project's order. Reads only: no state file is made."""
    known = _records(project)
    return [
        _data(query.name, query.site, query.sink.kind.value, known.get(query.name))
        for query in project.queries.values()
    ]


def _records(project: Project) -> dict[str, JobRecord]:
    path = state_file(project)
    if not path.exists():
        return {}
    with Store(path) as store:
        return {record.id: record for record in store.all()}


def _data(name: str, site: str, sink: str, record: JobRecord | None) -> QueryData:
    return QueryData(
        name=name,
        site=site,
        sink=sink,
        desired=record.desired if record else None,
        observed=record.observed if record else None,
        batch=record.batch if record else None,
        input_rows=record.input_rows if record else None,
        output_rows=record.output_rows if record else None,
        late_rows=record.late_rows if record else None,
        watermark=record.watermark if record else None,
        error=record.error if record else "",
        updated=record.updated if record else None,
    )
