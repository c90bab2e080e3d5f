"""What to write instead, where the arguments of an operator or a function do not fit."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.plan.types import NUMBERS, DataType

_EXAMPLES = {
    "in": "Name the values: x IN (1, 2).",
    "like": "Write the pattern as a text: s LIKE 'a%'.",
    "round": "Write round(x) or round(x, 2).",
    "power": "Write power(x, 2).",
    "greatest": "Write greatest(a, b).",
    "least": "Write least(a, b).",
    "coalesce": "Write coalesce(x, 0).",
    "nullif": "Write nullif(x, 0).",
    "concat": "Write concat(a, b); a whole number becomes a text by CAST(x AS string).",
    "substring": "Write substring(s, 1, 3).",
    "date_trunc": "Write date_trunc('hour', ts).",
}
_MEETING = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "in", "greatest", "least", "coalesce", "nullif", "case"}
)
"""Their arguments meet in one type."""
_OF_TIMES = frozenset({"year", "month", "day", "hour", "minute", "second", "unix_seconds", "unix_micros"})
_OF_TEXTS = frozenset({"upper", "lower", "trim", "length"})


def mismatch_hint(function: str, types: Sequence[DataType]) -> str:
    """For a function of the plan (`case` for branches) that does not take arguments of these types."""
    if function in _MEETING and len(types) > 1:
        return _one_type(types)
    if function in ("+", "-") and DataType.TIMESTAMP in types:
        return _instants(types)
    if function in _EXAMPLES:
        return _EXAMPLES[function]
    if function in _OF_TIMES:
        one_day = "A date becomes one by CAST(d AS timestamp)."
        return one_day if DataType.DATE in types else f"Write {function}(ts)."
    if function in _OF_TEXTS:
        return f"Write {function}(s); a whole number becomes a text by CAST(x AS string)."
    return _number(function, types)


def _one_type(types: Sequence[DataType]) -> str:
    if DataType.STRING in types and any(t in NUMBERS for t in types):
        return "Write texts in quotes and numbers without, or declare the column with the other type."
    return "Give all of them one type, as with CAST(x AS bigint)."


def _instants(types: Sequence[DataType]) -> str:
    if all(t is DataType.TIMESTAMP for t in types):
        return "For the seconds between two instants write unix_seconds(a) - unix_seconds(b)."
    return "Write a length of time: ts + INTERVAL 5 SECONDS."


def _number(function: str, types: Sequence[DataType]) -> str:
    if len(types) == 1 and DataType.BOOLEAN in types:
        return "Make a number of it: CAST(b AS int)."
    if DataType.STRING in types:
        joined = "Join texts with ||. " if function == "+" else ""
        return f"{joined}If the column holds numbers, declare it as int, bigint or double."
    if DataType.TIMESTAMP in types:
        return "Make a number of it: unix_seconds(ts)."
    return "Give it numbers only." if len(function) == 1 else f"Write {function}(x)."
