"""Exact edge rates against the oracles: `python -m tests.edges_check [--sets N] [--seed 0]`.

Random sets against a bit set over the composite slide, and sets whose composite slide is beyond 10^30
against inclusion-exclusion. Prints whatever differs, exits 1 if anything does. With `--figures` it prints
the times, widths and gaps of docs/design/2026-11-16-edge-rates.md instead.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median

from headrace.planners.sharing.brute_force import (
    bitset_edge_rate,
    composite_slide,
    inclusion_exclusion,
    optimum,
)
from headrace.planners.sharing.edges import EdgeCounter, Window
from headrace.planners.sharing.lower_bound import lower_bounds
from headrace.planners.sharing.operations import final_operations
from headrace.planners.sharing.problem import CostModel, SharingProblem, WindowQuery

_LARGEST_SLIDE = 60
_LARGEST_COMPOSITE = 2_000_000
_MUCH_DIVIDED = (720_720, 1_441_440, 1_627_920, 151_200, 30_030, 510_510, 1_995_840, 41_580)
_LARGE = 10**30


def small_sets(count: int, seed: int) -> Iterator[list[Window]]:
    """Sets of windows with slides up to 60, half of them with ranges that no slide divides.

    Large sets of any slides have too long a composite slide, so half of the sets take divisors of one number.
    """
    rng = random.Random(seed)
    while count:
        whole = rng.choice(_MUCH_DIVIDED) if rng.random() < 0.5 else 0
        pool = [s for s in range(1, _LARGEST_SLIDE + 1) if whole % s == 0]
        slides = [rng.choice(pool) for _ in range(rng.randint(1, 12 if whole else 8))]
        windows = [_window(rng, slide) for slide in slides]
        if composite_slide(windows) <= _LARGEST_COMPOSITE:
            count -= 1
            yield windows


def large_sets(count: int, seed: int) -> Iterator[list[Window]]:
    """Up to 12 edge classes with slides that often share factors, and a composite slide beyond 10^30."""
    rng = random.Random(seed)
    while count:
        closing = rng.random() < 0.5
        factors = rng.choice(((1,), (1, 2, 3, 4, 6), (2, 6, 10, 12)))
        slides = [rng.choice(factors) * rng.randint(500, 50_000) for _ in range(6 if closing else 12)]
        windows = [(rng.randint(1, 9 * s) if closing else s * rng.randint(1, 9), s) for s in slides]
        if composite_slide(windows) > _LARGE:
            count -= 1
            yield windows


def _window(rng: random.Random, slide: int) -> Window:
    if rng.random() < 0.5:
        return slide * rng.randint(1, 10), slide
    return rng.randint(1, 10 * slide), slide


def differing(sets: int, large: int, seed: int, say: Callable[[str], None]) -> int:
    """How many sets come out different from their oracle."""
    began, wrong, done = time.monotonic(), 0, 0
    checks = ((small_sets(sets, seed), bitset_edge_rate), (large_sets(large, seed), inclusion_exclusion))
    for drawn, oracle in checks:
        for windows in drawn:
            found, expected = EdgeCounter().rate(windows), oracle(windows)
            if not (found.low == found.high == expected):
                wrong += 1
                say(f"differs: {windows}: {found}, {oracle.__name__} says {expected}")
            done += 1
            if done % 2_000 == 0:
                say(f"{done} of {sets + large} sets, {time.monotonic() - began:.0f} s")
    say(f"{sets} sets against the bit set, {large} against inclusion-exclusion: {wrong} differ")
    return wrong


_Draw = Callable[[random.Random], list[Window]]


def _sampled(count: int, slides: Sequence[int], *, whole: bool = False) -> _Draw:
    def drawn(rng: random.Random) -> list[Window]:
        chosen = rng.sample(slides, count)
        return [(s * rng.randint(1, 9) if whole else rng.randint(1, 9 * s), s) for s in chosen]

    return drawn


def _primes(n: int) -> list[int]:
    return [p for p in range(2, n) if all(p % d for d in range(2, int(p**0.5) + 1))]


FIGURES: tuple[tuple[str, int, _Draw, int], ...] = (
    ("10 slides below 5000", 200, _sampled(10, range(2, 5_000)), 100_000),
    ("20 slides below 5000", 50, _sampled(20, range(2, 5_000)), 100_000),
    ("50 primes below 5000", 50, _sampled(50, _primes(5_000)), 100_000),
    ("all slides 2..50", 50, _sampled(49, range(2, 51)), 100_000),
    ("all slides 12..50", 50, _sampled(39, range(12, 51)), 100_000),
    ("50 slides 100..5000", 5, _sampled(50, range(100, 5_000)), 100_000),
    ("100 slides 100..5000", 2, _sampled(100, range(100, 5_000)), 100_000),
    ("500 slides 100..5000, offsets 0", 2, _sampled(500, range(100, 5_000), whole=True), 100_000),
    ("100 slides 100..5000, budget 3000", 2, _sampled(100, range(100, 5_000)), 3_000),
    ("500 slides 100..5000, budget 3000", 1, _sampled(500, range(100, 5_000)), 3_000),
)


def figures(seed: int, say: Callable[[str], None]) -> None:
    """Milliseconds of a cold count (mean, worst), the widest interval, and the bounds' gaps and times."""
    for name, times, draw, budget in FIGURES:
        rng, spent, widths = random.Random(seed), [], []
        for _ in range(times):
            windows, began = draw(rng), time.perf_counter()
            rate = EdgeCounter(budget=budget).rate(windows)
            spent.append(1e3 * (time.perf_counter() - began))
            widths.append(float(rate.high - rate.low))
        say(f"{name}: mean {mean(spent):.2f} ms, worst {max(spent):.2f} ms, widest {max(widths):.2g}")
    _operation_figures(seed, say)
    for cost in ("paper", "true"):
        _bound_figures(seed, "true" if cost == "true" else "paper", say)


