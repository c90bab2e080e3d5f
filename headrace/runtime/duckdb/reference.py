"""The reference: what a query answers, computed as a batch over finite input in DuckDB.

One SQL text per plan, one CTE per node, equal sub-plans once. Every other way to run a query must give the
same multiset of rows. What is decided here, and holds everywhere:
- a row without an event time belongs to no stream: the scan drops it;
- windows are found by arithmetic on whole microseconds, towards the past also before 1970;
- a group exists only if it has rows.

Lateness depends on how rows arrived, which finite input does not tell. With `arrival_watermark`, a column of
the input says per row which watermark (microseconds) was in force when it came; NULL: none yet. Then a row
misses the windows that had ended by that watermark, and a join takes only rows later than it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb
import pyarrow as pa

from headrace.errors import EngineError, InternalError
from headrace.plan import logical as lp
from headrace.plan.expr import TRUE, Call, Expr
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.duckdb.kept import connection
from headrace.runtime.results import conform
from headrace.runtime.sqltext import DuckWriter

_SQL = DuckWriter()
_MARK = "#mark"
"""The arrival watermark of a row on its way to the window or join that asks for it. `#` is in no name of
a stream or table, so nothing a user can write meets our own names."""
_THREADS, _MEMORY = 2, "2GB"
_LAST = "TIMESTAMP '9999-12-01'"
"""Event times from here on are reserved where watermarks count: in windows, and in joins of streams."""


def evaluate(
    plan: lp.LogicalPlan,
    tables: Mapping[str, pa.Table],
    *,
    arrival_watermark: Mapping[str, str] | None = None,
) -> pa.Table:
    """The rows of the plan's answer, in no order. `tables` holds the streams and tables by name;
    `arrival_watermark` names, for a stream, the BIGINT column with its rows' arrival watermarks."""
    marks = dict(arrival_watermark or {})
    try:
        with connection(_THREADS, _MEMORY) as database:
            for name, schema in _inputs(plan, marks).items():
                database.register(name, conform(tables[name], schema))
            answer = database.sql(to_sql(plan, marks)).to_arrow_table()
    except duckdb.Error as error:
        raise EngineError("DuckDB could not evaluate the query", detail=str(error)) from error
    return conform(answer, plan.schema)


def to_sql(plan: lp.LogicalPlan, arrival_watermark: Mapping[str, str] | None = None) -> str:
    """The SQL text that `evaluate` runs; streams and tables go by their own names."""
    return Builder(arrival_watermark or {}).text(plan)


def _inputs(plan: lp.LogicalPlan, marks: Mapping[str, str]) -> dict[str, Schema]:
    """The columns that the scans of a plan read, by stream or table."""
    read: dict[str, dict[str, Column]] = {}
    for node in lp.nodes(plan):
        match node:
            case lp.StreamScan():
                name = node.stream
            case lp.TableScan():
                name = node.table
            case _:
                continue
        read.setdefault(name, {}).update({c.name: c for c in node.columns})
    for name, mark in marks.items():
        if name in read:
            read[name][mark] = Column(mark, DataType.BIGINT)
    return {name: Schema(columns.values()) for name, columns in read.items()}


def sql_above(plan: lp.LogicalPlan, node: lp.LogicalPlan, name: str) -> str:
    """The SQL text of what a plan does with the rows of one of its nodes, which are in the table `name`."""
    if plan == node:
        return f"SELECT {column_list(plan.schema)} FROM {_SQL.name(name)}"
    return Builder({}, {node: name}).text(plan)


