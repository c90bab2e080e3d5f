"""What the paper claims, what we find, and whether it is the same; each by a rule that is written here.

"Suboptimal by only x %": holds at x % or less, partly within 5 points more.
Savings and shares: hold within 5 points of the paper's figure, partly within 15.
Sentences ("close", "decreases", ...): the rule stands in the claim's own function and in its text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headrace.experiments.judged import Claim, Verdict
from headrace.experiments.placement.board import Board
from headrace.experiments.placement.cases import (
    BOTTOM_UP,
    IN_NETWORK,
    NPC,
    PLAN_THEN_DEPLOY,
    RELAXATION,
    TOP_DOWN,
)
from headrace.experiments.placement.tables import ClusterSize, NetworkSize, Tables

NEAR, FAR = 5.0, 15.0


@dataclass(frozen=True)
class Evidence:
    board: Board
    tables: Tables

    def size(self, planner: str, max_cs: int) -> ClusterSize:
        found = (one for one in self.tables.cluster_sizes if (one.planner, one.max_cs) == (planner, max_cs))
        return next(found)

    def network(self, planner: str, sites: int) -> NetworkSize:
        found = (one for one in self.tables.network_sizes if (one.planner, one.sites) == (planner, sites))
        return next(found)

    def milliseconds(self, planner: str, max_cs: int = 0) -> float:
        """Mean over the query sizes of the median planning time."""
        times = self.tables.planning_times
        return float(np.mean([t.median for t in times if (t.planner, t.max_cs) == (planner, max_cs)]))


MakeClaim = Callable[[Evidence], Claim]
NAMES = {TOP_DOWN: "Top-Down", BOTTOM_UP: "Bottom-Up", NPC: "NPC", IN_NETWORK: "In-network"}
NAMES |= {RELAXATION: "Relaxation", PLAN_THEN_DEPLOY: "plan-then-deploy"}


def near(paper: float, ours: float) -> Verdict:
    away = abs(paper - ours)
    return "holds" if away <= NEAR else ("partly" if away <= FAR else "does not hold")


def at_most(paper: float, ours: float) -> Verdict:
    return "holds" if ours <= paper else ("partly" if ours <= paper + NEAR else "does not hold")


def held(whole: bool, part: bool = False) -> Verdict:
    return "holds" if whole else ("partly" if part else "does not hold")


def falls(values: Sequence[float]) -> bool:
    return all(after < before for before, after in pairwise(values))
