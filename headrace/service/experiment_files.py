"""What every experiment does: run all, keep the results, make the report; or make it from kept results."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import psutil

from headrace.errors import UserError
from headrace.experiments.judged import Bar, Claim, statement
from headrace.experiments.shown import TextTable

OnProgress = Callable[[int, int], None]
Made = dict[str, str | float]

ClockName = Literal["wall", "cpu"]
CLOCKS: dict[ClockName, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}
"""What searches are timed and limited by. A search is one thread, so that on a free machine the two agree; on
a busy one the wall clock takes from ours what others use."""


@dataclass(frozen=True)
class Report:
    tables: tuple[TextTable, ...]
    statement: str
    data: dict[str, object]
    """What tables.json holds."""
    files: tuple[Path, ...]


class Kept(Protocol):
    def to_json(self) -> str: ...


Rows = TypeVar("Rows")
Results = TypeVar("Results", bound=Kept)


def run_and_report(
    out: Path,
    command: str,
    clock: ClockName,
    run: Callable[[Callable[[], float]], Rows],
    keep: Callable[[Rows, Made], Results],
    write: Callable[[Results, Path], Report],
) -> Report:
    """Run everything, with the clock that was chosen, and keep it before the report is made: a failing plot
    must not cost ten minutes."""
    _make_folder(out)
    started = time.perf_counter()
    rows = run(CLOCKS[clock])
    results = keep(rows, _made_by(command, clock, time.perf_counter() - started))
    (out / "results.json").write_text(results.to_json(), encoding="utf-8")
    return write(results, out)


def report_again(
    file: Path, out: Path, read: Callable[[str, str], Results], write: Callable[[Results, Path], Report]
) -> Report:
    """The same report from an earlier run's results."""
    results = read(_kept_text(file), str(file))
    _make_folder(out)
    return write(results, out)


def write_report(out: Path, data: Mapping[str, object], text: str) -> tuple[Path, Path]:
    tables, report = out / "tables.json", out / "report.md"
    tables.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    report.write_text(text, encoding="utf-8")
    return tables, report


def judged_data(
    experiment: str, made: Mapping[str, str | float], claims: Sequence[Claim], judged: Sequence[Bar]
) -> dict[str, object]:
    """What the tables.json of an experiment with claims and bars begins with."""
    return {
        "experiment": experiment,
        "made": dict(made),
        "statement": statement(claims),
        "claims": [asdict(claim) for claim in claims],
        "bars": [asdict(bar) for bar in judged],
    }


def _made_by(command: str, clock: ClockName, seconds: float) -> Made:
    """How, where and when: a time without its machine says nothing."""
    size = f"{psutil.cpu_count() or 0} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"
    return {
        "command": command + ("" if clock == "wall" else f" --clock {clock}"),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_cpu()}, {size}, Python {platform.python_version()}",
        "seconds": round(seconds, 1),
        "clock": clock,
    }


def _cpu() -> str:
    """The processor's name, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot use {out} as a folder: {error.strerror}") from error


def _kept_text(file: Path) -> str:
    """The text of an earlier run's results."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UserError(f"cannot read {file}: {reason}", hint="Give a results.json.") from error
