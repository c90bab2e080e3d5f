"""Durations, instants, sizes, rates and counts: parsed from what people write, kept as integers.

Durations and instants are whole microseconds (instants since the epoch, UTC), because that is what
Spark and DuckDB keep; nothing is rounded on the way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
_SHORT = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
}
LONGEST_DAYS = 365_000
"""A thousand years. What is much longer is a slip, and has windows that start before the year 1."""
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799_999_999


def unit_micros(unit: str) -> int | None:
    """Microseconds of one time unit, singular, plural or short; None when it is no unit we know."""
    name = unit.lower()
    name = _SHORT.get(name, name)
    return MICROS.get(name) or MICROS.get(name.removesuffix("s"))


def parse_duration(text: str) -> int:
    """Microseconds of a text like `5 minutes`, `1h 30m`, `250ms`. Raises ValueError."""
    rest, total, seen = text, 0, False
    while rest.strip():
        part = _PART.match(rest)
        unit = unit_micros(part.group(2)) if part else None
        if part is None or unit is None:
            raise ValueError(f'"{text}" is not a duration like "5 minutes", "1h 30m" or "250ms"')
        whole, _, fraction = part.group(1).partition(".")
        scaled = int(whole + fraction) * unit
        if scaled % 10 ** len(fraction):
            raise ValueError(f'"{text}" is finer than a microsecond')
        total, rest, seen = total + scaled // 10 ** len(fraction), rest[part.end() :], True
    if not seen:
        raise ValueError("a duration cannot be empty")
    if abs(total) > LONGEST_DAYS * MICROS["day"]:
        raise ValueError(f'"{text}" is longer than {LONGEST_DAYS:,} days')
    return total


def format_duration(micros: int) -> str:
    """The shortest exact text: seconds, or the finer unit that a fraction needs."""
    for short, unit in (("s", 1_000_000), ("ms", 1_000)):
        if micros % unit == 0:
            return f"{micros // unit}{short}"
    return f"{micros}us"


def parse_size(text: str) -> int:
    """Bytes of a text like `512m`, `4g`, `16 GiB`. Raises ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    if found is None:
        raise ValueError(f'"{text}" is not a size like "512m" or "4g"')
    return int(float(found.group(1)) * _SIZES[found.group(2)])


def format_size(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def parse_percent(text: str) -> float:
    """20.0 of a text like `20%` or `2.5 %`. Raises ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if found is None:
        raise ValueError(f'"{text}" is not a percentage like "20%"')
    return float(found.group(1))


def parse_instant(text: str) -> int:
    """Microseconds since the epoch of an ISO text; a text without a zone is UTC. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'"{text}" is not an instant like "2024-05-01 12:00:00"') from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def format_instant(micros: int) -> str:
    """ISO text in UTC without a zone mark; microseconds only where there are any. What is after the year 9999
    reads as its end."""
    moment = _EPOCH + timedelta(microseconds=min(micros, _LAST))
    return moment.replace(tzinfo=None).isoformat(sep=" ")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 row`, `1,510 rows`; `many` where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """`a, b and 1,510 more`: so many names at most."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
