"""Running plans: how long a change takes, how good they stay, when re-weaving pays; what families gain.

    python -m benchmarks.weaving_online [online] [turnover] [drift] [families]

Times are processor seconds of this process, after the kernels are loaded; the machine may be shared.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe
from headrace.planners.sharing.drift import decide
from headrace.planners.sharing.edges import edge_rate
from headrace.planners.sharing.families import Family, FamilyProblem, cheapest, shape_of, solve_families
from headrace.planners.sharing.growing import Classes
from headrace.planners.sharing.online import Change, Costs, MovePrice, RunningPlan
from headrace.planners.sharing.problem import Options, SharingProblem, WindowQuery
from headrace.planners.sharing.solve import plan_fast, warm

CHANGES = 200
DEAR = MovePrice(per_query=1e12)
"""No query is ever moved for a gain."""


@dataclass(frozen=True, slots=True)
class Setting:
    queries: int
    slides: int
    longest: int
    nodes: int
    rate: float
    multiples: bool
    """Whether ranges are multiples of slides."""

    def __str__(self) -> str:
        ranges = "" if self.multiples else ", any range"
        slides = f"{self.slides} slides up to {self.longest:,}"
        return f"{self.queries:,} queries, {slides}, {self.nodes} nodes{ranges}"


SETTINGS = (
    Setting(10_000, 500, 1000, 32, 100.0, True),
    Setting(10_000, 500, 5000, 32, 100.0, True),
    Setting(500, 50, 50, 8, 100.0, True),
    Setting(500, 50, 50, 8, 100.0, False),
)


class Maker:
    """Random queries: slides drawn evenly, overlaps from 1 to 100."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        self.rng = np.random.default_rng(seed)
        every = np.arange(1, setting.longest + 1)
        self.slides = self.rng.choice(every, size=setting.slides, replace=False).tolist()
        self.made = 0

    def query(self, slide: int | None = None) -> WindowQuery:
        self.made += 1
        slide = slide or int(self.slides[self.rng.integers(len(self.slides))])
        top = slide * 100
        length = int(self.rng.integers(1, top))
        return WindowQuery(
            f"q{self.made}", length // slide * slide + slide if self.setting.multiples else length, slide
        )

    def new_slide(self) -> WindowQuery:
        return self.query(int(self.rng.integers(self.setting.longest + 1, 4 * self.setting.longest)))

    def problem(self) -> SharingProblem:
        queries = tuple(self.query() for _ in range(self.setting.queries))
        return SharingProblem(self.setting.rate, (1.0,) * self.setting.nodes, queries)


def fresh(problem: SharingProblem) -> tuple[RunningPlan, float, float]:
    found = plan_fast(problem, "headrace", Options(balance=1.0), clock=time.perf_counter)
    return RunningPlan(problem, found.assignment, price=DEAR), found.total, found.max_load


def timed(actions: Sequence[Callable[[], Change]]) -> tuple[list[float], Change]:
    """Milliseconds of each, and the last change."""
    spent = []
    for action in actions:
        started = time.process_time()
        change = action()
        spent.append(1e3 * (time.process_time() - started))
    return spent, change


def commands(plan: RunningPlan, maker: Maker) -> Iterator[tuple[str, list[Callable[[], Change]]]]:
    known, new = ([make() for _ in range(CHANGES)] for make in (maker.query, maker.new_slide))
    yield "add, known slide", [lambda q=q: plan.add(q) for q in known]  # type: ignore[misc]
    yield "add, new slide", [lambda q=q: plan.add(q) for q in new]  # type: ignore[misc]
    names = maker.rng.choice(sorted(plan.queries), size=2 * CHANGES, replace=False).tolist()
    yield "remove", [lambda n=n: plan.remove(n) for n in names]  # type: ignore[misc]
    yield "remove a node", [lambda: plan.remove_node(1)]
    plan.price = MovePrice()
    yield "add a node, moves free", [lambda: plan.add_node(1.0)]
    plan.price = DEAR


