"""The command that measures a site: calibrate."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headrace.cli.options import HERE, AsJson, ProjectPath
from headrace.cli.render import err, out, print_json, table
from headrace.service.project import open_project

if TYPE_CHECKING:
    from headrace.service.calibration_file import Calibration, FederationCalibration

Tell = Callable[[str, int, int], None]


class Part(StrEnum):
    WINDOWS = "windows"
    FEDERATION = "federation"


def calibrate(
    project: ProjectPath = HERE,
    site: Annotated[
        str, typer.Option(metavar="SITE", help="Which site of the project to measure.")
    ] = "local",
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer, smaller runs: rescales the defaults; a minute or two.")
    ] = False,
    only: Annotated[
        Part | None,
        typer.Option(help="Measure only windows and trees, or only operators on both engines (federation)."),
    ] = None,
    json: AsJson = False,
) -> int:
    """Measure what window queries cost on a site, in trees and split between Spark and DuckDB, for `plan` and
    the planner; takes some minutes."""
    now = datetime.now(UTC).replace(tzinfo=None)
    tell = _silent if json else _tell
    found = None if only is Part.FEDERATION else _windows(project, site, now, tell, quick=quick)
    split = None if only is Part.WINDOWS else _engines(project, site, now, tell, quick=quick)
    if json:
        data = {} if found is None else found.model_dump(mode="json")
        more = {} if split is None else {"federation": split.model_dump(mode="json")}
        print_json({"site": site, **data, **more})
        return 0
    if found is not None:
        _print(site, found)
    if split is not None:
        _print_engines(site, split)
    return 0


def _windows(project: Path, site: str, now: datetime, tell: Tell, *, quick: bool) -> Calibration:
    from headrace.service.calibrate import FULL, QUICK
    from headrace.service.calibrate import calibrate as measure

    return measure(open_project(project), site, os.environ, now, effort=QUICK if quick else FULL, tell=tell)


def _engines(project: Path, site: str, now: datetime, tell: Tell, *, quick: bool) -> FederationCalibration:
    from headrace.service.calibrate_federation import FULL, QUICK, calibrate_federation

    return calibrate_federation(
        open_project(project), site, os.environ, now, effort=QUICK if quick else FULL, tell=tell
    )


def _silent(what: str, done: int, total: int) -> None:
    return None


def _tell(what: str, done: int, total: int) -> None:
    """On a terminal one line that is written over; elsewhere a line each."""
    line = f"{done}/{total} {what}"
    if sys.stderr.isatty():
        err().print(f"\r{line:50}", end="" if done < total else "\n")
    else:
        err().print(line)


def _print_cases(found: Calibration | FederationCalibration, unit: str) -> None:
    console = out()
    rows = [_cells(case.case, case.measured, case.predicted, case.error) for case in found.cases]
    rows += [_cells(f"{found.held_out.case} *", found.held_out.measured, found.held_out.predicted, None)]
    console.print(table(("case", unit, "fitted", "error"), rows, frozenset({unit, "fitted", "error"})))
    console.print(f"* predicted from the others: {found.held_out.error:+.0%}")
    costs = [(name, f"{value:.3g}") for name, value in found.costs.items()]
    console.print(table(("cost", "seconds or bytes"), costs, frozenset({"seconds or bytes"})))


def _print_engines(site: str, found: FederationCalibration) -> None:
    _print_cases(found, "CPU-s")
    text = f" operators on Spark and DuckDB calibrated in {found.seconds:.0f} s"
    out().print(Text(f"{site} ({found.endpoint})", style="bold") + Text(text))


def _print(site: str, found: Calibration) -> None:
    console = out()
    _print_cases(found, "CPU-s" if found.unit == "cpu" else "wall s")
    console.print(
        Text(f"{site} ({found.endpoint})", style="bold")
        + Text(
            f" calibrated in {found.seconds:.0f} s: error {found.typical_error:.0%} in the middle, "
            f"{found.worst_error:.0%} at most"
        )
    )
    if found.unit == "wall":
        console.print("A remote site's processes cannot be seen: these are seconds by the clock, not CPU.")


def _cells(case: str, measured: float, predicted: float, error: float | None) -> tuple[str, ...]:
    return case, f"{measured:.2f}", f"{predicted:.2f}", "" if error is None else f"{error:+.0%}"
