"""One look at one thing that runs: an operator, a job or a site, at one moment.

Gauges say how it is (state rows, lag, cores in use). Totals only ever grow while it runs (rows read since the
start); two of them make a rate. What was not looked at is not in a sample: None is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

RATES = ("rows_in", "rows_out", "late_rows", "batches")
"""Told as totals, believed as rates: a second."""
GAUGES = (
    "arriving",
    "cpu",
    "memory",
    "batch_seconds",
    "lag_seconds",
    "state_rows",
    "state_bytes",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Raises ValueError for a figure that is unknown, negative or not finite: one NaN would stay in a
    smoothed value for ever."""

    of: str
    """Whose: an operator, a job or a site, as the caller names them."""
    at: float
    """Seconds, on one clock for all samples."""
    gauges: Mapping[str, float] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isfinite(self.at):
            raise ValueError(f"a sample of {self.of} has no time")
        for figures, known in ((self.gauges, GAUGES), (self.totals, RATES)):
            for name, value in figures.items():
                if name not in known:
                    raise ValueError(f'"{name}" is not one of {", ".join(known)}')
                if not (isfinite(value) and value >= 0):
                    raise ValueError(f"{name} of {self.of} is {value!r}")
