"""What is run: a part is a network, a workload and the runs of planners on it; a seed makes it a problem.

What the paper leaves open, and how it is read here (rates, selectivities and link costs: `workloads.py` and
`topologies.py`):
- Figures 6 to 12 do not say how many queries; 100, as Figures 2 and 15. Figures 13 and 14 have 300.
- Figure 2, "100 queries over five stream sources each": five of ten streams for every query.
- One curve of the paper is one workload; here it is a mean over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np

from headrace.planners.placement.problem import PlacementProblem
from headrace.planners.placement.topologies import transit_stub_of
from headrace.planners.placement.workloads import (
    GROWING,
    SHRINKING,
    STEADY,
    RateModel,
    airline,
    synthetic,
)

EXACT, JOINT = "exact", "joint"
TOP_DOWN, BOTTOM_UP, NPC = "top-down", "bottom-up", "npc"
RELAXATION, IN_NETWORK, PLAN_THEN_DEPLOY = "relaxation", "in-network", "plan-then-deploy"
BY_HIERARCHY = (TOP_DOWN, NPC, BOTTOM_UP)
PHASED = (PLAN_THEN_DEPLOY, IN_NETWORK, RELAXATION)
ALL = (EXACT, *BY_HIERARCHY, *PHASED)

MODELS: dict[str, RateModel] = {"steady": STEADY, "shrinking": SHRINKING, "growing": GROWING}
ModelName = Literal["steady", "shrinking", "growing"]

CLUSTER_SIZES = (4, 8, 16, 32, 64)
COMPARED = 32
"""max_cs of Figures 12 to 15."""
BALANCED = 16
"""max_cs of Figures 10 and 11."""
NETWORK_SIZES = (128, 256, 510, 1000)
"""Of Figure 15. The text names 128 and 510; the axis of the figure is not in the text."""
TIMED_CLUSTER_SIZES = (4, 8, 16)


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """A planner in one setting, on every seed of its part."""

    planner: str
    max_cs: int = 0
    """0: it has no clusters."""
    reuse: bool = True
    seeds: int | None = None
    """Only on so many; None: on all of the part."""

    @property
    def label(self) -> str:
        words = [self.planner, *([f"max_cs {self.max_cs}"] if self.max_cs else [])]
        return ", ".join([*words, *([] if self.reuse else ["no reuse"])])


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    runs: tuple[Run, ...]
    sites: int = 128
    queries: int = 100
    joins: tuple[int, int] = (2, 5)
    streams: int = 10
    model: ModelName = "steady"
    airline: bool = False
    seeds: int | None = None
    """At most so many; None: all that are asked for."""

    def problem(self, seed: int) -> PlacementProblem:
        """The same for the same arguments, on every machine. Parts of the same shape have the same problem
        for a seed, so that they can be compared."""
        network = transit_stub_of(self.sites, seed)
        rng = np.random.default_rng(np.random.SeedSequence([seed, self.sites]))
        if self.airline:
            return airline(network, rng, queries=self.queries)
        return synthetic(
            network,
            rng,
            streams=self.streams,
            queries=self.queries,
            joins=self.joins,
            model=MODELS[self.model],
        )

    def seeds_of(self, wanted: int) -> range:
        return range(wanted if self.seeds is None else min(wanted, self.seeds))


def _clustered(sizes: Sequence[int], planners: Sequence[str] = BY_HIERARCHY) -> tuple[Run, ...]:
    return tuple(Run(planner, size) for planner in planners for size in sizes)


_COMPARISON = (
    Run(EXACT),
    *_clustered((COMPARED,)),
    *(Run(planner) for planner in PHASED),
)
_ALONE = tuple(Run(planner, reuse=False) for planner in (IN_NETWORK, RELAXATION))
"""What the paper's baselines cost if they find nothing to reuse: it says they did, and its figures that they
hardly can have."""
_OTHER_SIZES = tuple(size for size in CLUSTER_SIZES if size != COMPARED)

INTEGRATED = Part(
    "fig2",
    tuple(
        Run(planner, reuse=reuse)
        for reuse in (True, False)
        for planner in (EXACT, PLAN_THEN_DEPLOY, RELAXATION)
    ),
    sites=64,
    joins=(4, 4),
)
SYNTHETIC = Part("synthetic", (*_COMPARISON, *_ALONE, *_clustered(_OTHER_SIZES), Run(JOINT)))
OTHER_MODELS = (
    Part("shrinking", (*_COMPARISON, Run(JOINT, seeds=3)), model="shrinking"),
    Part("growing", (*_COMPARISON, Run(JOINT, seeds=3)), model="growing"),
)
AIRLINE = Part("airline", (*_COMPARISON, *_ALONE), queries=300, airline=True)
SIZES = tuple(
    Part(f"sites-{size}", (Run(EXACT), *_clustered((COMPARED,))), sites=size, joins=(3, 3), seeds=4)
    for size in NETWORK_SIZES
)
TIMES = Part(
    "times",
    (Run(EXACT), *_clustered(TIMED_CLUSTER_SIZES)),
    sites=32,
    queries=25,
    joins=(1, 3),
    streams=8,
    seeds=10,
)

PARTS: tuple[Part, ...] = (INTEGRATED, SYNTHETIC, *OTHER_MODELS, AIRLINE, *SIZES, TIMES)


@dataclass(frozen=True, slots=True)
class Setting:
    seeds: int = 20
    quick: bool = False
    workers: int = 2
    """0: in this process."""

    @property
    def command(self) -> str:
        """What a reader types to make the same runs."""
        words = ["headrace experiment placement", *(["--quick"] if self.quick else [])]
        return " ".join([*words, *([] if self.quick or self.seeds == 20 else [f"--seeds {self.seeds}"])])


QUICK_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Task:
    part: Part
    seed: int
    runs: tuple[Run, ...]


def parts_of(setting: Setting) -> tuple[Part, ...]:
    return tuple(_quick(part) for part in PARTS) if setting.quick else PARTS


def _quick(part: Part) -> Part:
    """A third of the queries of the long parts."""
    return replace(part, queries=min(part.queries, max(25, part.queries // 3)))


def tasks_of(setting: Setting) -> tuple[Task, ...]:
    """The long ones first, so that no process is left alone with one at the end."""
    seeds = QUICK_SEEDS if setting.quick else setting.seeds
    every = [
        (part, seed, run)
        for part in parts_of(setting)
        for seed in part.seeds_of(seeds)
        for run in part.runs
        if run.seeds is None or seed < run.seeds
    ]
    joint = [Task(part, seed, (run,)) for part, seed, run in every if run.planner == JOINT]
    others: dict[tuple[str, int], Task] = {}
    for part, seed, run in every:
        if run.planner != JOINT:
            known = others.get((part.name, seed), Task(part, seed, ()))
            others[part.name, seed] = replace(known, runs=(*known.runs, run))
    slow_first = sorted(others.values(), key=lambda task: -task.part.queries * task.part.sites)
    return tuple(chain(joint, slow_first))
