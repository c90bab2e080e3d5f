"""What each function takes and gives. One table for scalars and operators, one for aggregates.

The meaning is ours, not an engine's; both SQL writers (runtime/sqltext) render to it:
- division or remainder by zero, sqrt of a negative, ln of a number <= 0 give NULL and never stop a job;
- INT arithmetic is done in BIGINT; `/` is always DOUBLE; `%` has the sign of the dividend;
- round is half away from zero; floor and ceil give BIGINT; string positions count from 1;
- concat is NULL when any argument is; greatest and least skip NULLs; AND, OR, NOT are three-valued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.plan.types import INTEGERS, NUMBERS, DataType, common_number

T = DataType
Rule = Callable[[tuple[DataType, ...]], DataType | None]
"""Result type for argument types, or None where the arguments do not fit."""


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    takes: str
    """For messages: what the arguments must be."""
    rule: Rule


def _numbers(result: Callable[[DataType], DataType]) -> Rule:
    def rule(args: tuple[DataType, ...]) -> DataType | None:
        return result(args[0]) if len(args) == 1 and args[0] in NUMBERS else None

    return rule


def _exact(*takes: DataType, gives: DataType) -> Rule:
    return lambda args: gives if args == takes else None


def comparable(left: DataType, right: DataType) -> bool:
    return left == right or (left in NUMBERS and right in NUMBERS)


def unify(types: tuple[DataType, ...]) -> DataType | None:
    """The one type of several values (of CASE branches, COALESCE arguments); None if there is none."""
    result = types[0]
    for other in types[1:]:
        if other == result:
            continue
        if other not in NUMBERS or result not in NUMBERS:
            return None
        result = common_number(result, other)
    return result


def _arithmetic(args: tuple[DataType, ...]) -> DataType | None:
    if len(args) == 2 and args[0] in NUMBERS and args[1] in NUMBERS:
        return common_number(*args)
    return None


def _add(args: tuple[DataType, ...]) -> DataType | None:
    if args in ((T.TIMESTAMP, T.INTERVAL), (T.INTERVAL, T.TIMESTAMP)):
        return T.TIMESTAMP
    return T.INTERVAL if args == (T.INTERVAL, T.INTERVAL) else _arithmetic(args)


def _subtract(args: tuple[DataType, ...]) -> DataType | None:
    if args == (T.TIMESTAMP, T.INTERVAL):
        return T.TIMESTAMP
    return T.INTERVAL if args == (T.INTERVAL, T.INTERVAL) else _arithmetic(args)


def _divide(args: tuple[DataType, ...]) -> DataType | None:
    return T.DOUBLE if _arithmetic(args) else None


def _compare(args: tuple[DataType, ...]) -> DataType | None:
    return T.BOOLEAN if len(args) == 2 and comparable(*args) else None


def _booleans(count: int | None) -> Rule:
    def rule(args: tuple[DataType, ...]) -> DataType | None:
        fits = all(a == T.BOOLEAN for a in args)
        return T.BOOLEAN if fits and (len(args) == count or (count is None and args)) else None

    return rule


def _is_null(args: tuple[DataType, ...]) -> DataType | None:
    return T.BOOLEAN if len(args) == 1 else None


def _in(args: tuple[DataType, ...]) -> DataType | None:
    fits = len(args) >= 2 and all(comparable(args[0], a) for a in args[1:])
    return T.BOOLEAN if fits else None


def _same(args: tuple[DataType, ...]) -> DataType | None:
    return unify(args) if args else None


def _negate(args: tuple[DataType, ...]) -> DataType | None:
    if len(args) != 1 or args[0] not in NUMBERS | {T.INTERVAL}:
        return None
    return T.BIGINT if args[0] in INTEGERS else args[0]


def _round(args: tuple[DataType, ...]) -> DataType | None:
    if not 1 <= len(args) <= 2 or args[0] not in NUMBERS or args[1:] not in ((), (T.INT,)):
        return None
    return T.DOUBLE


def _power(args: tuple[DataType, ...]) -> DataType | None:
    return T.DOUBLE if _arithmetic(args) else None


def _concat(args: tuple[DataType, ...]) -> DataType | None:
    return T.STRING if len(args) >= 2 and all(a == T.STRING for a in args) else None


def _substring(args: tuple[DataType, ...]) -> DataType | None:
    fits = len(args) in (2, 3) and args[0] == T.STRING and all(a in INTEGERS for a in args[1:])
    return T.STRING if fits else None


def _nullif(args: tuple[DataType, ...]) -> DataType | None:
    return args[0] if len(args) == 2 and comparable(*args) else None


def _date_trunc(args: tuple[DataType, ...]) -> DataType | None:
    return T.TIMESTAMP if args == (T.STRING, T.TIMESTAMP) else None


def _part(args: tuple[DataType, ...]) -> DataType | None:
    return T.INT if args == (T.TIMESTAMP,) else None


def _widen(t: DataType) -> DataType:
    return T.BIGINT if t in INTEGERS else t


_TABLE: tuple[Function, ...] = (
    Function("+", "two numbers, or a timestamp and an interval", _add),
    Function("-", "two numbers, or a timestamp and an interval", _subtract),
    Function("*", "two numbers", _arithmetic),
    Function("/", "two numbers", _divide),
    Function("%", "two numbers", _arithmetic),
    Function("negate", "a number", _negate),
    *(Function(op, "two values of one type", _compare) for op in ("=", "<>", "<", "<=", ">", ">=")),
    Function("and", "booleans", _booleans(None)),
    Function("or", "booleans", _booleans(None)),
    Function("not", "a boolean", _booleans(1)),
    Function("is_null", "one value", _is_null),
    Function("is_not_null", "one value", _is_null),
    Function("in", "a value and values of its type", _in),
    Function("like", "two strings", _exact(T.STRING, T.STRING, gives=T.BOOLEAN)),
    Function("abs", "a number", _numbers(_widen)),
    Function("sign", "a number", _numbers(lambda t: T.DOUBLE)),
    Function("floor", "a number", _numbers(lambda t: T.BIGINT)),
    Function("ceil", "a number", _numbers(lambda t: T.BIGINT)),
    Function("round", "a number, and optionally a whole number of digits", _round),
    Function("sqrt", "a number", _numbers(lambda t: T.DOUBLE)),
    Function("exp", "a number", _numbers(lambda t: T.DOUBLE)),
    Function("ln", "a number", _numbers(lambda t: T.DOUBLE)),
    Function("log10", "a number", _numbers(lambda t: T.DOUBLE)),
    Function("power", "two numbers", _power),
    Function("greatest", "values of one type", _same),
    Function("least", "values of one type", _same),
    Function("coalesce", "values of one type", _same),
    Function("nullif", "two values of one type", _nullif),
    Function("upper", "a string", _exact(T.STRING, gives=T.STRING)),
    Function("lower", "a string", _exact(T.STRING, gives=T.STRING)),
    Function("trim", "a string", _exact(T.STRING, gives=T.STRING)),
    Function("length", "a string", _exact(T.STRING, gives=T.INT)),
    Function("concat", "two or more strings", _concat),
    Function("substring", "a string, a start and optionally a length", _substring),
    Function("date_trunc", "a unit and a timestamp", _date_trunc),
    *(Function(part, "a timestamp", _part) for part in ("year", "month", "day", "hour", "minute", "second")),
    Function("unix_seconds", "a timestamp", _exact(T.TIMESTAMP, gives=T.BIGINT)),
    Function("unix_micros", "a timestamp", _exact(T.TIMESTAMP, gives=T.BIGINT)),
)
SCALARS: dict[str, Function] = {f.name: f for f in _TABLE}
TRUNC_UNITS = ("second", "minute", "hour", "day")


def _count(args: tuple[DataType, ...]) -> DataType | None:
    return T.BIGINT if len(args) <= 1 else None


def _sum(args: tuple[DataType, ...]) -> DataType | None:
    if len(args) != 1 or args[0] not in NUMBERS:
        return None
    return T.BIGINT if args[0] in INTEGERS else T.DOUBLE


def _extreme(args: tuple[DataType, ...]) -> DataType | None:
    return args[0] if len(args) == 1 and args[0] != T.INTERVAL else None


def _distinct(args: tuple[DataType, ...]) -> DataType | None:
    return T.BIGINT if len(args) == 1 else None


AGGREGATES: dict[str, Function] = {
    f.name: f
    for f in (
        Function("count", "nothing (*) or one value", _count),
        Function("sum", "a number", _sum),
        Function("avg", "a number", _numbers(lambda t: T.DOUBLE)),
        Function("min", "one value", _extreme),
        Function("max", "one value", _extreme),
        Function("var_samp", "a number", _numbers(lambda t: T.DOUBLE)),
        Function("var_pop", "a number", _numbers(lambda t: T.DOUBLE)),
        Function("stddev_samp", "a number", _numbers(lambda t: T.DOUBLE)),
        Function("stddev_pop", "a number", _numbers(lambda t: T.DOUBLE)),
        Function("median", "a number", _numbers(lambda t: T.DOUBLE)),
        Function("approx_count_distinct", "one value", _distinct),
    )
}
MERGEABLE = frozenset(AGGREGATES) - {"median"}
"""Aggregates that can be put together from partial results."""