def _operation_figures(seed: int, say: Callable[[str], None]) -> None:
    rng, spent = random.Random(seed), []
    for _ in range(20):
        windows, began = _sampled(10, range(2, 5_000))(rng), time.perf_counter()
        final_operations(windows)
        spent.append(1e3 * (time.perf_counter() - began))
    say(f"final operations, 10 slides below 5000: mean {mean(spent):.1f} ms, worst {max(spent):.1f} ms")


def small_problem(rng: random.Random, cost: CostModel) -> SharingProblem:
    """4 to 8 queries with slides up to 30, 2 or 3 equal nodes, a rate of 1 to 100."""
    windows = [_window(rng, rng.randint(1, 30)) for _ in range(rng.randint(4, 8))]
    queries = tuple(WindowQuery(f"q{i}", r, s) for i, (r, s) in enumerate(windows))
    return SharingProblem(rng.uniform(1, 100), (1.0,) * rng.randint(2, 3), queries, cost)


def _bound_figures(seed: int, cost: CostModel, say: Callable[[str], None]) -> None:
    rng, totals, loads = random.Random(seed), [], []
    for _ in range(200):
        problem = small_problem(rng, cost)
        best, bound = optimum(problem), lower_bounds(problem)
        totals.append(1 - bound.total / best.total)
        loads.append(1 - bound.max_load / best.max_load)
    say(f"lower bounds, {cost}, 200 small problems: total {mean(totals):.2%} below the optimum on average, "
        f"worst {max(totals):.1%}; max load {mean(loads):.2%}, worst {max(loads):.1%}")  # fmt: skip
    for classes, slides in ((25, range(1, 26)), (50, range(1, 51)), (500, range(2, 5_000))):
        queries = tuple(WindowQuery(str(s), s * rng.randint(1, 10), s) for s in rng.sample(slides, classes))
        problem, spent = SharingProblem(100.0, (1.0,) * 8, queries, cost), []
        for _ in range(15):
            began = time.perf_counter()
            lower_bounds(problem)
            spent.append(1e3 * (time.perf_counter() - began))
        middle, least = median(spent), min(spent)
        say(f"lower bounds, {cost}, {classes} classes: median {middle:.1f} ms, best {least:.1f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", action="store_true")
    asked = parser.parse_args()

    def say(line: str) -> None:
        print(line, flush=True)

    if asked.figures:
        figures(asked.seed, say)
        return 0
    return 1 if differing(asked.sets, asked.large, asked.seed, say) else 0


if __name__ == "__main__":
    sys.exit(main())
