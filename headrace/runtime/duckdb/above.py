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


class Above:
    """The part of a plan above one of its nodes, ready for batches of that node's rows. Static tables are
    read once, here."""

    def __init__(
        self,
        plan: lp.LogicalPlan,
        node: lp.LogicalPlan,
        tables: Mapping[str, Table] | None = None,
        root: Path = Path(),
    ) -> None:
        self._plan, self._node = plan, node
        self._text = sql_above(plan, node, _ROWS)
        self._connection = duckdb.connect(config=_SETTINGS)
        self._connection.execute("SET TimeZone = 'UTC'")
        for name in set(lp.tables_of(plan)) - set(lp.tables_of(node)):
            table = (tables or {})[name]
            self._connection.register(name, conform(load_table(table, root), table.schema_))
        self._connection.execute("SET enable_external_access = false")

    def rows(self, batch: pa.Table) -> pa.Table:
        """The rows that the plan makes of a batch of the node's rows."""
        if self._plan == self._node:
            return conform(batch, self._plan.schema)
        self._connection.register(_ROWS, conform(batch, self._node.schema))
        try:
            answer = self._connection.sql(self._text).to_arrow_table()
        except duckdb.Error as error:
            raise EngineError("DuckDB could not finish the query", detail=str(error)) from error
        finally:
            self._connection.unregister(_ROWS)
        return conform(answer, self._plan.schema)

    def close(self) -> None:
        self._connection.close()
