"""Lengths of time as SQL writes them, and the windows made of them.

Only units of fixed length exist here: a month has no number of microseconds. A window is made of whole
milliseconds, because that is what event-time engines keep, and slides by at most its range: rows between two
windows would belong to none.
"""

from __future__ import annotations

from headrace.errors import NotSupported, Span, UserError
from headrace.plan.logical import WindowSpec
from headrace.units import format_duration, parse_duration

_CALENDAR = ("month", "quarter", "year", "decade", "century")


def interval_micros(text: str, place: Span) -> int:
    """Microseconds of `5 minutes`, `1 hour 30 minutes`."""
    words = text.lower().split()
    calendar = next((w for w in words if w.removesuffix("s") in _CALENDAR), None)
    if calendar is not None:
        message = f'"{calendar}" has no fixed length'
        raise UserError(message, hint="Use weeks, days, hours, minutes or seconds.", span=place)
    try:
        return parse_duration(text)
    except ValueError as error:
        hint = "Write a number and a unit, as in 5 MINUTES; units go from milliseconds to weeks."
        raise UserError(f"not a length of time: {error}", hint=hint, span=place) from None


def window_spec(length: int, slide: int, place: Span) -> WindowSpec:
    """The window of this range and slide, or the reason there is none."""
    for name, micros in (("range", length), ("slide", slide)):
        if micros <= 0:
            message = f"the {name} of a window must be longer than zero"
            raise UserError(message, hint="Write a positive length, as in 5 MINUTES.", span=place)
        if micros % 1000:
            message = f"the {name} of a window, {format_duration(micros)}, is finer than a millisecond"
            raise UserError(message, hint="Use whole milliseconds.", span=place)
    if slide > length:
        message = (
            f"a window that slides further ({format_duration(slide)}) than its range"
            f" ({format_duration(length)}) is not supported"
        )
        raise NotSupported(message, hint="Make the slide at most the range.", span=place)
    return WindowSpec(length, slide)
