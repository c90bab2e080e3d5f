"""What the runs gave: one row a run with one entry a query, and the file they are kept in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from headrace.errors import UserError
from headrace.experiments import kept
from headrace.experiments.placement.cases import PARTS, Part, Run
from headrace.planners.placement.problem import Floats

EXPERIMENT = "placement"
FORM = 1


@dataclass(frozen=True)
class Row:
    part: str
    seed: int
    planner: str
    max_cs: int
    reuse: bool
    total: float
    """Recomputed from the trees, as are the costs."""
    costs: tuple[float, ...]
    """What each query added, in the order of the workload (joint: of its deployment)."""
    plans: tuple[int, ...]
    seconds: tuple[float, ...]
    """Planning one query; empty: all were planned together."""
    streams: tuple[int, ...]
    """Of each query."""
    planning: float
    """Seconds for all queries."""
    preparing: float
    """Seconds before the first query: hierarchy, cost space or zones."""
    reused: int
    """Derived streams read."""
    joins: int
    filters: int
    """Running at the end."""
    height: int = 0
    """Levels of the hierarchy; 0: there is none."""
    top: int = 0
    """Members of its highest cluster."""
    bottom: int = 0
    """Clusters of its lowest level."""

    @property
    def run(self) -> Run:
        return Run(self.planner, self.max_cs, self.reuse)

    @cached_property
    def cumulative(self) -> Floats:
        return np.cumsum(np.array(self.costs))

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Results:
    rows: tuple[Row, ...]
    made: Mapping[str, str | float] = field(default_factory=dict)
    """Command, date, machine, wall seconds, clock."""

    def to_json(self) -> str:
        head = {"experiment": EXPERIMENT, "form": FORM, "made": dict(self.made)}
        return kept.written(head, (row.to_dict() for row in self.rows))


def read_results(text: str, file: str) -> Results:
    """Raises UserError when the text is not what `to_json` writes, or lacks runs that the tables need."""
    results = kept.read(text, file, {"experiment": EXPERIMENT, "form": FORM}, _results)
    _check_whole(results.rows, file)
    return results


def _results(data: dict[str, Any]) -> Results:
    return Results(tuple(_row(entry) for entry in data["rows"]), dict(data["made"]))


_LISTS: Mapping[str, type] = {"costs": float, "plans": int, "seconds": float, "streams": int}
_SINGLE: Mapping[str, type] = {
    "part": str, "seed": int, "planner": str, "max_cs": int, "reuse": bool, "total": float,
    "planning": float, "preparing": float, "reused": int, "joins": int, "filters": int,
    "height": int, "top": int, "bottom": int,
}  # fmt: skip


def _row(entry: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {name: kind(entry[name]) for name, kind in _SINGLE.items()}
    values |= {name: tuple(map(kind, entry[name])) for name, kind in _LISTS.items()}
    row = Row(**{one.name: values[one.name] for one in fields(Row)})
    if len({len(row.costs), len(row.plans), len(row.streams), len(row.seconds) or len(row.costs)}) > 1:
        raise ValueError(f"{row.part}, seed {row.seed}, {row.run.label}: lists of different lengths")
    return row


def _check_whole(rows: Sequence[Row], file: str) -> None:
    """Tables set runs of the same seed side by side: every seed of a part must have every run of it."""
    for part in PARTS:
        found = {(row.seed, row.run) for row in rows if row.part == part.name}
        seeds = {seed for seed, _ in found}
        missing = [
            f"{run.label}, seed {seed}" for seed in sorted(seeds) for run in part.runs
            if _wanted(run, seed) and (seed, Run(run.planner, run.max_cs, run.reuse)) not in found
        ]  # fmt: skip
        if not seeds or missing:
            raise UserError(f"{file} lacks runs of {_what(part, missing)}", hint=kept.HINT)


def _wanted(run: Run, seed: int) -> bool:
    return run.seeds is None or seed < run.seeds


def _what(part: Part, missing: Sequence[str]) -> str:
    return f"{part.name}: {missing[0]}" if missing else part.name
