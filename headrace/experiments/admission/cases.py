"""What is run: points of figures, each a set-up and the planners that run on it; a seed makes it a problem.

What the paper leaves open, and how it is read here (rates, CPU of a join and of a host: `workload.py`):
- Host bandwidth is not given. 100 Mbps is "a CPU- and bandwidth-constrained environment"; Figure 4(a) also
  has 1,000 and 50.
- Figures 5(a) and 5(b) submit more queries to more hosts or more CPU, as many as there is room for: with
  always 1,000 a large system would take all of them and show nothing. Streams stay 500.
- The axes of the figures are not in the text; sizes around those that it names.

SQPR takes a few tenths of a second for a query of 50 hosts and the paper's solver had 30 s, so that it has
the paper's size in one part only, and every figure a second, small side: a fifth or an eighth of everything,
on which all planners run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from headrace.planners.admission.problem import AdmissionProblem
from headrace.planners.admission.soda_workload import CLUSTER
from headrace.planners.admission.workload import PAPER, Setup, paper_problem

OURS, SQPR, HEURISTIC = "headrace", "milp", "heuristic"
SODA, SODA_NAMED, BOUND, OFFLINE = "soda", "soda-named", "bound", "offline"
SHORT = 0.2
"""The shorter deadline of Figure 4(a), as a share of the deadline."""
ALL = 1000
"""More seeds than anybody asks for."""
BATCHES = (2, 5)


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """A planner in one setting, on every seed of its point."""

    planner: str
    batch: int = 1
    patience: float = 1.0
    """SQPR: its deadline, as a share of the experiment's."""
    loaded: bool = False
    """Only the queries that come at 75 to 95 % load are timed (Figure 6)."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place on the axis of a figure."""

    figure: str
    x: float
    setup: Setup
    runs: tuple[Run, ...]
    group: str = ""
    """Which curve, where the figure has several of the same planner."""
    seeds: int = 2
    """At most so many."""
    milp_times: int = 1
    """SQPR runs on so many times the seeds that it has elsewhere."""

    @property
    def name(self) -> str:
        return setup_name(self.setup)

    @property
    def small(self) -> bool:
        """All planners run on the seeds of SQPR, so that its means can be compared with theirs."""
        return SQPR in {run.planner for run in self.runs} and self.setup.hosts <= MOST_SMALL


MOST_SMALL = 20
BASE = replace(PAPER, bandwidth=100.0)
SMALL = replace(BASE, hosts=10, streams=100, queries=200)
SMALLER = replace(BASE, hosts=6, streams=60, queries=120)
"""For what takes SQPR longest: joins of five, and hosts with twice the room."""

LARGE_SIDE = (Run(OURS), Run(HEURISTIC), Run(BOUND), Run(OFFLINE))
SMALL_SIDE = (*LARGE_SIDE, Run(SQPR))
CLUSTER_RUNS = (Run(OURS), Run(SQPR), Run(SODA), Run(SODA_NAMED), Run(HEURISTIC), Run(BOUND), Run(OFFLINE))
TIMED = (Run(OURS, loaded=True), Run(HEURISTIC, loaded=True), Run(SQPR, loaded=True))
EFFICIENCY, BATCHING, OVERLAP = "4a", "4b", "4c"
HOSTS, RESOURCES, COMPLEXITY = "5a", "5b", "5c"
TIMES_HOSTS, TIMES_WAYS, DEPLOYED = "6a", "6b", "7"


def setup_name(setup: Setup) -> str:
    """All that differs between the set-ups, as a key that a person can read."""
    ways = "/".join(map(str, setup.ways))
    return (
        f"{setup.hosts} hosts x {setup.cpu:g} CPU, {setup.bandwidth:g} wide, {setup.streams} streams, "
        f"zipf {setup.zipf:g}, {setup.queries} queries of {ways}"
    )


def _efficiency() -> list[Point]:
    widths = (1000.0, 50.0)
    others = [
        Point(EFFICIENCY, width, replace(BASE, bandwidth=width), LARGE_SIDE, seeds=ALL) for width in widths
    ]
    short = Run(SQPR, patience=SHORT)
    return [
        Point(EFFICIENCY, BASE.bandwidth, BASE, SMALL_SIDE, seeds=ALL),
        *others,
        Point(EFFICIENCY, BASE.bandwidth, SMALL, (*SMALL_SIDE, short), "small"),
    ]


def _batching() -> list[Point]:
    """Of SODA also one epoch for all queries."""
    singles = [Point(BATCHING, 1, SMALL, (Run(SQPR), Run(SODA)))]
    return [*singles, *(Point(BATCHING, n, SMALL, (Run(SQPR, n), Run(SODA, n))) for n in BATCHES)]


def _overlap() -> list[Point]:
    zipfs, parts = (0.0, 0.5, 1.0, 1.5, 2.0), (0.5, 1.0, 2.0)
    large = [
        Point(OVERLAP, z, replace(BASE, streams=int(500 * part), zipf=z), LARGE_SIDE, f"{500 * part:g}")
        for part in parts
        for z in zipfs
    ]
    few = [(1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.5, 1.0), (2.0, 1.0)]
    small = [
        Point(
            OVERLAP, z, replace(SMALL, streams=int(100 * part), zipf=z), SMALL_SIDE, f"small {100 * part:g}"
        )
        for part, z in few
    ]
    return large + small


