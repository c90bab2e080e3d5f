"""What a query does with the results of its window aggregate: HAVING, projections, joins with tables, and
aggregates of aggregates.

All of it is done window by window, so it can be done on the results of each micro-batch by itself: the rows
of one window always come in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from headrace.catalog.model import Table
from headrace.errors import EngineError
from headrace.plan import logical as lp
from headrace.plan.expr import ColumnRef
from headrace.runtime.duckdb.load import load_table
from headrace.runtime.duckdb.reference import sql_above
from headrace.runtime.results import conform

_ROWS = "#rows"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "1GB",
    "threads": "1",
    "python_enable_replacements": "false",
}


def unsupported(plan: lp.LogicalPlan, node: lp.LogicalPlan) -> str:
    """Why what a plan does above one of its nodes cannot be done here; empty where it can."""
    above = [n for n in lp.nodes(plan) if n not in set(lp.nodes(node))]
    if any(isinstance(n, lp.WindowJoin | lp.IntervalJoin) for n in above):
        return "it joins the results of its window with other windows"
    return ""


def _picked(plan: lp.LogicalPlan, node: lp.LogicalPlan) -> dict[str, str] | None:
    """Which column of the node each column of the plan is, where all of them are just that."""
    if plan == node:
        return {name: name for name in node.schema.names}
    if not isinstance(plan, lp.Project):
        return None
    below = _picked(plan.input, node)
    columns = [(name, expr.name) for name, expr in plan.items if isinstance(expr, ColumnRef)]
    if below is None or len(columns) != len(plan.items):
        return None
    return {name: below[column] for name, column in columns}


class Above:
    """The part of a plan above one of its nodes, ready for batches of that node's rows. Static tables are
    read once, here. A plan that only picks columns above needs no engine."""

    def __init__(
        self,
        plan: lp.LogicalPlan,
        node: lp.LogicalPlan,
        tables: Mapping[str, Table] | None = None,
        root: Path = Path(),
    ) -> None:
        self._plan, self._node = plan, node
        self._picked = _picked(plan, node)
        self._tables = {
            name: conform(load_table(table, root), table.schema_)
            for name, table in (tables or {}).items()
            if name in set(lp.tables_of(plan)) - set(lp.tables_of(node))
        }
        self._connection: duckdb.DuckDBPyConnection | None = None

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = duckdb.connect(config=_SETTINGS)
            self._connection.execute("SET TimeZone = 'UTC'")
            for name, rows in self._tables.items():
                self._connection.register(name, rows)
            self._connection.execute("SET enable_external_access = false")
            self._text = sql_above(self._plan, self._node, _ROWS)
        return self._connection

    def rows(self, batch: pa.Table) -> pa.Table:
        """The rows that the plan makes of a batch of the node's rows."""
        if self._picked is not None:
            columns = {name: batch[column] for name, column in self._picked.items()}
            return conform(pa.table(columns), self._plan.schema)
        connection = self._open()
        connection.register(_ROWS, conform(batch, self._node.schema))
        try:
            answer = connection.sql(self._text).to_arrow_table()
        except duckdb.Error as error:
            raise EngineError("DuckDB could not finish the query", detail=str(error)) from error
        finally:
            connection.unregister(_ROWS)
        return conform(answer, self._plan.schema)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
