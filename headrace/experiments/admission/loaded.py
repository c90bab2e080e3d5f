"""Planning times when 75 to 95 % of the CPU are in use (Figure 6).

SQPR is given plans that ours made, at three loads: what the paper asks is how long its reduced problem takes
to be solved to the end, and filling hundreds of hosts with SQPR itself would take hours. The others are timed
while they fill the hosts themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.experiments.admission.cases import HEURISTIC, SQPR
from headrace.planners.admission.check import usage
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.milp import Search
from headrace.planners.admission.milp_model import Wish
from headrace.planners.admission.objective import lambdas_of
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import AdmissionProblem, Decision, Options, Plan, Query, Weights
from headrace.planners.admission.reduction import reduce

Clock = Callable[[], float]
LEAST, MOST = 0.75, 0.95
LOADS = (0.75, 0.85, 0.95)
EACH = 4
"""Queries that SQPR plans at each load."""
ENOUGH = 200
"""Queries of the others that are timed: one that never gets to 95 % would be timed to the end."""
PATIENCE = 5.0
"""So many deadlines: the paper's limit here is 100 s, and 30 s elsewhere."""


@dataclass(frozen=True)
class Timed:
    seconds: tuple[float, ...]
    fit: int
    """Queries that were admitted."""
    proven: int


def timed(problem: AdmissionProblem, planner: str, deadline: float, clock: Clock) -> Timed:
    if planner == SQPR:
        return _solved(problem, deadline, clock)
    make = Heuristic if planner == HEURISTIC else Ours
    mine = make(problem, Options(), clock)
    found: list[Decision] = []
    for query, load in _loads(problem, lambda: mine.plan):
        if load > MOST or len(found) == ENOUGH:
            break
        decision = mine.submit(query)
        if load >= LEAST:
            found.append(decision)
    fit = sum(one.admitted for one in found)
    return Timed(tuple(one.seconds for one in found), fit, sum(one.proven for one in found))


def _loads(problem: AdmissionProblem, plan: Callable[[], Plan]) -> Iterator[tuple[Query, float]]:
    """Every query that is not delivered yet, with the load it meets."""
    whole = sum(host.cpu for host in problem.hosts)
    for query in problem.queries:
        now = plan()
        if query.streams not in now.deliveries:
            yield query, sum(usage(problem, now)["cpu"]) / whole


def _solved(problem: AdmissionProblem, deadline: float, clock: Clock) -> Timed:
    seconds: list[float] = []
    fit = proven = 0
    for plan, queries in _plans(problem, clock):
        for query in queries:
            started = clock()
            scope, wish = reduce(problem, plan, [query]), Wish(lambdas_of(problem, Weights()))
            found = Search(clock).best(scope, wish, started + PATIENCE * deadline)
            seconds.append(clock() - started)
            fit += found.plan is not None and query.streams in found.plan.deliveries
            proven += found.proven
    return Timed(tuple(seconds), fit, proven)


def _plans(problem: AdmissionProblem, clock: Clock) -> Iterator[tuple[Plan, list[Query]]]:
    """What runs when a load is first reached, and the next queries that it does not deliver."""
    ours, wanted = Ours(problem, Options(), clock), list(LOADS)
    queries = problem.queries
    for query, load in _loads(problem, lambda: ours.plan):
        while wanted and load >= wanted[0]:
            wanted.pop(0)
            later = queries[queries.index(query) :]
            yield ours.plan, [one for one in later if one.streams not in ours.plan.deliveries][:EACH]
        if not wanted:
            return
        ours.submit(query)
