"""What the runs gave: one row a run, and the file they are kept in, so that tables can be made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import UserError
from headrace.experiments import kept
from headrace.experiments.weaving.workload import NAMES, Parameters, parameters_of

FORM = 1

THIRTEEN = (
    "G_RAND", "G_RR", "G_TL",
    "W_RAND", "W_RR", "W_TL", "W_TN", "W_I",
    "WG_RAND", "WG_RR", "WG_TL", "WG_TN", "WG_I",
)  # fmt: skip

OURS = "ours"
OURS_BALANCED = "ours, balance 1"
OURS_FRONT = "ours, front"
THREE = (OURS, OURS_BALANCED, OURS_FRONT)

MAIN = "as set"
"""The reading of the main runs: the prose's unless the command line says otherwise."""


@dataclass(frozen=True, slots=True)
class Row:
    parameters: Parameters
    repeat: int
    optimiser: str
    reading: str
    total: float
    max: float
    seconds: float
    """The search alone."""
    front: tuple[tuple[float, float], ...] = ()
    """(total, max) of every plan of the front; only our third form has one."""
    nodes: tuple[float, ...] = ()
    """The cost of every node; only in Experiment 2."""
    check: float | None = None
    """How far the costs are from the exact recomputation, relative; None: this run was not in the sample."""

    def to_dict(self) -> dict[str, object]:
        made: dict[str, object] = {**self.parameters.to_dict()}
        for name in ("repeat", "optimiser", "reading", "total", "max", "seconds"):
            made[name] = getattr(self, name)
        for name in ("front", "nodes", "check"):
            value = getattr(self, name)
            if value is not None and value != ():
                made[name] = value
        return made


@dataclass(frozen=True, slots=True)
class Results:
    rows: tuple[Row, ...]
    readings: Mapping[str, str]
    """What MAIN stands for: stop, insert, overlap."""
    made: Mapping[str, str | float] = field(default_factory=dict)
    """Date, machine, versions, wall seconds."""

    def to_json(self) -> str:
        head = {"form": FORM, "readings": dict(self.readings), "made": dict(self.made)}
        return kept.written(head, (row.to_dict() for row in self.rows))


def read_results(text: str, file: str) -> Results:
    """Raises UserError when the text is not what `to_json` writes."""
    found = kept.read(text, file, {"form": FORM}, _results)
    _check_whole(found.rows, file)
    return found


def _results(data: dict[str, Any]) -> Results:
    rows = tuple(_row(entry) for entry in data["rows"])
    return Results(rows, dict(data["readings"]), dict(data["made"]))


def _row(entry: dict[str, Any]) -> Row:
    return Row(
        parameters_of({name: entry[name] for name in NAMES}),
        int(entry["repeat"]),
        str(entry["optimiser"]),
        str(entry["reading"]),
        float(entry["total"]),
        float(entry["max"]),
        float(entry["seconds"]),
        tuple((float(total), float(peak)) for total, peak in entry.get("front", ())),
        tuple(map(float, entry.get("nodes", ()))),
        entry.get("check"),
    )


def _check_whole(rows: Sequence[Row], file: str) -> None:
    """Tables divide by counts: every experiment must have every optimiser in every repeat."""
    main = {(row.parameters, row.repeat, row.optimiser) for row in rows if row.reading == MAIN}
    workloads = {(parameters, repeat) for parameters, repeat, _ in main}
    repeats = {repeat for _, repeat in workloads}
    experiments = {parameters for parameters, _ in workloads}
    wanted = len(experiments) * len(repeats) * len((*THIRTEEN, *THREE))
    if not main or len(main) != wanted or repeats != set(range(len(repeats))):
        raise UserError(f"{file} lacks runs: {len(main)} of {wanted}", hint=kept.HINT)
