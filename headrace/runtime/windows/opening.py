"""Level 1 of a tree: from rows to closed fragments, without a JVM and without a row at a time.

`partial_table` aggregates the rows of one Arrow batch by fragment and key; it keeps nothing. `Opening` puts
the partials of successive batches together until the watermark has passed a fragment's end, and gives every
closed fragment once. A partial that comes after its fragment was closed is late: it is dropped, and its rows
are counted.
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
from headrace.runtime.windows.partials import needs_of
from headrace.runtime.windows.spec import FRAGMENT, Partial, PartialKind, QuerySpec, TreeSpec

K = PartialKind
ROWS = "fragment_rows"
"""How many rows a partial is made of."""
_HOW = {K.COUNT: "count", K.SUM: "sum", K.MIN: "min", K.MAX: "max", K.MEAN: "mean", K.M2: "variance"}
_MERGE = {K.COUNT: "sum", K.SUM: "sum", K.MIN: "min", K.MAX: "max"}
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


def partial_table(batch: pa.RecordBatch, arguments: Sequence[Argument], keys: Sequence[str]) -> pa.Table:
    """Partial aggregates of the batch's rows: FRAGMENT, the keys, ROWS, the partial columns."""
    names = [FRAGMENT, *keys]
    calls: dict[tuple[str, str], tuple[object, str, object]] = {("", "count_all"): ([], "count_all", None)}
    for argument in arguments:
        if argument.column is not None:
            how = _HOW[argument.partial.kind]
            calls[argument.column, how] = (argument.column, how, _options(argument.partial.kind))
    made = pa.Table.from_batches([batch]).group_by(names, use_threads=False).aggregate(list(calls.values()))
    columns = {name: made[name] for name in names} | {ROWS: made["count_all"]}
    return pa.table(columns | {a.partial.name: _column(made, a) for a in arguments})


def _options(kind: PartialKind) -> pc.FunctionOptions:
    if kind is K.COUNT:
        return pc.CountOptions(mode="only_valid")
    return pc.VarianceOptions(ddof=0) if kind is K.M2 else _SOME


def _column(made: pa.Table, argument: Argument) -> pa.ChunkedArray:
    kind, column = argument.partial.kind, argument.column
    if column is None:
        return made["count_all"]
    if kind is K.M2:
        return pc.multiply(made[f"{column}_variance"], pc.cast(made[f"{column}_count"], pa.float64()))
    return made[f"{column}_{_HOW[kind]}"]


class Opening:
    """The fragments of one bucket that are still open."""

    def __init__(self, spec: TreeSpec, held: pa.Table | None = None) -> None:
        self._spec = spec
        self._edges = edge_classes(spec.queries)
        self._held = [] if held is None else [held]
        self._names = [FRAGMENT, *(key.name for key in spec.keys)]

    def take(self, partials: pa.Table, watermark: int | None) -> int:
        """Take the partials of a batch; `watermark` is that of the batch before. How many rows came too
        late."""
        ends = next_edges(partials[FRAGMENT].to_numpy(), self._edges)
        late = 0
        if watermark is not None and len(ends) and ends.min() <= watermark:
            behind = ends <= watermark
            late = int(pc.sum(partials.filter(pa.array(behind))[ROWS]).as_py())
            partials = partials.filter(pa.array(~behind))
        if partials.num_rows:
            self._held.append(partials)
        return late

    def closed(self, watermark: int) -> pa.Table | None:
        """The fragments that end at the watermark or before, each (fragment, key) once; no longer held."""
        if not self._held:
            return None
        held = pa.concat_tables(self._held)
        done = next_edges(held[FRAGMENT].to_numpy(), self._edges) <= watermark
        if not done.any():
            return None
        left = held.filter(pa.array(~done))
        self._held = [left] if left.num_rows else []
        return self._merged(held.filter(pa.array(done))).drop_columns([ROWS])

    def held(self) -> pa.Table | None:
        """What is still open, put together: this is the state."""
        if not self._held:
            return None
        self._held = [self._merged(pa.concat_tables(self._held))]
        return self._held[0]

    def _merged(self, table: pa.Table) -> pa.Table:
        """Partials of equal fragment and key put together."""
        calls = [(ROWS, "sum", None)]
        calls += [(p.name, _MERGE[p.kind], _SOME) for p in self._spec.partials if p.kind in _MERGE]
        made = table.group_by(self._names, use_threads=False).aggregate(calls)
        columns = {name: made[name] for name in self._names} | {ROWS: made[f"{ROWS}_sum"]}
        spreads = self._spreads(table, made)
        for p in self._spec.partials:
            columns[p.name] = made[f"{p.name}_{_MERGE[p.kind]}"] if p.kind in _MERGE else spreads[p.name]
        return pa.table(columns)

    def _spreads(self, table: pa.Table, made: pa.Table) -> dict[str, pa.Array]:
        """Means and M2s of merged groups (Chan): the parts' own M2, and how far each part's mean is off."""
        found: dict[str, pa.Array] = {}
        partials = self._spec.partials
        threes = {o.partials for q in self._spec.queries for o in q.outputs if len(o.partials) == 3}
        if not threes:
            return found
        group, groups = self._group_of(table, made), made.num_rows
        for count_at, mean_at, m2_at in sorted(threes):
            n = _floats(table[partials[count_at].name])
            mean, m2 = _floats(table[partials[mean_at].name]), _floats(table[partials[m2_at].name])
            total = np.bincount(group, weights=n, minlength=groups)
            with np.errstate(divide="ignore", invalid="ignore"):
                common = np.bincount(group, weights=n * mean, minlength=groups) / total
            off = m2 + n * (mean - common[group]) ** 2
            spread = np.bincount(group, weights=np.where(n > 0, off, 0.0), minlength=groups)
            none = total == 0
            found[partials[mean_at].name] = pa.array(common, mask=none)
            found[partials[m2_at].name] = pa.array(spread, mask=none)
        return found

    def _group_of(self, table: pa.Table, made: pa.Table) -> NDArray[np.int64]:
        """For every row of `table`, the row of `made` with the same fragment and key."""
        both = pa.concat_tables([made.select(self._names), table.select(self._names)]).to_pandas()
        number = both.groupby(self._names, sort=False, dropna=False).ngroup().to_numpy()
        place = np.empty(made.num_rows, dtype=np.int64)
        place[number[: made.num_rows]] = np.arange(made.num_rows)
        found: NDArray[np.int64] = place[number[made.num_rows :]]
        return found


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    values: NDArray[np.float64] = pc.cast(pc.fill_null(column, 0), pa.float64()).to_numpy()
    return values
