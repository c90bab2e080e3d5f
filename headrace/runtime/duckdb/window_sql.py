"""One SQL statement for all windows that have ended since the last one.

The windows are given by their ends: `first`, `first + slide`, ... `last`. What was kept of a stream is a
table; each row of it is put only into those of these windows that hold it. Rows of windows that other parts
have made are tables too.

An aggregate right above a window that can be merged is made in two steps. First by pane and key: a pane is
the time between two neighbouring edges of windows, except that all the time which every one of the windows
holds is a single pane. Then over the panes of each window. A pane lies in a window exactly if its start does,
so with n windows a row is aggregated once instead of n times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.expr import AggregateCall, columns_of
from headrace.plan.federated import Engine
from headrace.plan.federated_parts import Part
from headrace.plan.types import DataType
from headrace.runtime.duckdb.reference import Builder, column_list
from headrace.runtime.sqltext import DuckWriter

_SQL = DuckWriter()
_END, _PANE = '"#end"', '"#pane"'
_MERGED = frozenset({"count", "sum", "min", "max", "avg"})


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of the windows to be given, in microseconds."""

    first: int
    last: int
    slide: int

    def __post_init__(self) -> None:
        if self.last < self.first or (self.last - self.first) % self.slide:
            raise InternalError(f"no windows end like this: {self}")

    @property
    def count(self) -> int:
        return (self.last - self.first) // self.slide + 1


@dataclass(frozen=True, slots=True)
class Given:
    """Rows of a node in `text`, a table or a query in brackets, with these of its columns. The others are
    never read."""

    text: str
    columns: tuple[str, ...]


def instant(micros: int) -> str:
    return f"make_timestamp({micros})"


class WindowBuilder(Builder):
    """Writes a part over windows that end at `ends`."""

    def __init__(self, given: Mapping[lp.LogicalPlan, Given], ends: Ends | None) -> None:
        super().__init__({}, {node: f"#in{number}" for number, node in enumerate(given)})
        self._tables, self._ends = given, ends

    def text(self, plan: lp.LogicalPlan) -> str:
        inputs = [f"{self._of(n)} AS NOT MATERIALIZED ({self._all_columns(n)})" for n in self._tables]
        return f"WITH {', '.join(inputs)},\n" + super().text(plan).removeprefix("WITH ")

    def _all_columns(self, node: lp.LogicalPlan) -> str:
        """The given rows with a NULL for every column that nobody reads, so that nodes above find their
        schema."""
        given = self._tables[node]
        there = {name: _SQL.name(name) for name in given.columns}
        items = [
            there.get(c.name) or f"CAST(NULL AS {_SQL.type(c.type)}) AS {_SQL.name(c.name)}"
            for c in node.schema
        ]
        text = f"SELECT {', '.join(items)} FROM {given.text}"
        if node.window is None or self._ends is None:
            return text
        bounds = f"BETWEEN {instant(self._ends.first)} AND {instant(self._ends.last)}"
        return f"{text} WHERE {_SQL.name(node.window.end)} {bounds}"

    def _kept(self, node: lp.LogicalPlan) -> str:
        # Aggregates are small; rows of many windows are not, and must pass through without being held.
        return "MATERIALIZED " if isinstance(node, lp.Aggregate) else "NOT MATERIALIZED "

    def _of_windows(self) -> Ends:
        if self._ends is None:
            raise InternalError("a window in a part that is done row by row")
        return self._ends

    def _wanted_rows(self, node: lp.Window) -> str:
        """The kept rows that lie in at least one of the windows, or between two of them."""
        ends, time = self._of_windows(), _SQL.name(node.time)
        low, high = instant(ends.first - node.spec.range), instant(ends.last)
        return f"{self._of(node.input)} WHERE {time} >= {low} AND {time} < {high}"

    def _unnested(self, time: str, size: int) -> str:
        """The ends of the windows that hold an instant: end > time and end <= time + size."""
        ends = self._of_windows()
        after = f"({time} - {ends.first})"
        low = f"CASE WHEN {after} < 0 THEN 0 ELSE {after} // {ends.slide} + 1 END"
        high = f"least({ends.count - 1}, ({after} + {size}) // {ends.slide})"
        return f"{ends.first} + {ends.slide} * unnest(range({low}, {high} + 1))"

    def _window(self, node: lp.Window) -> str:
        ends, size = self._of_windows(), node.spec.range
        columns, rows = column_list(node.input.schema), self._wanted_rows(node)
        if ends.count == 1:
            return f"SELECT {_window_columns(str(ends.first), size)}, {columns} FROM {rows}"
        opened = f"{self._unnested(_SQL.micros(_SQL.name(node.time)), size)} AS {_END}"
        inner = f"SELECT {opened}, {columns} FROM {rows}"
        return f"SELECT {_window_columns(_END, size)}, {columns} FROM ({inner})"

    def _aggregate(self, node: lp.Aggregate) -> str:
        window = node.input
        if not isinstance(window, lp.Window) or self._of_windows().count == 1 or not _is_merged(node):
            return super()._aggregate(node)
        keys = [(_SQL.expr(e), _SQL.name(n)) for n, e in node.keys]
        partials = [_partials(call, f"#a{k}") for k, (_, call) in enumerate(node.aggregates)]
        first = [f"{self._pane(window)} AS {_PANE}", *(f"{e} AS {n}" for e, n in keys)]
        grouped = ", ".join(str(k + 1) for k in range(len(first)))
        first += [f"{text} AS {_SQL.name(name)}" for made in partials for name, text in made.items()]
        panes = f"SELECT {', '.join(first)} FROM {self._wanted_rows(window)} GROUP BY {grouped}"
        names = [n for _, n in keys] + [_SQL.name(name) for made in partials for name in made]
        ends = f"{self._unnested(_PANE, window.spec.range)} AS {_END}"
        opened = f"SELECT {', '.join([ends, *names])} FROM ({panes})"
        merged = [
            f"{_merge(call, made)} AS {_SQL.name(name)}"
            for (name, call), made in zip(node.aggregates, partials, strict=True)
        ]
        items = [_window_columns(_END, window.spec.range), *(n for _, n in keys), *merged]
        by = ", ".join([_END, *(n for _, n in keys)])
        return f"SELECT {', '.join(items)} FROM ({opened}) GROUP BY {by}"

    def _pane(self, window: lp.Window) -> str:
        """The start of a row's pane: the last edge before it, where some window opens or closes; or the start
        of what all windows have in common."""
        ends, size = self._of_windows(), window.spec.range
        time = _SQL.micros(_SQL.name(window.time))
        opens, closes = ends.first - size, ends.first
        edges = sorted({opens % ends.slide, closes % ends.slide})
        # Rows lie at or after `opens`, so counting from there, division is towards the past.
        last = [f"{time} - ({time} - {opens - (opens - edge) % ends.slide}) % {ends.slide}" for edge in edges]
        pane = last[0] if len(last) == 1 else f"greatest({', '.join(last)})"
        common = ends.last - size
        if common >= ends.first:
            return pane
        return f"CASE WHEN {time} >= {common} AND {time} < {ends.first} THEN {common} ELSE {pane} END"


