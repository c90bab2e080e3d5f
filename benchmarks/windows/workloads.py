"""The queries that are compared: sets of N sliding-window aggregates over one stream, made from N alone.

Only the standard library is used here: Flink's own environment reads this file too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

KEY, TIME, VALUES = "k", "ts", ("v", "w")
FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev")
WATERMARK_SECONDS = 2


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """Range and slide in seconds; aggregates are (function, column), a count has no column."""

    name: str
    range: int
    slide: int
    aggregates: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """One name for each aggregate."""
        return tuple(f"a{number}" for number in range(len(self.aggregates)))

    @property
    def whole(self) -> bool:
        """Whether the range is a multiple of the slide; Flink takes no other."""
        return self.range % self.slide == 0

    @classmethod
    def from_data(cls, data: dict[str, object]) -> WindowQuery:
        pairs = data["aggregates"]
        assert isinstance(pairs, list)
        query = cls(str(data["name"]), int(str(data["range"])), int(str(data["slide"])), ())
        return replace(query, aggregates=tuple((str(f), str(c)) for f, c in pairs))

    def to_data(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    about: str
    keys: int
    window: Callable[[int], tuple[int, int]]
    """Range and slide of query number i."""

    def queries(self, count: int, stretch: int = 1) -> tuple[WindowQuery, ...]:
        """`stretch` multiplies every range, the slide stays."""
        made = []
        for number in range(count):
            length, slide = self.window(number)
            made.append(WindowQuery(f"q{number:03d}", length * stretch, slide, _aggregates(number)))
        return tuple(made)


def _aggregates(number: int) -> tuple[tuple[str, str], ...]:
    """One to three, all combinations in turn, so that queries ask for different things."""
    found: list[tuple[str, str]] = []
    for place in range(1 + (number + 1) % 3):
        function = FUNCTIONS[(number + 2 + place * (1 + number // len(FUNCTIONS))) % len(FUNCTIONS)]
        column = "" if function == "count" else VALUES[(number // 2 + place) % len(VALUES)]
        if (function, column) not in found:
            found.append((function, column))
    return tuple(found)


def _feature(number: int) -> tuple[int, int]:
    """Around 300 s: 300, 301, 299, 302, ... within 240 and 360; 121 of them, then again."""
    step = number % 121
    away = (step + 1) // 2
    return 300 + (away if step % 2 else -away), 1


_STORE = (
    *((60, 1), (300, 1), (300, 5), (900, 10), (900, 60), (1800, 30), (3600, 1), (3600, 60)),
    *((10_800, 60), (21_600, 60), (21_600, 300), (43_200, 300), (86_400, 60), (86_400, 300)),
)


def _store(number: int) -> tuple[int, int]:
    """What feature stores declare, and from the fifteenth query on the same with other lengths."""
    length, slide = _STORE[number % len(_STORE)]
    return length + slide * 5 * (number // len(_STORE)), slide


_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31)


def _coprime(number: int) -> tuple[int, int]:
    """Prime slides; every other range is no multiple of its slide."""
    slide = _PRIMES[number % len(_PRIMES)]
    odd = 0 if number % 2 == 0 else 1 + number % (slide - 1)
    return slide * (10 + number // len(_PRIMES)) + odd, slide


def _overlap(number: int) -> tuple[int, int]:
    return 3000 + number % 121, 1


FEATURE = "feature"
WORKLOADS: dict[str, Workload] = {
    made.name: made
    for made in (
        Workload(FEATURE, "ranges around 300 s, slide 1 s", 200, _feature),
        Workload("store", "ranges 1 m to 24 h, slides 1 s to 5 m", 200, _store),
        Workload("coprime", "prime slides of 7 to 31 s, odd ranges", 200, _coprime),
        Workload("low", "8 keys, ranges around 300 s, slide 1 s", 8, _feature),
        Workload("overlap", "range / slide 3,000", 200, _overlap),
    )
}
