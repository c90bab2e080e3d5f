"""Every admission planner on many random problems, each plan looked at by the independent checker:

    python -m tests.admission_check --problems 500 --seed 0

After every query: nothing overloaded, every stream where it is read, every admitted query delivered. Prints
how many each planner admitted and how many plans were wrong; exits 1 if any was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from time import process_time
from typing import Protocol

from headrace.planners.admission.check import violations
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import AdmissionProblem, Decision, Options, Plan, Query
from headrace.planners.admission.soda import Soda
from headrace.planners.admission.sqpr import Sqpr
from tests.unit.planners.admission.mixed import mixed


class Planner(Protocol):
    @property
    def plan(self) -> Plan: ...

    def submit(self, query: Query) -> Decision: ...


Make = Callable[[AdmissionProblem, Options, Callable[[], float]], Planner]
PLANNERS: dict[str, Make] = {"headrace": Ours, "milp": Sqpr, "heuristic": Heuristic, "soda": Soda}


def wrong_plans(make: Make, problem: AdmissionProblem, options: Options) -> tuple[int, int]:
    """How many queries were admitted, and after how many of them the plan was wrong."""
    planner, admitted, wrong = make(problem, options, process_time), list[str](), 0
    for query in problem.queries:
        admitted += [query.id] if planner.submit(query).admitted else []
        found = violations(problem, planner.plan, admitted)
        wrong += bool(found)
        for text in found:
            print(text, file=sys.stderr)
    return len(admitted), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--queries", type=int, default=14, help="of each problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--with", dest="planners", default=",".join(PLANNERS))
    parser.add_argument(
        "--deadline",
        type=float,
        default=1.0,
        help="CPU seconds of a query; ours too looks so long for a plan",
    )
    asked = parser.parse_args()
    total = 0
    for name in asked.planners.split(","):
        admitted = wrong = 0
        for number, seed in enumerate(range(asked.seed, asked.seed + asked.problems)):
            if number and number % 50 == 0:
                so_far = f"{number} of {asked.problems} problems, {wrong} plans wrong"
                print(f"  {name}: {so_far}", file=sys.stderr, flush=True)
            problem = mixed(seed, queries=asked.queries)
            more, bad = wrong_plans(PLANNERS[name], problem, Options(seed=seed, deadline=asked.deadline))
            admitted, wrong = admitted + more, wrong + bad
        print(
            f"{name}: {asked.problems} problems, {admitted} queries admitted, {wrong} plans wrong", flush=True
        )
        total += wrong
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
