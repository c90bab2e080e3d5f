"""The command that measures a site: calibrate."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headrace.cli.options import HERE, AsJson, ProjectPath
from headrace.cli.render import err, out, print_json, table
from headrace.service.project import open_project

if TYPE_CHECKING:
    from headrace.service.calibration_file import Calibration


def calibrate(
    project: ProjectPath = HERE,
    site: Annotated[
        str, typer.Option(metavar="SITE", help="Which site of the project to measure.")
    ] = "local",
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer, smaller runs: rescales the defaults; a minute or two.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Measure what window queries cost on a site, for `plan` and the planner; takes some minutes."""
    from headrace.service.calibrate import FULL, QUICK
    from headrace.service.calibrate import calibrate as measure

    found = measure(
        open_project(project),
        site,
        os.environ,
        datetime.now(UTC).replace(tzinfo=None),
        effort=QUICK if quick else FULL,
        tell=_silent if json else _tell,
    )
    if json:
        print_json({"site": site, **found.model_dump(mode="json")})
    else:
        _print(site, found)
    return 0


def _silent(what: str, done: int, total: int) -> None:
    return None


def _tell(what: str, done: int, total: int) -> None:
    """On a terminal one line that is written over; elsewhere a line each."""
    line = f"{done}/{total} {what}"
    if sys.stderr.isatty():
        err().print(f"\r{line:50}", end="" if done < total else "\n")
    else:
        err().print(line)


def _print(site: str, found: Calibration) -> None:
    console = out()
    rows = [_cells(case.case, case.measured, case.predicted, case.error) for case in found.cases]
    rows += [_cells(f"{found.held_out.case} *", found.held_out.measured, found.held_out.predicted, None)]
    unit = "CPU-s" if found.unit == "cpu" else "wall s"
    console.print(table(("case", unit, "fitted", "error"), rows, frozenset({unit, "fitted", "error"})))
    console.print(f"* predicted from the others: {found.held_out.error:+.0%}")
    costs = [(name, f"{value:.3g}") for name, value in found.costs.items()]
    console.print(table(("cost", "seconds or bytes"), costs, frozenset({"seconds or bytes"})))
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
