"""What a query does with the results of its window aggregate: HAVING and projections.

Row by row and window by window, so it can be done on each batch of results by itself. The rows of one window
always come in one batch.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from headrace.errors import EngineError, NotSupported
from headrace.plan import logical as lp
from headrace.runtime.duckdb.reference import sql_above
from headrace.runtime.results import conform

_ROWS = "#rows"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "1GB",
    "threads": "1",
    "python_enable_replacements": "false",
}


class Above:
    """The part of a plan above one of its nodes, ready for batches of that node's rows."""

    def __init__(self, plan: lp.LogicalPlan, node: lp.LogicalPlan) -> None:
        if set(lp.tables_of(plan)) - set(lp.tables_of(node)):
            raise NotSupported("a tree cannot join the results of a window with a table yet")
        self._plan, self._node = plan, node
        self._text = sql_above(plan, node, _ROWS)
        self._connection = duckdb.connect(config=_SETTINGS)
        self._connection.execute("SET TimeZone = 'UTC'")
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
