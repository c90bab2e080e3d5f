"""Constants: numbers, texts, instants, days and lengths of time, each of exactly one type.

A text next to a timestamp or a date is read as one, at the literal, once: a text that is no instant is an
error in the query and not a NULL in the answer.
"""

from __future__ import annotations

import math
from datetime import date

from sqlglot import exp

from headrace.plan.expr import Literal
from headrace.plan.types import DataType
from headrace.sql.place import Source
from headrace.sql.spans import interval_micros
from headrace.units import parse_instant

_INT = 1 << 31
_BIGINT = 1 << 63


def number(node: exp.Literal, source: Source) -> Literal:
    text = str(node.this)
    if text.isdigit():
        return integer(int(text), node, source)
    try:
        value = float(text)
    except ValueError:
        hint = "Write it as 12, 1.5 or 1.5e3."
        raise source.error(node, f'"{text}" is not a number', hint) from None
    if math.isinf(value):
        raise source.error(node, f"{text} does not fit a double", "A double goes up to 1.797e308.")
    return Literal(value, DataType.DOUBLE)


def integer(value: int, node: exp.Expr, source: Source) -> Literal:
    if -_INT <= value < _INT:
        return Literal(value, DataType.INT)
    if -_BIGINT <= value < _BIGINT:
        return Literal(value, DataType.BIGINT)
    hint = "Write it with a decimal point to make it a double."
    raise source.error(node, f"{value} does not fit a bigint", hint)


def timestamp(text: str, node: exp.Expr, source: Source) -> Literal:
    try:
        return Literal(parse_instant(text), DataType.TIMESTAMP)
    except ValueError as error:
        hint = "Write it as '2024-05-01 12:00:00'; without a zone it is UTC."
        raise source.error(node, str(error), hint) from None


def day(text: str, node: exp.Expr, source: Source) -> Literal:
    try:
        found = date.fromisoformat(text.strip())
    except ValueError:
        hint = "Write it as '2024-05-01'."
        raise source.error(node, f'"{text}" is not a day like "2024-05-01"', hint) from None
    return Literal((found - date(1970, 1, 1)).days, DataType.DATE)


def interval(node: exp.Interval, source: Source) -> Literal:
    """INTERVAL '5' MINUTE, INTERVAL 5 MINUTES, INTERVAL '5 minutes'."""
    amount, unit = node.this, node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        hint = "Write INTERVAL '90' SECONDS."
        raise source.refusal(node, "INTERVAL ... TO ... is not supported", hint)
    sign = ""
    if isinstance(amount, exp.Neg):
        sign, amount = "-", amount.this
    if not isinstance(amount, exp.Literal):
        hint = "Write a number, as in INTERVAL '5' MINUTES."
        raise source.refusal(node, "INTERVAL of anything but a number is not supported", hint)
    text = f"{sign}{amount.this}" + (f" {unit.name}" if isinstance(unit, exp.Expr) else "")
    return Literal(interval_micros(text, source.span_of(node)), DataType.INTERVAL)


def is_text(node: exp.Expr) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Literal) and bool(node.is_string)


def whole_number(node: exp.Expr) -> int | None:
    """The value of a plain integer literal."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return int(node.this)
    return None
