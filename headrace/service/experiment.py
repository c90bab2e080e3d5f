"""`headrace experiment`: run a paper's experiments, or take results from a file, and write the report."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import psutil

from headrace.errors import UserError
from headrace.experiments.weaving.claims import Claim, Evidence, judge
from headrace.experiments.weaving.plots import draw
from headrace.experiments.weaving.report import TextTable, markdown, statement, text_tables
from headrace.experiments.weaving.results import Results, read_results
from headrace.experiments.weaving.runs import Setting, run_all
from headrace.experiments.weaving.tables import Tables, make_tables

__all__ = [
    "CLOCKS",
    "EXPERIMENTS",
    "Report",
    "Setting",
    "TextTable",
    "check_name",
    "report_from",
    "run_experiment",
]

EXPERIMENTS = {"weaving": "paper 000: thirteen optimisers and ours on 256 sets of window queries"}

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Report:
    tables: tuple[TextTable, ...]
    statement: str
    data: dict[str, object]
    """What tables.json holds."""
    files: tuple[Path, ...]


def check_name(name: str) -> None:
    if name not in EXPERIMENTS:
        hint = f"Experiments: {', '.join(sorted(EXPERIMENTS))}."
        raise UserError(f'there is no experiment "{name}"', hint=hint)


ClockName = Literal["wall", "cpu"]
CLOCKS: dict[ClockName, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}
"""What searches are timed and limited by. A search is one thread, so that on a free machine the two agree; on
a busy one the wall clock takes from ours what others use."""


def run_experiment(setting: Setting, out: Path, clock: ClockName, on_progress: OnProgress) -> Report:
    """Run everything, keep the results, then make the report: a failing plot must not cost ten minutes."""
    _make_folder(out)
    started = time.perf_counter()
    rows = run_all(setting, CLOCKS[clock], on_progress)
    seconds = time.perf_counter() - started
    command = setting.command + ("" if clock == "wall" else f" --clock {clock}")
    results = Results(rows, setting.readings, {**_made(command, seconds), "clock": clock})
    (out / "results.json").write_text(results.to_json(), encoding="utf-8")
    return _write(results, out)


def report_from(file: Path, out: Path) -> Report:
    """The same report from an earlier run's results."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UserError(f"cannot read {file}: {reason}", hint="Give a results.json.") from error
    results = read_results(text, str(file))
    _make_folder(out)
    return _write(results, out)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot use {out} as a folder: {error.strerror}") from error


def _made(command: str, seconds: float) -> dict[str, str | float]:
    """Where and when: a time without its machine says nothing."""
    size = f"{psutil.cpu_count() or 0} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_cpu()}, {size}, Python {platform.python_version()}",
        "seconds": round(seconds, 1),
    }


def _cpu() -> str:
    """The processor's name, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _write(results: Results, out: Path) -> Report:
    tables = make_tables(results)
    claims = judge(Evidence(results, tables))
    data = _data(results, tables, claims)
    text = markdown(results, tables, claims, str(results.made.get("command", "headrace experiment weaving")))
    (out / "tables.json").write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    (out / "report.md").write_text(text, encoding="utf-8")
    files = (out / "tables.json", out / "report.md", *draw(tables, out))
    return Report(text_tables(tables, claims), statement(claims), data, files)


def _data(results: Results, tables: Tables, claims: Sequence[Claim]) -> dict[str, object]:
    return {
        "experiment": "weaving",
        "made": dict(results.made),
        "readings": dict(results.readings),
        "statement": statement(claims),
        "claims": [asdict(claim) for claim in claims],
        **asdict(tables),
    }
