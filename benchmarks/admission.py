"""How many queries our planner admits, and how fast: the paper's simulation, and twenty times of it.

    python -m benchmarks.admission [--seeds 5] [--bandwidth 1000,100,50] [--with headrace,heuristic]
    python -m benchmarks.admission --large [--seeds 1] [--bandwidth 100,50]
    python -m benchmarks.admission --parts [--seeds 2]

Per planner, bandwidth and seed (0 and up; parameters were chosen on seeds from 100): queries admitted, the
same as a share of the sequential optimistic bound, milliseconds of processor time of a query (--wall: of
the clock on the wall), and what the independent checker finds wrong with the last plan. --offline S also
gives the bound that no plan can pass, sought for S seconds with whole numbers. --parts leaves out one part
of our planner after the other, on seeds from 100. milp takes minutes a seed; its solver counts the 30 s of a
query by the wall, so on a busy machine it is given less than that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from headrace.planners.admission.bound import offline, optimistic
from headrace.planners.admission.check import violations
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.ours_prices import Tuning
from headrace.planners.admission.problem import AdmissionProblem, Decision, Options, Plan, Query
from headrace.planners.admission.sqpr import Sqpr
from headrace.planners.admission.workload import LARGE, PAPER, Setup, paper_problem

PARTS = {
    "all": Tuning(),
    "no worth": Tuning(ahead=0.0),
    "no sharing": Tuning(shared=0.0),
    "no loss": Tuning(lost=0.0),
    "no relief": Tuning(relieved=0),
    "no replan": Tuning(replanned=False),
}
"""Our planner without composites of popular streams being worth something, copies of popular streams being
cheaper, useless room being charged, overloaded hosts being relieved, related streams being made anew."""
FIRST_TUNED = 100
_TELL_SECONDS = 30.0
"""Between two lines about a run that takes long."""


class Planner(Protocol):
    @property
    def plan(self) -> Plan: ...

    def submit(self, query: Query) -> Decision: ...


Make = Callable[[AdmissionProblem, Options, Callable[[], float]], Planner]
PLANNERS: dict[str, Make] = {
    "headrace": Ours,
    "heuristic": Heuristic,
    "milp": partial(Sqpr, reasons=False),
}
"""SQPR does not say what would have to be freed for a query that fits nowhere: that takes it longer than all
the rest, and changes no decision."""


@dataclass(frozen=True)
class Row:
    planner: str
    bandwidth: float
    seed: int
    queries: int
    admitted: int
    bound: int
    mean_ms: float
    p99_ms: float
    moved: int
    violations: int
    offline: float | None

    @property
    def share(self) -> float:
        return self.admitted / self.bound

    def text(self) -> str:
        ceiling = "" if self.offline is None else f", offline bound {self.offline:.1f}"
        return (
            f"{self.planner:10} {self.bandwidth:5g} Mbps seed {self.seed}: {self.admitted} of {self.queries},"
            f" {self.share:.1%} of the bound ({self.bound}), {self.mean_ms:.2f} ms, p99 {self.p99_ms:.1f} ms,"
            f" {self.moved} moved, {self.violations} violations{ceiling}"
        )


def made(name: str, problem: AdmissionProblem, clock: Callable[[], float]) -> Planner:
    if name in PARTS:
        return Ours(problem, Options(), clock, PARTS[name])
    return PLANNERS[name](problem, Options(), clock)


def run(name: str, setup: Setup, seed: int, clock: Callable[[], float], ceiling: float) -> Row:
    problem = paper_problem(seed, setup)
    planner = made(name, problem, clock)
    decisions, told = list[Decision](), time.monotonic()
    for number, query in enumerate(problem.queries, 1):
        decisions.append(planner.submit(query))
        if time.monotonic() - told >= _TELL_SECONDS:
            told = time.monotonic()
            many = sum(decision.admitted for decision in decisions)
            spent = sum(decision.seconds for decision in decisions)
            print(
                f"  {name} seed {seed}: {many} of {number} admitted, {spent:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    admitted = [decision.query for decision in decisions if decision.admitted]
    ms = np.array([decision.seconds for decision in decisions]) * 1e3
    return Row(
        planner=name,
        bandwidth=setup.bandwidth,
        seed=seed,
        queries=len(decisions),
        admitted=len(admitted),
        bound=optimistic(problem),
        mean_ms=float(ms.mean()),
        p99_ms=float(np.percentile(ms, 99)),
        moved=sum(decision.moved for decision in decisions),
        violations=len(violations(problem, planner.plan, admitted)),
        offline=offline(problem, ceiling) if ceiling else None,
    )


def summary(rows: list[Row]) -> str:
    one = rows[0]
    share, mean, p99 = np.mean([(row.share, row.mean_ms, row.p99_ms) for row in rows], axis=0)
    return (
        f"{one.planner:10} {one.bandwidth:5g} Mbps, {len(rows)} seeds: {share:.1%} of the bound"
        f" (least {min(row.share for row in rows):.1%}), {mean:.2f} ms, p99 {p99:.1f} ms,"
        f" {sum(row.violations for row in rows)} violations"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--bandwidth", help="Mbps, separated by commas")
    parser.add_argument("--with", dest="planners", default="headrace")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--offline", type=float, default=0.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    setup, widths, seeds = (LARGE, "100,50", 1) if options.large else (PAPER, "1000,100,50", 5)
    first, seeds = (FIRST_TUNED, 2) if options.parts else (options.first, seeds)
    clock = time.perf_counter if options.wall else time.process_time
    rows = []
    for width in (options.bandwidth or widths).split(","):
        for name in PARTS if options.parts else options.planners.split(","):
            same = []
            for seed in range(first, first + (options.seeds or seeds)):
                one = replace(setup, bandwidth=float(width))
                same.append(run(name, one, seed, clock, options.offline))
                print(same[-1].text(), flush=True)
            print(summary(same), flush=True)
            rows += same
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
