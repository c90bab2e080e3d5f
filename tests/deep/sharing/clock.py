"""A clock for tests: it moves on by being read, so a search does the same work on any machine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count


def counting(step: float = 1 / 1024) -> Callable[[], float]:
    """A clock that goes `step` further at each reading."""
    readings = count()
    return lambda: next(readings) * step
