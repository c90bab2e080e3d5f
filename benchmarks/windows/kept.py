"""Cells on disk: written after every one, so that a run of hours that is ended loses nothing, and taken by a
later run instead of measuring again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.machine import Machine
from benchmarks.windows import data, tables
from benchmarks.windows.cells import Case, Cell
from benchmarks.windows.engines import Engine, Sample
from benchmarks.windows.meter import Usage
from benchmarks.windows.spec import Report
from headrace.errors import UserError
from headrace.runtime.files import write_whole

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """How cells were made."""

    command: str
    machine: Machine
    store: str = ""
    """Plain Spark's."""


@dataclass(frozen=True, slots=True)
class Kept:
    made: tuple[Made, ...]
    """The run itself, then those that it has taken cells from."""
    cells: tuple[Cell, ...]


def write(path: Path, kept: Kept) -> None:
    """Whole and renamed."""
    own, *earlier = map(asdict, kept.made)
    whole = {**own, "earlier": earlier, "cells": tables.as_data(kept.cells)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(whole, indent=1) + "\n")


def read(path: Path) -> Kept:
    """Raises UserError for what is no file of ours."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        made = tuple(_made(one) for one in (found, *found.get("earlier", ())))
        return Kept(made, tuple(map(_cell, found["cells"])))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} has no cells: {error!r}", hint="Give the --json of an earlier run."
        ) from error


def _made(found: Mapping[str, Any]) -> Made:
    return Made(found["command"], _of(Machine, found["machine"]), found["store"])


def _cell(found: Mapping[str, Any]) -> Cell:
    case = Case(
        found["workload"],
        found["queries"],
        data.Input(**found["input"]),
        found["files_per_batch"],
        found["output"],
        found["range_times"],
    )
    run, shorter = _sample(found["run"]), _sample(found["shorter_run"])
    return Cell(
        case, Engine(found["engine"]), found["kind"], found["cpu_seconds"], run, shorter, found["note"]
    )


def _sample(found: Mapping[str, Any] | None) -> Sample | None:
    if found is None:
        return None
    state = tuple((seconds, size) for seconds, size in found["state"])
    usage, report = _of(Usage, found["usage"]), _of(Report, found["report"])
    return _of(Sample, {**found, "usage": usage, "report": report, "state": state})


def _of(kind: type[T], found: Mapping[str, Any]) -> T:
    known: Any = kind
    return kind(**{one.name: found[one.name] for one in fields(known) if one.name in found})
