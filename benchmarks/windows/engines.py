"""One run of one engine on one input: its process started, measured, and its answer checked."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.windows import data, flink
from benchmarks.windows.answers import Checker
from benchmarks.windows.meter import Usage, measure
from benchmarks.windows.spec import NONE, REPORT, Report, RunSpec

_STATE_EVERY = 4
"""Seconds between two looks at the state on disk."""
_WARM_BATCHES = 3
ROOT = Path(__file__).parents[2]


class Engine(StrEnum):
    PLAIN = "plain"
    FRAGMENTS = "fragments"
    HEADRACE = "headrace"
    SERVICE = "service"
    FLINK = "flink"
    READING = flink.READING
    DUCKDB = "duckdb"


NAMES = {
    Engine.PLAIN: "plain Spark",
    Engine.FRAGMENTS: "fragments, not shared",
    Engine.HEADRACE: "Headrace",
    Engine.SERVICE: "Headrace, `headrace run`",
    Engine.FLINK: "Flink SQL",
    Engine.READING: "Flink SQL, only reading",
    Engine.DUCKDB: "DuckDB batch",
}
_MODULES = {
    Engine.PLAIN: "spark_plain",
    Engine.FRAGMENTS: "headrace_trees",
    Engine.HEADRACE: "headrace_trees",
    Engine.SERVICE: "headrace_service",
    Engine.FLINK: "flink",
    Engine.READING: "flink",
    Engine.DUCKDB: "duckdb_batch",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run took. None: not known of this engine."""

    events: int
    usage: Usage
    report: Report
    output_rows: int | None = None
    problem: str = ""
    full: bool = True
    left_open: int = 0
    rate: float | None = None
    """Events a second, the median of batches after the first three."""
    state: tuple[tuple[float, int], ...] = field(default=())
    """(seconds, bytes on disk), as sampled."""

    @property
    def work_seconds(self) -> float:
        """Without the time until the engine was ready."""
        return max(self.usage.wall - self.report.ready, 0.0)


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are on this machine."""

    cache: Path
    java: Path
    environ: Mapping[str, str]

    @property
    def flink(self) -> Path:
        return self.cache / "flink" / "bin" / "python"

    def work(self, engine: Engine) -> Path:
        """An empty folder for a run."""
        folder = self.cache / "run" / engine
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def run(places: Places, spec: RunSpec, events: int, limit: float, checker: Checker | None) -> Sample:
    """Run an engine to its end or its limit. `checker` None: nothing to compare with."""
    engine, state = Engine(spec.engine), _StateOnDisk(spec.folder)
    python = str(places.flink) if engine in (Engine.FLINK, Engine.READING) else sys.executable
    command = [python, "-m", f"benchmarks.windows.{_MODULES[engine]}", str(spec.write())]
    environ = dict(places.environ) | {"PYTHONPATH": str(ROOT), "JAVA_HOME": str(places.java)}
    environ = flink.environment(environ, spec, places.java)
    log = spec.folder / "log.txt"
    usage = measure(command, log=log, limit=limit, environ=environ, each_second=state.look)
    if usage.code != 0 or not (spec.folder / REPORT).exists():
        why = f"over {limit:.0f} s" if usage.timed_out else _last_lines(log)
        return Sample(events, usage, Report(), problem=why)
    report = Report.read(spec.folder)
    steady = _rate(report, spec)
    if checker is None or spec.sink == NONE:
        return Sample(events, usage, report, rate=steady, state=tuple(state.seen))
    got = checker.check(spec, open_end=engine is Engine.PLAIN)
    found = (got.rows, got.problem, got.full, got.left_open)
    return Sample(events, usage, report, *found, steady, tuple(state.seen))


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "failed: " + " ".join(lines[-2:])[-400:]


class _StateOnDisk:
    """Looks, every few seconds, at what checkpoints take on disk."""

    def __init__(self, work: Path) -> None:
        self._work, self._calls = work, 0
        self.seen: list[tuple[float, int]] = []

    def look(self) -> None:
        """Called every second."""
        if self._calls % _STATE_EVERY == 0:
            spark = (*self._work.glob("checkpoints/*/state"), *self._work.glob(".headrace/jobs/*/*/state"))
            own = self._work.glob("checkpoints/*/chk-*")
            total = sum(folder_bytes(folder) for folder in (*spark, *own))
            if total:
                self.seen.append((float(self._calls), total))
        self._calls += 1


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, as they are found while others write."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(where, name).stat().st_size
            except OSError:
                continue
    return total


def _rate(report: Report, spec: RunSpec) -> float | None:
    """From one commit to the next of a batch with rows; None: too few batches, or many queries."""
    if len(report.checkpoints) != 1:
        return None
    files = sorted(Path(spec.parquet).glob("*.parquet"))
    commits = Path(report.checkpoints[0]) / "commits"
    ends = [path.stat().st_mtime for n in range(len(files)) if (path := commits / str(n)).exists()]
    whole = len(files) // spec.files_per_batch
    gaps = [after - before for before, after in pairwise(ends[:whole])][_WARM_BATCHES - 1 :]
    if not gaps:
        return None
    rows = data.count(Path(spec.parquet)) / len(files) * spec.files_per_batch
    return rows / median(gaps)
