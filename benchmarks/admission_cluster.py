"""The paper's cluster (V-B), and re-planning when rates change (IV-B).

    python -m benchmarks.admission_cluster [--seeds 5] [--with soda,soda-named,heuristic,headrace,milp]
    python -m benchmarks.admission_cluster --adapt [--seeds 5] [--bandwidth 1000,100,50] [--ways least,all]

The first: queries admitted of 50, 100, ... 250 submitted, one by one, by each planner at 15 hosts. --deadline
is for one query of the MILP. The second: 50 hosts filled by our planner, then the rates of a fifth of the
base streams change, by a factor drawn between 0.5 and 1.5 ("sway") or between 1 and 2 ("rise"); what is
picked, re-planned, dropped and moved, and seconds of processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from headrace.planners.admission.adaptive import Policy, Way, adapt
from headrace.planners.admission.bound import optimistic
from headrace.planners.admission.check import usage, violations
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.observed import Observed, observed_problem
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import AdmissionProblem, Decision, Options, Plan, Query
from headrace.planners.admission.soda import Soda
from headrace.planners.admission.soda_workload import CLUSTER, EPOCH, cluster_problem
from headrace.planners.admission.sqpr import Sqpr
from headrace.planners.admission.workload import PAPER, paper_problem


class Planner(Protocol):
    @property
    def plan(self) -> Plan: ...

    def submit(self, query: Query) -> Decision: ...


Make = Callable[[AdmissionProblem, Options, Callable[[], float]], Planner]
PLANNERS: dict[str, Make] = {
    "soda": Soda,
    "soda-named": lambda problem, options, clock: Soda(problem, options, clock, named=True),
    "heuristic": Heuristic,
    "headrace": Ours,
    "milp": Sqpr,
}
FACTORS = {"sway": (0.5, 1.5), "rise": (1.0, 2.0)}
CHANGED = 0.2
"""Of the base streams."""


def compare(names: list[str], seeds: int, deadline: float, cpu: float) -> None:
    for seed in range(seeds):
        problem = cluster_problem(seed, replace(CLUSTER, cpu=cpu))
        print(f"seed {seed}: optimistic bound {optimistic(problem)}")
        for name in names:
            options = Options(deadline=deadline if name == "milp" else None)
            planner, started = PLANNERS[name](problem, options, time.perf_counter), time.process_time()
            admitted, curve = list[str](), list[int]()
            for number, query in enumerate(problem.queries, start=1):
                admitted += [query.id] if planner.submit(query).admitted else []
                curve += [len(admitted)] if number % EPOCH == 0 else []
            ms = (time.process_time() - started) / len(problem.queries) * 1e3
            used, wrong = usage(problem, planner.plan)["cpu"], violations(problem, planner.plan, admitted)
            print(
                f"  {name:10} {curve}, {ms:.1f} ms, CPU {sum(used):.0f} (busiest host {max(used):.0f}),"
                f" {len(wrong)} violations",
                flush=True,
            )


def change(width: float, seed: int, ways: tuple[Way, ...]) -> None:
    problem = paper_problem(seed, replace(PAPER, bandwidth=width))
    planner = Ours(problem, Options(), time.process_time)
    admitted = [query.id for query in problem.queries if planner.submit(query).admitted]
    for name, factors in FACTORS.items():
        rng = np.random.default_rng([seed, 20])
        some = rng.choice(sorted(problem.streams), int(CHANGED * len(problem.streams)), replace=False)
        rates = {
            frozenset({s}): problem.streams[s].rate * float(rng.uniform(*factors)) for s in some.tolist()
        }
        plan = planner.plan
        for way in ways:
            after, answer = adapt(
                problem, plan, admitted, Observed(rates), time.process_time, policy=Policy(ways=(way,))
            )
            wrong = violations(observed_problem(problem, Observed(rates), plan), after, answer.kept)
            price = answer.price
            print(
                f"{width:5g} Mbps seed {seed} {name} {way:5}: {len(admitted)} ran,"
                f" {len(answer.picked)} picked, {len(answer.replanned)} re-planned,"
                f" {len(answer.dropped)} dropped; {price.moved} operators moved with"
                f" {price.bytes / 1e9:.1f} GB, {price.started} started, {price.flows} flows;"
                f" {answer.seconds:.2f} s, {len(wrong)} violations",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--with", dest="planners", default="soda,soda-named,heuristic,headrace,milp")
    parser.add_argument("--deadline", type=float, default=30.0)
    parser.add_argument("--cpu", type=float, default=CLUSTER.cpu, help="of a host of the cluster")
    parser.add_argument("--adapt", action="store_true")
    parser.add_argument("--bandwidth", default="1000,100,50", help="Mbps, separated by commas")
    parser.add_argument("--ways", default="least,all")
    options = parser.parse_args()
    if not options.adapt:
        compare(options.planners.split(","), options.seeds, options.deadline, options.cpu)
        return
    known: dict[str, Way] = {"least": "least", "all": "all"}
    for width in options.bandwidth.split(","):
        for seed in range(options.seeds):
            change(float(width), seed, tuple(known[way] for way in options.ways.split(",")))


if __name__ == "__main__":
    main()
