"""What the runs gave: one row a run, and the file they are kept in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from headrace.errors import UserError
from headrace.experiments import kept
from headrace.experiments.admission.cases import SQPR, Run, wanted_runs

EXPERIMENT = "admission"
FORM = 1
MARKS = 50
"""Points of a curve."""


@dataclass(frozen=True)
class Row:
    setup: str
    seed: int
    planner: str
    batch: int
    patience: float
    loaded: bool
    deadline: float
    """Seconds for one query; only SQPR has one."""
    hosts: int
    queries: int
    """As run: fewer in a quick one."""
    admitted: float
    """The offline bound is no whole number."""
    curve: tuple[int, ...] = ()
    """Admitted after each fiftieth of the queries."""
    mean_ms: float = 0.0
    p99_ms: float = 0.0
    proven: int = 0
    """Queries whose answer was shown to be the best; of a loaded run: of those timed."""
    times: tuple[float, ...] = ()
    """Loaded runs: milliseconds of each query at 75 to 95 % load."""
    cpu_early: tuple[float, ...] = ()
    cpu_late: tuple[float, ...] = ()
    """Share of each host's CPU in use when a fifth, and three fifths, of the queries were submitted."""
    net_early: tuple[float, ...] = ()
    net_late: tuple[float, ...] = ()
    """What each host sends and receives then."""

    @property
    def run(self) -> Run:
        return Run(self.planner, self.batch, self.patience, self.loaded)

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


_KINDS: Mapping[str, type] = {
    "setup": str, "seed": int, "planner": str, "batch": int, "patience": float, "loaded": bool,
    "deadline": float, "hosts": int, "queries": int, "admitted": float, "mean_ms": float, "p99_ms": float,
    "proven": int,
}  # fmt: skip


def _row(entry: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {
        one.name: _KINDS[one.name](entry[one.name])
        if one.name in _KINDS
        else tuple(map(int if one.name == "curve" else float, entry[one.name]))
        for one in fields(Row)
    }
    return Row(**values)


def _check_whole(rows: Sequence[Row], file: str) -> None:
    """Every point must have every run; only SQPR may be left out."""
    found = {(row.setup, row.run) for row in rows}
    for setup, run in wanted_runs():
        if (setup, run) not in found and run.planner != SQPR:
            raise UserError(f"{file} lacks runs of {run.planner} with {setup}", hint=kept.HINT)
