"""Random problems in which hosts differ, links may be a matrix, memory may bind and rates may be missing."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Query


def mixed(seed: int, *, queries: int = 12, most: int = 4) -> AdmissionProblem:
    """Three to six hosts, five to seven streams, queries of two to `most` of them."""
    rng = np.random.default_rng([seed, 3])
    count, bases = int(rng.integers(3, 7)), int(rng.integers(5, 8))
    names = "abcdefg"[:bases]
    streams = {name: Base(name, int(rng.integers(count)), float(rng.uniform(1, 5))) for name in names}
    gap = 0.15 if seed % 4 == 3 else 0.0
    rates = {
        frozenset(some): float(rng.uniform(0.1, 3))
        for size in range(2, most + 1)
        for some in combinations(names, size)
        if size == most or rng.random() >= gap
    }
    hosts = tuple(
        HostLimits(
            f"h{i}",
            float(rng.uniform(5, 30)),
            float(rng.uniform(4, 25)),
            float(rng.uniform(4, 25)),
            float(rng.uniform(8, 30)) if rng.random() < 0.4 else float("inf"),
        )
        for i in range(count)
    )
    width = rng.uniform(2, 12, size=(count, count)) if seed % 3 == 0 else float(rng.choice([6.0, 100.0]))
    asked = tuple(
        Query(
            f"q{i}",
            frozenset(rng.choice(list(names), size=int(rng.integers(2, most + 1)), replace=False).tolist()),
            float(rng.integers(1, 4)),
        )
        for i in range(queries)
    )
    return AdmissionProblem(hosts, width, streams, rates, asked, operator_cost=0.8, memory_cost=0.5)
