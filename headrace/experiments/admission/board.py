"""Rows of results by set-up and run, and what is asked of them: everything is compared seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from headrace.experiments.admission.cases import (
    BOUND,
    HEURISTIC,
    OFFLINE,
    OURS,
    SODA,
    SODA_NAMED,
    SQPR,
    Point,
    Run,
)
from headrace.experiments.admission.results import Results, Row

NAMES = {
    OURS: "Headrace", SQPR: "SQPR", HEURISTIC: "heuristic", SODA: "SODA",
    SODA_NAMED: "SODA, popular first", BOUND: "optimistic bound", OFFLINE: "offline bound",
}  # fmt: skip


class Board:
    def __init__(self, results: Results) -> None:
        self.results = results

    @cached_property
    def _by_run(self) -> Mapping[tuple[str, Run], Sequence[Row]]:
        found: dict[tuple[str, Run], list[Row]] = {}
        for row in sorted(self.results.rows, key=lambda row: row.seed):
            found.setdefault((row.setup, row.run), []).append(row)
        return found

    def rows(self, setup: str, run: Run) -> Sequence[Row]:
        """By seed; none: it was not run."""
        return self._by_run.get((setup, run), ())

    def ratio(self, setup: str, run: Run, base: Run) -> float:
        """Mean over the seeds that both have of what one admits as a share of the other; NaN: not run."""
        others = {row.seed: row.admitted for row in self.rows(setup, base)}
        mine = [row.admitted / others[row.seed] for row in self.rows(setup, run) if others.get(row.seed)]
        return float(np.mean(mine)) if mine else float("nan")

    def common(self, point: Point) -> set[int]:
        """Seeds on which all planners ran that ran at all."""
        ran = [{row.seed for row in rows} for run in point.runs if (rows := self.rows(point.name, run))]
        return set.intersection(*ran) if ran else set()

    def curve(self, point: Point, run: Run) -> list[float]:
        """Admitted after each fiftieth of the queries, mean over the common seeds."""
        seeds = self.common(point)
        means = np.mean([row.curve for row in self.rows(point.name, run) if row.seed in seeds], axis=0)
        return [round(float(one), 2) for one in means]

    def label(self, setup: str, run: Run) -> str:
        name = NAMES[run.planner]
        rows = self.rows(setup, run)
        return f"{name}, {rows[0].deadline:g} s" if run.planner == SQPR and rows else name