def opened_windows(part: Part) -> tuple[lp.Window, ...]:
    """The windows of a part whose rows are put into each of them, rather than merged from panes."""
    if part.engine is not Engine.DUCKDB:
        return part.windows()
    return tuple(_opened(part.root, frozenset(part.inputs)))


def _opened(node: lp.LogicalPlan, inputs: frozenset[lp.LogicalPlan]) -> Iterator[lp.Window]:
    if node in inputs or _is_merged(node):
        return
    if isinstance(node, lp.Window):
        yield node
    for child in node.inputs:
        yield from _opened(child, inputs)


def _window_columns(end: str, size: int) -> str:
    return (
        f'make_timestamp({end} - {size}) AS "{lp.WINDOW_START}", make_timestamp({end}) AS "{lp.WINDOW_END}"'
    )


def _is_merged(node: lp.LogicalPlan) -> bool:
    """Whether a node is an aggregate that is made from panes."""
    if not isinstance(node, lp.Aggregate) or not isinstance(node.input, lp.Window):
        return False
    exprs = [e for _, e in node.keys] + [c.arg for _, c in node.aggregates if c.arg is not None]
    reads_window = any({lp.WINDOW_START, lp.WINDOW_END} & columns_of(e) for e in exprs)
    return not reads_window and all(c.function in _MERGED for _, c in node.aggregates)


def _partials(call: AggregateCall, name: str) -> dict[str, str]:
    """What is kept of an aggregate for each pane, by column."""
    if call.arg is None or call.function == "count":
        return {name: _SQL.aggregate(call)}
    if call.function == "avg" or (call.type is DataType.DOUBLE and call.function == "sum"):
        value = _SQL.as_type(call.arg, DataType.DOUBLE)
        fixed, rest = _SQL.split(value)
        made = {name: f"sum({fixed})", f"{name}#rest": f"sum({rest})"}
        return made | ({f"{name}#n": f"count({value})"} if call.function == "avg" else {})
    if call.function == "sum":
        # Not cut to a BIGINT yet: only the sum of a whole window has to fit.
        return {name: f"sum({_SQL.as_type(call.arg, call.type)})"}
    return {name: _SQL.aggregate(call)}


def _merge(call: AggregateCall, made: Mapping[str, str]) -> str:
    columns = [_SQL.name(name) for name in made]
    if len(columns) > 1:
        total = _SQL.joined_total(f"sum({columns[0]})", f"sum({columns[1]})")
        return f"({total} / nullif(sum({columns[2]}), 0))" if call.function == "avg" else total
    merge: Callable[[str], str] = {
        "count": lambda c: f"CAST(sum({c}) AS BIGINT)",
        "sum": lambda c: f"CAST(sum({c}) AS {_SQL.type(call.type)})",
    }.get(call.function, lambda c: f"{call.function}({c})")
    return merge(columns[0])
