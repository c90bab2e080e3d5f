"""Rows of results by part and run, and what is asked of them: everything is compared seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from headrace.experiments.placement.cases import COMPARED, EXACT, TOP_DOWN, Part, Run
from headrace.experiments.placement.results import Results, Row
from headrace.planners.placement.problem import Floats


def compared(planner: str) -> Run:
    """A planner as Figures 12 to 15 have it."""
    return Run(planner, COMPARED if planner in ("top-down", "bottom-up", "npc") else 0)


class Board:
    def __init__(self, results: Results) -> None:
        self.results = results

    @cached_property
    def _by_run(self) -> Mapping[tuple[str, Run], Sequence[Row]]:
        found: dict[tuple[str, Run], list[Row]] = {}
        for row in sorted(self.results.rows, key=lambda row: row.seed):
            found.setdefault((row.part, row.run), []).append(row)
        return found

    def rows(self, part: Part | str, run: Run) -> Sequence[Row]:
        """By seed."""
        name = part if isinstance(part, str) else part.name
        return self._by_run.get((name, Run(run.planner, run.max_cs, run.reuse)), ())

    def total(self, part: Part, run: Run) -> float:
        """Mean over the seeds."""
        return float(np.mean([row.total for row in self.rows(part, run)]))

    def ratios(
        self, part: Part, run: Run, base: Run, value: Callable[[Row], float] = lambda row: row.total
    ) -> Floats:
        """Of one run to another, on the seeds that both have."""
        others = {row.seed: value(row) for row in self.rows(part, base)}
        mine = self.rows(part, run)
        return np.array([value(row) / others[row.seed] for row in mine if row.seed in others])

    def above(self, part: Part, run: Run, base: Run | None = None) -> float:
        """Mean % that a run costs more than another (by default the exact planner); NaN: not run."""
        ratios = self.ratios(part, run, base or Run(EXACT))
        return 100 * (float(ratios.mean()) - 1) if len(ratios) else float("nan")

    def saving(self, part: Part, run: Run, base: Run) -> float:
        """Mean % that a run costs less than another."""
        return 0.0 - self.above(part, run, base)

    def more_plans(self, part: Part, run: Run, base: Run | None = None) -> float:
        """% that a run compares more plans than another, by default than Top-Down; the geometric mean."""
        ratios = self.ratios(part, run, base or compared(TOP_DOWN), lambda row: float(sum(row.plans)))
        return 100 * (geometric_mean(ratios) - 1)

    def costs(self, part: Part, run: Run) -> list[float]:
        """What the queries so far cost, after each of them: mean over the seeds."""
        return _rounded(np.mean([np.cumsum(row.costs) for row in self.rows(part, run)], axis=0))

    def plans(self, part: Part, run: Run) -> list[float]:
        """What was compared for the queries so far: the geometric mean, since one query whose six streams
        meet in one cluster outweighs all others of all seeds."""
        sums = [np.cumsum(np.array(row.plans, dtype=float)) for row in self.rows(part, run)]
        return _rounded(np.exp(np.mean(np.log(sums), axis=0)))

    def mean(self, part: Part, run: Run, value: Callable[[Row], float]) -> float:
        return float(np.mean([value(row) for row in self.rows(part, run)]))


def geometric_mean(values: Floats) -> float:
    return float(np.exp(np.log(values).mean()))


def _rounded(values: Floats) -> list[float]:
    return [float(f"{one:.7g}") for one in values]
