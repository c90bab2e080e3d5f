"""Conditions on event times as bounds: c1 + i1 <= c2 + i2 says c1 - c2 <= i2 - i1.

Times are whole microseconds, so `<` is `<=` one less, and nothing is lost. A CQL range says: when the later
of two rows arrives, the earlier one is still inside its window [its time, its time + range); so
later - earlier <= range - 1 microsecond, with the range of the earlier row's stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from headrace.plan.bounds import Bounds, TimeBound, close, join_bounds
from headrace.plan.expr import Call, ColumnRef, Expr, Literal
from headrace.plan.types import DataType

_FLIPPED = {">": "<", ">=": "<=", "<": "<", "<=": "<=", "=": "="}


def linear_time(expr: Expr) -> tuple[str, int] | None:
    """Column and offset of `column`, `column + interval`, `interval + column - interval`..."""
    match expr:
        case ColumnRef(name, DataType.TIMESTAMP):
            return name, 0
        case Call("+" | "-" as sign, (left, Literal(int(value), DataType.INTERVAL))):
            inner = linear_time(left)
            return None if inner is None else (inner[0], inner[1] + (value if sign == "+" else -value))
        case Call("+", (Literal(int(value), DataType.INTERVAL), right)):
            inner = linear_time(right)
            return None if inner is None else (inner[0], inner[1] + value)
    return None


def time_bounds(condition: Expr, times: Iterable[str]) -> tuple[TimeBound, ...]:
    """The bounds a comparison of two event times gives; none if it is something else."""
    if not isinstance(condition, Call) or condition.function not in _FLIPPED:
        return ()
    left, right = linear_time(condition.args[0]), linear_time(condition.args[1])
    known = frozenset(times)
    if left is None or right is None or left[0] == right[0] or not {left[0], right[0]} <= known:
        return ()
    if condition.function in (">", ">="):
        left, right = right, left
    strict = 1 if condition.function in ("<", ">") else 0
    bound = TimeBound(right[0], left[0], right[1] - left[1] - strict)
    if condition.function != "=":
        return (bound,)
    return (bound, TimeBound(left[0], right[0], left[1] - right[1]))


def range_bounds(ranges: Sequence[tuple[str, int | None]]) -> tuple[TimeBound, ...]:
    """The bounds of CQL ranges: (event time, range) of every stream of a join."""
    return tuple(
        TimeBound(earlier, later, length - 1)
        for (earlier, length), (later, _) in permutations(ranges, 2)
        if length is not None
    )


def missing_bounds(
    left: Sequence[str], right: Sequence[str], known: Bounds, overall: Bounds
) -> tuple[TimeBound, ...] | None:
    """Nothing if `known` bounds the two sides both ways; else the bounds that follow from the whole query
    and do; None if there are none."""
    closed = close(known)
    pairs = [(x, y) for x in left for y in right]
    if any((x, y) in closed and (y, x) in closed for x, y in pairs):
        return ()
    for x, y in pairs:
        if (x, y) in overall and (y, x) in overall:
            return TimeBound(x, y, overall[x, y]), TimeBound(y, x, overall[y, x])
    return None


def closure(bounds: Sequence[TimeBound], within: Iterable[Bounds]) -> Bounds:
    """All that follows from these bounds and those that already hold inside the items."""
    merged: Bounds = {}
    for inside in within:
        merged = join_bounds(merged, inside, ())
    return close(join_bounds(merged, {}, tuple(bounds)))
