"""What is run, really and in the model.

What the paper leaves open, and how it is read here (shapes of plans: `planners/distribution/plans.py`):
- Its axes are rows given in 30 minutes at a fixed rate. In the model a placement's throughput is the highest
  rate of each stream at which no site is fuller than its one core, with batches of 10 s.
- A query processor is a site with one core; an operator is a part of a job, and neighbours at one site are
  one job. So a connection between sites is a channel, and nothing else is.
- Real runs are at the paper's 40 rows a second of each stream, windows of 10 s; what is measured is CPU
  seconds by site, since all sites share the cores of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from headrace.planners.distribution.plans import STREAM_RATE, Unit, joins_in_a_row, paper_plan
from headrace.planners.distribution.problem import Problem

ROUND_ROBIN, GROUPING, OURS = "round-robin", "grouping", "balanced"
PATTERNS = (ROUND_ROBIN, GROUPING, OURS)
LABELS = {ROUND_ROBIN: "round robin", GROUPING: "grouping", OURS: "ours"}
SIZES = (5, 20, 40, 80)
SITES = (1, 2, 3, 4, 5)
JOINS = "5 joins"
"""Query Plan 1 as Section 5.2.3 has it."""
PLANS = (*(str(size) for size in SIZES), JOINS)

REAL_SITES = {"5": (1, 5), JOINS: (1, 4), "20": (1, 3, 5), "40": (1, 4), "80": (1, 5)}
"""By plan: Figures 21 to 33 have these."""
REAL_SEED = 0
"""Of the plan that is run; the model has it too."""

OFF = "off"
POLICIES = (OFF, "balance", "degradation", "pays")
ONE_SITE = "one site"
STARTS = (ROUND_ROBIN, GROUPING, ONE_SITE)
POLICY_SITES = (2, 3, 5)
FILLED: dict[float, float] = {0.75: 0.8, 0.95: 0.95}
"""How full our own placement makes the fullest site, where redistribution is looked at -> from when on a site
is full for `pays`. At the first there is some room, as its rules want it; at the second it just keeps up."""
ROOM, JUST = FILLED
MINUTES = 30

MOVED_SITES = 2
OVERLOAD = 1.5
"""Cores that all jobs take together where a bad placement has to do with one, by the prices."""
MOST_RATE = 2_000.0
MOST_WAITED = 180.0
"""Seconds, after moves, until jobs have caught up with what waited before."""


@dataclass(frozen=True, slots=True)
class Setting:
    seeds: int = 10
    real: tuple[int, ...] = (5, 20)
    """Sizes of plans that are run on sites; none: the model alone, with default prices."""
    seconds: float = 16.0
    """That a real run is measured for."""
    every: float = 10.0
    """Seconds between two moves of the join."""
    moves: int = 5
    sites: int = 5
    quick: bool = False

    @property
    def recovered_seconds(self) -> float:
        """That runs of redistribution are measured for: full sites do long batches."""
        return 2.5 * self.seconds

    @classmethod
    def small(cls) -> Setting:
        return cls(seeds=2, real=(), quick=True)

    @property
    def command(self) -> str:
        """What a reader types to make the same runs."""
        usual = Setting.small() if self.quick else Setting()
        words = ["headrace experiment distribution", *(["--quick"] if self.quick else [])]
        if self.seeds != usual.seeds:
            words.append(f"--seeds {self.seeds}")
        if self.real != usual.real:
            words.append(f"--real {','.join(map(str, self.real)) or 'none'}")
        return " ".join(words + ([] if self.seconds == usual.seconds else [f"--seconds {self.seconds:g}"]))


def plan_named(plan: str, sites: int, seed: int) -> Problem:
    """At the paper's rate."""
    if plan == JOINS:
        return joins_in_a_row(5, sites, Unit())
    return paper_plan(int(plan), sites, Random(seed))


__all__ = ["STREAM_RATE"]
