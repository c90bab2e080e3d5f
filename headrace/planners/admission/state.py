"""What runs, kept up to date step by step, with every step reversible.

A planner tries things: it places an operator, sends a stream, finds that something does not fit and takes
all of it back. So every change is written to a journal, and going back costs as much as what was done since
the mark. Use of hosts is in arrays, so that the best host for a step is found in one scan.

A host has a stream in one way: it is its home, it runs the operator that makes it, or it receives it from
one sender. Between two steps of a change a user may be without a source (an operator that moves); after a
change everything that is used has one, which `check.violations` proves in the tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from headrace.planners.admission.problem import (
    AdmissionProblem,
    Host,
    Operator,
    Plan,
    Stream,
    cpu_of,
    memory_of,
)

Floats = NDArray[np.float64]
SLACK = 1e-9
"""Of a limit: less than the checker allows, more than adding and taking back makes of rounding."""


class Step(Enum):
    PLACE = 1
    UNPLACE = 2
    SEND = 3
    UNSEND = 4
    DELIVER = 5
    UNDELIVER = 6


class Home:
    """The source of a base stream at the host where it enters."""


HOME: Final = Home()
DELIVERY: Final = -1
"""The user of a stream that is given to clients."""
Source = Home | Operator | Host
"""How a host has a stream: from outside, made here, or from this sender."""
User = Operator | Host
"""Who needs a stream at a host: an operator there, a receiver, or DELIVERY."""
Entry = tuple[Step, Host, Host, Operator | Stream]


class State:
    def __init__(self, problem: AdmissionProblem) -> None:
        self.problem = problem
        hosts = problem.hosts
        self.cpu, self.memory, self.into, self.out = (np.zeros(len(hosts)) for _ in range(4))
        self.cpu_limit = _widened([h.cpu for h in hosts])
        self.memory_limit = _widened([h.memory for h in hosts])
        self.into_limit = _widened([h.incoming for h in hosts])
        self.out_limit = _widened([h.outgoing for h in hosts])
        self.links: Floats | None = None if problem.links_never_bind else np.zeros((len(hosts), len(hosts)))
        """From host to host; kept only where a link can be the limit."""
        self.link_limit = _widened(problem.link_bandwidth)
        self.have: defaultdict[Stream, dict[Host, Source]] = defaultdict(dict)
        self.held: defaultdict[Host, dict[Stream, None]] = defaultdict(dict)
        """The other way round, in the order in which they came."""
        self.users: defaultdict[tuple[Host, Stream], set[User]] = defaultdict(set)
        self.running: defaultdict[Host, set[Operator]] = defaultdict(set)
        self.made: defaultdict[Stream, dict[Host, Operator]] = defaultdict(dict)
        """Composite streams that some operator makes; no empty entries."""
        self.around: defaultdict[str, set[Stream]] = defaultdict(set)
        """Made streams by the base streams in them."""
        self.deliveries: dict[Stream, Host] = {}
        self.total_cpu = 0.0
        self.total_flow = 0.0
        self._journal: list[Entry] = []
        for base in problem.streams.values():
            self._hold(base.host, frozenset({base.id}), HOME)

    def place(self, host: Host, one: Operator) -> None:
        self._journal.append((Step.PLACE, host, host, one))
        self._place(host, one)

    def unplace(self, host: Host, one: Operator) -> None:
        self._journal.append((Step.UNPLACE, host, host, one))
        self._unplace(host, one)

    def send(self, sender: Host, receiver: Host, stream: Stream) -> None:
        self._journal.append((Step.SEND, sender, receiver, stream))
        self._send(sender, receiver, stream)

    def unsend(self, sender: Host, receiver: Host, stream: Stream) -> None:
        self._journal.append((Step.UNSEND, sender, receiver, stream))
        self._unsend(sender, receiver, stream)

    def deliver(self, stream: Stream, host: Host) -> None:
        self._journal.append((Step.DELIVER, host, host, stream))
        self._deliver(stream, host)

    def undeliver(self, stream: Stream) -> None:
        host = self.deliveries[stream]
        self._journal.append((Step.UNDELIVER, host, host, stream))
        self._undeliver(stream, host)

    def drop_unused(self, host: Host, stream: Stream) -> None:
        """Stop what makes or brings a stream that nobody at a host needs any more, and all that only it
        needed."""
        source = self.have[stream].get(host)
        if source is None or source is HOME or self.users.get((host, stream)):
            return
        if isinstance(source, Operator):
            self.unplace(host, source)
            self.drop_unused(host, source.left)
            self.drop_unused(host, source.right)
        elif isinstance(source, int):
            self.unsend(source, host, stream)
            self.drop_unused(source, stream)

    def mark(self) -> int:
        return len(self._journal)

    def undo_to(self, mark: int) -> None:
        while len(self._journal) > mark:
            self._undo(*self._journal.pop())

    def since(self, mark: int) -> list[Entry]:
        """What was done after a mark, in order."""
        return self._journal[mark:]

    def forget(self) -> None:
        """What was done so far stays done."""
        self._journal.clear()

    def _undo(self, step: Step, a: Host, b: Host, what: Operator | Stream) -> None:
        if isinstance(what, Operator):
            (self._unplace if step is Step.PLACE else self._place)(a, what)
        elif step in (Step.SEND, Step.UNSEND):
            (self._unsend if step is Step.SEND else self._send)(a, b, what)
        elif step is Step.DELIVER:
            self._undeliver(what, a)
        else:
            self._deliver(what, a)

    def _place(self, host: Host, one: Operator) -> None:
        cpu, output = cpu_of(self.problem, one), one.output
        self.cpu[host] += cpu
        self.memory[host] += memory_of(self.problem, one)
        self.total_cpu += cpu
        self.users[host, one.left].add(one)
        self.users[host, one.right].add(one)
        self.running[host].add(one)
        self._hold(host, output, one)
        if not self.made[output]:
            for name in output:
                self.around[name].add(output)
        self.made[output][host] = one

    def _unplace(self, host: Host, one: Operator) -> None:
        cpu, output = cpu_of(self.problem, one), one.output
        self.cpu[host] -= cpu
        self.memory[host] -= memory_of(self.problem, one)
        self.total_cpu -= cpu
        self.users[host, one.left].discard(one)
        self.users[host, one.right].discard(one)
        self.running[host].discard(one)
        self._lose(host, output)
        del self.made[output][host]
        if not self.made[output]:
            del self.made[output]
            for name in output:
                self.around[name].discard(output)

    def _send(self, sender: Host, receiver: Host, stream: Stream) -> None:
        self._carry(sender, receiver, self.problem.rate(stream))
        self.users[sender, stream].add(receiver)
        self._hold(receiver, stream, sender)

    def _unsend(self, sender: Host, receiver: Host, stream: Stream) -> None:
        self._carry(sender, receiver, -self.problem.rate(stream))
        self.users[sender, stream].discard(receiver)
        self._lose(receiver, stream)

    def _hold(self, host: Host, stream: Stream, source: Source) -> None:
        self.have[stream][host] = source
        self.held[host][stream] = None

    def _lose(self, host: Host, stream: Stream) -> None:
        del self.have[stream][host]
        del self.held[host][stream]

    def _carry(self, sender: Host, receiver: Host, rate: float) -> None:
        self.out[sender] += rate
        self.into[receiver] += rate
        self.total_flow += rate
        if self.links is not None:
            self.links[sender, receiver] += rate

    def _deliver(self, stream: Stream, host: Host) -> None:
        self.deliveries[stream] = host
        self.users[host, stream].add(DELIVERY)
        self.out[host] += self.problem.rate(stream)

    def _undeliver(self, stream: Stream, host: Host) -> None:
        del self.deliveries[stream]
        self.users[host, stream].discard(DELIVERY)
        self.out[host] -= self.problem.rate(stream)

    def fits(self, host: Host, one: Operator) -> bool:
        cpu = self.cpu[host] + cpu_of(self.problem, one)
        memory = self.memory[host] + memory_of(self.problem, one)
        return bool(cpu <= self.cpu_limit[host] and memory <= self.memory_limit[host])

    def can_send(self, sender: Host, receiver: Host, rate: float) -> bool:
        return bool(
            self.out[sender] + rate <= self.out_limit[sender]
            and self.into[receiver] + rate <= self.into_limit[receiver]
            and rate <= self.link_room(sender, receiver)
        )

    def can_deliver(self, host: Host, stream: Stream) -> bool:
        return bool(self.out[host] + self.problem.rate(stream) <= self.out_limit[host])

    def link_room(self, sender: Host, receiver: Host) -> float:
        if self.links is None:
            return float("inf")
        limit = self.link_limit[sender, receiver] if self.link_limit.ndim else self.link_limit
        return float(limit - self.links[sender, receiver])

    def supersets(self, stream: Stream) -> list[Stream]:
        """Made streams that hold this one, itself too, in an order that does not depend on hashes."""
        rarest = min((self.around.get(name, set()) for name in stream), key=len)
        return sorted((s for s in rarest if stream <= s), key=lambda s: (len(s), sorted(s)))

    def flows(self) -> Iterator[tuple[Host, Host, Stream]]:
        for stream, holders in self.have.items():
            for host, source in holders.items():
                if isinstance(source, int):
                    yield source, host, stream

    def plan(self) -> Plan:
        placements = ((host, one) for host, running in self.running.items() for one in running)
        return Plan(frozenset(placements), frozenset(self.flows()), dict(self.deliveries))


def divisor(limit: Floats) -> Floats:
    """Limits to divide by: where there is nothing, very little beside the others."""
    known = limit[np.isfinite(limit)]
    return np.maximum(limit, SLACK * (SLACK * float(known.max(initial=0.0)) or 1.0))


def _widened(limits: list[float] | float | Floats) -> Floats:
    """Limits with the slack in them, so that a comparison is one operation. None where there is nothing: the
    checker allows a share of a limit too."""
    return np.array(limits, dtype=np.float64) * (1.0 + SLACK)
