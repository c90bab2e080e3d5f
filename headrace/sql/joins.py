"""FROM items and conditions -> one plan, left-deep in FROM order.

All inner conditions, of ON and of WHERE, are one pool: each is used at the first place where all its columns
are there. That is below the join where it reads one item, as a time bound, an equality or a residual where it
reads both sides. A LEFT JOIN keeps its own ON apart, and nothing from the pool goes below it on the table's
side: a condition there would turn missing rows into rows with NULLs.

Leading tables move behind the first stream. Holds for inner joins, which do not care for order; a LEFT JOIN
with the stream on the right was refused before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import UserError
from headrace.plan.bounds import Bounds, TimeBound, join_bounds
from headrace.plan.expr import Call, ColumnRef, Expr, columns_of, conjunction, substitute
from headrace.plan.logical import (
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    Shape,
    TableJoin,
    Window,
    WindowJoin,
)
from headrace.sql.place import Source
from headrace.sql.sources import FromItem
from headrace.sql.timebounds import closure, missing_bounds, range_bounds, time_bounds
from headrace.sql.windowjoins import Windows, consume_window_equalities

_BOUND_HINT = (
    "Give each stream a range, FROM a [RANGE 5 MINUTES] AS x JOIN b [RANGE 1 MINUTE] AS y ON ...,"
    " or bound the times: ON ... AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 MINUTES."
)
MAX_STREAMS = 6


@dataclass(frozen=True, slots=True)
class Joined:
    plan: LogicalPlan
    rest: tuple[Expr, ...]
    """Conditions that read columns which are not there yet: those of a window still to be opened."""


def filtered(plan: LogicalPlan, conditions: Sequence[Expr]) -> LogicalPlan:
    condition = conjunction(tuple(conditions))
    return plan if not conditions else Filter(plan, condition)


def prefix_of(item: FromItem, count: int) -> str:
    """What the plan names of an item start with: nothing if it is the only one."""
    return f"{item.alias}." if count > 1 else ""


def join_items(
    items: Sequence[FromItem],
    pool: Sequence[Expr],
    outer_on: dict[str, tuple[Expr, ...]],
    source: Source,
    windows_in_place: bool,
) -> Joined:
    """Join the items. `outer_on` holds the ON conditions of LEFT JOINs by alias."""
    return _Joiner(_streams_first(items, source), list(pool), outer_on, source, windows_in_place).run()


def _streams_first(items: Sequence[FromItem], source: Source) -> list[FromItem]:
    first = next((i for i, item in enumerate(items) if item.plan.shape is not Shape.TABLE), None)
    if first is None:
        hint = "A continuous query reads at least one stream; join the table with one."
        raise source.error(items[0].node, "this query reads only tables", hint)
    streams = [i for i in items if i.plan.shape is Shape.STREAM]
    if len(streams) > MAX_STREAMS:
        hint = f"Join at most {MAX_STREAMS} streams in one query."
        raise source.refusal(
            streams[MAX_STREAMS].node, f"a join of {len(streams)} streams is not supported", hint
        )
    return [items[first], *items[:first], *items[first + 1 :]]


@dataclass(slots=True)
class _Joiner:
    items: list[FromItem]
    pool: list[Expr]
    outer_on: dict[str, tuple[Expr, ...]]
    source: Source
    windows_in_place: bool

    def run(self) -> Joined:
        inputs = [self._lower(item) for item in self.items]
        bounds = self._bounds(inputs)
        overall = closure(bounds, [plan.bounds for plan in inputs])
        plan = filtered(inputs[0], self._take(inputs[0]))
        windows = Windows.of(self.items[0], plan)
        for item, right in zip(self.items[1:], inputs[1:], strict=True):
            if right.shape is Shape.TABLE:
                plan = self._join_table(plan, right, item)
            elif plan.shape is Shape.STREAM and right.shape is Shape.STREAM:
                plan = self._join_streams(plan, right, item, bounds, overall)
            else:
                plan, windows = self._join_windows(plan, right, item, windows)
        return Joined(plan, tuple(self.pool))

    def _names(self, item: FromItem) -> dict[str, str]:
        """Plan name -> own name."""
        prefix = prefix_of(item, len(self.items))
        return {f"{prefix}{c.name}": c.name for c in item.plan.schema}

    def _lower(self, item: FromItem) -> LogicalPlan:
        """One item with its own conditions, its window and its plan names."""
        plan, names = item.plan, self._names(item)
        own = {} if item.outer else {full: ColumnRef(n, plan.schema[n].type) for full, n in names.items()}
        conditions = [c for c in self.pool if columns_of(c) <= own.keys()]
        self.pool = [c for c in self.pool if c not in conditions]
        replaced: dict[str, Expr] = dict(own)
        plan = filtered(plan, [substitute(c, replaced) for c in conditions])
        if item.pending is not None and self.windows_in_place:
            plan = Window(plan, item.time, item.pending)
        if len(self.items) == 1:
            return plan
        columns = tuple((f"{item.alias}.{c.name}", ColumnRef(c.name, c.type)) for c in plan.schema)
        return Project(plan, columns)

    def _take(self, *plans: LogicalPlan) -> list[Expr]:
        """The conditions of the pool that can be decided here."""
        here = {name for plan in plans for name in plan.schema.names}
        taken = [c for c in self.pool if columns_of(c) <= here]
        self.pool = [c for c in self.pool if c not in taken]
        return taken

    def _bounds(self, inputs: list[LogicalPlan]) -> tuple[TimeBound, ...]:
        """All bounds between event times that the query states."""
        streams = [
            (i, p) for i, p in zip(self.items, inputs, strict=True) if p.shape is Shape.STREAM and p.times
        ]
        ranges = [(p.times[0], i.range) for i, p in streams]
        times = [t for _, plan in streams for t in plan.times]
        stated = [bound for c in self.pool for bound in time_bounds(c, times)]
        return (*range_bounds(ranges), *stated)

    def _join_table(self, left: LogicalPlan, table: LogicalPlan, item: FromItem) -> LogicalPlan:
        if not item.outer:
            table = filtered(table, self._take(table))
            on, residual = _split(self._take(left, table), left, table)
            return TableJoin(left, table, on, conjunction(residual))
        own: list[Expr] = []
        conditions: list[Expr] = []
        for condition in self.outer_on.get(item.alias, ()):
            alone = columns_of(condition) and columns_of(condition) <= set(table.schema.names)
            (own if alone else conditions).append(condition)
        table = filtered(table, own)
        on, residual = _split(conditions, left, table)
        joined = TableJoin(left, table, on, conjunction(residual), outer=True)
        return filtered(joined, self._take(joined))

    def _join_streams(
        self,
        left: LogicalPlan,
        right: LogicalPlan,
        item: FromItem,
        stated: tuple[TimeBound, ...],
        overall: Bounds,
    ) -> LogicalPlan:
        right = filtered(right, self._take(right))
        here = {*left.times, *right.times}
        new = {*right.times}
        bounds = [b for b in stated if {b.earlier, b.later} <= here and {b.earlier, b.later} & new]
        conditions = [c for c in self._take(left, right) if not _is_bound(c, here)]
        known = join_bounds(left.bounds, right.bounds, tuple(bounds))
        implied = missing_bounds(left.times, right.times, known, overall)
        if implied is None:
            raise self._unbounded(item)
        on, residual = _split(conditions, left, right)
        together = tuple(dict.fromkeys((*bounds, *implied)))
        return IntervalJoin(left, right, on, together, conjunction(residual))

    def _unbounded(self, item: FromItem) -> UserError:
        message = (
            f'nothing bounds the time between "{item.alias}" and the streams before it:'
            " every row would have to be kept for ever"
        )
        return self.source.error(item.node, message, _BOUND_HINT)

    def _join_windows(
        self, left: LogicalPlan, right: LogicalPlan, item: FromItem, windows: Windows
    ) -> tuple[LogicalPlan, Windows]:
        right = filtered(right, self._take(right))
        theirs = Windows.of(item, right)
        conditions = self._take(left, right)
        rest = consume_window_equalities(conditions, windows, theirs, item, self.source)
        on, residual = _split(rest, left, right)
        return WindowJoin(left, right, on, conjunction(residual)), windows.and_(theirs)


def _is_bound(condition: Expr, times: set[str]) -> bool:
    """An equality is a bound too, but stays in `on`: it is what rows are found by."""
    bounds = time_bounds(condition, times)
    return len(bounds) == 1


def _split(
    conditions: Sequence[Expr], left: LogicalPlan, right: LogicalPlan
) -> tuple[tuple[tuple[Expr, Expr], ...], tuple[Expr, ...]]:
    """Equalities between the two sides, left expression first, and the other conditions."""
    on: list[tuple[Expr, Expr]] = []
    residual: list[Expr] = []
    for condition in conditions:
        pair = _equality(condition, set(left.schema.names), set(right.schema.names))
        if pair is None:
            residual.append(condition)
        else:
            on.append(pair)
    return tuple(on), tuple(residual)


def _equality(condition: Expr, left: set[str], right: set[str]) -> tuple[Expr, Expr] | None:
    if not isinstance(condition, Call) or condition.function != "=":
        return None
    a, b = condition.args
    reads_a, reads_b = columns_of(a), columns_of(b)
    if not reads_a or not reads_b:
        return None
    if reads_a <= left and reads_b <= right:
        return a, b
    return (b, a) if reads_a <= right and reads_b <= left else None
