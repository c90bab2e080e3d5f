"""Whether a plan is one: conditions C1-C4, all limits, and that every stream has a source.

Knows nothing of how plans are made, and is run on every answer of every planner in the tests. Violations are
given as text, with the constraint of the paper they break; an empty list means the plan can run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.planners.admission.problem import AdmissionProblem, Host, Operator, Plan, Stream

TOLERANCE = 1e-6
"""As a share of a limit: sums of many rates are not exact, and nobody knows in which unit they are."""


def violations(problem: AdmissionProblem, plan: Plan, admitted: Iterable[str] = ()) -> list[str]:
    """All that is wrong with a plan, given the ids of the queries said to be admitted."""
    found = [*_shape(problem, plan), *_demand(problem, plan, frozenset(admitted))]
    if found:
        return found
    return [*_causality(problem, plan), *_host_limits(problem, plan), *_link_limits(problem, plan)]


def usage(problem: AdmissionProblem, plan: Plan) -> dict[str, list[float]]:
    """Per resource, how much of it each host uses."""
    size = len(problem.hosts)
    cpu, memory, into, out = ([0.0] * size for _ in range(4))
    for host, one in plan.placements:
        read = problem.rate(one.left) + problem.rate(one.right)
        cpu[host] += problem.operator_cost * read
        memory[host] += problem.memory_cost * read
    for sender, receiver, stream in plan.flows:
        out[sender] += problem.rate(stream)
        into[receiver] += problem.rate(stream)
    for stream, host in plan.deliveries.items():
        out[host] += problem.rate(stream)
    return {"cpu": cpu, "memory": memory, "in": into, "out": out}


def _shape(problem: AdmissionProblem, plan: Plan) -> list[str]:
    hosts = range(len(problem.hosts))
    found: list[str] = []
    for host, one in plan.placements:
        if host not in hosts:
            found.append(f"operator at host {host}, which does not exist")
        if not one.left or not one.right or one.left & one.right:
            found.append(f"C2: {_show(one.left)} and {_show(one.right)} cannot be joined")
        found += [
            f"{_show(s)} has no rate" for s in (one.left, one.right, one.output) if not _rated(problem, s)
        ]
    for sender, receiver, stream in plan.flows:
        if sender not in hosts or receiver not in hosts or sender == receiver:
            found.append(f"flow of {_show(stream)} from host {sender} to host {receiver}")
        if not _rated(problem, stream):
            found.append(f"{_show(stream)} has no rate")
    for stream, host in plan.deliveries.items():
        if host not in hosts or not _rated(problem, stream):
            found.append(f"{_show(stream)} delivered by host {host}")
    return found


def _rated(problem: AdmissionProblem, stream: Stream) -> bool:
    return stream <= problem.streams.keys() and (len(stream) == 1 or stream in problem.rates)


def _demand(problem: AdmissionProblem, plan: Plan, admitted: frozenset[str]) -> list[str]:
    wanted = {query.id: query.streams for query in problem.queries}
    found = [f"query {name} does not exist" for name in admitted - wanted.keys()]
    found += [
        f"C1: {name} is admitted and {_show(wanted[name])} is delivered by no host"
        for name in sorted(admitted & wanted.keys())
        if wanted[name] not in plan.deliveries
    ]
    asked = set(wanted.values())
    found += [
        f"III.4a: {_show(stream)} is delivered and nobody wants it"
        for stream in plan.deliveries
        if stream not in asked
    ]
    return found


@dataclass(frozen=True, slots=True)
class Unfed:
    """What runs, by a plan, and never gets what it needs."""

    placements: set[tuple[Host, Operator]]
    flows: set[tuple[Host, Host, Stream]]
    deliveries: set[Stream]


def unfed(problem: AdmissionProblem, plan: Plan) -> Unfed:
    """Everything that runs must be fed, in the end, by base streams at their homes. A fixed point, not an
    order given by the planner: whatever stays unreached is a loop that feeds itself, or has no source."""
    have: dict[Host, set[Stream]] = defaultdict(set)
    for base in problem.streams.values():
        have[base.host].add(frozenset({base.id}))
    operators, flows = set(plan.placements), set(plan.flows)
    moved = True
    while moved:
        ready = {(h, o) for h, o in operators if o.left in have[h] and o.right in have[h]}
        sent = {(s, r, stream) for s, r, stream in flows if stream in have[s]}
        for host, one in ready:
            have[host].add(one.output)
        for _, receiver, stream in sent:
            have[receiver].add(stream)
        operators -= ready
        flows -= sent
        moved = bool(ready or sent)
    lost = {stream for stream, host in plan.deliveries.items() if stream not in have[host]}
    return Unfed(operators, flows, lost)


def _causality(problem: AdmissionProblem, plan: Plan) -> list[str]:
    left = unfed(problem, plan)
    found = [
        f"III.5b: host {h} joins {_show(o.left)} and {_show(o.right)} without having both"
        for h, o in left.placements
    ]
    found += [
        f"III.5c/III.7: host {s} sends {_show(stream)} to {r} and never has it" for s, r, stream in left.flows
    ]
    found += [
        f"III.4a: host {host} delivers {_show(stream)} and never has it"
        for stream, host in plan.deliveries.items()
        if stream in left.deliveries
    ]
    return found


def _host_limits(problem: AdmissionProblem, plan: Plan) -> list[str]:
    used = usage(problem, plan)
    names = {"cpu": "III.6d", "memory": "memory", "in": "III.6b", "out": "III.6c"}
    found: list[str] = []
    for number, host in enumerate(problem.hosts):
        limits = {"cpu": host.cpu, "memory": host.memory, "in": host.incoming, "out": host.outgoing}
        found += [
            f"{names[kind]}: host {host.id} uses {used[kind][number]:g} of {limit:g} {kind}"
            for kind, limit in limits.items()
            if _over(used[kind][number], limit)
        ]
    return found


def _link_limits(problem: AdmissionProblem, plan: Plan) -> list[str]:
    used: dict[tuple[Host, Host], float] = defaultdict(float)
    for sender, receiver, stream in plan.flows:
        used[sender, receiver] += problem.rate(stream)
    return [
        f"III.6a: link {a} -> {b} carries {rate:g} of {problem.link(a, b):g}"
        for (a, b), rate in sorted(used.items())
        if _over(rate, problem.link(a, b))
    ]


def _over(used: float, limit: float) -> bool:
    return used > limit * (1.0 + TOLERANCE)


def _show(stream: Stream) -> str:
    return "*".join(sorted(stream))
