"""The paper's heuristic as a plain double loop over join trees and hosts, on plans and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.planners.admission.check import usage, violations
from headrace.planners.admission.objective import Lambdas, objective
from headrace.planners.admission.problem import AdmissionProblem, Host, Plan, Stream, operator, operators_of

Tree = tuple[Stream, "Tree | None", "Tree | None"]
LIMITS = ("III.6", "memory")


def best_value(problem: AdmissionProblem, plan: Plan, target: Stream, weights: Lambdas) -> float | None:
    """Of (III.3), over all candidates that fit; None: there is none."""
    values = [
        objective(problem, candidate, weights)
        for tree in trees(problem, target)
        for host in range(len(problem.hosts))
        if (candidate := implemented(problem, plan, tree, host)) is not None
    ]
    return max(values, default=None)


def trees(problem: AdmissionProblem, stream: Stream) -> Iterator[Tree]:
    if len(stream) == 1:
        yield stream, None, None
    for one in operators_of(problem, stream):
        if one.output == stream:
            for left in trees(problem, one.left):
                for right in trees(problem, one.right):
                    yield stream, left, right


def implemented(problem: AdmissionProblem, plan: Plan, tree: Tree, host: Host) -> Plan | None:
    grown = _have(problem, plan, plan, tree, host)
    if grown is None:
        return None
    whole = Plan(grown.placements, grown.flows, {**plan.deliveries, tree[0]: host})
    return None if violations(problem, whole) else whole


def _have(problem: AdmissionProblem, plan: Plan, before: Plan, tree: Tree, host: Host) -> Plan | None:
    stream, left, right = tree
    if host in holders(problem, before, stream):
        return plan
    spare = [h.outgoing - used for h, used in zip(problem.hosts, usage(problem, before)["out"], strict=True)]
    for sender in sorted(holders(problem, before, stream), key=lambda h: (-spare[h], h)):
        sent = Plan(plan.placements, plan.flows | {(sender, host, stream)}, plan.deliveries)
        if not any(text.startswith(LIMITS) for text in violations(problem, sent)):
            return sent
    if left is None or right is None:
        return None
    grown = _have(problem, plan, before, left, host)
    grown = grown and _have(problem, grown, before, right, host)
    if grown is None:
        return None
    return Plan(grown.placements | {(host, operator(left[0], right[0]))}, grown.flows, grown.deliveries)


def holders(problem: AdmissionProblem, plan: Plan, stream: Stream) -> set[Host]:
    at = {base.host for base in problem.streams.values() if {base.id} == stream}
    at |= {host for host, one in plan.placements if one.output == stream}
    return at | {receiver for _, receiver, sent in plan.flows if sent == stream}
