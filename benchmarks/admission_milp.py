"""SQPR's models on the paper's simulation.

    python -m benchmarks.admission_milp [--bandwidth 100] [--load 0.9] [--printed]

Fills the hosts with the small model (six hosts may change), then plans the next queries from the same plan
with the small model (12 hosts), the fast one and, when asked, the printed one. CPU seconds of this process,
so that a busy machine shows less.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import median
from time import process_time

from headrace.planners.admission.check import usage
from headrace.planners.admission.milp import Search, best_hosts
from headrace.planners.admission.milp_fast import Fast
from headrace.planners.admission.milp_model import Printed, Wish
from headrace.planners.admission.objective import lambdas_of
from headrace.planners.admission.problem import AdmissionProblem, Options, Plan, Query, Weights
from headrace.planners.admission.reduction import reduce
from headrace.planners.admission.sqpr import Sqpr
from headrace.planners.admission.workload import PAPER, paper_problem

Row = tuple[float, bool, bool]
"""Seconds, admitted, proven."""


def filled(problem: AdmissionProblem, load: float) -> tuple[Plan, int]:
    """A plan that uses this share of the CPU, and the number of queries it took."""
    planner = Sqpr(problem, Options(deadline=3.0), process_time, hosts=6)
    whole = sum(host.cpu for host in problem.hosts)
    for number, query in enumerate(problem.queries):
        if sum(usage(problem, planner.plan)["cpu"]) >= load * whole:
            return planner.plan, number
        planner.submit(query)
    return planner.plan, len(problem.queries)


def timed(problem: AdmissionProblem, plan: Plan, query: Query, how: str, limit: float) -> Row:
    scope = reduce(problem, plan, [query])
    wish = Wish(lambdas_of(problem, Weights()))
    if how == "12 hosts":
        wish = replace(wish, hosts=best_hosts(scope, 12))
    started = process_time()
    found = Search(process_time, printed=how == "printed").best(scope, wish, started + limit)
    return process_time() - started, found.plan is not None, found.proven


def sizes(problem: AdmissionProblem, plan: Plan, query: Query) -> str:
    scope, wish = reduce(problem, plan, [query]), Wish(lambdas_of(problem, Weights()))
    (a, b), (c, d) = Printed(scope, wish).model.size, Fast(scope, wish).model.size
    return f"{len(query.streams)}-way: printed {a:,} x {b:,}, fast {c:,} x {d:,} (constraints x variables)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bandwidth", type=float, default=100.0)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--printed", action="store_true")
    asked = parser.parse_args()
    problem = paper_problem(asked.seed, replace(PAPER, bandwidth=asked.bandwidth))
    plan, number = filled(problem, asked.load)
    fresh = [q for q in problem.queries[number:] if q.streams not in plan.deliveries][: asked.queries]
    print(f"{asked.bandwidth:g} Mbps, {asked.load:.0%} of CPU used, {len(plan.deliveries)} streams delivered")
    print(sizes(problem, plan, max(fresh, key=lambda query: len(query.streams))))
    for how in ("12 hosts", "fast", *(("printed",) if asked.printed else ())):
        rows = [timed(problem, plan, query, how, asked.limit) for query in fresh]
        seconds = [row[0] for row in rows]
        print(
            f"{how:9} median {median(seconds):6.2f} s, most {max(seconds):6.2f} s, "
            f"{sum(row[1] for row in rows)} of {len(rows)} fit, {sum(row[2] for row in rows)} proven"
        )


if __name__ == "__main__":
    main()
