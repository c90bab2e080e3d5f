"""Run every optimiser on every workload, on several processes, and keep one row a run.

Timings are the search alone, measured inside the worker by the optimiser itself. Kernels are compiled (or
loaded) by one small problem before the first measured run of a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from headrace.experiments.processes import Clock, OnProgress, run_tasks
from headrace.experiments.weaving.results import (
    MAIN,
    OURS,
    OURS_BALANCED,
    OURS_FRONT,
    THIRTEEN,
    Row,
)
from headrace.experiments.weaving.workload import (
    EXPERIMENT_2,
    Overlap,
    Parameters,
    grid,
    quick_grid,
    workload,
)
from headrace.planners.sharing.edges import EdgeCounter
from headrace.planners.sharing.problem import Assignment, Options, SharingProblem
from headrace.planners.sharing.solve import DEFAULT_OPTIMISER, Quick, front_fast, plan_fast

ONE_PLAN_SECONDS = 0.03
FRONT_SECONDS = 0.3
CHECK_EVERY = 17
"""One workload in so many is recomputed exactly, all its runs. 17 and 256 have no common factor, so that the
sample walks through all parameters."""


@dataclass(frozen=True, slots=True)
class Setting:
    repeats: int = 3
    quick: bool = False
    stop: Literal["prose", "listing"] = "prose"
    insert: Literal["prose", "plan", "literal"] = "prose"
    overlap: Overlap = "integer"
    workers: int = 2
    """0: in this process."""

    @property
    def readings(self) -> dict[str, str]:
        return {"stop": self.stop, "insert": self.insert, "overlap": self.overlap}

    @property
    def command(self) -> str:
        """What a reader types to make the same runs."""
        words = ["headrace experiment weaving", *(["--quick"] if self.quick else [])]
        words += [] if self.quick or self.repeats == 3 else [f"--repeats {self.repeats}"]
        plain = Setting().readings
        words += [f"--{name} {value}" for name, value in self.readings.items() if value != plain[name]]
        return " ".join(words)

    @property
    def experiments(self) -> tuple[Parameters, ...]:
        return quick_grid() if self.quick else grid()


@dataclass(frozen=True, slots=True)
class Run:
    label: str
    optimiser: str
    options: Options
    reading: str = MAIN
    overlap: Overlap = "integer"
    backwards: bool = False
    """The queries in reverse order: what ties and the order of arrival are worth."""


@dataclass(frozen=True, slots=True)
class Fork:
    """One other reading, everything else as set."""

    name: str
    touches: tuple[str, ...]
    options: Callable[[Options], Options] = lambda options: options
    overlap: Overlap | None = None
    backwards: bool = False


_TO_NODES = ("W_TN", "WG_TN")
_INSERTED = ("W_I", "WG_I")

_RULES = (
    Fork("stop=prose", _TO_NODES, lambda o: replace(o, stop="prose")),
    Fork("stop=listing", _TO_NODES, lambda o: replace(o, stop="listing")),
    Fork("insert=prose", _INSERTED, lambda o: replace(o, insert="prose")),
    Fork("insert=plan", _INSERTED, lambda o: replace(o, insert="plan")),
    Fork("insert=literal", _INSERTED, lambda o: replace(o, insert="literal")),
)


def _after_merging(fork: Fork) -> Callable[[Options], Options]:
    return lambda options: replace(fork.options(options), preprocess=True)


FORKS: tuple[Fork, ...] = (
    *_RULES,
    Fork("start=first", _INSERTED, lambda o: replace(o, start="first")),
    Fork("order=backwards", THIRTEEN, backwards=True),
    Fork("preprocess", THIRTEEN, lambda o: replace(o, preprocess=True)),
    *(Fork(f"preprocess, {fork.name}", fork.touches, _after_merging(fork)) for fork in _RULES),
    Fork("overlap=integer", THIRTEEN, overlap="integer"),
    Fork("overlap=real", THIRTEEN, overlap="real"),
)


def forks_of(setting: Setting) -> tuple[Fork, ...]:
    """The readings that are not the ones set."""
    as_set = {f"{name}={value}" for name, value in setting.readings.items()}
    return tuple(fork for fork in FORKS if fork.name.removeprefix("preprocess, ") not in as_set)


def runs_of(setting: Setting, repeat: int) -> Iterator[Run]:
    """The thirteen and ours; on the first repeat the forks too."""
    base = Options(seed=repeat, stop=setting.stop, insert=setting.insert)
    for name in THIRTEEN:
        yield Run(name, name, base, overlap=setting.overlap)
    ours = replace(base, seconds=ONE_PLAN_SECONDS)
    yield Run(OURS, DEFAULT_OPTIMISER, ours, overlap=setting.overlap)
    yield Run(OURS_BALANCED, DEFAULT_OPTIMISER, replace(ours, balance=1.0), overlap=setting.overlap)
    front = replace(base, seconds=FRONT_SECONDS)
    yield Run(OURS_FRONT, DEFAULT_OPTIMISER, front, overlap=setting.overlap)
    if repeat == 0:
        for fork in forks_of(setting):
            yield from _fork_runs(fork, base, setting.overlap)


def _fork_runs(fork: Fork, base: Options, overlap: Overlap) -> Iterator[Run]:
    for name in fork.touches:
        yield Run(name, name, fork.options(base), fork.name, fork.overlap or overlap, fork.backwards)


@dataclass(frozen=True, slots=True)
class Task:
    parameters: Parameters
    repeat: int
    setting: Setting
    check: bool


def tasks_of(setting: Setting) -> tuple[Task, ...]:
    pairs = [(p, r) for r in range(setting.repeats) for p in setting.experiments]
    return tuple(Task(p, r, setting, i % CHECK_EVERY == 0) for i, (p, r) in enumerate(pairs))


def run_task(task: Task, clock: Clock) -> list[Row]:
    counter = EdgeCounter()
    problems: dict[Overlap, SharingProblem] = {}
    rows = []
    for run in runs_of(task.setting, task.repeat):
        if run.overlap not in problems:
            problems[run.overlap] = workload(task.parameters, task.repeat, run.overlap)
        problem = problems[run.overlap]
        if run.backwards:
            problem = replace(problem, queries=problem.queries[::-1])
        rows.append(_row(task, run, problem, clock, counter))
    return rows


def _row(task: Task, run: Run, problem: SharingProblem, clock: Clock, counter: EdgeCounter) -> Row:
    if run.label == OURS_FRONT:
        quick = front_fast(problem, run.options, clock=clock)
    else:
        quick = plan_fast(problem, run.optimiser, run.options, clock=clock)
    front = tuple((point.total_cost, point.max_cost) for point in quick.front)
    head = (task.parameters, task.repeat, run.label, run.reading)
    row = Row(*head, quick.total, quick.max_load, quick.seconds, front)
    if task.check:
        row = replace(row, check=_check(problem, quick, counter))
    if task.parameters == EXPERIMENT_2 and run.reading == MAIN:
        row = replace(row, nodes=tuple(map(float, exact_costs(problem, quick.assignment, counter))))
    return row


def _check(problem: SharingProblem, quick: Quick, counter: EdgeCounter) -> float:
    """The largest relative distance of a cost from its exact recomputation, over the plan and its front."""
    plans = [(quick.assignment, quick.total, quick.max_load)]
    plans += [(point.assignment, point.total_cost, point.max_cost) for point in quick.front]
    away = []
    for assignment, total, peak in plans:
        exact = exact_costs(problem, assignment, counter)
        away += [_away(total, sum(exact, Fraction(0))), _away(peak, max(exact))]
    return max(away)


def exact_costs(problem: SharingProblem, assignment: Assignment, counter: EdgeCounter) -> list[Fraction]:
    """The paper's cost of every node. Raises ValueError when a query is missing or there twice."""
    placed = sorted(q for trees in assignment for tree in trees for q in tree)
    if placed != list(range(len(problem.queries))):
        raise ValueError("a plan does not hold every query exactly once")
    return [sum((_tree(problem, tree, counter) for tree in trees), Fraction(0)) for trees in assignment]


def _tree(problem: SharingProblem, tree: Sequence[int], counter: EdgeCounter) -> Fraction:
    queries = [problem.queries[i] for i in tree]
    rate = counter.rate([(q.range, q.slide) for q in queries])
    return Fraction(problem.rate) + rate.high * sum((q.overlap for q in queries), Fraction(0))


def _away(said: float, exact: Fraction) -> float:
    return float(abs(Fraction(said) - exact) / exact)


def run_all(setting: Setting, clock: Clock, on_progress: OnProgress) -> tuple[Row, ...]:
    """All rows, in the order of the tasks whatever process finished first."""
    return run_tasks(tasks_of(setting), run_task, warm_up, setting.workers, clock, on_progress)


def warm_up(clock: Clock) -> None:
    """Compile or load the kernels and walk every path once, so that no measured run pays for it."""
    problem = workload(EXPERIMENT_2, 0)
    small = replace(problem, queries=problem.queries[:40])
    options = Options(seconds=ONE_PLAN_SECONDS)
    for name in (*THIRTEEN, DEFAULT_OPTIMISER):
        plan_fast(small, name, options, clock=clock)
    front_fast(small, options, clock=clock)
