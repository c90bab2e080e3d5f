"""Which query needs what of which host and link: the running plan, seen from its queries.

A plan is made of items: operators, flows and deliveries. An item may serve several queries, and is gone only
when all of them are. An item takes amounts of resources: of a host (cpu, memory, in, out) or of a link. Both
have numbers here, since the search for what to take out looks them up very often.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from headrace.planners.admission.problem import (
    AdmissionProblem,
    Host,
    Operator,
    Plan,
    Stream,
    cpu_of,
    memory_of,
)
from headrace.planners.admission.reduction import trimmed
from headrace.planners.admission.state import SLACK

Item = tuple[Host, Operator] | tuple[Host, Host, Stream] | Stream
"""An operator at a host, a flow, or a delivery."""


@dataclass(frozen=True, slots=True)
class Resource:
    kind: str
    host: Host
    receiver: Host = -1
    """Of a link."""


class Demands:
    """Items and amounts of all that a plan delivers, with the rates of a problem."""

    def __init__(self, problem: AdmissionProblem, plan: Plan) -> None:
        self.problem = problem
        self.plan = trimmed(problem, plan, plan.deliveries)
        self.resources: list[Resource] = []
        self.limits: list[float] = []
        self.takes: list[list[tuple[int, float]]] = []
        """By item: resources and amounts."""
        self._numbers: dict[Resource, int] = {}
        self._made = {(host, one.output): one for host, one in self.plan.placements}
        self._sent = {(receiver, stream): sender for sender, receiver, stream in self.plan.flows}
        known: dict[Item, int] = {}
        self.items = {
            stream: [self._number(item, known) for item in self._items_of(stream)]
            for stream in self.plan.deliveries
        }

    def _items_of(self, delivered: Stream) -> list[Item]:
        found: dict[Item, None] = {delivered: None}
        open_ = [(self.plan.deliveries[delivered], delivered)]
        while open_:
            host, stream = open_.pop()
            one, sender = self._made.get((host, stream)), self._sent.get((host, stream))
            if one is not None and (host, one) not in found:
                found[host, one] = None
                open_ += [(host, one.left), (host, one.right)]
            elif sender is not None and (sender, host, stream) not in found:
                found[sender, host, stream] = None
                open_.append((sender, stream))
        return list(found)

    def _number(self, item: Item, known: dict[Item, int]) -> int:
        if item not in known:
            known[item] = len(known)
            self.takes.append([(self._resource(one), amount) for one, amount in self._takes(item)])
        return known[item]

    def _resource(self, one: Resource) -> int:
        if one not in self._numbers:
            self._numbers[one] = len(self._numbers)
            self.resources.append(one)
            limit = self._limit(one)
            self.limits.append(limit * (1.0 + SLACK))
        return self._numbers[one]

    def _takes(self, item: Item) -> list[tuple[Resource, float]]:
        if isinstance(item, frozenset):
            return [(Resource("out", self.plan.deliveries[item]), self.problem.rate(item))]
        if len(item) == 2:
            host, one = item
            return [
                (Resource("cpu", host), cpu_of(self.problem, one)),
                (Resource("memory", host), memory_of(self.problem, one)),
            ]
        sender, receiver, stream = item
        rate = self.problem.rate(stream)
        return [
            (Resource("out", sender), rate),
            (Resource("in", receiver), rate),
            (Resource("link", sender, receiver), rate),
        ]

    def _limit(self, one: Resource) -> float:
        host = self.problem.hosts[one.host]
        if one.kind == "link":
            return self.problem.link(one.host, one.receiver)
        return {"cpu": host.cpu, "memory": host.memory, "in": host.incoming, "out": host.outgoing}[one.kind]

    def of_query(self, stream: Stream) -> tuple[float, float]:
        """CPU and rates on the network that a delivered stream takes, shared items in full."""
        used = {"cpu": 0.0, "out": 0.0}
        for item in self.items[stream]:
            for number, amount in self.takes[item]:
                kind = self.resources[number].kind
                if kind in used:
                    used[kind] += amount
        return used["cpu"], used["out"]

    def named(self, number: int) -> str:
        one = self.resources[number]
        id_ = self.problem.hosts[one.host].id
        if one.kind == "link":
            return f"link from host {id_} to host {self.problem.hosts[one.receiver].id}"
        what = {"in": "incoming bandwidth", "out": "outgoing bandwidth"}.get(one.kind, one.kind)
        return f"{what} of host {id_}"


class Ledger:
    """What the streams that are still served take in all."""

    def __init__(self, demands: Demands) -> None:
        self._demands = demands
        self._users = [0] * len(demands.takes)
        self._takers = [0] * len(demands.resources)
        """Items that take some of a resource."""
        self.used = [0.0] * len(demands.resources)
        self.over: dict[int, float] = {}
        """By resource, how much more is used than there is."""
        self._needing: defaultdict[int, dict[Stream, None]] = defaultdict(dict)
        for stream, items in demands.items.items():
            self.add(stream)
            for item in items:
                for number, amount in demands.takes[item]:
                    if amount > 0.0:
                        self._needing[number][stream] = None

    def add(self, stream: Stream) -> None:
        for item in self._demands.items[stream]:
            self._users[item] += 1
            if self._users[item] == 1:
                self._book(item, 1.0)

    def take(self, stream: Stream) -> None:
        for item in self._demands.items[stream]:
            self._users[item] -= 1
            if self._users[item] == 0:
                self._book(item, -1.0)

    def _book(self, item: int, sign: float) -> None:
        for number, amount in self._demands.takes[item]:
            if amount > 0.0:
                self._takers[number] += int(sign)
            # Exactly nothing when nobody takes any: a trace of rounding would pass a limit of 0 for ever.
            self.used[number] = self.used[number] + sign * amount if self._takers[number] else 0.0
            more = self.used[number] - self._demands.limits[number]
            if more > 0.0:
                self.over[number] = more
            else:
                self.over.pop(number, None)

    def starving(self) -> dict[Stream, int]:
        """Streams that need some of a resource of which there is not enough, and the worst of these."""
        found: dict[Stream, int] = {}
        for number in sorted(self.over, key=self._badness):
            found |= dict.fromkeys(self._needing[number], number)
        return found

    def _badness(self, number: int) -> tuple[float, int]:
        limit = self._demands.limits[number]
        return self.over[number] / limit if limit > 0.0 else float("inf"), number

    def least_to_take(self) -> list[Stream]:
        """Few streams without which every limit holds. For the resource that is shortest, the stream that
        brings most relief goes, until all is well; then those that still fit are put back. The ledger is left
        without them."""
        taken: dict[Stream, None] = {}
        while self.over:
            worst = max(self.over, key=self._badness)
            hungry = (stream for stream in self._needing[worst] if stream not in taken)
            best = max(hungry, key=lambda stream: (self._relief(stream), sorted(stream)))
            self.take(best)
            taken[best] = None
        for stream in reversed(list(taken)):
            self.add(stream)
            if self.over:
                self.take(stream)
            else:
                del taken[stream]
        return list(taken)

    def _relief(self, stream: Stream) -> float:
        """What taking a stream out does for what is short, as parts of it. Of a shared item each of its users
        counts for its share: only together can they end it."""
        parts: defaultdict[int, float] = defaultdict(float)
        for item in self._demands.items[stream]:
            for number, amount in self._demands.takes[item]:
                if number in self.over:
                    parts[number] += amount / self._users[item]
        return sum(min(amount / self.over[number], 1.0) for number, amount in parts.items())
