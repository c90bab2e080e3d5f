"""Run everything: the optimiser, then for every rate and query the splits that are asked for.

Rates rise, and a split that was far behind at one is not run at a higher one; what the planner chooses always
is. Splits of one query at one rate run one after the other on the same engine. What is done is kept on the
way.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from headrace.experiments.federation.cases import ALL, CHOSEN, LOW_RATES, QUERIES, SPARK, Setting
from headrace.experiments.federation.results import AnyRow, Choice, Results, Run
from headrace.experiments.federation.searches import all_searches
from headrace.service.throughput import Bench, Place
from headrace.service.throughput_choice import Believed, Planned, Prices, named_splits, same_runs
from headrace.service.throughput_costs import prices_named
from headrace.service.throughput_run import Answer
from headrace.service.throughput_stream import Load

Clock = Callable[[], float]
OnProgress = Callable[[int, int], None]
FAR_BEHIND = 1.5
"""A split whose batches take so many times as long as they may is not run."""
BELIEVED_FAR = 4.0
"""Nor one that the planner believes to need so many times the machine: it may be wrong by half of that."""
_LINE = 2
"""Points that a line goes through."""
SO_FAR = "results-so-far.json"
WORK = ".headrace-federation"
"""What runs leave is removed in the end: no name that somebody else might use."""


def run_all(setting: Setting, out: Path, clock: Clock, on_progress: OnProgress) -> tuple[AnyRow, ...]:
    total = len(setting.rates) * len(setting.queries) + 1
    done = 0
    on_progress(done, total)
    rows: list[AnyRow] = list(all_searches(setting, clock))
    work = out / WORK
    try:
        with Bench(Place(work, setting.cores, setting.memory, setting.limit)) as bench:
            cells = _Cells(setting, bench, prices_named(setting.costs, work, setting.cores))
            for rate in setting.rates:
                load = Load(rate, measured=setting.measured)
                for query in setting.queries:
                    rows += cells.cell(query, load)
                    done += 1
                    on_progress(done, total)
                    made = {"command": f"{setting.command} (not all of it)"}
                    (out / SO_FAR).write_text(Results(tuple(rows), made).to_json(), encoding="utf-8")
                bench.forget(load)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    on_progress(total, total)
    return tuple(rows)


@dataclass
class _Cells:
    setting: Setting
    bench: Bench
    prices: Prices
    _done: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    """The rates that a split was run at, and the seconds of its batches; infinite: it had no full windows."""

    def cell(self, query: str, load: Load) -> list[AnyRow]:
        """One query at one rate."""
        planned = Planned(load, query, QUERIES[query], self.prices, self.setting.cores)
        same = same_runs(planned.plan)
        choices = _choices(planned, query, load.rate, same)
        always = {one.runs_as for one in choices} if CHOSEN in self.setting.splits else set()
        wanted = self._wanted(query, load, planned, same, always)
        rows: list[AnyRow] = [*choices, *self._measured(planned, query, load, wanted)]
        if load.rate == self.setting.rates[0]:
            rows += self._lower(query, load)
        return rows

    def _lower(self, query: str, load: Load) -> list[AnyRow]:
        """Spark alone at lower rates, where it did not keep up with this one: its highest throughput is what
        others are compared with."""
        rows: list[AnyRow] = []
        for rate in LOW_RATES if SPARK in self.setting.splits else ():
            less = replace(load, rate=rate)
            planned = Planned(less, query, QUERIES[query], self.prices, self.setting.cores)
            spark = named_splits(planned.plan)[SPARK]
            first = self._done.get((query, spark), [(load.rate, float("inf"))])[0][1]
            if rate >= load.rate or first <= load.batch:
                continue
            rows += _choices(planned, query, rate, same_runs(planned.plan))
            rows += self._measured(planned, query, less, {spark: (SPARK,)})
            self.bench.forget(less)
        return rows

    def _measured(
        self, planned: Planned, query: str, load: Load, wanted: Mapping[str, tuple[str, ...]]
    ) -> Iterator[Run]:
        if not wanted:
            return
        reference = load.rate == self.setting.rates[0]
        answers = self.bench.measure(query, QUERIES[query], load, list(wanted), reference=reference)
        for answer in answers:
            believed = planned.believed(answer.split)
            run = _run(query, load, self.setting, answer, wanted[answer.split], believed, reference)
            self._done.setdefault((query, run.split), []).append((load.rate, _seconds(run)))
            yield run

    def _wanted(
        self, query: str, load: Load, planned: Planned, same: dict[str, str], always: set[str]
    ) -> dict[str, tuple[str, ...]]:
        """The splits to run, each with the names it has; the planner's choices first."""
        named = named_splits(planned.plan)
        asked = {same[named[name]] for name in self.setting.splits if name in named}
        if ALL in self.setting.splits:
            asked |= set(same.values())
        ordered = [*sorted(always), *sorted(asked - always)]
        return {
            split: tuple(name for name, one in named.items() if same[one] == split)
            for split in ordered
            if split in always
            or not (
                planned.believed(split).bottleneck > BELIEVED_FAR
                or is_hopeless(self._done.get((query, split), []), load)
            )
        }


def _choices(planned: Planned, query: str, rate: int, same: Mapping[str, str]) -> list[Choice]:
    """With and without the feasibility check."""
    found = {check: planned.chosen(feasibility=check) for check in (True, False)}
    return [
        Choice(query, rate, check, one.split, same[one.split], one.bottleneck, one.utilisation)
        for check, one in found.items()
    ]


def _run(
    query: str,
    load: Load,
    setting: Setting,
    answer: Answer,
    names: Sequence[str],
    believed: Believed,
    reference: bool,
) -> Run:
    return Run(
        query,
        load.rate,
        answer.split,
        tuple(names),
        load.batch,
        setting.cores,
        tuple(round(one, 3) for one in answer.seconds),
        tuple(round(one, 3) for one in answer.cpu),
        round(answer.begun, 1),
        answer.memory,
        answer.problem,
        answer.compared,
        reference,
        believed.bottleneck,
        believed.utilisation,
    )


def _seconds(run: Run) -> float:
    """By the faster of the two clocks: on a busy machine nothing is left out for others' work."""
    if run.problem or not run.seconds:
        return float("inf")
    return min(median(run.seconds), median(run.cpu) / run.cores)


def is_hopeless(done: Sequence[tuple[int, float]], load: Load) -> bool:
    """Whether a split is far from keeping up: it failed at a lower rate, or the line through its two highest
    rates says so. To fill a window takes as long as the window where a split just keeps up, so that trying
    costs minutes."""
    points = sorted(done)
    if any(seconds > FAR_BEHIND * load.batch for _, seconds in points):
        return True
    if len(points) < _LINE:
        return False
    (r1, t1), (r2, t2) = points[-_LINE:]
    return t2 + (load.rate - r2) * (t2 - t1) / (r2 - r1) > FAR_BEHIND * load.batch
