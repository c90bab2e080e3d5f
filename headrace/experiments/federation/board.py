"""Rows of results by query, rate and split, and what is asked of them.

A batch of T seconds of event time that takes t seconds is done at rate * T / t rows a second; a split keeps
up with a rate where that is the rate or more. Its throughput is then the rate, as nothing more comes.
"""

from __future__ import annotations

from functools import cached_property
from statistics import median

from headrace.experiments.federation.results import Choice, Results, Run

_LINE = 2
"""Points that a line goes through."""
_GROWS = 1.2


class Board:
    def __init__(self, results: Results) -> None:
        self.results = results
        self.by_cpu = results.made.get("clock") == "cpu"
        """As if the work of all processes were spread over the cores: on a busy machine the wall clock tells
        what others did."""
        self.runs = {(run.query, run.rate, run.split): run for run in results.of(Run)}
        self.queries = tuple(dict.fromkeys(run.query for run in self.runs.values()))
        self.rates = tuple(sorted({run.rate for run in self.runs.values()}))

    @cached_property
    def _choices(self) -> dict[tuple[str, int, bool], Choice]:
        return {(one.query, one.rate, one.feasibility): one for one in self.results.of(Choice)}

    def choice(self, query: str, rate: int, *, feasibility: bool = True) -> Choice:
        return self._choices[query, rate, feasibility]

    def splits(self, query: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(split for one, _, split in self.runs if one == query))

    def named(self, query: str, name: str) -> str | None:
        """The split of that name, if it was run."""
        found = (run.split for run in self.runs.values() if run.query == query and name in run.names)
        return next(found, None)

    def names(self, query: str, split: str) -> tuple[str, ...]:
        found = (run.names for run in self.runs.values() if (run.query, run.split) == (query, split))
        return next(found, ())

    # -- times --------------------------------------------------------------------------------------

    def seconds(self, run: Run) -> float | None:
        """Of a batch; None: it was never measured."""
        if run.problem or not run.seconds:
            return None
        return median(run.cpu) / run.cores if self.by_cpu else median(run.seconds)

    def cpu(self, query: str, split: str, rate: int) -> float | None:
        """CPU seconds for a second of event time."""
        run = self.runs.get((query, rate, split))
        return None if run is None or run.problem or not run.cpu else median(run.cpu) / run.batch

    def last_cpu(self, query: str, split: str) -> float | None:
        """At the highest rate that it was run at."""
        return self.cpu(query, split, max((run.rate for run in self._of(query, split)), default=0))

    def capacity(self, query: str, split: str, rate: int) -> float | None:
        """Rows a second that its batches are done at."""
        run = self.runs.get((query, rate, split))
        seconds = None if run is None else self.seconds(run)
        return None if run is None or seconds is None else run.rate * run.batch / max(seconds, 1e-3)

    def throughput(self, query: str, split: str, rate: int) -> float:
        """At a rate. One that was not run at it, since it would be far behind, or did not get to full
        windows, does what lower rates foretell, or at least what it did there."""
        done = self.capacity(query, split, rate)
        if done is not None:
            return min(done, float(rate))
        lower = [r for q, r, s in self.runs if (q, s) == (query, split) and r < rate]
        if not lower:
            return 0.0
        seen = self.throughput(query, split, max(lower))
        return min(float(rate), max(seen, self.foretold(query, split) or 0.0))

    def maximum(self, query: str, split: str) -> tuple[float, bool]:
        """The highest throughput seen, and whether there may be more: it kept up with the highest rate."""
        seen = [run.rate for run in self._of(query, split) if self.seconds(run) is not None]
        best = max((self.throughput(query, split, rate) for rate in seen), default=0.0)
        return best, bool(self.rates) and best >= self.rates[-1]

    def ceiling(self, query: str, split: str) -> float | None:
        """The next rate above the highest that it was measured at, where it kept up with that: its highest
        throughput is somewhere between. None: it fell behind, or there is no higher rate."""
        seen = [run.rate for run in self._of(query, split) if self.seconds(run) is not None]
        if not seen or (self.capacity(query, split, max(seen)) or 0.0) < max(seen):
            return None
        return next((float(rate) for rate in self.rates if rate > max(seen)), None)

    def foretold(self, query: str, split: str) -> float | None:
        """The rate at which a batch would take as long as it may, by the line through the two highest rates:
        what a batch takes has a part that does not depend on the rate, and one that grows with it."""
        points = [
            (run.rate, s, run.batch) for run in self._of(query, split) if (s := self.seconds(run)) is not None
        ]
        if len(points) < _LINE:
            return None
        (r1, t1, _), (r2, t2, batch) = sorted(points)[-_LINE:]
        # Where what does not depend on the rate is most of it, the rest is lost in noise.
        return r2 + (batch - t2) * (r2 - r1) / (t2 - t1) if t2 >= _GROWS * t1 else None

    def _of(self, query: str, split: str) -> list[Run]:
        return [run for run in self.runs.values() if (run.query, run.split) == (query, split)]

    # -- choices ------------------------------------------------------------------------------------

    def best(self, query: str, rate: int) -> str | None:
        """The split with the highest throughput at a rate; of equals, the one that takes least CPU."""
        tried = [split for q, r, split in self.runs if (q, r) == (query, rate)]
        if not tried:
            return None

        def rank(split: str) -> tuple[float, float]:
            cpu = self.cpu(query, split, rate)
            return (-self.throughput(query, split, rate), float("inf") if cpu is None else cpu)

        return min(tried, key=rank)

    def short(self, query: str, rate: int, *, feasibility: bool = True) -> float | None:
        """By how much, in %, the throughput of what is chosen falls short of the best measured; None: what is
        chosen was not run."""
        best = self.best(query, rate)
        if best is None:
            return None
        chosen = self.choice(query, rate, feasibility=feasibility).runs_as
        if (query, rate, chosen) not in self.runs:
            return None
        most = self.throughput(query, best, rate)
        return 100 * (1 - self.throughput(query, chosen, rate) / most) if most else 0.0

    def dearer(self, query: str, rate: int) -> float | None:
        """By how much, in %, what is chosen takes more CPU than the least that keeps up as well; None where
        that says nothing."""
        best = self.best(query, rate)
        if best is None:
            return None
        chosen = self.choice(query, rate).runs_as
        mine, least = self.cpu(query, chosen, rate), self.cpu(query, best, rate)
        return None if mine is None or not least else 100 * (mine / least - 1)
