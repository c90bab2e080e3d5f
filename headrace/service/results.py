"""Published results of a query, the reference answer to it, and whether the two agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import GeneratorSource, Project, Query, RateSource
from headrace.errors import UserError
from headrace.plan.logical import LogicalPlan, streams_of, tables_of
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.load import load_stream, load_table
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.results import read_results
from headrace.service.data import OnData, materialise_stream
from headrace.service.layout import as_files, results_folder
from headrace.service.planning import plan_query
from headrace.service.project import query_named
from headrace.service.rows import Rows, rows_of
from headrace.service.run import FILE_SINKS

__all__ = ["Rows", "Verdict", "query_results", "reference_results", "verify_results"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether published results are the reference's answer, as multisets of rows."""

    query: str
    equal: bool
    expected: int
    published: int
    difference: str


def query_results(project: Project, name: str, limit: int) -> Rows:
    """The published rows of a query. `limit` 0: all of them."""
    query = query_named(project, name)
    job = plan_query(project, query)
    return rows_of(name, _published(project, query, job.plan), job.plan, limit)


def reference_results(project: Project, name: str, limit: int, on_data: OnData | None = None) -> Rows:
    """The answer of a batch evaluation over all the input, in DuckDB."""
    query = query_named(project, name)
    job = plan_query(project, query)
    return rows_of(name, _reference(project, job.plan, on_data), job.plan, limit)


def verify_results(project: Project, name: str, on_data: OnData | None = None) -> Verdict:
    """Compare what was published with the reference."""
    query = query_named(project, name)
    plan = plan_query(project, query).plan
    got = _published(project, query, plan)
    expected = _reference(project, plan, on_data)
    approximate, spread = inexact_columns(plan)
    difference = multiset_difference(expected, got, approximate=approximate, spread=spread)
    return Verdict(
        name, not difference, expected.num_rows, got.num_rows, difference.text() if difference else ""
    )


def _published(project: Project, query: Query, plan: LogicalPlan) -> pa.Table:
    if query.sink.kind not in FILE_SINKS:
        raise UserError(
            f'query "{query.name}" has a {query.sink.kind} sink, which keeps no results',
            hint="Give it a parquet, json or csv sink.",
        )
    folder: Path = results_folder(project, query)
    if not folder.is_dir():
        raise UserError(
            f'query "{query.name}" has no results: there is no folder {folder}',
            hint=f"Run it first: headrace run --only {query.name}.",
        )
    return read_results(folder, query.sink.kind, plan.schema)


def _reference(project: Project, plan: LogicalPlan, on_data: OnData | None) -> pa.Table:
    root = project.root.resolve()
    tables = {name: load_table(project.tables[name], root) for name in tables_of(plan)}
    for name in streams_of(plan):
        stream = project.streams[name]
        if isinstance(stream.source, RateSource):
            raise UserError(
                f'stream "{name}" never ends, so there is no batch answer to compare with',
                hint="The reference reads files and generator streams.",
            )
        if isinstance(stream.source, GeneratorSource):
            materialise_stream(project, stream, on_data)
        tables[name] = load_stream(as_files(project, stream), root, None)
    return evaluate(plan, tables)
