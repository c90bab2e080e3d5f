"""What is believed of everything that was seen lately: smoothed figures with their age, in bounded memory.

Merging a sample touches one entry and nothing else, in constant time. When there are more entries than
`most`, the one unseen for longest is dropped: of what has gone away nobody says that it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.stats.samples import GAUGES, RATES, Sample
from headrace.stats.smoothed import Smoothed, smooth

HALF_LIFE = 30.0
MOST = 10_000
_BACK = 10.0
"""Half-lives. A sample that is older than the last one by more did not come late: the clock was set back, and
what was believed begins anew, instead of staying as it is until the clock is there again."""


@dataclass(slots=True)
class Belief:
    """Of one operator, job or site."""

    last_seen: float
    figures: dict[str, Smoothed] = field(default_factory=dict)
    totals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The last total of each kind and its time, to tell the next rate from."""
    samples: int = 0

    def __getitem__(self, name: str) -> float | None:
        """None: never observed."""
        found = self.figures.get(name)
        return None if found is None else found.value

    @property
    def selectivity(self) -> float | None:
        """Rows given for a row read."""
        read, given = self["rows_in"], self["rows_out"]
        return None if given is None or not read else given / read

    def age(self, now: float) -> float:
        return max(0.0, now - self.last_seen)


class Beliefs:
    def __init__(self, half_life: float = HALF_LIFE, most: int = MOST) -> None:
        """Raises ValueError where the half-life is not above 0 or there is room for nothing."""
        if not half_life > 0 or most < 1:
            raise ValueError(f"half-life {half_life!r}, room for {most!r}")
        self.half_life, self.most = half_life, most
        self.stale = 0
        """Samples that came after a newer one of the same thing, and were left out."""
        self._beliefs: dict[str, Belief] = {}

    def __len__(self) -> int:
        return len(self._beliefs)

    def __iter__(self) -> Iterator[str]:
        """Those unseen for longest come first."""
        return iter(self._beliefs)

    def of(self, name: str) -> Belief | None:
        return self._beliefs.get(name)

    def take(self, sample: Sample) -> Mapping[str, float]:
        """What the sample says by itself, its totals as rates; empty where it came too late."""
        belief = self._beliefs.pop(sample.of, None)
        if belief is None:
            belief = Belief(sample.at)
        # Put back last: the order of the dict is the order in which things were seen.
        self._beliefs[sample.of] = belief
        if belief.samples and sample.at <= belief.last_seen:
            if belief.last_seen - sample.at <= _BACK * self.half_life:
                self.stale += 1
                return {}
            belief = self._beliefs[sample.of] = Belief(sample.at)
        seen = self._merge(belief, sample)
        if len(self._beliefs) > self.most:
            del self._beliefs[next(iter(self._beliefs))]
        return seen

    def take_all(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            self.take(sample)

    def forget(self, name: str) -> None:
        self._beliefs.pop(name, None)

    def forget_unseen(self, now: float, seconds: float) -> list[str]:
        """Drop what was not seen for so long; their names."""
        gone = [name for name, belief in self._beliefs.items() if belief.age(now) > seconds]
        for name in gone:
            del self._beliefs[name]
        return gone

    def _merge(self, belief: Belief, sample: Sample) -> Mapping[str, float]:
        at, figures, seen = sample.at, belief.figures, dict(sample.gauges)
        for name, total in sample.totals.items():
            before = belief.totals.get(name)
            belief.totals[name] = (total, at)
            # A total that fell was started over: what came between is not known.
            if before is not None and total >= before[0] and at > before[1]:
                seen[name] = (total - before[0]) / (at - before[1])
        for name, value in seen.items():
            figures[name] = smooth(figures.get(name), value, at, self.half_life)
        belief.last_seen = at
        belief.samples += 1
        return seen

    def to_data(self) -> dict[str, Any]:
        return {
            "half_life": self.half_life,
            "most": self.most,
            "stale": self.stale,
            "beliefs": {name: _belief_data(belief) for name, belief in self._beliefs.items()},
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Beliefs:
        """What `to_data` gave. Raises ValueError for anything else."""
        try:
            found = cls(float(data["half_life"]), int(data["most"]))
            found.stale = int(data["stale"])
            found._beliefs = {name: _read_belief(one) for name, one in data["beliefs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these are no beliefs: {error!r}") from error
        return found


def _belief_data(belief: Belief) -> dict[str, Any]:
    return {
        "last_seen": belief.last_seen,
        "samples": belief.samples,
        "figures": {name: list(one) for name, one in belief.figures.items()},
        "totals": {name: list(one) for name, one in belief.totals.items()},
    }


def _read_belief(data: Mapping[str, Any]) -> Belief:
    figures = {name: Smoothed(float(value), float(at)) for name, (value, at) in data["figures"].items()}
    totals = {name: (float(value), float(at)) for name, (value, at) in data["totals"].items()}
    unknown = (figures.keys() - {*GAUGES, *RATES}) | (totals.keys() - set(RATES))
    if unknown:
        raise ValueError(f"these are no beliefs: {min(unknown)} is not known")
    return Belief(float(data["last_seen"]), figures, totals, int(data["samples"]))
