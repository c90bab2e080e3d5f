"""Moments of the clock on the wall, as they are written down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime: ...


def now() -> datetime:
    return datetime.now(UTC)


def timestamp(clock: Clock) -> str:
    return clock().astimezone(UTC).isoformat(timespec="milliseconds")
