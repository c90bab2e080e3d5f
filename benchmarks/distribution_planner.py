"""How well and how fast operators are put on sites, and what watching them takes. No engine.

    python -m benchmarks.distribution_planner [--seeds 5] [--quick] [--json FILE] [--only redistribution]

patterns        the paper's plans of 5, 20, 40, 80 operators on 1 to 5 sites, and fleets of its plans:
                connections and highest load by round robin, grouping and ours; medians over seeds
redistribution  from round robin, grouping, everything at one site and a table at random, with the sites so
                large that our own placement fills the fullest to 75 or to 95 %: how much of its throughput
                each policy brings back (a pipeline is as fast as its slowest site), in how many rounds and
                moves. Worst and median over 2 to 5 sites and all seeds; a round is a minute
rounds          how long a policy thinks about 100 and 400 operators, and how long it takes to put elsewhere
                what was at 3 of 50 sites that are lost, with limits of memory and connections
statistics      samples merged a second, in one thread, and the memory of 1,000 things that are watched

Times are processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random

from benchmarks.machine import describe
from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.patterns import grouping, round_robin
from headrace.planners.distribution.plans import SHAPES, fleet, paper_plan
from headrace.planners.distribution.problem import Problem, Table
from headrace.planners.distribution.redistribute import redistribute
from headrace.planners.distribution.rules import History, Rules
from headrace.planners.distribution.usage import usage
from headrace.stats.beliefs import Beliefs
from headrace.stats.samples import Sample

PATTERNS: dict[str, Callable[[Problem], dict[str, str]]] = {
    "round robin": round_robin,
    "grouping": grouping,
    "ours": balanced,
}
FLEETS = ((20, 5, 5), (10, 20, 5), (25, 40, 20))
"""Queries, operators of each, sites."""
FILLED: dict[float, float] = {0.75: 0.8, 0.95: 0.95}
"""How full our own placement makes the fullest site -> from when on a site is full for `pays`. At the first
there is some room, as its rules want it; at the second it just keeps up."""
POLICIES = ("pays", "balance", "degradation")
MOST_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class PatternRow:
    operators: int
    sites: int
    pattern: str
    connections: float
    busiest: float
    max_load: float
    """Relative to all work spread evenly."""
    ms: float


@dataclass(frozen=True, slots=True)
class PolicyRow:
    operators: int
    start: str
    filled: float
    policy: str
    cases: int
    before: float
    """Throughput, of that of our own placement, as all that follow; of the worst case."""
    least: float
    after: float
    """The median."""
    sunk: int
    """Cases that ended below where they began."""
    rounds: float
    moves: float
    most_moves: int


@dataclass(frozen=True, slots=True)
class Recovered:
    before: float
    after: float
    rounds: int
    moves: int


def patterns(seeds: int, *, quick: bool) -> Iterator[PatternRow]:
    for operators in SHAPES:
        for sites in range(1, 6):
            plans = [paper_plan(operators, sites, Random(seed)) for seed in range(seeds)]
            yield from _pattern_rows(plans)
    for queries, operators, sites in FLEETS[: 1 if quick else None]:
        yield from _pattern_rows([fleet(queries, operators, sites, Random(0))])


def _pattern_rows(plans: list[Problem]) -> Iterator[PatternRow]:
    for name, pattern in PATTERNS.items():
        found, times = [], []
        for problem in plans:
            started = time.process_time()
            table = pattern(problem)
            times.append(1e3 * (time.process_time() - started))
            even = sum(one.cpu for one in problem.operators) / len(problem.sites)
            used = usage(problem, table)
            found.append((used.connections.total, used.max_connections, used.max_load / even))
        total, busiest, load = (statistics.median(figures) for figures in zip(*found, strict=True))
        size, sites = len(plans[0].operators), len(plans[0].sites)
        yield PatternRow(
            size, sites, name, total, busiest, round(load, 3), round(statistics.median(times), 1)
        )


def sized(problem: Problem, filled: float = 0.75) -> Problem:
    """Sites as large as our own placement needs. A connection takes a hundredth of a core."""
    priced = replace(problem, connection_cpu=0.01, row_cpu=1e-5)
    cpu = usage(priced, balanced(priced)).max_load / filled
    return replace(priced, sites=tuple(replace(site, cpu=cpu) for site in priced.sites))


def throughput(problem: Problem, table: Table) -> float:
    return min(1.0, 1 / usage(problem, table).max_load)


def starts(problem: Problem, seed: int) -> dict[str, Table]:
    rng = Random(seed)
    return {
        "round robin": round_robin(problem),
        "grouping": grouping(problem),
        "all at one site": dict.fromkeys(problem.operator, "s1"),
        "random": {name: rng.choice(problem.sites).id for name in problem.operator},
    }


def rebalanced(problem: Problem, table: Table, policy: str, filled: float) -> tuple[Table, int, int]:
    """Rounds of a minute until nothing moves: the table, the rounds, the moves."""
    even = {site.id: filled for site in problem.sites}
    rules, history, moves = Rules(full=FILLED[filled]), History(baseline=even), 0
    for number in range(MOST_ROUNDS):
        now = replace(problem, table=table)
        decision = redistribute(now, policy, MODELS["cpu"], rules, history, 60.0 * number)
        if not decision.moves:
            return table, number, moves
        table, history, moves = decision.table, decision.history, moves + len(decision.moves)
    return table, MOST_ROUNDS, moves


def redistribution(seeds: int) -> Iterator[PolicyRow]:
    for operators in SHAPES:
        for filled in FILLED:
            found: dict[tuple[str, str], list[Recovered]] = {}
            for sites in range(2, 6):
                # The plan of five operators is a chain, the same for every seed.
                for seed in range(1 if operators == 5 else seeds):
                    problem = sized(paper_plan(operators, sites, Random(seed)), filled)
                    for key, one in _recovered(problem, seed, filled):
                        found.setdefault(key, []).append(one)
            for (start, policy), cases in found.items():
                yield _policy_row(operators, start, filled, policy, cases)


def _recovered(problem: Problem, seed: int, filled: float) -> Iterator[tuple[tuple[str, str], Recovered]]:
    good = throughput(problem, balanced(problem))
    for start, table in starts(problem, seed).items():
        before = throughput(problem, table) / good
        for policy in POLICIES:
            after, rounds, moves = rebalanced(problem, table, policy, filled)
            yield (start, policy), Recovered(before, throughput(problem, after) / good, rounds, moves)


def _policy_row(operators: int, start: str, filled: float, policy: str, cases: list[Recovered]) -> PolicyRow:
    return PolicyRow(
        operators,
        start,
        filled,
        policy,
        len(cases),
        round(min(one.before for one in cases), 3),
        round(min(one.after for one in cases), 3),
        round(statistics.median(one.after for one in cases), 3),
        sum(one.after < one.before - 1e-9 for one in cases),
        statistics.median(one.rounds for one in cases),
        statistics.median(one.moves for one in cases),
        max(one.moves for one in cases),
    )


def rounds() -> dict[str, float]:
    """Milliseconds of one round that finds nothing to move, and of one that moves."""
    found = {}
    for queries, operators in ((20, 5), (10, 40)):
        problem = sized(fleet(queries, operators, 5, Random(0)))
        for name, table in (("at rest", balanced(problem)), ("uneven", round_robin(problem))):
            started = time.process_time()
            redistribute(replace(problem, table=table), "pays", MODELS["cpu"])
            took = 1e3 * (time.process_time() - started)
            found[f"{queries * operators} operators, {name}, ms"] = round(took, 1)
    for name, more in (("room", 1.3), ("no room", 1.0)):
        problem = _lossy(more)
        started = time.process_time()
        redistribute(problem, "pays", MODELS["cpu"])
        took = 1e3 * (time.process_time() - started)
        found[f"{len(problem.operators)} operators, 3 of 50 sites lost, {name}, ms"] = round(took, 1)
    return found


def _lossy(more: float, lost: int = 3) -> Problem:
    """500 operators scattered over 50 sites, each with memory for `more` of the even share, and connections
    for as many as the busiest one has."""
    rng = Random(0)
    plain = sized(fleet(25, 20, 50, rng))
    held = tuple(replace(one, state_bytes=rng.uniform(1e6, 5e7)) for one in plain.operators)
    table = round_robin(plain)
    memory = more * sum(one.state_bytes for one in held) / (len(plain.sites) - lost)
    busiest = usage(plain, table).max_connections
    sites = tuple(
        replace(site, memory=memory, connections=busiest, alive=i >= lost)
        for i, site in enumerate(plain.sites)
    )
    return replace(plain, operators=held, sites=sites, table=table)


def watching(count: int = 1_000, rounds: int = 50) -> dict[str, float]:
    """Every second a sample of each of `count` things, with all that Spark's progress tells."""
    tracemalloc.start()
    beliefs = Beliefs()
    for number in range(2):
        beliefs.take_all(_samples(count, float(number)))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    batches = [_samples(count, float(number)) for number in range(2, 2 + rounds)]
    started = time.process_time()
    for batch in batches:
        beliefs.take_all(batch)
    seconds = time.process_time() - started
    made = time.process_time()
    _samples(count, 0.0)
    making = time.process_time() - made
    merged = count * rounds / seconds
    return {
        "samples merged a second": round(merged),
        "share of a core at 1,000 a second, samples made too": round(1_000 / merged + making, 4),
        "bytes for a thing": round(size / count),
    }


