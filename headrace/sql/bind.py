"""SQL text and a catalog -> LogicalPlan: the one entry to this package."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog.model import Query, SinkKind, Stream, Table
from headrace.errors import NotSupported
from headrace.plan.logical import LogicalPlan
from headrace.sql.parse import parse
from headrace.sql.place import Source
from headrace.sql.select import bind_inner, bind_top
from headrace.sql.sources import Env


def bind_query(query: Query, streams: Mapping[str, Stream], tables: Mapping[str, Table]) -> LogicalPlan:
    """The plan of a query. Raises UserError (NotSupported) with the place in the user's file."""
    source = Source(query.sql, query.sql_file or f"<query {query.name}>", query.sql_line, query.sql_column)
    try:
        parsed = parse(source)
        env = Env(source, parsed.windows, streams, tables, bind_inner, {})
        plan = bind_top(parsed.select, env)
    except RecursionError:
        hint = "Split it: WITH part AS (SELECT ...) SELECT ... FROM part."
        place = source.span(0, len(query.sql))
        raise NotSupported("the query is nested too deeply", hint=hint, span=place) from None
    if query.sink.kind is SinkKind.CSV and len(plan.schema.names) == 1:
        message = "a csv sink cannot keep one column: a line with nothing but NULL is not written"
        hint = "Select a second column, such as the window's end, or choose a json or parquet sink."
        raise source.refusal(parsed.select.expressions[0], message, hint)
    return plan
