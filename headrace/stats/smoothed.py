"""A value that forgets by time: after one half-life, half of what is believed comes from what was seen since.

    w = 1 - 2 ^ (-dt / half-life),   believed += w * (seen - believed)

The weight depends on the time that passed, not on how many samples came in it: ten equal samples in a second
weigh as much as one, so a job with short batches is not believed faster than one with long ones.
"""

from __future__ import annotations

from typing import NamedTuple


class Smoothed(NamedTuple):
    value: float
    at: float
    """When it was last seen."""

    def age(self, now: float) -> float:
        return max(0.0, now - self.at)


def smooth(believed: Smoothed | None, seen: float, at: float, half_life: float) -> Smoothed:
    """The first value is believed at once. One that is older than what is believed changes nothing."""
    if believed is None:
        return Smoothed(seen, at)
    passed = at - believed.at
    if passed <= 0:
        return believed
    weight = 1.0 - 2.0 ** (-passed / half_life)
    return Smoothed(believed.value + weight * (seen - believed.value), at)
