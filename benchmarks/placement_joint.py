"""Joint planning against planning in turn, against the optimum, and against the lower bound.

    python -m benchmarks.placement_joint [--seeds 5] [--first 0] [--tiny 200] [--rounds 250] [--seconds S]
                                         [--json FILE]

Synthetic workload: the paper's network of 128 sites, 10 streams, 100 queries of 2-5 joins. Tiny cases: 2-3
queries over 3-4 streams on 3-5 sites, whose optimum milp.py finds. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from headrace.planners.placement.joint import solve_joint
from headrace.planners.placement.lower_bound import lower_bound
from headrace.planners.placement.milp import joint_optimum
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import BaseStream, Network, Options, PlacementProblem, Query
from headrace.planners.placement.solve import solve
from headrace.planners.placement.topologies import paper_network
from headrace.planners.placement.workloads import airline, synthetic

Row = dict[str, float | int | str]


def tiny(seed: int) -> PlacementProblem:
    rng = np.random.default_rng([seed, 3])
    streams, sites = int(rng.integers(3, 5)), int(rng.integers(3, 6))
    names = [f"s{i}" for i in range(streams)]
    made = {n: BaseStream(n, int(rng.integers(sites)), float(rng.uniform(1, 10))) for n in names}
    pairs = {frozenset(pair): float(rng.uniform(0.05, 0.9)) for pair in combinations(names, 2)}
    links = tuple((a, b, float(rng.uniform(1, 10))) for a, b in combinations(range(sites), 2))
    queries = []
    for i in range(int(rng.integers(2, 4))):
        chosen = sorted(rng.choice(names, size=int(rng.integers(2, streams + 1)), replace=False).tolist())
        queries.append(Query(f"q{i}", tuple(chosen), int(rng.integers(sites))))
    return PlacementProblem(Network(tuple(range(sites)), links), made, pairs, tuple(queries))


def tiny_row(first: int, cases: int) -> Row:
    joint, in_turn, bound = [], [], []
    for seed in range(first, first + cases):
        problem = tiny(seed)
        prepared = prepare(problem.network)
        optimum = joint_optimum(problem, prepared).cost
        if optimum == 0:
            continue
        cost = solve_joint(problem, prepared, Options(), time.process_time).total_cost
        joint.append(cost / optimum - 1)
        in_turn.append(solve(problem, "exact", Options(), time.process_time).total_cost / optimum - 1)
        bound.append(1 - lower_bound(problem, prepared, cost, rounds=60).value / optimum)
    return {
        "tiny cases that cost anything": len(joint),
        "joint above optimum %": _percent(statistics.mean(joint)),
        "worst %": _percent(max(joint)),
        "in turn above optimum %": _percent(statistics.mean(in_turn)),
        "bound below optimum %": _percent(statistics.mean(bound)),
        "worst bound %": _percent(max(bound)),
    }


def large_row(kind: str, seed: int, seconds: float | None, rounds: int) -> Row:
    network, rng = paper_network(seed), np.random.default_rng(seed)
    problem = synthetic(network, rng) if kind == "synthetic" else airline(network, rng)
    in_turn = solve(problem, "exact", Options(), time.process_time)
    plan = solve(problem, "joint", Options(seconds=seconds), time.process_time)
    row: Row = {
        "workload": kind,
        "seed": seed,
        "in turn": round(in_turn.total_cost),
        "joint": round(plan.total_cost),
        "joint below in turn %": _percent(1 - plan.total_cost / in_turn.total_cost),
        "seconds": round(plan.seconds, 1),
    }
    if kind == "synthetic" and rounds:
        started = time.process_time()
        bound = lower_bound(problem, prepare(network), plan.total_cost, rounds=rounds)
        row["joint above bound %"] = _percent(plan.total_cost / bound.value - 1)
        row["seconds of the bound"] = round(time.process_time() - started)
    return row


def _percent(part: float) -> float:
    return round(100 * part, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--tiny", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=250)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [tiny_row(options.first, options.tiny)] if options.tiny else []
    print(*rows)
    for kind in ("synthetic", "airline"):
        for seed in range(options.first, options.first + options.seeds):
            rows.append(large_row(kind, seed, options.seconds, options.rounds))
            print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    for kind in ("synthetic", "airline"):
        below = [float(row["joint below in turn %"]) for row in rows if row.get("workload") == kind]
        print(f"{kind}: joint below in turn, mean of {len(below)}: {statistics.mean(below):.1f} %")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