def online(console: Console) -> None:
    for setting in SETTINGS:
        maker = Maker(setting, 1)
        plan, _, _ = fresh(maker.problem())
        table = Table("command", "times", "median ms", "95 % ms", "most ms", "moved", title=str(setting))
        notes = []
        for name, actions in commands(plan, maker):
            spent, last = timed(actions)
            figures = (np.median(spent), np.quantile(spent, 0.95), max(spent))
            table.add_row(name, str(len(spent)), *(f"{f:.2f}" for f in figures), str(last.moved))
            if name == "remove":
                notes = _quality(plan.fork())
        console.print(table, *notes, "", sep="\n")


def _quality(plan: RunningPlan) -> list[str]:
    """Against a fresh plan: as it is after the adds and removes, and rebalanced."""
    _, total, load = fresh(plan.problem())
    before = plan.costs()
    spent, change = timed([lambda: plan.rebalance(MovePrice())])
    how = f"then rebalanced, moves free ({spent[0] / 1e3:.2f} s, {change.moved} moved)"
    grove, reads = plan.grove, []
    for tree in grove.alive():
        started = time.perf_counter()
        grove.classes.rates.of(grove.rows[tree])
        reads.append(1e6 * (time.perf_counter() - started))
    started = time.process_time()
    Classes(grove.classes.index)
    layout = 1e3 * (time.process_time() - started)
    return [
        f"reading a tree's rate: median {np.median(reads):.0f} us, most {max(reads):.0f} us; "
        f"laying out the rows of {len(grove.classes.index)} classes: {layout:.1f} ms",
        f"after the adds and removes, against a fresh plan: {_against(before, total, load)}",
        f"{how}: {_against(change.after, total, load)}",
    ]


def _against(costs: Costs, total: float, load: float) -> str:
    return f"total x {costs.total / total:.3f}, maximum x {costs.max_load / load:.3f}"


def turnover(console: Console) -> None:
    """150 queries, 200 random adds and removes: more than the whole set."""
    setting = Setting(150, 39, 39, 4, 50.0, False)
    rows = []
    for seed in range(10):
        maker = Maker(setting, seed)
        plan, _, _ = fresh(maker.problem())
        for _ in range(CHANGES):
            if maker.rng.random() < 0.5:
                plan.add(maker.query())
            else:
                plan.remove(str(maker.rng.choice(sorted(plan.queries))))
        _, total, load = fresh(plan.problem())
        before, after = plan.costs(), plan.rebalance(MovePrice()).after
        rows.append(
            [before.total / total, before.max_load / load, after.total / total, after.max_load / load]
        )
    table = Table("after 200 changes", "total", "worst", "maximum", "worst", title=f"{setting}, 10 runs")
    mean, most = np.mean(rows, axis=0), np.max(rows, axis=0)
    for name, k in (("nothing moved", 0), ("then rebalanced, moves free", 2)):
        table.add_row(name, *(f"x {v:.3f}" for v in (mean[k], most[k], mean[k + 1], most[k + 1])))
    console.print(table)


def drift(console: Console) -> None:
    """A plan for rate 100; the rate changes; a moved query costs so many rows to be read again."""
    setting = Setting(500, 50, 50, 8, 100.0, True)
    plan, _, _ = fresh(Maker(setting, 2).problem())
    heads = ("rate", "price", "chosen", "keep", "chosen", "moved", "breaks even after")
    table = Table(*heads, title=f"{setting}, horizon 3600")
    for rate in (10.0, 50.0, 200.0, 1000.0):
        for price in (0.0, 1e3, 1e4, 1e5):
            decision = decide(plan, rate, MovePrice(price, 3600.0), clock=time.perf_counter)
            chosen, keep = decision.chosen, decision.choices[0]
            after = decision.break_even(chosen)
            worths = (f"{costs.worth:,.0f}" for costs in (keep.costs, chosen.costs))
            when = "-" if after is None or not chosen.moved else f"{after:,.0f}"
            table.add_row(f"{rate:g}", f"{price:g}", chosen.name, *worths, str(chosen.moved), when)
    console.print(table)


