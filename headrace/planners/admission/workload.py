"""The paper's simulation (V) as a problem, seeded, with every size a parameter.

Base streams of equal rate are spread evenly over the hosts; which stream is where is drawn, and a stream's
number is its rank in popularity. Queries are joins of two, three and four different streams in equal parts,
in random order, their streams drawn by Zipf's law. The selectivity of a set of streams is drawn once, from
the seed and the set alone, so that a rate is only computed when somebody asks for it: there are billions of
sets.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from headrace.planners.admission.problem import (
    MOST_STREAMS,
    AdmissionProblem,
    Base,
    HostLimits,
    Query,
    Stream,
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What the paper and the issue give; a variant changes a field."""

    hosts: int = 50
    streams: int = 500
    queries: int = 1000
    bandwidth: float = 1000.0
    """Of a host, in and out, in Mbps."""
    cpu: float = 300.0
    link: float = 1000.0
    rate: float = 10.0
    zipf: float = 1.0
    ways: tuple[int, ...] = (2, 3, 4)
    selectivity: tuple[float, float] = (0.001, 0.005)


PAPER = Setup()
LARGE = Setup(hosts=1000, streams=10_000, queries=20_000, bandwidth=100.0)
"""Twenty times the paper's simulation, streams for each host and queries for each stream alike."""


def paper_problem(seed: int, setup: Setup = PAPER) -> AdmissionProblem:
    rng = np.random.default_rng([seed, setup.hosts, setup.streams])
    homes = rng.permutation(setup.streams) % setup.hosts
    bases = {
        (name := f"s{rank}"): Base(name, int(home), setup.rate) for rank, home in enumerate(homes.tolist())
    }
    limits = HostLimits(0, setup.cpu, setup.bandwidth, setup.bandwidth)
    hosts = tuple(HostLimits(i, limits.cpu, limits.incoming, limits.outgoing) for i in range(setup.hosts))
    queries = _queries(rng, setup)
    return AdmissionProblem(hosts, setup.link, bases, DrawnRates(seed, bases, setup.selectivity), queries)


def _queries(rng: np.random.Generator, setup: Setup) -> tuple[Query, ...]:
    chances = 1.0 / np.arange(1, setup.streams + 1) ** setup.zipf
    upto = np.cumsum(chances / chances.sum())
    sizes = rng.permutation(np.resize(np.array(setup.ways), setup.queries))
    return tuple(
        Query(f"q{i}", frozenset(f"s{rank}" for rank in _draw(rng, upto, size)))
        for i, size in enumerate(sizes.tolist())
    )


def _draw(rng: np.random.Generator, upto: np.ndarray, size: int) -> set[int]:
    """Different streams, each by its chance: one that was drawn before is drawn again."""
    drawn: set[int] = set()
    while len(drawn) < size:
        drawn.add(min(int(np.searchsorted(upto, rng.random(), side="right")), len(upto) - 1))
    return drawn


class DrawnRates(Mapping[Stream, float]):
    """Rates of all sets of the given streams: selectivity x the sum of the base rates."""

    def __init__(self, seed: int, bases: Mapping[str, Base], selectivity: tuple[float, float]) -> None:
        self._seed, self._bases, self._selectivity = seed, bases, selectivity
        self._drawn: dict[Stream, float] = {}

    def __getitem__(self, stream: Stream) -> float:
        known = self._drawn.get(stream)
        if known is None:
            if stream not in self:
                raise KeyError(stream)
            known = self._drawn[stream] = self._draw(stream)
        return known

    def _draw(self, stream: Stream) -> float:
        low, high = self._selectivity
        text = f"{self._seed}:{','.join(sorted(stream))}"
        part = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") / 2.0**64
        return (low + (high - low) * part) * sum(self._bases[name].rate for name in sorted(stream))

    def __contains__(self, stream: object) -> bool:
        return (
            isinstance(stream, frozenset) and 1 < len(stream) <= MOST_STREAMS and stream <= self._bases.keys()
        )

    def __iter__(self) -> Iterator[Stream]:
        sizes = range(2, MOST_STREAMS + 1)
        return (frozenset(names) for size in sizes for names in combinations(self._bases, size))

    def __len__(self) -> int:
        """As far as Python can say it: there are more sets than an index can count."""
        sets = sum(math.comb(len(self._bases), size) for size in range(2, MOST_STREAMS + 1))
        return min(sets, sys.maxsize)


def asked_rates(problem: AdmissionProblem) -> dict[Stream, float]:
    """The rates that the problem's queries can ask for, as something that can be written down."""
    found: dict[Stream, float] = {}
    for query in problem.queries:
        names = sorted(query.streams)
        for size in range(2, len(names) + 1):
            for part in map(frozenset, combinations(names, size)):
                if part in problem.rates:
                    found[part] = problem.rates[part]
    return found