class Builder:
    """Turns nodes into CTEs `#0`, `#1`, ...; remembers which of them carry an arrival watermark. The one way
    from plans to DuckDB's SQL: what is asked of the rows of some windows only (window_sql.py) is written by
    the same."""

    def __init__(self, marks: Mapping[str, str], given: Mapping[lp.LogicalPlan, str] | None = None) -> None:
        self._marks = marks
        self._names: dict[lp.LogicalPlan, str] = dict(given or {})
        self._given = frozenset(self._names)
        self._marked: set[lp.LogicalPlan] = set()
        self._reserved = False

    def text(self, plan: lp.LogicalPlan) -> str:
        self._reserved = any(isinstance(node, lp.Window | lp.IntervalJoin) for node in lp.nodes(plan))
        parts = []
        for node in self._wanted(plan):
            if node not in self._names:
                body = self._select(node)
                self._names[node] = f"#{len(self._names)}"
                parts.append(f"{self._of(node)} AS {self._kept(node)}({body})")
        columns = column_list(plan.schema)
        return "WITH " + ",\n".join(parts) + f"\nSELECT {columns} FROM {self._of(plan)}"

    def _wanted(self, plan: lp.LogicalPlan) -> Iterator[lp.LogicalPlan]:
        """The nodes of a plan, inputs first, down to those whose rows are given."""
        if plan in self._given:
            return
        for child in plan.inputs:
            yield from self._wanted(child)
        yield plan

    def _kept(self, node: lp.LogicalPlan) -> str:
        """Whether DuckDB is told to make a CTE's rows once, or each time they are read; nothing: as it
        likes."""
        return ""

    def _of(self, node: lp.LogicalPlan) -> str:
        return _SQL.name(self._names[node])

    def _select(self, node: lp.LogicalPlan) -> str:
        match node:
            case lp.StreamScan():
                return self._stream(node)
            case lp.TableScan():
                return f"SELECT {column_list(node.schema)} FROM {_SQL.name(node.table)}"
            case lp.Filter():
                self._carry(node, node.input)
                return f"SELECT * FROM {self._of(node.input)} WHERE {_SQL.expr(node.predicate)}"
            case lp.Project():
                items = [f"{_SQL.expr(e)} AS {_SQL.name(n)}" for n, e in node.items]
                items += self._carry(node, node.input)
                return f"SELECT {', '.join(items)} FROM {self._of(node.input)}"
            case lp.Window():
                return self._window(node)
            case lp.Aggregate():
                return self._aggregate(node)
            case lp.IntervalJoin():
                return self._interval_join(node)
            case lp.TableJoin():
                return self._table_join(node)
            case lp.WindowJoin():
                return self._window_join(node)
        raise InternalError(f"no SQL for {node!r}")

    def _carry(self, node: lp.LogicalPlan, source: lp.LogicalPlan) -> list[str]:
        """The mark column of `source` as one of `node`, where there is one."""
        if source not in self._marked:
            return []
        self._marked.add(node)
        return [_SQL.name(_MARK)]

    def _stream(self, node: lp.StreamScan) -> str:
        items = [column_list(node.schema)]
        mark = self._marks.get(node.stream)
        if mark is not None:
            items.append(f"{_SQL.name(mark)} AS {_SQL.name(_MARK)}")
            self._marked.add(node)
        there = f"{_SQL.name(node.time)} IS NOT NULL"
        if self._reserved:
            there += f" AND {_SQL.name(node.time)} < {_LAST}"
        return f"SELECT {', '.join(items)} FROM {_SQL.name(node.stream)} WHERE {there}"

    def _window(self, node: lp.Window) -> str:
        """Each row once per window: starts at the last multiple of slide, then back by one slide each."""
        time, size, slide = _SQL.micros(_SQL.name(node.time)), node.spec.range, node.spec.slide
        last = f"({time} - ((({time} % {slide}) + {slide}) % {slide}))"
        steps = f"unnest(range(0, {last} + {size} - {time}, {slide}))"
        rows = f'SELECT *, {last} - {steps} AS "#start" FROM {self._of(node.input)}'
        in_time = f' WHERE "{_MARK}" IS NULL OR "#start" + {size} > "{_MARK}"'
        ends = f'make_timestamp("#start") AS "{lp.WINDOW_START}", make_timestamp("#start" + {size})'
        ends += f' AS "{lp.WINDOW_END}"'
        kept = in_time if node.input in self._marked else ""
        return f"SELECT {ends}, {column_list(node.input.schema)} FROM ({rows}){kept}"

    def _aggregate(self, node: lp.Aggregate) -> str:
        window = node.input.window
        if window is None:
            raise InternalError("Aggregate: the input has no window")
        items = [f"{_SQL.name(window.start)} AS {_SQL.name(lp.WINDOW_START)}"]
        items += [f"{_SQL.name(window.end)} AS {_SQL.name(lp.WINDOW_END)}"]
        items += [f"{_SQL.expr(e)} AS {_SQL.name(n)}" for n, e in node.keys]
        grouped = ", ".join(str(k + 1) for k in range(len(items)))
        items += [f"{_SQL.aggregate(c)} AS {_SQL.name(n)}" for n, c in node.aggregates]
        return f"SELECT {', '.join(items)} FROM {self._of(node.input)} GROUP BY {grouped}"

    def _interval_join(self, node: lp.IntervalJoin) -> str:
        bounds = [
            f"{_SQL.micros(_SQL.name(b.later))} - {_SQL.micros(_SQL.name(b.earlier))} <= {b.at_most}"
            for b in node.time_bounds
        ]
        condition = _condition(node.on, node.residual, bounds)
        left, right = self._in_time(node.left), self._in_time(node.right)
        return f"SELECT {column_list(node.schema)} FROM {left} AS l JOIN {right} AS r ON {condition}"

    def _in_time(self, node: lp.LogicalPlan) -> str:
        """An input of a join without its late rows. A joined input has lost its own already."""
        if node not in self._marked:
            return f"(SELECT {column_list(node.schema)} FROM {self._of(node)})"
        later = f'"{_MARK}" IS NULL OR {_SQL.micros(_SQL.name(node.times[0]))} > "{_MARK}"'
        return f"(SELECT {column_list(node.schema)} FROM {self._of(node)} WHERE {later})"

    def _table_join(self, node: lp.TableJoin) -> str:
        columns = ", ".join([column_list(node.schema), *self._carry(node, node.input)])
        kind = "LEFT JOIN" if node.outer else "JOIN"
        condition = _condition(node.on, node.residual, [])
        left, right = self._of(node.input), self._of(node.table)
        return f"SELECT {columns} FROM {left} AS l {kind} {right} AS r ON {condition}"

    def _window_join(self, node: lp.WindowJoin) -> str:
        mine, theirs = node.left.window, node.right.window
        if mine is None or theirs is None:
            raise InternalError("WindowJoin: an input has no window")
        together = f"{_SQL.name(mine.end)} = {_SQL.name(theirs.end)}"
        condition = _condition(node.on, node.residual, [together])
        left, right = self._of(node.left), self._of(node.right)
        return f"SELECT {column_list(node.schema)} FROM {left} AS l JOIN {right} AS r ON {condition}"


def column_list(schema: Schema) -> str:
    return ", ".join(map(_SQL.name, schema.names))


def _condition(on: tuple[tuple[Expr, Expr], ...], residual: Expr, more: list[str]) -> str:
    parts = [*_equalities(on), *more]
    parts += [] if residual == TRUE else [_SQL.expr(residual)]
    return " AND ".join(f"({part})" for part in parts) or "TRUE"


def _equalities(on: tuple[tuple[Expr, Expr], ...]) -> Iterator[str]:
    for pair in on:
        yield _SQL.expr(Call("=", pair))
