"""Whether two answers are the same multiset of rows.

Engines add doubles in different orders, so doubles are equal within 1e-9, relative and absolute; columns of
variances and deviations, where nearly equal numbers are subtracted, are given 1e-7. Everything else is
exact: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, a timestamp is its instant whatever unit or zone
it is kept in. An approximate count may be off by 20 % and 2 more.

Rows are grouped by their exact columns; in a group, expected rows are paired with found ones that are near
in every other column. Nearness is not transitive, so a greedy pairing can strand a row; a stranded row takes
the partner of a row that can take another one (augmenting paths). The pairing is therefore as large as it
can be: rows are called different only when no pairing makes them the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headrace.plan import logical as lp
from headrace.plan.expr import columns_of
from headrace.units import counted

Row = tuple[object, ...]
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that only one side has. Falsy when the two sides are the same."""

    columns: tuple[str, ...]
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]
    expected_rows: int
    got_rows: int
    schema: str = ""
    """How the columns differ, when they do; the rows are then not compared."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.schema)

    def text(self) -> str:
        """The difference for people: counts, and the first few rows of each side."""
        if not self:
            return f"the same {counted(self.expected_rows, 'row')}"
        if self.schema:
            return self.schema
        lines = [f"expected {counted(self.expected_rows, 'row')}, got {self.got_rows}"]
        lines += [f"columns: {', '.join(self.columns)}"]
        return "\n".join(lines + _few("missing", self.missing) + _few("extra", self.extra))


def _few(what: str, rows: tuple[Row, ...]) -> list[str]:
    shown = [f"  ({', '.join(map(str, row))})" for row in rows[:_SHOWN]]
    more = [f"  ... and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return [f"{what} {len(rows)}:", *shown, *more] if rows else []


@dataclass(frozen=True, slots=True)
class _Nearness:
    """Two numbers are near when they differ by at most `share` of the larger, and `gap`."""

    share: float
    gap: float

    def reach(self, value: float) -> float:
        """No number further away than this is near `value`."""
        return 2 * (self.share * abs(value) + self.gap)

    def holds(self, left: object, right: object) -> bool:
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return left == right
        if not (math.isfinite(left) and math.isfinite(right)):
            return left == right or (math.isnan(left) and math.isnan(right))
        return abs(left - right) <= self.share * max(abs(left), abs(right)) + self.gap


_DOUBLE = _Nearness(1e-9, 1e-9)
_SPREAD = _Nearness(1e-7, 1e-7)
_ESTIMATE = _Nearness(0.2, 2.0)


def multiset_difference(
    expected: pa.Table,
    got: pa.Table,
    *,
    approximate: frozenset[str] = frozenset(),
    spread: frozenset[str] = frozenset(),
) -> Difference:
    """What keeps `got` from being the same multiset of rows as `expected`. Columns are matched by name.

    `approximate` names columns of approx_count_distinct, `spread` columns of variances and deviations
    (`inexact_columns` finds both in a plan)."""
    names = tuple(expected.column_names)
    if sorted(names) != sorted(got.column_names):
        words = f"expected columns {', '.join(names)}; got {', '.join(got.column_names)}"
        return Difference(names, (), (), expected.num_rows, got.num_rows, words)
    loose = _loose_columns(expected, got, approximate, spread)
    mine, theirs = _grouped(expected, names, loose), _grouped(got, names, loose)
    missing: list[Row] = []
    extra: list[Row] = []
    for key in sorted(mine.keys() | theirs.keys(), key=repr):
        lost, more = _unpaired(mine.get(key, []), theirs.get(key, []), loose)
        missing += lost
        extra += more
    return Difference(names, tuple(missing), tuple(extra), expected.num_rows, got.num_rows)


def inexact_columns(plan: lp.LogicalPlan) -> tuple[frozenset[str], frozenset[str]]:
    """The columns of a plan's answer that depend on approximate counts, and on variances or deviations."""
    approximate, spread = set[str](), set[str]()
    for node in plan.inputs:
        below = inexact_columns(node)
        approximate |= below[0]
        spread |= below[1]
    match plan:
        case lp.Project():
            items = [(name, columns_of(expr)) for name, expr in plan.items]
            approximate = {name for name, read in items if read & approximate}
            spread = {name for name, read in items if read & spread}
        case lp.Aggregate():
            return _inexact_aggregates(plan, approximate, spread)
    return frozenset(approximate), frozenset(spread)


def _inexact_aggregates(
    plan: lp.Aggregate, approximate: set[str], spread: set[str]
) -> tuple[frozenset[str], frozenset[str]]:
    columns = [(name, expr, "") for name, expr in plan.keys]
    columns += [(name, call.arg, call.function) for name, call in plan.aggregates if call.arg is not None]
    reads = [(name, columns_of(expr), function) for name, expr, function in columns]
    counts = {n for n, read, f in reads if f == "approx_count_distinct" or read & approximate}
    spreads = {n for n, read, f in reads if f.startswith(("var_", "stddev_")) or read & spread}
    return frozenset(counts), frozenset(spreads)


