"""Values as Spark's readers of JSON and CSV take them, by the declared type; what a type cannot read is NULL.

JSON has types of its own: a number is never read from a text, nor a boolean, but for the words for NaN and
the infinities; a text column has a number as it was written. CSV has texts only, which Java's own parsers
read: `1d` is a DOUBLE, `nan` is none. Times are read by the same rule in both, and it is wider than ISO:
2024-5-1 1:2:3 is one, 20240501 is none. Tables whose rows are in the project file (INLINE) may have either.

Known to differ: a time of day alone (Spark: today's), years before 1 and beyond 9999, and the spaces of an
array or object in a text column of JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from headrace.plan.types import DataType

Reader = Callable[[object], object]
Readers = Mapping[DataType, Reader]
_WHOLE = re.compile(r"[+-]?\d+")
_JAVA_REAL = re.compile(
    r"[+-]?(NaN|Infinity|(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+))[fFdD]?)"
)
_JAVA_SPACE = "".join(map(chr, range(33)))
_JSON_WORDS = {
    "NaN": math.nan,
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), math.inf),
    **dict.fromkeys(("-Infinity", "-INF"), -math.inf),
}
_CSV_WORDS = {"Inf": math.inf, "-Inf": -math.inf}
_DAY = r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_DATE = re.compile(_DAY + r"(?:[ T].*)?)?)?", re.DOTALL)
_CLOCK = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?\s*([A-Z+-][\w/:+-]*)?)?)?"
_TIME = re.compile(_DAY + rf"(?:[ T]{_CLOCK})?)?)?")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{1,2})(?::?([0-9]{2}))?)?")
_MOST_OFFSET = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIMITS = {DataType.INT: 2**31, DataType.BIGINT: 2**63}


class Number(str):
    """A number of a JSON text, as it was written."""

    __slots__ = ()


def json_value(line: str) -> object:
    """Raises ValueError."""
    return json.loads(line, parse_int=Number, parse_float=Number, parse_constant=Number)


def read(reader: Reader, value: object) -> object:
    if value is None:
        return None
    try:
        return reader(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


# -- numbers ----------------------------------------------------------------------------------------


def _whole(limit: int, text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text} is not a whole number")
    number = int(text)
    if not -limit <= number < limit:
        raise ValueError(f"{number} does not fit")
    return number


def _token(value: object) -> str:
    if not isinstance(value, Number):
        raise TypeError(f"{value} is no number")
    return value


def _json_real(value: object) -> float:
    if isinstance(value, str) and not isinstance(value, Number):
        return _JSON_WORDS[value]
    return float(_token(value))


def _csv_real(value: object) -> float:
    text = str(value)
    if text in _CSV_WORDS:
        return _CSV_WORDS[text]
    text = text.strip(_JAVA_SPACE)
    found = _JAVA_REAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is not a number")
    if found[5] is not None:
        return float.fromhex(text.rstrip("fFdD") if text[-1] in "fFdD" and "p" in text.lower() else text)
    return float(text.rstrip("fFdD"))


def _inline_real(value: object) -> float:
    if isinstance(value, bool) or "_" in str(value):
        raise ValueError(f"{value} is not a number")
    return float(str(value))


# -- truth and text ---------------------------------------------------------------------------------


def _json_boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value} is neither true nor false")
    return value


def _csv_boolean(value: object) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _inline_boolean(value: object) -> bool:
    return value if isinstance(value, bool) else _csv_boolean(str(value).strip())


def _string(value: object) -> str:
    return str(value) if isinstance(value, str) else _nested(value)


def _nested(value: object) -> str:
    match value:
        case Number():
            return str(value)
        case list():
            return f"[{','.join(map(_nested, value))}]"
        case dict():
            pairs = (f"{json.dumps(name, ensure_ascii=False)}:{_nested(one)}" for name, one in value.items())
            return f"{{{','.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


# -- time -------------------------------------------------------------------------------------------


def _instant(value: object) -> datetime:
    found = _TIME.fullmatch(str(value).strip(_JAVA_SPACE))
    if found is None:
        raise ValueError(f"{value} is not a time")
    year, *rest = (int(part or "0") for part in found.groups()[:6])
    month, day, hour, minute, second = rest
    micros = int((found[7] or "")[:6].ljust(6, "0"))
    local = datetime(year, month or 1, day or 1, hour, minute, second, micros)
    return _at(local, UTC if found[8] is None else _zone(found[8]))


def _at(local: datetime, zone: tzinfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


def _zone(text: str) -> tzinfo:
    if text in ("Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET.fullmatch(text)
    if found is None:
        return ZoneInfo(text)
    hours, minutes, seconds = (int(part or "0") for part in found.groups()[1:])
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if offset > _MOST_OFFSET or minutes > 59 or seconds > 59:
        raise ValueError(f"{text} is no zone")
    return timezone(offset if found[1] == "+" else -offset)


def _json_instant(value: object) -> datetime:
    """A whole number is seconds."""
    if isinstance(value, Number):
        return _at(_EPOCH.replace(tzinfo=None) + timedelta(seconds=_whole(2**63, value)), UTC)
    if not isinstance(value, str):
        raise TypeError(f"{value} is not a time")
    return _instant(value)


def _inline_instant(value: object) -> datetime:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (_EPOCH + timedelta(microseconds=math.floor(value * 1_000_000))).replace(tzinfo=None)
    return _instant(value)


def _day(value: object) -> date:
    found = _DATE.fullmatch(str(value).strip(_JAVA_SPACE))
    if found is None or not isinstance(value, str | date) or isinstance(value, Number):
        raise ValueError(f"{value} is not a day")
    year, month, day = (int(part or "1") for part in found.groups())
    return date(year, month, day)


# -- by type ----------------------------------------------------------------------------------------


def _readers(boolean: Reader, whole: Callable[[object], str], real: Reader, instant: Reader) -> Readers:
    def integer(limit: int) -> Reader:
        return lambda value: _whole(limit, whole(value))

    return {
        DataType.BOOLEAN: boolean,
        DataType.INT: integer(_LIMITS[DataType.INT]),
        DataType.BIGINT: integer(_LIMITS[DataType.BIGINT]),
        DataType.FLOAT: real,
        DataType.DOUBLE: real,
        DataType.STRING: _string,
        DataType.DATE: _day,
        DataType.TIMESTAMP: instant,
    }


JSON = _readers(_json_boolean, _token, _json_real, _json_instant)
CSV = _readers(_csv_boolean, str, _csv_real, _instant)
INLINE = _readers(_inline_boolean, str, _inline_real, _inline_instant)
