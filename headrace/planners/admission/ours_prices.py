"""What resources are worth to our planner, and what it expects of queries to come.

Bandwidth of a host is priced like its CPU, each as a share of what the host has, and dearer the more of it
is used. Two things look ahead. Streams that came up often will come up again: what is made of them has a
worth, so that of two equal plans the one whose parts others can use is taken. And a copy of a popular
stream is paid by all who will read it there, so that the first one is charged a part only: that brings
popular streams to the homes of rare ones, not the other way, and keeps copies few and well used. How
popular a stream is comes from the queries seen so far, never from those that have not been submitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.planners.admission.ours_search import Prices
from headrace.planners.admission.problem import AdmissionProblem, Stream
from headrace.planners.admission.state import Floats, State, divisor


@dataclass(frozen=True, slots=True)
class Tuning:
    """Found on seeds 100 and up of the paper's simulation; see docs/design."""

    bandwidth: float = 0.5
    """The whole bandwidth of an idle host, as a part of its CPU."""
    steepness: float = 2.0
    """How the price rises with use: e to the power of this, from idle to full."""
    ahead: float = 100.0
    """How many queries to come are looked at."""
    shared: float = 100.0
    """How many reads to come pay for a copy."""
    lost: float = 0.5
    """How much of the CPU that becomes useless is charged to the operator that makes it so."""
    before: float = 0.5
    """Times that every stream is taken to have been seen before the first query."""
    soft: float = 1.0
    """What a unit too much costs, in its price, when a plan is put in that does not fit yet."""
    relieved: int = 16
    """Things to move away from a host that has too much to do."""
    replanned: bool = True
    """Whether related streams are made anew."""
    clustered: int = 2000
    """Hosts from which on only those of a few clusters are looked at first."""
    flow: float = 0.1
    """The price of a flow when what runs is changed, in the price of idle bandwidth."""


class Outlook:
    def __init__(self, state: State, tuning: Tuning) -> None:
        self._state, self._tuning = state, tuning
        problem = state.problem
        self._rates = {name: base.rate for name, base in problem.streams.items()}
        self._seen = dict.fromkeys(problem.streams, tuning.before)
        self._all_seen = tuning.before * len(self._seen)
        whole = tuning.bandwidth * _usual_cpu(problem)
        self._into_limit, self._out_limit = divisor(state.into_limit), divisor(state.out_limit)
        self._into, self._out = whole / self._into_limit, whole / self._out_limit
        self.flow_price = tuning.flow * float(np.mean(self._into + self._out))
        """CPU that a unit of rate on the network may cost a change of what runs."""
        self._cpu = np.ones(len(problem.hosts))
        reads = [rate for rate in self._rates.values() if rate > 0]
        self.unit = problem.operator_cost * min(reads, default=0.0)
        """The least CPU of an operator that reads a base stream."""

    def see(self, streams: Stream) -> None:
        """A query for these streams was submitted."""
        for name in streams:
            self._seen[name] += 1.0
        self._all_seen += len(streams)

    def prices(self, *, ahead: bool, noise: Floats | None = None) -> Prices:
        """Now. `ahead`: streams that others will use have a worth. `noise`: factors by host."""
        state, steep = self._state, self._tuning.steepness
        spread = 1.0 if noise is None else noise
        return Prices(
            cpu=self._cpu * spread,
            into=self._into * np.exp(steep * np.minimum(state.into / self._into_limit, 2.0)) * spread,
            out=self._out * np.exp(steep * np.minimum(state.out / self._out_limit, 2.0)) * spread,
            carry=self._carry,
            worth=self._worth if ahead else _nothing,
            unit=self.unit,
            lost=self._tuning.lost,
        )

    def _carry(self, stream: Stream) -> float:
        if len(stream) > 1:
            return 1.0
        (name,) = stream
        return 1.0 / (1.0 + self._tuning.shared * self._seen[name] / self._all_seen)

    def _worth(self, stream: Stream) -> float:
        """A query that holds this stream reads one stream where it would read each of its base streams."""
        chance, read = self._tuning.ahead, 0.0
        for name in sorted(stream):
            chance *= self._seen[name] / self._all_seen
            read += self._rates[name]
        return chance * read * self._state.problem.operator_cost


def _nothing(stream: Stream) -> float:
    return 0.0


def _usual_cpu(problem: AdmissionProblem) -> float:
    known = [host.cpu for host in problem.hosts if np.isfinite(host.cpu)]
    return float(np.mean(known)) if known else 1.0
