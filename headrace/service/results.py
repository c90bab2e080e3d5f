"""Published results of a query, the reference answer to it, and whether the two agree.

A query that was added to a running tree gives its windows from an instant on: with `verify` the reference's
windows that start earlier are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import GeneratorSource, Project, Query, RateSource
from headrace.errors import UserError
from headrace.plan.expr import Call, ColumnRef, Literal
from headrace.plan.logical import WINDOW_START, Aggregate, Filter, LogicalPlan, nodes, streams_of, tables_of
from headrace.plan.types import DataType
from headrace.rewrite.tree import bottom_up
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.load import load_stream, load_table
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.results import read_results
from headrace.service.data import OnData, materialise_stream
from headrace.service.layout import as_files, results_folder, state_file, writes_files
from headrace.service.planning import plan_query
from headrace.service.project import query_named
from headrace.service.rows import Rows, rows_of
from headrace.state.store import Store
from headrace.units import format_instant

__all__ = ["Rows", "Verdict", "query_results", "reference_results", "valid_from", "verify_results"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether published results are the reference's answer, as multisets of rows."""

    query: str
    equal: bool
    expected: int
    published: int
    difference: str
    valid_from: str | None = None
    """Windows that start earlier were left out."""


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
    plan, start = plan_query(project, query).plan, valid_from(project, name)
    got = _published(project, query, plan)
    expected = _reference(project, plan if start is None else windows_from(plan, start), on_data)
    approximate, spread = inexact_columns(plan)
    difference = multiset_difference(expected, got, approximate=approximate, spread=spread)
    return Verdict(
        name,
        not difference,
        expected.num_rows,
        got.num_rows,
        difference.text() if difference else "",
        None if start is None else format_instant(start),
    )


def valid_from(project: Project, name: str) -> int | None:
    """The instant from which on a query gives its windows; None: all of them."""
    path = state_file(project)
    if not path.exists():
        return None
    with Store(path) as store:
        record = store.get(name)
    return None if record is None else record.valid_from


def windows_from(plan: LogicalPlan, instant: int) -> LogicalPlan:
    """The plan without the windows that start before the instant. They are taken away right above the
    aggregate: what the query does further up may no longer know when a window started."""
    start = ColumnRef(WINDOW_START, DataType.TIMESTAMP)
    later = Call(">=", (start, Literal(instant, DataType.TIMESTAMP)))

    def cut(node: LogicalPlan) -> LogicalPlan:
        lowest = isinstance(node, Aggregate) and not any(isinstance(n, Aggregate) for n in nodes(node.input))
        return Filter(node, later) if lowest else node

    return bottom_up(plan, cut)


def _published(project: Project, query: Query, plan: LogicalPlan) -> pa.Table:
    if not writes_files(query):
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
