"""FROM: what each item reads, under its own names, and how its window was written.

A stream may carry a window clause. It is not applied here: conditions on raw columns belong below it, and
over a join with tables it belongs above the join, so that all window forms give one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from headrace.catalog.model import Stream, Table
from headrace.errors import Span
from headrace.ids import did_you_mean
from headrace.plan.logical import LogicalPlan, Shape, StreamScan, TableScan, WindowSpec
from headrace.sql.extensions import Form, WindowClause
from headrace.sql.place import Source, offset_of
from headrace.sql.scope import Visible
from headrace.sql.spans import window_spec

_Declared = TypeVar("_Declared", Stream, Table)
_TABLE_PARTS = {"this", "alias"}
_JOIN_PARTS = {"this", "on", "side", "kind"}
_PART_NAMES = {"pivots": "PIVOT", "sample": "TABLESAMPLE", "db": "a database name"}
_ONLY_STREAMS = "Put the window behind the name of a stream."


@dataclass(frozen=True, slots=True)
class Relation:
    """A bound SELECT: its plan, the columns it shows, and how its window was written, if it has one."""

    plan: LogicalPlan
    columns: tuple[Visible, ...]
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Env:
    """All that names can mean: the catalog, the WITH clauses, the window clauses by place."""

    source: Source
    windows: Mapping[int, WindowClause]
    streams: Mapping[str, Stream]
    tables: Mapping[str, Table]
    bind_select: Callable[[exp.Select, Env], Relation]
    withs: Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class FromItem:
    """One FROM item. `plan` and `columns` use its own names, `time` is its event time."""

    node: exp.Expr
    alias: str
    plan: LogicalPlan
    columns: tuple[Visible, ...]
    form: Form | None = None
    pending: WindowSpec | None = None
    """A window that is written and not yet applied to `plan`."""
    time: str = ""
    range: int | None = None
    """A CQL range without a slide: how long a row can be joined with later ones."""
    window_place: Span | None = None
    outer: bool = False
    on: exp.Expr | None = None

    @property
    def windowed(self) -> bool:
        return self.pending is not None or self.plan.shape is Shape.WINDOWED

    @property
    def spec(self) -> WindowSpec | None:
        return self.pending or (self.plan.window.spec if self.plan.window else None)


def from_items(select: exp.Select, env: Env) -> tuple[FromItem, ...]:
    """The FROM items of a SELECT, in the order they are written."""
    clause = select.args.get("from_")
    if clause is None:
        hint = "A continuous query reads at least one stream: SELECT ... FROM a_stream."
        raise env.source.error(select, "this SELECT has no FROM", hint)
    items = [_item(clause.this, env)]
    for join in select.args.get("joins") or ():
        items.append(_joined(join, items, env))
    _check_aliases(items, env)
    return tuple(items)


def _check_aliases(items: list[FromItem], env: Env) -> None:
    seen: set[str] = set()
    for item in items:
        if "." in item.alias:
            hint = "Plan columns are called alias.column; choose a name without a dot."
            raise env.source.error(item.node, f'the alias "{item.alias}" has a dot', hint)
        if not item.alias and len(items) > 1:
            hint = "Write (SELECT ...) AS name."
            raise env.source.error(item.node, "a subquery next to other FROM items needs a name", hint)
        if item.alias.lower() in seen:
            hint = "Give one of them another name: FROM s AS a, s AS b."
            raise env.source.error(item.node, f'two FROM items are called "{item.alias}"', hint)
        seen.add(item.alias.lower())


def _joined(join: exp.Join, before: list[FromItem], env: Env) -> FromItem:
    side, kind = (str(join.args.get(part) or "").upper() for part in ("side", "kind"))
    method = str(join.args.get("method") or "").upper()
    written = " ".join(word for word in (method, side, kind, "JOIN") if word)
    if method or side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        hint = "Inner joins, and LEFT JOIN of a stream with a table, are."
        raise env.source.refusal(join, f"{written} is not supported", hint)
    if join.args.get("using"):
        raise env.source.refusal(join, "JOIN ... USING is not supported", "Write ON a.x = b.x.")
    _check_parts(join, _JOIN_PARTS, env)
    item = _item(join.this, env)
    if side == "LEFT" and item.plan.shape is not Shape.TABLE:
        hint = "LEFT JOIN keeps rows that find no row in a table; between streams use JOIN."
        message = "an outer join between streams is not supported"
        if all(i.plan.shape is Shape.TABLE for i in before):
            hint = "Put the stream first: FROM a_stream LEFT JOIN a_table ON ..."
            message = "an outer join that keeps the rows of a table is not supported"
        raise env.source.refusal(join.this, message, hint)
    return replace(item, outer=side == "LEFT", on=join.args.get("on"))


def _check_parts(node: exp.Expr, known: set[str], env: Env) -> None:
    for part, value in node.args.items():
        if part not in known and value:
            name = _PART_NAMES.get(part, part.rstrip("_").upper())
            raise env.source.refusal(node, f"{name} in FROM is not supported", "Write FROM without it.")


def _item(node: exp.Expr, env: Env) -> FromItem:
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return _subquery(node, node.this, env)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.SetOperation):
        hint = "Declare one query for each part."
        raise env.source.refusal(node, f"{node.this.key.upper()} is not supported", hint)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        what: dict[type[exp.Expr], str] = {
            exp.Lateral: "LATERAL",
            exp.Values: "VALUES",
            exp.Subquery: "a join in parentheses",
        }
        said = what.get(type(node), "a function in FROM")
        hint = "FROM takes streams, tables, windows (HOP, TUMBLE) and (SELECT ...) AS name."
        raise env.source.refusal(node, f"{said} is not supported", hint)
    _check_parts(node, _TABLE_PARTS, env)
    relation = _named(node, env)
    item = FromItem(node, _alias(node, env) or relation[0], *relation[1:])
    clause = _clause(node, env)
    return item if clause is None else _with_window(item, clause, env)


def _alias(node: exp.Expr, env: Env) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    if alias.args.get("columns"):
        hint = "Name the columns with AS in the subquery."
        raise env.source.refusal(alias, "column names in a FROM alias are not supported", hint)
    if not alias.name:
        raise env.source.error(node, "the name after AS is empty", "Write a name after AS, or remove it.")
    return str(alias.name)


def _clause(node: exp.Table, env: Env) -> WindowClause | None:
    alias = node.args.get("alias")
    places = [offset_of(node.this)] + ([offset_of(alias.this)] if alias is not None else [])
    found = [env.windows[p] for p in places if p is not None and p in env.windows]
    if len(found) > 1:
        place = env.source.span(found[1].start, found[1].end)
        error = env.source.error(node, "a stream has one window", "Remove one of the two.")
        error.span = place
        raise error
    return found[0] if found else None


def _subquery(node: exp.Subquery, select: exp.Select, env: Env) -> FromItem:
    _check_parts(node, _TABLE_PARTS, env)
    relation = env.bind_select(select, env)
    return FromItem(node, _alias(node, env), relation.plan, relation.columns, relation.form)


def _named(node: exp.Table, env: Env) -> tuple[str, LogicalPlan, tuple[Visible, ...], Form | None]:
    """Name, plan, columns and window form of what a name stands for."""
    name = str(node.name)
    inlined = env.withs.get(name.lower())
    if inlined is not None:
        return name, inlined.plan, inlined.columns, inlined.form
    stream = _find(name, env.streams)
    if stream is not None:
        plan: LogicalPlan = StreamScan(stream.name, stream.schema_, stream.time, stream.watermark)
        return stream.name, plan, _visible(plan), None
    table = _find(name, env.tables)
    if table is not None:
        plan = TableScan(table.name, table.schema_)
        return table.name, plan, _visible(plan), None
    existing = [*env.streams, *env.tables, *env.withs]
    hint = did_you_mean(name, existing, "streams and tables")
    raise env.source.error(node.this, f'stream or table "{name}" does not exist', hint)


def _find(name: str, known: Mapping[str, _Declared]) -> _Declared | None:
    """By exact name, else by the only one that differs in case."""
    if name in known:
        return known[name]
    close = [value for key, value in known.items() if key.lower() == name.lower()]
    return close[0] if len(close) == 1 else None


def _visible(plan: LogicalPlan) -> tuple[Visible, ...]:
    return tuple(Visible(c.name, c.name, c.type) for c in plan.schema)


def _with_window(item: FromItem, clause: WindowClause, env: Env) -> FromItem:
    place = env.source.span(clause.start, clause.end)
    if item.plan.shape is not Shape.STREAM or not item.plan.times:
        error = env.source.error(
            item.node, f'"{item.alias}" has no event time to put a window on', _ONLY_STREAMS
        )
        error.span = place
        raise error
    time = item.plan.times[0]
    if clause.time is not None:
        time = _descriptor(item, clause.time, env, clause)
    if clause.slide is None:
        window_spec(clause.range, clause.range, place)
        return replace(item, range=clause.range, time=time, form=clause.form, window_place=place)
    spec = window_spec(clause.range, clause.slide, place)
    return replace(item, pending=spec, time=time, form=clause.form)


def _descriptor(item: FromItem, name: str, env: Env, clause: WindowClause) -> str:
    for column in item.columns:
        if column.name.lower() == name.lower() and column.column in item.plan.times:
            return column.column
    times = ", ".join(v.name for v in item.columns if v.column in item.plan.times)
    message = f'"{name}" is not the event time of "{item.alias}"'
    error = env.source.error(item.node, message, f"Write DESCRIPTOR({times}).")
    error.span = env.source.span(clause.start, clause.end)
    raise error