def _samples(count: int, at: float) -> list[Sample]:
    gauges = {"batch_seconds": 0.4, "state_rows": 1e4, "state_bytes": 1e6, "lag_seconds": 3.0}
    totals = {"rows_in": 1e3 * at, "rows_out": 1e2 * at, "batches": at}
    return [Sample(f"job{i}", at, gauges, totals) for i in range(count)]


def _printed_policies(seeds: int) -> list[PolicyRow]:
    rules = Rules()
    print(
        f"\nA move stands still for {rules.pause:g} s and must gain {rules.margin:g} times what that holds "
        f"up within {rules.horizon:g} s.\n\n"
        f"{'operators':>9}  {'from':18}{'filled':>6}  {'policy':12}{'cases':>6}{'before':>8}"
        f"{'least':>8}{'median':>8}{'sunk':>6}{'rounds':>8}{'moves':>7}{'most':>6}"
    )
    found = []
    for one in redistribution(seeds):
        found.append(one)
        print(
            f"{one.operators:9}  {one.start:18}{one.filled:6.0%}  {one.policy:12}{one.cases:6}"
            f"{one.before:8.1%}{one.least:8.1%}{one.after:8.1%}{one.sunk:6}{one.rounds:8g}{one.moves:7g}{one.most_moves:6}",
            flush=True,
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="plans of each kind")
    parser.add_argument("--only", choices=("redistribution",), help="leave the rest out")
    parser.add_argument("--quick", action="store_true", help="one seed, one fleet")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seeds = 1 if options.quick else options.seeds
    machine = describe(datetime.now(), os.environ)
    print("\n".join(machine.lines()))
    if options.only:
        _printed_policies(seeds)
        return
    print(
        f"\n{'operators':>9}{'sites':>6}  {'pattern':14}{'connections':>12}{'busiest':>9}{'load':>8}{'ms':>9}"
    )
    found = []
    for row in patterns(seeds, quick=options.quick):
        found.append(row)
        print(
            f"{row.operators:9}{row.sites:6}  {row.pattern:14}{row.connections:12g}{row.busiest:9g}"
            f"{row.max_load:8.3f}{row.ms:9.1f}",
            flush=True,
        )
    policies = _printed_policies(seeds)
    measured = {**rounds(), **watching()}
    print("\n" + "\n".join(f"{name}: {value:,}" for name, value in measured.items()))
    if options.json:
        data = {
            "machine": asdict(machine),
            "patterns": [asdict(row) for row in found],
            "redistribution": [asdict(row) for row in policies],
            "other": measured,
        }
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
