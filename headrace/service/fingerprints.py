"""What the checkpoint and the results of a query were made for: its plan, its input, its sink.

Batch sizes are not in it: they may change between two runs. Nor is the site: a job may go on elsewhere.
"""

from __future__ import annotations

import json
import os

from headrace.catalog.model import FileSource, GeneratorSource, Project, Query, Stream, Table
from headrace.ids import fingerprint
from headrace.plan.federated import FederatedMember
from headrace.plan.logical import streams_of, tables_of
from headrace.plan.placed import Job, TreeMember
from headrace.service.layout import results_folder, writes_files

_PARTS = ("plan", "input", "sink")


def query_fingerprint(project: Project, placed: Job | TreeMember | FederatedMember) -> str:
    """Three parts, so that a message can say which of them has changed."""
    plan, query = placed.plan, project.queries[placed.query]
    streams = [_stream_text(project, project.streams[name]) for name in sorted(streams_of(plan))]
    tables = [_table_text(project, project.tables[name]) for name in sorted(tables_of(plan))]
    texts = (json.dumps(streams + tables), json.dumps(_sink_texts(project, query)))
    return "-".join((placed.fingerprint, *map(fingerprint, texts)))


def changed_parts(before: str, after: str) -> list[str]:
    """Which parts of a fingerprint differ."""
    pairs = zip(_PARTS, before.split("-"), after.split("-"), strict=False)
    return [name for name, old, new in pairs if old != new]


def _sink_texts(project: Project, query: Query) -> list[str]:
    where = [str(results_folder(project, query))] if writes_files(query) else []
    return [query.sink.kind.value, *where]


def _stream_text(project: Project, stream: Stream) -> str:
    """Where rows come from. The engine knows files it has read by their absolute names."""
    source = stream.source.model_dump(mode="json", exclude={"files_per_batch"})
    if isinstance(stream.source, FileSource):
        source["path"] = _absolute(project, stream.source.path)
    about: dict[str, object] = {"columns": [(n, str(t)) for n, t in stream.columns.items()], "source": source}
    if isinstance(stream.source, GeneratorSource):
        about |= {"rate": stream.rate, "root": str(project.root.resolve())}
    return json.dumps(about, sort_keys=True)


def _table_text(project: Project, table: Table) -> str:
    about = table.model_dump(mode="json")
    if table.source is not None:
        about["source"]["path"] = _absolute(project, table.source.path)
    return json.dumps(about, sort_keys=True)


def _absolute(project: Project, path: str) -> str:
    return path if "://" in path else os.path.normpath(project.root.resolve() / path)
