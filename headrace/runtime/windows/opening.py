"""Level 1 of a tree: from rows to partials, without a JVM and without a row at a time.

`partial_table` aggregates the rows of one Arrow batch by fragment and key; it keeps nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.plan.expr import AggregateCall, Cast, Expr
from headrace.plan.text import format_expr
from headrace.plan.types import DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows import sketch
from headrace.runtime.windows.bigints import LIMIT, has_wrapped, refuse_part
from headrace.runtime.windows.partials import needs_of
from headrace.runtime.windows.spec import FRAGMENT, Partial, PartialKind, QuerySpec, TreeSpec

K = PartialKind
ROWS = "fragment_rows"
"""How many rows a partial is made of."""
_HOW = {
    K.COUNT: "count",
    K.SUM: "sum",
    K.MIN: "min",
    K.MAX: "max",
    K.MEAN: "mean",
    K.M2: "variance",
    K.SKETCH: "distinct",
}
_SOME = pc.ScalarAggregateOptions(min_count=1)
"""A sum of nothing is NULL, not 0."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What a partial column aggregates: a column of the rows, or the rows themselves (None)."""

    partial: Partial
    column: str | None


def arguments_of(calls: Iterable[AggregateCall]) -> tuple[tuple[Argument, ...], dict[str, Expr]]:
    """The partial columns of the calls with what they aggregate, and the argument columns by name."""
    found: dict[Partial, Argument] = {}
    columns: dict[str, Expr] = {}
    for call in calls:
        partials = needs_of([[("x", call)]]).partials
        for partial, expr in zip(partials, _inputs(call, len(partials)), strict=True):
            name = None if expr is None else _name(expr)
            if name is not None and expr is not None:
                columns[name] = expr
            found.setdefault(partial, Argument(partial, name))
    return tuple(found.values()), columns


def _inputs(call: AggregateCall, count: int) -> list[Expr | None]:
    """The argument of each partial column of a call, as partials.py has them."""
    arg = call.arg
    if arg is None:
        return [None]
    if call.function == "avg":
        return [Cast(arg, DataType.DOUBLE) if arg.type is DataType.BIGINT else arg, arg]
    return [arg] * count


def _name(expr: Expr) -> str:
    text = f"{format_expr(expr)} {expr.type}"
    return f"a_{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]}"


def edge_classes(queries: Iterable[QuerySpec]) -> list[tuple[int, int]]:
    """(slide, offset) of every kind of edge, without those that another kind has all of."""
    found = {(q.slide, o) for q in queries for o in (0, q.offset)}
    return sorted(
        (s, o)
        for s, o in found
        if not any(s % t == 0 and (o - p) % t == 0 for t, p in found if (t, p) != (s, o))
    )


def fragment_sql(micros: str, queries: Iterable[QuerySpec]) -> str:
    """The start of the fragment that holds an instant: the last edge at it or before it."""
    edges = [f"{micros} - pmod({micros} - {offset}, {slide})" for slide, offset in edge_classes(queries)]
    return edges[0] if len(edges) == 1 else f"greatest({', '.join(edges)})"


def next_edges(starts: NDArray[np.int64], classes: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """The first edge after each instant."""
    ends = [starts - (starts - offset) % slide + slide for slide, offset in classes]
    found: NDArray[np.int64] = np.minimum.reduce(ends)
    return found


def partial_table(
    batch: pa.RecordBatch, arguments: Sequence[Argument], keys: Sequence[str], spec: TreeSpec | None = None
) -> pa.Table:
    """Partial aggregates of the batch's rows: FRAGMENT, the keys, ROWS, the partial columns. `spec` tells
    whose sum it is that does not fit."""
    names = [FRAGMENT, *keys]
    rows, inputs = _prepared(pa.Table.from_batches([batch]), arguments)
    calls: dict[tuple[str, str], tuple[object, str, object]] = {("", "count_all"): ([], "count_all", None)}
    for argument, column in inputs.items():
        how = _HOW[argument.partial.kind]
        calls[column, how] = (column, how, _options(argument.partial.kind))
    made = rows.group_by(names, use_threads=False).aggregate(list(calls.values()))
    for argument, column in inputs.items():
        if argument.partial.kind is K.SUM and _may_overflow(rows[column]) and _wraps(rows, names, column):
            refuse_part(argument.partial, spec)
    columns = {name: made[name] for name in names} | {ROWS: made["count_all"]}
    return pa.table(columns | {a.partial.name: _column(made, a, inputs.get(a)) for a in arguments})


def _prepared(rows: pa.Table, arguments: Sequence[Argument]) -> tuple[pa.Table, dict[Argument, str]]:
    """The rows, with columns that Arrow can aggregate where it could not the arguments themselves, and the
    column of each argument."""
    inputs: dict[Argument, str] = {}
    for argument in arguments:
        if argument.column is None:
            continue
        name, column = argument.column, rows[argument.column]
        if argument.partial.kind is K.SKETCH:
            name = f"{argument.column}_entries"
            rows = rows.append_column(name, sketch.entries(column.combine_chunks()))
        elif argument.partial.kind in (K.MIN, K.MAX) and _has_nan(column):
            name = f"{argument.column}_places"
            if name not in rows.column_names:
                rows = rows.append_column(name, _places(column.combine_chunks()))
        inputs[argument] = name
    return rows, inputs


def _may_overflow(column: pa.ChunkedArray) -> bool:
    """Sums of INT are BIGINT, and no batch has the 2^32 rows that it takes to leave that."""
    if column.type != pa.int64() or column.null_count == len(column):
        return False
    ends = pc.min_max(column).as_py()
    return bool(max(-ends["min"], ends["max"]) * len(column) >= LIMIT)


def _wraps(rows: pa.Table, names: list[str], column: str) -> bool:
    """Whether Arrow has wrapped one of the sums (bigints.py)."""
    real = f"{column}_real"
    both = rows.append_column(real, rows[column].cast(pa.float64(), safe=False))
    sums = both.group_by(names, use_threads=False).aggregate([(column, "sum"), (real, "sum")])
    wrapped, whole = (pc.fill_null(sums[f"{c}_sum"], 0).to_numpy() for c in (column, real))
    return has_wrapped(wrapped, whole)


def _has_nan(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def _places(column: pa.Array) -> pa.Array:
    """Numbers that have the order of the column's values, with NaN above all: Arrow passes NaN over."""
    values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(_flipped(bits), mask=column.is_null().to_numpy(zero_copy_only=False))


def _flipped(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of negative doubles the larger bits are the smaller number. Its own inverse."""
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def _at_places(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    places = column.combine_chunks()
    bits = pc.fill_null(places, 0).to_numpy(zero_copy_only=False)
    missing = places.is_null().to_numpy(zero_copy_only=False)
    return pa.chunked_array([pa.array(_flipped(bits).view(np.float64), mask=missing).cast(kind)])


def _options(kind: PartialKind) -> pc.FunctionOptions:
    if kind in (K.COUNT, K.SKETCH):
        return pc.CountOptions(mode="only_valid")
    return pc.VarianceOptions(ddof=0) if kind is K.M2 else _SOME


def _column(made: pa.Table, argument: Argument, column: str | None) -> pa.ChunkedArray:
    kind = argument.partial.kind
    if column is None:
        return made["count_all"]
    found = made[f"{column}_{_HOW[kind]}"]
    if kind is K.SKETCH:
        return pa.chunked_array([sketch.sketches(found.combine_chunks())])
    if kind is K.M2:
        return pc.multiply(found, pc.cast(made[f"{column}_count"], pa.float64()))
    return found if column == argument.column else _at_places(found, ARROW[argument.partial.type])