def _partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for blocks in _partitions(items[1:]):
        yield [[items[0]], *blocks]
        for i in range(len(blocks)):
            yield [*blocks[:i], [items[0], *blocks[i]], *blocks[i + 1 :]]


def family_problem(seed: int, count: int, filters: int, rate: float) -> FamilyProblem:
    rng = np.random.default_rng([seed, 4])
    names = [f"f{i}" for i in range(filters)]
    columns = {"user": 1000, "shop": 20, "kind": 4}
    keys = [(), ("shop",), ("kind",), ("shop", "kind"), ("user",)]
    queries, families = [], []
    for i in range(count):
        slide = int(rng.choice([2, 3, 4, 5, 6, 8, 10, 12, 15, 20]))
        queries.append(WindowQuery(f"q{i}", slide * int(rng.integers(1, 20)), slide))
        name = str(rng.choice(["", *names]))
        families.append(Family(name, frozenset(keys[rng.integers(len(keys))])))
    share = {name: float(rng.uniform(0.05, 0.9)) for name in names}
    return FamilyProblem(rate, (1.0,) * 4, tuple(queries), tuple(families), share, {}, columns)


def _gap(seed: int) -> float:
    """How far above the best of all set partitions."""
    problem = family_problem(seed, 7, 2, [10.0, 100.0, 1000.0, 10_000.0][seed % 4])
    cost: dict[tuple[int, ...], float] = {}
    for size in range(1, 8):
        for block in combinations(range(7), size):
            rate = edge_rate({(problem.queries[i].range, problem.queries[i].slide) for i in block})
            cost[block] = cheapest(problem, shape_of(problem, block), float(rate.high)).cost
    best = min(sum(cost[tuple(sorted(b))] for b in blocks) for blocks in _partitions(range(7)))
    return solve_families(problem, clock=time.perf_counter).plan.total_cost / best - 1


def families(console: Console) -> None:
    gaps = np.array([_gap(seed) for seed in range(100)])
    console.print(
        f"families, 100 problems of 7 queries against all partitions: {np.mean(gaps < 1e-9):.0%} optimal, "
        f"mean {gaps.mean():.2%} and at most {gaps.max():.2%} above"
    )
    heads = ("queries", "filters", "rate", "trees", "combined", "no sharing", "saved", "seconds")
    table = Table(*heads, title="families, 4 nodes")
    for count, filters, rate in ((100, 3, 100.0), (100, 3, 10_000.0), (300, 5, 1000.0), (1000, 8, 1000.0)):
        problem = family_problem(1, count, filters, rate)
        started = time.process_time()
        solved = solve_families(problem, clock=time.perf_counter)
        spent = time.process_time() - started
        forms = [form.form for node in solved.forms for form in node]
        alone = solved.plan.unshared_cost
        saved = f"{1 - solved.plan.total_cost / alone:.1%}"
        cells = (count, filters, f"{rate:g}", len(forms), forms.count("combined"), f"{alone:,.0f}", saved)
        table.add_row(*(str(cell) for cell in cells), f"{spent:.2f}")
    console.print(table)


PARTS = {"online": online, "turnover": turnover, "drift": drift, "families": families}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    chosen = parser.parse_args(arguments).parts or list(PARTS)
    console = Console(width=120)
    for line in describe(datetime.now().astimezone(), os.environ).lines():
        console.print(line)
    console.print(f"kernels: {warm(time.perf_counter):.2f} s to compile or load, not counted below\n")
    for name in chosen:
        PARTS[name](console)


if __name__ == "__main__":
    main()
