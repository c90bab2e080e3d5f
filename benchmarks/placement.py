"""How long the exact planner takes for a query, by kind and size of the network.

    python -m benchmarks.placement [--seeds 5] [--queries 6] [--quick] [--json FILE]

Every row: queries over 5 streams at random sites, each planned alone on a prepared network; for every seed a
network, for every network queries of four models of rates:

    steady    the synthetic workload's rates 1 to 10 and selectivities 0.2 to 0.9: joins of two to four
              streams are more data than one stream
    falling   rates 1 to 100, selectivities 0.001 to 0.1: results grow or shrink with the query
    tiny      selectivities 0.0001 to 0.001: a joined stream weighs next to nothing
    level     all rates 10, all selectivities 0.1: two joined streams weigh as much as one

Milliseconds are processor time of `place` (one thread: on an idle machine the time on the wall), compiled
code; nothing of one query is kept for the next but what was prepared. "prepare" is reading links, finding
blocks. The last row adds 1,000 queries of the synthetic workload one by one, each reusing what runs, with the
bookkeeping.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks.machine import describe
from headrace.planners.placement import topologies, workloads
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact, warm
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import BaseStream, Network, Options, PlacementProblem, Query

STREAMS = 5
Span = tuple[float, float]
MODELS: dict[str, tuple[Span, Span]] = {
    "steady": (workloads.STEADY.rates, workloads.STEADY.selectivities),
    "falling": ((1.0, 100.0), (0.001, 0.1)),
    "tiny": ((1.0, 100.0), (0.0001, 0.001)),
    "level": ((10.0, 10.0), (0.1, 0.1)),
}
"""Spans of rates and of selectivities."""

NETWORKS: dict[str, tuple[float, Callable[[int], Network]]] = {
    "transit-stub 128": (2, topologies.paper_network),
    "transit-stub 1,024": (10, lambda seed: topologies.transit_stub_of(1024, seed)),
    "transit-stub 10,000": (10, lambda seed: topologies.transit_stub_of(10_000, seed)),
    "transit-stub 100,000": (10, lambda seed: topologies.transit_stub_of(100_000, seed)),
    "random tree 100,000": (300, lambda seed: topologies.random_tree(100_000, seed)),
    "multi-homed 100,000": (300, lambda seed: topologies.multi_homed(100_000, seed)),
    "grid 100,172": (300, lambda seed: topologies.grid(316, 317, seed)),
    "grid 100,172, equal costs": (300, lambda seed: topologies.grid(316, 317, seed, (1.0, 1.0))),
    "random geometric 100,000": (300, lambda seed: topologies.random_geometric(100_000, seed)),
}
"""The bar in milliseconds, and how to make one."""


@dataclass(frozen=True, slots=True)
class Row:
    network: str
    rates: str
    median_ms: float
    worst_ms: float
    bar_ms: float
    prepare_ms: float
    queries: int


def queries_on(network: Network, seed: int, count: int, model: str) -> PlacementProblem:
    rng = np.random.default_rng([seed, list(MODELS).index(model)])
    rates, selectivities = MODELS[model]
    streams: dict[str, BaseStream] = {}
    pairs: dict[frozenset[str], float] = {}
    queries = []
    for q in range(count):
        names = [f"q{q}s{i}" for i in range(STREAMS)]
        for i, name in enumerate(names):
            streams[name] = BaseStream(name, int(rng.integers(network.size)), float(rng.uniform(*rates)))
            pairs |= {frozenset({name, b}): float(rng.uniform(*selectivities)) for b in names[:i]}
        queries.append(Query(f"q{q}", tuple(names), int(rng.integers(network.size))))
    return PlacementProblem(network, streams, pairs, tuple(queries))


def measured(name: str, seeds: int, count: int) -> Iterator[Row]:
    bar, make = NETWORKS[name]
    times: dict[str, list[float]] = {model: [] for model in MODELS}
    preparing = []
    for seed in range(seeds):
        network = make(seed)
        started = time.process_time()
        prepared = prepare(network)
        Exact(queries_on(network, seed, 1, "tiny"), prepared, Options())
        preparing.append(time.process_time() - started)
        for model in MODELS:
            problem = queries_on(network, seed, count, model)
            planner, nothing = Exact(problem, prepared, Options()), Deployed(problem, prepared.distance)
            for query in problem.queries:
                started = time.process_time()
                planner.place(query, nothing)
                times[model].append(time.process_time() - started)
    for model, seconds in times.items():
        middle, worst = 1e3 * statistics.median(seconds), 1e3 * max(seconds)
        ready = 1e3 * statistics.median(preparing)
        yield Row(name, model, round(middle, 2), round(worst, 2), bar, round(ready, 1), len(seconds))


def one_by_one(sites: int, count: int) -> dict[str, float]:
    """All queries of the synthetic workload, in order, each deployed before the next is planned."""
    network = topologies.transit_stub_of(sites, 0)
    problem = workloads.synthetic(network, np.random.default_rng(0), queries=count)
    prepared = prepare(network)
    started = time.process_time()
    planner, deployed = Exact(problem, prepared, Options()), Deployed(problem, prepared.distance)
    reused = 0
    for query in problem.queries:
        placed = planner.place(query, deployed)
        deployed.add(query, placed.tree)
        reused += bool(placed.reused)
    seconds = time.process_time() - started
    return {"sites": sites, "queries": count, "that reuse": reused, "seconds": round(seconds, 2), "bar": 30.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="networks of each kind")
    parser.add_argument("--queries", type=int, default=6, help="of each model of rates on each network")
    parser.add_argument("--quick", action="store_true", help="one seed, two queries")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seeds, count = (1, 2) if options.quick else (options.seeds, options.queries)
    machine = describe(datetime.now(), os.environ)
    print("\n".join(machine.lines()))
    started = time.process_time()
    warm()
    print(f"kernels compiled or loaded in {time.process_time() - started:.1f} s\n")
    print(f"{'network':28}{'rates':10}{'median ms':>10}{'worst ms':>10}{'bar ms':>8}{'prepare ms':>12}")
    rows = []
    for name in NETWORKS:
        for row in measured(name, seeds, count):
            rows.append(row)
            print(
                f"{row.network:28}{row.rates:10}{row.median_ms:10.2f}{row.worst_ms:10.2f}{row.bar_ms:8.0f}"
                f"{row.prepare_ms:12.1f}",
                flush=True,
            )
    added = one_by_one(1024, 1000)
    print("\n" + ", ".join(f"{name} {value:g}" for name, value in added.items()))
    if options.json:
        found = {"machine": asdict(machine), "rows": [asdict(row) for row in rows], "one by one": added}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