def _scaling() -> list[Point]:
    def hosts(setup: Setup, many: int) -> Setup:
        return replace(setup, hosts=many, queries=30 * many)

    def cpu(setup: Setup, times: int) -> Setup:
        wide = replace(setup, bandwidth=10_000.0, link=10_000.0)
        return replace(wide, cpu=300.0 * times, queries=30 * setup.hosts * times)

    return [
        *(Point(HOSTS, n, hosts(BASE, n), LARGE_SIDE) for n in (25, 50, 100, 150)),
        *(Point(HOSTS, n, hosts(SMALL, n), SMALL_SIDE, "small") for n in (4, 8, 16)),
        *(Point(RESOURCES, 300 * n, cpu(BASE, n), LARGE_SIDE) for n in (1, 2, 3)),
        *(Point(RESOURCES, 300 * n, cpu(SMALLER, n), SMALL_SIDE, "small") for n in (1, 2)),
        *(Point(COMPLEXITY, n, replace(BASE, ways=(n,)), LARGE_SIDE) for n in (2, 3, 4)),
        # The offline bound of 1,000 joins of five takes minutes, and is hardly below their number.
        Point(
            COMPLEXITY,
            5,
            replace(BASE, ways=(5,)),
            tuple(run for run in LARGE_SIDE if run.planner != OFFLINE),
        ),
        *(Point(COMPLEXITY, n, replace(SMALLER, ways=(n,)), SMALL_SIDE, "small") for n in (2, 3, 4, 5)),
    ]


def _times() -> list[Point]:
    return [
        *(Point(TIMES_HOSTS, n, replace(BASE, hosts=n, queries=20 * n), TIMED) for n in (10, 25, 50, 100)),
        *(Point(TIMES_WAYS, n, replace(BASE, ways=(n,), queries=1500), TIMED) for n in (2, 3, 4, 5)),
    ]


POINTS: tuple[Point, ...] = (
    *_efficiency(),
    *_batching(),
    *_overlap(),
    *_scaling(),
    *_times(),
    Point(DEPLOYED, 15, CLUSTER, CLUSTER_RUNS, seeds=ALL, milp_times=2),
)


@dataclass(frozen=True, slots=True)
class Setting:
    seeds: int = 5
    milp_seeds: int = 1
    """0: SQPR is not run at all."""
    deadline: float = 1.0
    """Seconds of SQPR for one query."""
    quick: bool = False
    workers: int = 2
    """0: in this process."""

    @property
    def command(self) -> str:
        """What a reader types to make the same runs."""
        default = Setting()
        words = ["headrace experiment admission", *(["--quick"] if self.quick else [])]
        told = {
            "seeds": (self.seeds, default.seeds),
            "milp-seeds": (self.milp_seeds, default.milp_seeds),
            "deadline": (self.deadline, default.deadline),
        }
        return " ".join(
            [*words, *(f"--{key} {mine:g}" for key, (mine, usual) in told.items() if mine != usual)]
        )

    def seeds_of(self, point: Point, run: Run) -> range:
        wanted = 1 if self.quick else min(self.seeds, point.seeds)
        solved = min(wanted, self.milp_seeds * point.milp_times)
        if run.planner == SQPR:
            return range(solved)
        return range(max(solved, 1) if point.small and point.milp_times == 1 else wanted)


@dataclass(frozen=True, slots=True)
class Task:
    setup: Setup
    seed: int
    run: Run
    deadline: float
    quick: bool = False

    @property
    def name(self) -> str:
        """Of the set-up that it stands for, whatever is left of it in a quick run."""
        return setup_name(self.setup)

    def problem(self) -> AdmissionProblem:
        return _problem(self.seed, _quick(self.setup) if self.quick else self.setup)


@cache
def _problem(seed: int, setup: Setup) -> AdmissionProblem:
    """Planners that follow each other share it, and the rates that were drawn."""
    return paper_problem(seed, setup)


def _quick(setup: Setup) -> Setup:
    """A twelfth of hosts, streams and queries, but three hosts at least: SQPR takes seconds, not minutes."""
    part = max(1 / 12, min(1.0, 3 / setup.hosts))
    return replace(
        setup,
        hosts=round(setup.hosts * part),
        streams=round(setup.streams * part),
        queries=round(setup.queries * part),
    )


def wanted_runs() -> dict[tuple[str, Run], Point]:
    """Every run once, though figures share points: at the point that comes first."""
    found: dict[tuple[str, Run], Point] = {}
    for point in POINTS:
        for run in point.runs:
            found.setdefault((point.name, run), point)
    return found


def tasks_of(setting: Setting) -> tuple[Task, ...]:
    """The long ones first, so that no process is left alone with one at the end."""
    every = [
        Task(point.setup, seed, run, setting.deadline * run.patience * run_share(setting), setting.quick)
        for (_, run), point in wanted_runs().items()
        for seed in setting.seeds_of(point, run)
    ]
    return tuple(sorted(every, key=lambda task: -_length(task)))


def run_share(setting: Setting) -> float:
    """A quick run has a quarter of the deadline."""
    return 0.25 if setting.quick else 1.0


def _length(task: Task) -> float:
    """A guess at how long it takes: three times as long for every stream more in a query."""
    setup, run = task.setup, task.run
    weight = {SQPR: 100.0, SODA: 20.0, SODA_NAMED: 20.0}.get(run.planner, 1.0)
    queries = 12 if run.loaded and run.planner == SQPR else setup.queries
    return weight * queries * run.batch * float(setup.hosts**0.5) * 3.0 ** max(setup.ways)
