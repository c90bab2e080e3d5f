"""What may change when a query arrives, and what stays: the problem reduction of IV-A.

S(q) holds every stream and O(q) every operator that can be in a plan for q. Whatever produces a stream of
S(q) is in O(q), and whatever is in O(q) produces and reads only S(q). So all that runs falls into two parts:
flows and deliveries of S(q) and operators of O(q) may change; the rest stays, and touches the first part in
two ways only: it uses up resources, and its operators read streams of S(q) at their hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headrace.planners.admission.check import usage
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Host,
    Operator,
    Plan,
    Query,
    Stream,
    operators_of,
)

Floats = NDArray[np.float64]
RESOURCES = ("cpu", "memory", "in", "out")
"""Of a host, as `check.usage` names them."""


@dataclass(frozen=True)
class Scope:
    """A reduced problem. `fixed` and `loose` together are the plan that runs now."""

    problem: AdmissionProblem
    streams: tuple[Stream, ...]
    operators: tuple[Operator, ...]
    wanted: tuple[Stream, ...]
    """Streams of the new queries, delivered by nobody yet."""
    kept: tuple[Stream, ...]
    """Streams of S(q) that are delivered already and must stay so (IV.9)."""
    fixed: Plan
    loose: Plan
    needs: frozenset[tuple[Host, Stream]]
    """Streams of S(q) that fixed operators read, and where."""

    @cached_property
    def limits(self) -> dict[str, Floats]:
        """What each host has, by resource."""
        hosts = self.problem.hosts
        return {
            "cpu": np.array([host.cpu for host in hosts]),
            "memory": np.array([host.memory for host in hosts]),
            "in": np.array([host.incoming for host in hosts]),
            "out": np.array([host.outgoing for host in hosts]),
        }

    @cached_property
    def taken(self) -> dict[str, Floats]:
        """What the fixed part takes of each host, by resource."""
        return {name: np.array(used) for name, used in usage(self.problem, self.fixed).items()}

    @cached_property
    def room(self) -> dict[str, Floats]:
        """What is left for S(q) and O(q). Never below 0: sums of rates are not exact."""
        return {name: np.maximum(self.limits[name] - self.taken[name], 0.0) for name in RESOURCES}

    @cached_property
    def link_room(self) -> Floats:
        count = len(self.problem.hosts)
        room = np.full((count, count), 1.0) * self.problem.link_bandwidth
        for sender, receiver, stream in self.fixed.flows:
            room[sender, receiver] -= self.problem.rate(stream)
        return np.maximum(room, 0.0)

    @cached_property
    def tight_links(self) -> NDArray[np.bool_]:
        """Links that could carry too much: narrower than both ends, and narrower than all of S(q) once.

        A link carries a stream at most once, so one that has room for every stream of S(q) never binds.
        """
        ends = np.minimum.outer(self.limits["out"], self.limits["in"])
        narrower: NDArray[np.bool_] = np.broadcast_to(self.problem.link_bandwidth, ends.shape) < ends
        return narrower & self.narrow_links

    @cached_property
    def narrow_links(self) -> NDArray[np.bool_]:
        """Links that could carry too much if hosts had all the bandwidth they want."""
        all_once = sum(self.problem.rate(stream) for stream in self.streams)
        narrow = self.link_room < all_once
        np.fill_diagonal(narrow, False)
        return narrow

    @cached_property
    def homes(self) -> dict[Stream, Host]:
        bases = self.problem.streams
        return {s: bases[next(iter(s))].host for s in self.streams if len(s) == 1}

    def joined(self, part: Plan) -> Plan:
        """The whole plan when the loose part is replaced."""
        return Plan(
            self.fixed.placements | part.placements,
            self.fixed.flows | part.flows,
            {**self.fixed.deliveries, **part.deliveries},
        )


def reduce(problem: AdmissionProblem, plan: Plan, queries: Sequence[Query]) -> Scope:
    """Everything about some queries' streams and operators may change, the rest of the plan is fixed."""
    operators = dict.fromkeys(o for query in queries for o in operators_of(problem, query.streams))
    bases = {frozenset({name}) for query in queries for name in query.streams}
    streams = bases | {o.output for o in operators}
    loose = Plan(
        frozenset((h, o) for h, o in plan.placements if o in operators),
        frozenset(flow for flow in plan.flows if flow[2] in streams),
        {s: h for s, h in plan.deliveries.items() if s in streams},
    )
    fixed = Plan(
        plan.placements - loose.placements,
        plan.flows - loose.flows,
        {s: h for s, h in plan.deliveries.items() if s not in streams},
    )
    return Scope(
        problem,
        tuple(sorted(streams, key=_order)),
        tuple(operators),
        tuple(dict.fromkeys(q.streams for q in queries if q.streams not in plan.deliveries)),
        tuple(sorted(loose.deliveries, key=_order)),
        fixed,
        loose,
        frozenset((h, s) for h, o in fixed.placements for s in (o.left, o.right) if s in streams),
    )


def trimmed(problem: AdmissionProblem, plan: Plan, deliveries: Iterable[Stream]) -> Plan:
    """Only what some of the deliveries need: each stream at each host keeps one origin, the first by which it
    can be had, and what then leads nowhere is dropped."""
    origins = _origins(problem, plan)
    kept = {stream: plan.deliveries[stream] for stream in deliveries}
    placements: set[tuple[Host, Operator]] = set()
    flows: set[tuple[Host, Host, Stream]] = set()
    open_, seen = [(host, stream) for stream, host in kept.items()], set[tuple[Host, Stream]]()
    while open_:
        place = open_.pop()
        if place in seen:
            continue
        seen.add(place)
        host, stream = place
        origin = origins[place]
        if isinstance(origin, Operator):
            placements.add((host, origin))
            open_ += [(host, origin.left), (host, origin.right)]
        elif origin != host:
            flows.add((origin, host, stream))
            open_.append((origin, stream))
    return Plan(frozenset(placements), frozenset(flows), kept)


def _origins(problem: AdmissionProblem, plan: Plan) -> dict[tuple[Host, Stream], Operator | Host]:
    """For every stream at every host the operator that makes it there, the sender, or the host itself (its
    home). Found forwards from the homes, so that following origins never comes round in a circle."""
    senders: dict[tuple[Host, Stream], list[Host]] = defaultdict(list)
    readers: dict[tuple[Host, Stream], list[Operator]] = defaultdict(list)
    for sender, receiver, stream in sorted(plan.flows, key=lambda f: (f[0], f[1], _order(f[2]))):
        senders[sender, stream].append(receiver)
    for host, one in sorted(plan.placements, key=lambda p: (p[0], _order(p[1].left), _order(p[1].right))):
        readers[host, one.left].append(one)
        readers[host, one.right].append(one)
    origins: dict[tuple[Host, Stream], Operator | Host] = {}
    front = [((base.host, frozenset({base.id})), base.host) for base in problem.streams.values()]
    queue: list[tuple[tuple[Host, Stream], Operator | Host]] = list(front)
    for place, origin in queue:
        if place in origins:
            continue
        origins[place] = origin
        host, stream = place
        queue += [((receiver, stream), host) for receiver in senders[place]]
        queue += [
            ((host, one.output), one)
            for one in readers[place]
            if (host, one.left) in origins and (host, one.right) in origins
        ]
    return origins


def _order(stream: Stream) -> tuple[int, list[str]]:
    return len(stream), sorted(stream)
