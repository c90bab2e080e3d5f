"""Do the changes from one plan to another, one by one, and see after each that everything is fed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.planners.admission.changes import Change
from headrace.planners.admission.check import violations
from headrace.planners.admission.problem import AdmissionProblem, HostLimits, Plan, operator


def replayed(problem: AdmissionProblem, before: Plan, changes: Iterable[Change]) -> tuple[Plan, list[str]]:
    """The last plan, and what was wrong with any on the way, limits aside: old and new run together."""
    free = tuple(HostLimits(host.id, 1e18, 1e18, 1e18) for host in problem.hosts)
    unlimited = replace(problem, hosts=free, link_bandwidth=1e18)
    plan, wrong = before, list[str]()
    for change in changes:
        plan = _done(problem, plan, change)
        wrong += [f"{change.kind}: {text}" for text in violations(unlimited, plan)]
    return plan, wrong


def _done(problem: AdmissionProblem, plan: Plan, change: Change) -> Plan:
    number = {host.id: i for i, host in enumerate(problem.hosts)}
    old, new = (None if id_ is None else number[id_] for id_ in (change.source, change.target))
    placements, flows, deliveries = set(plan.placements), set(plan.flows), dict(plan.deliveries)
    stream = frozenset(change.stream)
    joined = operator(*map(frozenset, change.inputs)) if change.inputs else None
    if joined is not None and old is not None:
        assert (old, joined) in placements
    if joined is not None and new is not None:
        placements.add((new, joined))
    elif joined is not None and old is not None:
        placements.remove((old, joined))
    elif change.kind == "start flow" and old is not None and new is not None:
        flows.add((old, new, stream))
    elif change.kind == "stop flow" and old is not None and new is not None:
        flows.remove((old, new, stream))
    elif change.kind == "deliver" and new is not None:
        assert deliveries.get(stream) == old
        deliveries[stream] = new
    else:
        assert deliveries.pop(stream) == old
    return Plan(frozenset(placements), frozenset(flows), deliveries)
