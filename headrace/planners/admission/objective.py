"""The weighted objective (III.3) of a plan, and the weights the paper chooses in IV-A.

O1 counts delivered streams, O2 sums the rates of all flows, O3 the CPU of all operators, O4 is the CPU of the
busiest host. Two of the printed weights cannot mean what they say; the readings taken here:

- lambda 3 is printed as 1 / (sum of all link bandwidths) and said to scale CPU use to [0, 1]. Only
  1 / (sum of all hosts' CPU) does, so that is used.
- lambda 4 is printed as 1 and said to give the busiest host the same weight as the average use. That holds
  when O4 is measured as O3 is, in hosts: lambda 4 = 1 / (mean CPU of a host). A plain 1 would drown the rest.
- lambda 1 is "sufficiently large": here, more than everything the other three can ever add up to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from headrace.planners.admission.check import usage
from headrace.planners.admission.problem import AdmissionProblem, Plan, Weights

LARGE = 1e4
"""lambda 1 where limits are infinite, so that nothing bounds the other objectives."""


@dataclass(frozen=True, slots=True)
class Lambdas:
    admitted: float
    network: float
    cpu: float
    balance: float


def lambdas_of(problem: AdmissionProblem, weights: Weights) -> Lambdas:
    """The weights of a problem: the paper's, where none are given."""
    out = sum(host.outgoing for host in problem.hosts)
    cpu = sum(host.cpu for host in problem.hosts)
    most = max((host.cpu for host in problem.hosts), default=0.0)
    network = _share(out) if weights.network is None else weights.network
    total = _share(cpu) if weights.cpu is None else weights.cpu
    balance = len(problem.hosts) * _share(cpu) if weights.balance is None else weights.balance
    worst = 1.0 + _most(network, out) + _most(total, cpu) + _most(balance, most)
    admitted = (worst if isfinite(worst) else LARGE) if weights.admitted is None else weights.admitted
    return Lambdas(admitted, network, total, balance)


def in_scale(problem: AdmissionProblem, weights: Weights) -> Lambdas:
    """The weights of a problem, beside each other as they are given, so that the most that one of them can
    come to is 1. A solver takes no cost of 10^20 and does not see one of 10^-9; who gives weights need not
    know."""
    given = lambdas_of(problem, weights)
    most = max(
        weights.admitted or 0.0,
        _most(given.network, sum(host.outgoing for host in problem.hosts)),
        _most(given.cpu, sum(host.cpu for host in problem.hosts)),
        _most(given.balance, max((host.cpu for host in problem.hosts), default=0.0)),
    )
    unit = _share(most) or 1.0
    admitted = None if weights.admitted is None else weights.admitted * unit
    scaled = Weights(admitted, given.network * unit, given.cpu * unit, given.balance * unit)
    return lambdas_of(problem, scaled)


def objective(problem: AdmissionProblem, plan: Plan, lambdas: Lambdas) -> float:
    """(III.3): the more the better."""
    cpu = usage(problem, plan)["cpu"]
    network = sum(problem.rate(stream) for _, _, stream in plan.flows)
    return (
        lambdas.admitted * len(plan.deliveries)
        - lambdas.network * network
        - lambdas.cpu * sum(cpu)
        - lambdas.balance * max(cpu, default=0.0)
    )


def _share(total: float) -> float:
    return 1.0 / total if total > 0 and isfinite(total) else 0.0


def _most(weight: float, limit: float) -> float:
    """The most an objective can come to; nothing when it does not count."""
    return weight * limit if weight else 0.0