def _loose_columns(
    expected: pa.Table, got: pa.Table, approximate: frozenset[str], spread: frozenset[str]
) -> dict[int, _Nearness]:
    """The columns that are not compared exactly, by position."""
    loose = {}
    for position, name in enumerate(expected.column_names):
        if name in approximate:
            loose[position] = _ESTIMATE
        elif pa.types.is_floating(expected[name].type) or pa.types.is_floating(got[name].type):
            loose[position] = _SPREAD if name in spread else _DOUBLE
    return loose


def _grouped(table: pa.Table, names: tuple[str, ...], loose: dict[int, _Nearness]) -> dict[Row, list[Row]]:
    """Rows by the values of their exact columns."""
    groups: defaultdict[Row, list[Row]] = defaultdict(list)
    columns = [_instants(table[name]).to_pylist() for name in names]
    for row in zip(*columns, strict=True):
        # repr keeps TRUE apart from 1, which are equal in Python.
        key = tuple(repr(v) if isinstance(v, bool) else v for k, v in enumerate(row) if k not in loose)
        groups[key].append(row)
    return groups


def _instants(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps of any unit and zone as naive UTC microseconds; other columns as they are."""
    if not pa.types.is_timestamp(column.type):
        return column
    return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.timestamp("us"))


def _unpaired(
    expected: list[Row], got: list[Row], loose: dict[int, _Nearness]
) -> tuple[list[Row], list[Row]]:
    """The rows left over by a largest pairing of near rows."""
    if not loose:
        common = min(len(expected), len(got))
        return expected[common:], got[common:]
    pairing = _Pairing(expected, got, loose)
    pairing.grow()
    lost = [row for k, row in enumerate(pairing.left) if k not in pairing.of_left]
    return lost, [row for k, row in enumerate(pairing.right) if k not in pairing.of_right]


class _Pairing:
    """A largest set of disjoint pairs of near rows. Rows are sorted by their first inexact column, so the
    candidates of a row are a slice."""

    def __init__(self, left: list[Row], right: list[Row], loose: dict[int, _Nearness]) -> None:
        self._loose = loose
        self._first = next(iter(loose))
        self.left = sorted(left, key=self._place)
        self.right = sorted(right, key=self._place)
        self._places = [self._place(row) for row in self.right]
        self.of_left: dict[int, int] = {}
        self.of_right: dict[int, int] = {}

    def _place(self, row: Row) -> tuple[int, float]:
        """Numbers in order, then NaN, then NULL."""
        value = row[self._first]
        if not isinstance(value, int | float):
            return (2, 0.0)
        return (1, 0.0) if math.isnan(value) else (0, float(value))

    def _candidates(self, k: int) -> Iterator[int]:
        kind, value = self._place(self.left[k])
        reach = self._loose[self._first].reach(value) if kind == 0 and math.isfinite(value) else 0.0
        low = bisect_left(self._places, (kind, value - reach))
        high = bisect_right(self._places, (kind, value + reach))
        return (r for r in range(low, high) if self._near(self.left[k], self.right[r]))

    def _near(self, left: Row, right: Row) -> bool:
        return all(nearness.holds(left[k], right[k]) for k, nearness in self._loose.items())

    def grow(self) -> None:
        self._pair_equal()
        for k in range(len(self.left)):
            if k not in self.of_left:
                self._augment(k)

    def _pair_equal(self) -> None:
        """Most rows are equal to the last bit; any pairing is a start from which the largest is found."""
        free: defaultdict[Row, list[int]] = defaultdict(list)
        for r, row in enumerate(self.right):
            free[row].append(r)
        for k, row in enumerate(self.left):
            if free.get(row):
                r = free[row].pop()
                self.of_left[k], self.of_right[r] = r, k

    def _augment(self, start: int) -> None:
        """Breadth-first search for a free row on the right, through rows that can change their partner."""
        came_from: dict[int, int] = {}
        queue = deque([start])
        while queue:
            k = queue.popleft()
            for r in self._candidates(k):
                if r in came_from:
                    continue
                came_from[r] = k
                if r not in self.of_right:
                    self._flip(r, came_from)
                    return
                queue.append(self.of_right[r])

    def _flip(self, free: int, came_from: dict[int, int]) -> None:
        """Pair along the path that led to the free row, back to its start."""
        r: int | None = free
        while r is not None:
            k = came_from[r]
            before = self.of_left.get(k)
            self.of_left[k], self.of_right[r] = r, k
            r = before
