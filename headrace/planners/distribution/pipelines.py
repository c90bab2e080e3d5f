"""What sites that are too full hold up, pipeline by pipeline.

A pipeline is all operators that hang together. Rows go through all of it, so it is as fast as the slowest
site it is at, whatever its other sites could do:

    held up = sum over pipelines of  rows a second that it reads * max(0, 1 - full / cost of its fullest site)

Summed over sites instead, the share 1 - full / cost would be worth a bargain: it rises ever slower with the
cost, so that filling one site to twice its capacity to relieve three others would look like a gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headrace.planners.distribution.problem import Problem, Table


class Pipelines:
    """Where the operators of each pipeline are, kept up to date move by move."""

    def __init__(self, problem: Problem, table: Table) -> None:
        self.of = _numbered(problem)
        """Operator -> the number of its pipeline."""
        count = max(self.of.values(), default=-1) + 1
        self._rows = [0.0] * count
        self._at: list[Counter[str]] = [Counter() for _ in range(count)]
        for name, number in self.of.items():
            self._rows[number] += problem.rows_in[name]
            self._at[number][table[name]] += 1
        self._over: dict[tuple[str, ...], tuple[int, float]] = {}
        """Sites -> how many pipelines are spread over just these, and the rows a second that they read:
        pipelines are many, the sets of sites they are at are few."""
        for number in range(count):
            self._regroup(number, 1)

    def move(self, name: str, source: str, target: str) -> None:
        number = self.of[name]
        at = self._at[number]
        if at[source] > 1 and at[target]:
            at[source] -= 1
            at[target] += 1
            return
        self._regroup(number, -1)
        at[source] -= 1
        if not at[source]:
            del at[source]
        at[target] += 1
        self._regroup(number, 1)

    def _regroup(self, number: int, sign: int) -> None:
        sites = tuple(sorted(self._at[number]))
        count, rows = self._over.get(sites, (0, 0.0))
        if count + sign:
            self._over[sites] = count + sign, rows + sign * self._rows[number]
        else:
            del self._over[sites]

    def held_up(self, costs: Mapping[str, float], full: float) -> float:
        """Rows a second. A site without a cost does not answer, and nothing is known of it."""
        found = 0.0
        for sites, (_, rows) in self._over.items():
            slowest = max((costs[site] for site in sites if site in costs), default=0.0)
            if slowest > full:
                found += rows * (1 - full / slowest)
        return found

    def rows_slowed(self, costs: Mapping[str, float], full: float) -> float:
        """Rows a second that pipelines read of which some are held up."""
        slow = (any(costs.get(site, 0.0) > full for site in sites) for sites in self._over)
        over = self._over.values()
        return sum(rows for (_, rows), is_slow in zip(over, slow, strict=True) if is_slow)

    def standstill(self, seconds: Mapping[str, float]) -> float:
        """Rows that wait while operators stand still for so long, all at once: nothing goes through a
        pipeline until the last of its own is back."""
        longest: dict[int, float] = {}
        for name, time in seconds.items():
            number = self.of[name]
            longest[number] = max(time, longest.get(number, 0.0))
        return sum(self._rows[number] * time for number, time in longest.items())

    def slowest(self, costs: Mapping[str, float], full: float) -> set[str]:
        """The sites that hold some pipeline up: nothing is gained unless one of them gets emptier."""
        found = (
            max((s for s in sites if s in costs), key=costs.__getitem__, default="") for sites in self._over
        )
        return {site for site in found if site and costs[site] > full}


def _numbered(problem: Problem) -> dict[str, int]:
    found: dict[str, int] = {}
    count = 0
    for start in problem.operator:
        if start in found:
            continue
        found[start], left = count, [start]
        while left:
            name = left.pop()
            for other in (*problem.operator[name].inputs, *problem.readers[name]):
                if other in problem.operator and other not in found:
                    found[other] = count
                    left.append(other)
        count += 1
    return found
