"""The optimisers against all plans of small problems: `python -m tests.weaving_check [--instances 200]`.

Prints how far WeaveShare, the thirteen and ours are from the optimum, and exits 1 if a bound is violated:

- WeaveShare saves at least a quarter of what the best plan saves;
- no plan is better than the best plan, nor is a lower bound above it;
- what every optimiser reports is what brute force counts from its plan;
- ours, asked for the lowest total, is never above WeaveShare, and by default never above WG_TN;
- WG_TN is never above W_TN in total: on these problems and on the workloads of the paper's 256 experiments.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean, median

from headrace.experiments.weaving.workload import grid, workload
from headrace.planners.sharing.brute_force import Optimum, optimum, plan_costs
from headrace.planners.sharing.problem import CostModel, Options, SharingPlan, SharingProblem, WindowQuery
from headrace.planners.sharing.solve import OPTIMISERS, PAPER, plan_fast, solve

CLOCK = time.process_time
OURS_SECONDS = 0.025
MOST = 7
"""Queries of a small problem: all their plans are tried."""
NEAR = 1 + 1e-9
LEAN = 50.0
"""A balance at which only the maximum matters."""


@dataclass
class Findings:
    gaps: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Above the optimum, as a share of it."""
    savings: list[float] = field(default_factory=list)
    """WeaveShare's saving, as a share of the best."""
    violations: list[str] = field(default_factory=list)

    def demand(self, holds: bool, what: str, problem: object) -> None:
        if not holds:
            self.violations.append(f"{what}: {problem}")


def small_problems(count: int, seed: int, cost: CostModel = "paper") -> Iterator[SharingProblem]:
    """Half with ranges that are multiples of their slides, half with any; equal and unequal nodes."""
    rng = random.Random(seed)
    for number in range(count):
        top = rng.choice((6, 12, 30))
        slides = [rng.randint(1, top) for _ in range(rng.randint(3, MOST))]
        ranges = [s * rng.randint(1, 8) if number % 2 else rng.randint(1, 8 * s) for s in slides]
        queries = tuple(
            WindowQuery(f"q{i}", r, s) for i, (r, s) in enumerate(zip(ranges, slides, strict=True))
        )
        nodes = rng.randint(1, 3)
        capacities = rng.choice(((1.0,) * nodes, tuple(rng.choice((1.0, 2.0, 3.0)) for _ in range(nodes))))
        yield SharingProblem(rng.choice((0.5, 2.0, 5.0, 10.0)), capacities, queries, cost)


def look_at(problem: SharingProblem, found: Findings) -> None:
    best = optimum(problem)
    plans = {name: solved(problem, name, found) for name in OPTIMISERS}
    lowest = solved(problem, "headrace", found, balance=0.0)
    lightest = solved(problem, "headrace", found, balance=LEAN)
    for plan in (*plans.values(), lowest, lightest):
        check_against(problem, plan, best, found)
    weave_share, wg_tn = plans["WEAVE_SHARE"], plans["WG_TN"]
    best_saving = weave_share.unshared_cost - best.total
    saving = weave_share.unshared_cost - weave_share.total_cost
    if best_saving > 1e-9:
        found.savings.append(saving / best_saving)
    if problem.cost == "paper":
        quarter = saving >= best_saving / 4 - 1e-9
        found.demand(quarter, "WeaveShare saves less than a quarter of the best", problem)
        found.demand(lowest.total_cost <= weave_share.total_cost * NEAR, "ours above WeaveShare", problem)
        found.demand(plans["headrace"].total_cost <= wg_tn.total_cost * NEAR, "ours above WG_TN", problem)
        found.demand(wg_tn.total_cost <= plans["W_TN"].total_cost * NEAR, "WG_TN above W_TN", problem)
    for name in ("WEAVE_SHARE", "INSERT_THEN_WEAVE", *PAPER, "headrace"):
        found.gaps[f"{name}: total"].append(plans[name].total_cost / best.total - 1)
        if name not in ("WEAVE_SHARE", "INSERT_THEN_WEAVE"):
            found.gaps[f"{name}: max"].append(plans[name].max_load / best.max_load - 1)
    found.gaps["headrace, balance 0: total"].append(lowest.total_cost / best.total - 1)
    found.gaps[f"headrace, balance {LEAN:g}: max"].append(lightest.max_load / best.max_load - 1)


def solved(problem: SharingProblem, name: str, found: Findings, balance: float | None = None) -> SharingPlan:
    plan = solve(problem, name, Options(balance=balance, seconds=OURS_SECONDS), clock=CLOCK)
    total, nodes = plan_costs(problem, plan.assignment)
    said = (plan.total_cost, *(node.cost for node in plan.nodes))
    right = all(abs(a - b) <= 1e-9 * max(1.0, b) for a, b in zip(said, (total, *nodes), strict=True))
    found.demand(right, f"{name} reports other costs than its plan has", problem)
    return plan


def check_against(problem: SharingProblem, plan: SharingPlan, best: Optimum, found: Findings) -> None:
    found.demand(plan.total_cost * NEAR >= best.total, f"{plan.optimiser} below the best total", problem)
    found.demand(plan.max_load * NEAR >= best.max_load, f"{plan.optimiser} below the best maximum", problem)
    found.demand(plan.lower_bound <= best.total * NEAR, "lower bound above the best total", problem)
    found.demand(plan.lower_bound_max <= best.max_load * NEAR, "lower bound above the best maximum", problem)


def look_at_the_experiments(repeats: int, found: Findings) -> None:
    for repeat in range(repeats):
        for parameters in grid():
            problem = workload(parameters, repeat)
            woven, grouped = (
                plan_fast(problem, name, Options(), clock=CLOCK).total for name in ("W_TN", "WG_TN")
            )
            found.demand(grouped <= woven * NEAR, "WG_TN above W_TN", parameters)


def show(found: Findings, cost: CostModel) -> None:
    print(f"above the optimum, cost {cost!r}: mean / median / worst, and how often it is the optimum")
    for name, gaps in found.gaps.items():
        optimal = mean(gap < 1e-9 for gap in gaps)
        print(f"  {name:32} {mean(gaps):7.2%} {median(gaps):7.2%} {max(gaps):8.2%} {optimal:7.1%}")
    kept = found.savings
    print(f"WeaveShare's saving as a share of the best: mean {mean(kept):.1%}, least {min(kept):.1%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1, help="workloads of each of the 256 experiments")
    chosen = parser.parse_args()
    violations = []
    for cost in ("paper", "true"):
        found = Findings()
        for problem in small_problems(chosen.instances, chosen.seed, "paper" if cost == "paper" else "true"):
            look_at(problem, found)
        show(found, "paper" if cost == "paper" else "true")
        violations += found.violations
    experiments = Findings()
    look_at_the_experiments(chosen.repeats, experiments)
    violations += experiments.violations
    above = len(experiments.violations)
    print(f"{256 * chosen.repeats} workloads of the paper's experiments: WG_TN above W_TN in {above}")
    for violation in violations:
        print(violation)
    print(f"{2 * chosen.instances} small problems, {len(violations)} violations, {CLOCK():.0f} s of CPU")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
