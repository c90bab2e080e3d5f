"""The admission problem as data: hosts with limits, base streams at hosts, queries that join sets of streams.

A composite stream is the join of a set of base streams; its rate belongs to the set. An operator joins two
disjoint streams into a third and takes CPU (and memory) of its host in proportion to the rates it reads. A
host that has a stream may send it to any other, whether it made it, is its home or got it from elsewhere (a
relay); every copy takes bandwidth of the sender, of the link and of the receiver. A query is admitted when
one host delivers its stream to the client, which takes that host's outgoing bandwidth once, however many
queries ask for the same stream.

Symbols of the paper: H hosts, S streams, O operators; zeta = cpu, beta = bandwidth of a host, kappa =
bandwidth of a link, rho = rate, gamma = cpu of an operator; d = deliveries, x = flows, y = what is available
where, z = placements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Host = int
"""A position in `AdmissionProblem.hosts`."""
Stream = frozenset[str]
"""A set of base streams: one name is that base stream itself, more are their join."""
MOST_STREAMS = 8
"""Of one query."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    id: str | int
    cpu: float
    incoming: float
    outgoing: float
    memory: float = float("inf")


@dataclass(frozen=True, slots=True)
class Base:
    id: str
    host: Host
    rate: float


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    streams: Stream
    priority: float = 1.0
    """Worth of admitting it; only policies that look at priorities read it."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A query leaves."""

    query: str
    after: int
    """How many queries have arrived by then."""


@dataclass(frozen=True)
class AdmissionProblem:
    hosts: tuple[HostLimits, ...]
    link_bandwidth: float | NDArray[np.float64]
    """One figure for every link, or a matrix from host to host."""
    streams: Mapping[str, Base]
    rates: Mapping[Stream, float]
    """Of composite streams. A set that is not here cannot be made."""
    queries: tuple[Query, ...]
    """In order of arrival."""
    operator_cost: float = 1.0
    """CPU an operator takes for a unit of rate it reads."""
    memory_cost: float = 0.0
    """Memory an operator takes for a unit of rate it reads."""
    removals: tuple[Removal, ...] = ()
    """In order, each of a query that has arrived, and none twice."""

    def rate(self, stream: Stream) -> float:
        if len(stream) == 1:
            (name,) = stream
            return self.streams[name].rate
        return self.rates[stream]

    def link(self, sender: Host, receiver: Host) -> float:
        """Bandwidth from one host to another."""
        if isinstance(self.link_bandwidth, float | int):
            return float(self.link_bandwidth)
        return float(self.link_bandwidth[sender, receiver])

    @cached_property
    def links_never_bind(self) -> bool:
        """Every link is at least as wide as what its ends can send or take, so that only hosts limit."""
        out = np.array([host.outgoing for host in self.hosts])
        into = np.array([host.incoming for host in self.hosts])
        return bool(np.all(np.minimum.outer(out, into) <= self.link_bandwidth))


@dataclass(frozen=True, slots=True)
class Operator:
    """A join of two disjoint streams. `left` holds the least name, so that each is written one way."""

    left: Stream
    right: Stream

    @property
    def output(self) -> Stream:
        return self.left | self.right


def operator(a: Stream, b: Stream) -> Operator:
    return Operator(a, b) if min(a) < min(b) else Operator(b, a)


def operators_of(problem: AdmissionProblem, streams: Stream) -> list[Operator]:
    """O(q): every operator that can be in a plan for a query: all ways to cut every subset in two of which
    all three have a rate and both inputs can be made. A rate alone makes no stream: one of whose own cuts
    none is known is nobody's input."""
    names = sorted(streams)
    can_be = {1 << place for place in range(len(names))}
    found: list[Operator] = []
    for mask in range(1, 1 << len(names)):
        if mask in can_be or _named(names, mask) not in problem.rates:
            continue
        lowest = mask & -mask
        part = (mask - 1) & mask
        while part:
            # Every subset is a smaller number, so it was looked at before.
            if part & lowest and part in can_be and mask ^ part in can_be:
                found.append(Operator(_named(names, part), _named(names, mask ^ part)))
                can_be.add(mask)
            part = (part - 1) & mask
    return found


def cpu_of(problem: AdmissionProblem, one: Operator) -> float:
    return problem.operator_cost * (problem.rate(one.left) + problem.rate(one.right))


def memory_of(problem: AdmissionProblem, one: Operator) -> float:
    return problem.memory_cost * (problem.rate(one.left) + problem.rate(one.right))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that runs: the paper's z, x and d. What is available where (y) follows from them."""

    placements: frozenset[tuple[Host, Operator]] = frozenset()
    flows: frozenset[tuple[Host, Host, Stream]] = frozenset()
    """Sender, receiver, stream."""
    deliveries: Mapping[Stream, Host] = field(default_factory=dict)
    """Which host gives a wanted stream to the clients."""


@dataclass(frozen=True, slots=True)
class Decision:
    query: str
    admitted: bool
    seconds: float
    why: str = ""
    """Of a refusal: what binds and what would have to be freed."""
    proven: bool = False
    """The planner has shown that this is the best answer (or that none exists) in its own model."""
    moved: int = 0
    """Operators of other queries that run elsewhere now."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a removal."""

    query: str
    removed: bool
    seconds: float
    why: str = ""
    """Where there was nothing to remove."""


@dataclass(frozen=True)
class AdmissionAnswer:
    planner: str
    decisions: tuple[Decision, ...]
    plan: Plan
    """After the last query and the last removal."""
    seconds: float
    notes: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[Removed, ...] = ()

    @property
    def admitted(self) -> int:
        return sum(decision.admitted for decision in self.decisions)


@dataclass(frozen=True, slots=True)
class Weights:
    """lambda 1..4 of (III.3). None: as the paper sets them in IV-A (see docs/design)."""

    admitted: float | None = None
    network: float | None = None
    cpu: float | None = None
    balance: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How to search. A planner ignores what does not concern it."""

    seed: int = 0
    deadline: float | None = None
    """Seconds for one query. None: the planner's own."""
    weights: Weights = Weights()
    batch: int = 1
    """Queries submitted together."""
    choosy: bool = False
    """Ours: may refuse an expensive query that fits, to admit more cheap ones later."""


def _named(names: list[str], mask: int) -> Stream:
    return frozenset(name for i, name in enumerate(names) if mask >> i & 1)
