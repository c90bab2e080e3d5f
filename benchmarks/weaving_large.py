"""10,000 window queries with 500 distinct slides on 32 nodes: how long plans take, and how good they are.

    python -m benchmarks.weaving_large [--repeats 3] [--json FILE]

Seconds are processor time of the search (parsing, compiling and the exact report are not in it), the median
of the repeats; costs are the paper's, read in floats. WG_TN is the lazy WeaveShare of weave.py, which gives
the plan of the exhaustive one (tests/deep/sharing/test_weave.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from headrace.planners.sharing.problem import Options, SharingProblem, WindowQuery
from headrace.planners.sharing.solve import Quick, plan_fast, warm

QUERIES, SLIDES, NODES = 10_000, 500, 32
CASES = ((5000, 100.0, 100), (1000, 100.0, 100), (2000, 10.0, 10), (600, 100.0, 10), (5000, 1000.0, 100))
"""(longest slide, rate, largest overlap)"""


def workload(longest: int, rate: float, overlap: int, seed: int) -> SharingProblem:
    """Every slide at least once, the other queries at random over them."""
    rng = np.random.default_rng([longest, int(rate), overlap, seed])
    slides = rng.choice(np.arange(2, longest + 1), size=SLIDES, replace=False)
    chosen = np.concatenate([slides, rng.choice(slides, size=QUERIES - SLIDES)])
    ranges = chosen * rng.integers(1, overlap + 1, size=QUERIES)
    pairs = zip(ranges.tolist(), chosen.tolist(), strict=True)
    queries = tuple(WindowQuery(f"q{i}", r, s) for i, (r, s) in enumerate(pairs))
    return SharingProblem(rate, (1.0,) * NODES, queries)


def timed(problem: SharingProblem, optimiser: str, repeats: int) -> tuple[Quick, float]:
    runs = [plan_fast(problem, optimiser, Options(), clock=time.process_time) for _ in range(repeats)]
    return runs[-1], statistics.median(run.seconds for run in runs)


def row(case: tuple[int, float, int], repeats: int) -> dict[str, object]:
    problem = workload(*case, seed=0)
    weave, weave_seconds = timed(problem, "WG_TN", repeats)
    insert, insert_seconds = timed(problem, "WG_I", 1)
    ours, ours_seconds = timed(problem, "headrace", repeats)
    return {
        "longest slide, rate, overlap": case,
        "WG_TN ms": round(weave_seconds * 1e3, 1),
        "WG_I ms": round(insert_seconds * 1e3),
        "ours ms": round(ours_seconds * 1e3),
        "ours total / WG_TN's": round(ours.total / weave.total, 3),
        "ours max / WG_I's": round(ours.max_load / insert.max_load, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"kernels compiled or loaded in {warm(time.perf_counter):.1f} s")
    rows = []
    for case in CASES:
        rows.append(row(case, options.repeats))
        print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
