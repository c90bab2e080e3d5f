"""LogicalPlan -> one Spark SQL text over named views, native expressions only.

SQL text rather than Column objects, because the same text runs on a classic session and over Spark
Connect. Two rules of Structured Streaming shape it:

- A relation may carry ONE column marked as event time, else Spark refuses the next stateful operator
  (MULTIPLE_EVENT_TIME_COLUMNS). So each node is compiled with the one time column to keep; every other
  one is passed through `timestamp_micros(unix_micros(c))`, which gives the same value without the mark.
- A windowed relation carries its mark in the hidden column `__wt` (Spark's window_time: the last
  microsecond of the window). Grouping by it, or joining on it, lets Spark give and forget a window once
  the watermark has passed its end.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.expr import TRUE, ColumnRef, Expr, columns_of
from headrace.runtime.spark.own_window import OwnWindow, find_own_window
from headrace.runtime.sqltext import SparkWriter

_SQL = SparkWriter()
_MARK = "__wt"
_STRUCT = "__w"
_ROWS = "__rows"
_q = _SQL.name

ViewOf = Callable[[lp.StreamScan | lp.TableScan], str]
"""The name of the view that holds the rows of a scan."""


def _strip(column: str) -> str:
    """The column without its event-time mark."""
    return f"timestamp_micros(unix_micros({column}))"


def interval(micros: int) -> str:
    """An exact day-time interval literal."""
    sign, size = ("-" if micros < 0 else ""), abs(micros)
    return f"INTERVAL '{sign}{size // 1_000_000}.{size % 1_000_000:06d}' SECOND"


def _millis(micros: int) -> str:
    return f"'{micros // 1000} milliseconds'"


def _window_call(node: lp.Window) -> str:
    return f"window({_q(node.time)}, {_millis(node.spec.range)}, {_millis(node.spec.slide)})"


def is_stateful(plan: lp.LogicalPlan) -> bool:
    """Whether a job of this plan keeps state, and so needs a watermark."""
    return any(
        isinstance(n, lp.Window | lp.Aggregate | lp.IntervalJoin | lp.WindowJoin) for n in lp.nodes(plan)
    )


class Compiler:
    """Writes the text of a plan. `view_of` names the view of every scan."""

    def __init__(self, view_of: ViewOf) -> None:
        self._view_of = view_of

    def query(self, plan: lp.LogicalPlan) -> str:
        """The plan's output columns and nothing else."""
        columns = ", ".join(map(_q, plan.schema.names))
        return f"SELECT {columns} FROM ({self._node(plan, self._any_time(plan))})"

    def rows(self, plan: lp.LogicalPlan, time: str) -> str:
        """All columns of a plan, with `time` as its event time."""
        return self._node(plan, time)

    @staticmethod
    def _any_time(node: lp.LogicalPlan) -> str | None:
        return node.times[0] if node.times else None

    def _node(self, node: lp.LogicalPlan, keep: str | None) -> str:
        """The text of a node in which `keep` is the only marked column (or `__wt`, if it is windowed)."""
        match node:
            case lp.StreamScan() | lp.TableScan():
                return f"SELECT {', '.join(map(_q, node.schema.names))} FROM {_q(self._view_of(node))}"
            case lp.Filter():
                return f"SELECT * FROM ({self._node(node.input, keep)}) WHERE {_SQL.expr(node.predicate)}"
            case lp.Project():
                return self._project(node, keep)
            case lp.Window():
                return self._window(node)
            case lp.Aggregate():
                return self._aggregate(node)
            case lp.IntervalJoin():
                return self._interval_join(node, keep)
            case lp.TableJoin():
                return self._table_join(node, keep)
            case lp.WindowJoin():
                return self._window_join(node)
        raise InternalError(f"no Spark text for {node!r}")

    def _project(self, node: lp.Project, keep: str | None) -> str:
        source = dict(node.items).get(keep) if keep is not None else None
        inner = source.name if isinstance(source, ColumnRef) else self._any_time(node.input)
        windowed = node.input.shape is lp.Shape.WINDOWED
        items = [_MARK] if windowed else []
        for name, expr in node.items:
            text = _SQL.expr(expr)
            marked = not windowed and isinstance(expr, ColumnRef) and expr.name == inner
            items.append(f"{_strip(text) if marked and name != keep else text} AS {_q(name)}")
        return f"SELECT {', '.join(items)} FROM ({self._node(node.input, inner)})"

    def _window(self, node: lp.Window) -> str:
        """Each row once per window; the row's own time loses its mark, the window has it now."""
        columns = [
            f"{_strip(_q(c))} AS {_q(c)}" if c == node.time else _q(c) for c in node.input.schema.names
        ]
        inner = f"SELECT {_window_call(node)} AS {_STRUCT}, {', '.join(columns)} " + (
            f"FROM ({self._node(node.input, node.time)})"
        )
        return self._from_struct(inner, node.input.schema.names)

    @staticmethod
    def _from_struct(inner: str, columns: tuple[str, ...]) -> str:
        """window_start, window_end and the mark out of Spark's window struct."""
        ends = (
            f"window_time({_STRUCT}) AS {_MARK}, {_STRUCT}.start AS {_q(lp.WINDOW_START)}, "
            f"{_STRUCT}.end AS {_q(lp.WINDOW_END)}"
        )
        return f"SELECT {', '.join((ends, *map(_q, columns)))} FROM ({inner})"

    def _aggregate(self, node: lp.Aggregate) -> str:
        names = tuple(n for n, _ in node.keys) + tuple(n for n, _ in node.aggregates)
        keys = [f"{_SQL.expr(e)} AS {_q(n)}" for n, e in node.keys]
        calls = [f"{_SQL.aggregate(c)} AS {_q(n)}" for n, c in node.aggregates]
        groups = [_SQL.expr(e) for _, e in node.keys if columns_of(e)]
        below = node.input
        if isinstance(below, lp.Window) and not _reads_window(node):
            inner = (
                f"SELECT {', '.join((f'window AS {_STRUCT}', *keys, *calls))} "
                f"FROM ({self._node(below.input, below.time)}) "
                f"GROUP BY {', '.join((_window_call(below), *groups))}"
            )
            return self._from_struct(inner, names)
        return self._grouped(node, keys, calls)

    def _grouped(self, node: lp.Aggregate, keys: list[str], calls: list[str]) -> str:
        """An aggregate over rows that have their windows already."""
        groups = [_SQL.expr(e) for _, e in node.keys if columns_of(e)]
        below, info = node.input, node.input.window
        if info is None:
            raise InternalError("Aggregate over a relation without a window")
        ends = (
            _MARK,
            f"{_q(info.start)} AS {_q(lp.WINDOW_START)}",
            f"{_q(info.end)} AS {_q(lp.WINDOW_END)}",
        )
        by = (_MARK, _q(info.start), _q(info.end), *groups)
        return (
            f"SELECT {', '.join((*ends, *keys, *calls))} FROM ({self._node(below, None)}) "
            f"GROUP BY {', '.join(by)}"
        )

    def _interval_join(self, node: lp.IntervalJoin, keep: str | None) -> str:
        mine, theirs, keep_left = self._join_times(node, keep)
        left_keep, right_keep = (mine, theirs) if keep_left else (theirs, mine)
        lost = theirs
        columns = [
            f"{_strip(_side(c, node))} AS {_q(c)}" if c == lost else f"{_side(c, node)} AS {_q(c)}"
            for c in node.schema.names
        ]
        bounds = {(b.earlier, b.later): b.at_most for b in node.time_bounds}
        # The bounds that follow from others: Spark forgets rows by the marked columns only.
        bounds |= {p: node.bounds[p] for p in ((mine, theirs), (theirs, mine))}
        parts = [
            f"{_side(later, node)} <= {_side(earlier, node)} + {interval(at_most)}"
            for (earlier, later), at_most in sorted(bounds.items())
        ]
        if not node.on:
            # Spark joins two streams only on an equality; this one is always true and it cannot see it.
            parts.append(
                f"pmod(unix_micros(l.{_q(left_keep)}), 1) = pmod(unix_micros(r.{_q(right_keep)}), 1)"
            )
        parts += _conditions(node.on, node.residual)
        return (
            f"SELECT {', '.join(columns)} FROM ({self._node(node.left, left_keep)}) AS l "
            f"JOIN ({self._node(node.right, right_keep)}) AS r ON {' AND '.join(parts)}"
        )

    @staticmethod
    def _join_times(node: lp.IntervalJoin, keep: str | None) -> tuple[str, str, bool]:
        """The time column that stays marked, its partner on the other side, and whether it is left."""
        candidates = [keep] if keep is not None else [*node.left.times, *node.right.times]
        for mine in candidates:
            keep_left = mine in node.left.times
            others = node.right.times if keep_left else node.left.times
            for theirs in others:
                if (mine, theirs) in node.bounds and (theirs, mine) in node.bounds:
                    return mine, theirs, keep_left
        raise InternalError("IntervalJoin: the kept event time is not bounded against the other side")

    def _table_join(self, node: lp.TableJoin, keep: str | None) -> str:
        hidden = [f"l.{_MARK}"] if node.input.shape is lp.Shape.WINDOWED else []
        columns = [f"{_side(c, node)} AS {_q(c)}" for c in node.schema.names]
        parts = _conditions(node.on, node.residual) or ["TRUE"]
        return (
            f"SELECT {', '.join(hidden + columns)} FROM ({self._node(node.input, keep)}) AS l "
            f"{'LEFT' if node.outer else 'INNER'} JOIN ({self._node(node.table, None)}) AS r "
            f"ON {' AND '.join(parts)}"
        )

    def _window_join(self, node: lp.WindowJoin) -> str:
        own = find_own_window(node)
        if own is not None:
            return self._own_window(own)
        return self._joined(node)

    def _joined(self, node: lp.WindowJoin) -> str:
        columns = [f"{_side(c, node)} AS {_q(c)}" for c in node.schema.names]
        parts = [f"l.{_MARK} = r.{_MARK}", *_conditions(node.on, node.residual)]
        return (
            f"SELECT {', '.join((f'l.{_MARK}', *columns))} FROM ({self._node(node.left, None)}) AS l "
            f"JOIN ({self._node(node.right, None)}) AS r ON {' AND '.join(parts)}"
        )

    def _own_window(self, own: OwnWindow) -> str:
        """Rows beside an aggregate of their own window: one grouping that also keeps the rows."""
        keys = [_q(c) for c in own.keys]
        # The mark would travel inside the struct and come out again beside the window's.
        fields = ", ".join(f"{_strip(_q(c))} AS {_q(c)}" if c == own.base.time else _q(c) for c in own.rows)
        calls = [f"{_SQL.aggregate(c)} AS {_q(n)}" for n, c in own.aggregates]
        packed = (
            f"SELECT {', '.join((f'window AS {_STRUCT}', *calls))}, "
            f"collect_list(struct({fields})) AS {_ROWS} "
            f"FROM ({self._node(own.base.input, own.base.time)}) "
            f"GROUP BY {', '.join((_window_call(own.base), *keys))}"
        )
        names = tuple(n for n, _ in own.aggregates)
        opened = self._from_struct(packed, (*names, _ROWS))
        hidden = ", ".join((_MARK, _q(lp.WINDOW_START), _q(lp.WINDOW_END), *map(_q, names)))
        rows = f"SELECT {hidden}, inline({_ROWS}) FROM ({opened})"
        columns = [f"{_SQL.expr(e)} AS {_q(n)}" for n, e in own.columns]
        text = f"SELECT {', '.join((_MARK, *columns))} FROM ({rows})"
        return text if own.residual == TRUE else f"SELECT * FROM ({text}) WHERE {_SQL.expr(own.residual)}"


def _reads_window(node: lp.Aggregate) -> bool:
    exprs = [e for _, e in node.keys] + [c.arg for _, c in node.aggregates if c.arg is not None]
    return any({lp.WINDOW_START, lp.WINDOW_END} & columns_of(e) for e in exprs)


def _side(column: str, node: lp.LogicalPlan) -> str:
    """The column with the name of the join side it comes from; join inputs have disjoint names."""
    return f"{'l' if column in node.inputs[0].schema else 'r'}.{_q(column)}"


def _conditions(on: tuple[tuple[Expr, Expr], ...], residual: Expr) -> list[str]:
    """Join conditions. Names of the two sides are disjoint, so they need no qualifier."""
    parts = [f"{_SQL.expr(a)} = {_SQL.expr(b)}" for a, b in on]
    return parts if residual == TRUE else [*parts, f"({_SQL.expr(residual)})"]
