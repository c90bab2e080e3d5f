"""Spark's share of federated queries as SQL text: the feeds, one streaming query, and parts done as a batch.

Feeds come as one frame: a tag that says which feed a row is of, and for each feed a struct with its columns.
A single feed comes as it is.

A part above DuckDB is a batch over rows that are handed in. Windows are opened as DuckDB does it
(window_sql.py): a row is put only into those of the wanted windows that hold it, where Spark's own window()
would put it into all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.runtime.duckdb.window_sql import Ends
from headrace.runtime.federated.program import Feed
from headrace.runtime.spark.compile import Compiler, ViewOf
from headrace.runtime.sqltext import SparkWriter

_SQL = SparkWriter()
_q = _SQL.name
_MARK = "__wt"
_TAG = "tag"


def feeds_text(feeds: tuple[Feed, ...], view_of: ViewOf) -> str:
    """The one frame of all feeds."""
    compiler = Compiler(view_of)
    if len(feeds) == 1:
        return _picked(compiler, feeds[0])
    return " UNION ALL ".join(_tagged(compiler, feed, feeds) for feed in feeds)


def _picked(compiler: Compiler, feed: Feed) -> str:
    columns = ", ".join(map(_q, feed.schema.names))
    return f"SELECT {columns} FROM ({compiler.query(feed.node)})"


def _tagged(compiler: Compiler, feed: Feed, feeds: tuple[Feed, ...]) -> str:
    items = [f"{feed.number} AS {_TAG}"]
    for other in feeds:
        if other.number == feed.number:
            packed = f"named_struct({', '.join(f'{_SQL.string(n)}, {_q(n)}' for n in feed.schema.names)})"
        else:
            fields = ", ".join(f"{_q(c.name)}: {_SQL.type(c.type)}" for c in other.schema)
            packed = f"CAST(NULL AS STRUCT<{fields}>)"
        items.append(f"{packed} AS f{other.number}")
    return f"SELECT {', '.join(items)} FROM ({_picked(compiler, feed)})"


def untagged(rows: pa.Table, feeds: tuple[Feed, ...]) -> dict[int, pa.Table]:
    """The rows of each feed out of the one frame."""
    if len(feeds) == 1:
        return {feeds[0].number: rows}
    found = {}
    for feed in feeds:
        mine = rows.filter(pc.equal(rows[_TAG], feed.number))[f"f{feed.number}"]
        fields = [mine.type.field(k) for k in range(mine.type.num_fields)]
        columns = [pc.struct_field(mine, [k]) for k in range(len(fields))]
        found[feed.number] = pa.table(columns, names=[field.name for field in fields])
    return found


@dataclass(frozen=True, slots=True)
class View:
    """Rows of a node under a name that Spark knows, with these of its columns."""

    name: str
    columns: tuple[str, ...]


class BatchCompiler(Compiler):
    """Writes a part over given rows, for the windows that end at `ends`."""

    def __init__(self, given: Mapping[lp.LogicalPlan, View], view_of: ViewOf, ends: Ends | None) -> None:
        super().__init__(view_of)
        self._given, self._ends = given, ends

    def _node(self, node: lp.LogicalPlan, keep: str | None) -> str:
        return self._rows_of(node) if node in self._given else super()._node(node, keep)

    def _rows_of(self, node: lp.LogicalPlan) -> str:
        """All columns of the node; those that nobody reads, and that were not handed in, as NULL."""
        view = self._given[node]
        items = [
            _q(c.name) if c.name in view.columns else f"CAST(NULL AS {_SQL.type(c.type)}) AS {_q(c.name)}"
            for c in node.schema
        ]
        if node.shape is lp.Shape.WINDOWED:
            mark = _q(node.window.end) if node.window else "CAST(NULL AS TIMESTAMP)"
            items.insert(0, f"{mark} AS {_MARK}")
        text = f"SELECT {', '.join(items)} FROM {_q(view.name)}"
        if node.window is None or self._ends is None:
            return text
        low, high = _SQL.instant(f"{self._ends.first}L"), _SQL.instant(f"{self._ends.last}L")
        return f"{text} WHERE {_q(node.window.end)} BETWEEN {low} AND {high}"

    def _window(self, node: lp.Window) -> str:
        ends, size = self._ends, node.spec.range
        if ends is None:
            raise InternalError("a window in a part that is done row by row")
        time, columns = f"unix_micros({_q(node.time)})", ", ".join(map(_q, node.input.schema.names))
        after = f"({time} - {_SQL.bigint(ends.first)})"
        low = f"IF({after} < 0, 0L, {after} DIV {ends.slide}L + 1L)"
        high = f"least({ends.count - 1}L, ({after} + {size}L) DIV {ends.slide}L)"
        wanted = f"{time} >= {_SQL.bigint(ends.first - size)} AND {time} < {_SQL.bigint(ends.last)}"
        rows = f"SELECT * FROM ({self._node(node.input, node.time)}) WHERE {wanted}"
        numbered = f"SELECT explode(sequence({low}, {high})) AS __k, {columns} FROM ({rows})"
        end = f"{_SQL.bigint(ends.first)} + {ends.slide}L * __k"
        opened = f"SELECT {end} AS __end, {columns} FROM ({numbered})"
        closes, opens = _SQL.instant("__end"), _SQL.instant(f"__end - {size}L")
        return (
            f"SELECT {closes} AS {_MARK}, {opens} AS {_q(lp.WINDOW_START)}, "
            f"{closes} AS {_q(lp.WINDOW_END)}, {columns} FROM ({opened})"
        )

    def _aggregate(self, node: lp.Aggregate) -> str:
        keys = [f"{_SQL.expr(e)} AS {_q(n)}" for n, e in node.keys]
        calls = [f"{_SQL.aggregate(c)} AS {_q(n)}" for n, c in node.aggregates]
        return self._grouped(node, keys, calls)

    def _window_join(self, node: lp.WindowJoin) -> str:
        return self._joined(node)
