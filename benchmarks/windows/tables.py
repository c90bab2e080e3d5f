"""The figures as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from benchmarks.windows.cells import AT_LEAST, FORETOLD, MEASURED, NOT, SCALED, Cell
from benchmarks.windows.engines import NAMES, Engine, Sample
from benchmarks.windows.spec import NONE
from headrace.units import format_size

HEADS = (
    "workload",
    "queries",
    "engine",
    "output",
    "CPU s",
    "/ Headrace",
    "events run",
    "wall s",
    "peak memory",
    "state on disk",
    "events/s",
    "rows out",
    "answer",
    "note",
)
_MARKS = {MEASURED: "", SCALED: "~", AT_LEAST: "≥ ", FORETOLD: "≈", NOT: ""}
LEGEND = (
    "CPU s: user and system time of all processes, from start to end. ~: scaled from two prefixes of the "
    "input, start-up + slope x events. ≥: what a prefix of the input took, or had taken when the limit came. "
    "≈: not run, foretold from fewer queries. / Headrace: CPU divided by Headrace's with the same output. "
    "wall, memory and state are of the events that were run. events/s: median of batches after the first "
    "three."
)


def base(cells: Iterable[Cell], cell: Cell) -> float | None:
    """Headrace's CPU in the same case."""
    same = (c for c in cells if c.engine is Engine.HEADRACE and c.case == cell.case)
    return next((c.cpu for c in same if c.cpu is not None), None)


def rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    return [_row(cells, cell) for cell in cells]


def _row(cells: Sequence[Cell], cell: Cell) -> tuple[str, ...]:
    case, sample, reference = cell.case, cell.sample, base(cells, cell)
    name = f"{case.workload}, {case.input.keys:,} keys, {case.input.span / 3600:.2g} h"
    name += f", range x {case.stretch}" if case.stretch > 1 else ""
    output = "dropped" if case.sink == NONE else "files"
    cpu = "n/a" if cell.cpu is None else f"{_MARKS[cell.kind]}{cell.cpu:,.1f}"
    least = _MARKS[AT_LEAST] if cell.kind == AT_LEAST else ""
    ratio = f"{least}{cell.cpu / reference:.2f}" if cell.cpu is not None and reference else ""
    head = (name, str(case.queries), NAMES[cell.engine], output, cpu, ratio)
    if sample is None or cell.kind == NOT:
        return (*head, *[""] * 7, cell.note)
    usage = sample.usage
    figures = (f"{sample.events:,}", f"{usage.wall:.1f}", format_size(usage.peak), _state(cell))
    rate = "" if sample.rate is None else f"{sample.rate:,.0f}"
    out = "" if sample.output_rows is None else f"{sample.output_rows:,}"
    return (*head, *figures, rate, out, _answer(cell), cell.note)


def _state(cell: Cell) -> str:
    """The last sample: the end of the run."""
    if cell.sample is None or not cell.sample.state:
        return ""
    return format_size(cell.sample.state[-1][1])


def _answer(cell: Cell) -> str:
    sample = cell.sample
    if sample is None or sample.output_rows is None:
        return ""
    if sample.usage.timed_out:
        return ""
    if sample.problem:
        return f"WRONG: {sample.problem}"
    how = "equal" if sample.full else "equal by sums"
    return f"{how}, {sample.left_open:,} left open" if sample.left_open else how


def markdown(cells: Sequence[Cell]) -> str:
    """One table; columns that are empty throughout are left out."""
    texts = rows(cells)
    shown = [n for n in range(len(HEADS)) if any(row[n] for row in texts)]
    aligned = ["--:" if 4 <= n <= 11 or n == 1 else "---" for n in shown]
    lines = [_line(HEADS[n] for n in shown), _line(aligned)]
    lines += [_line(row[n] for n in shown) for row in texts]
    return "\n".join([*lines, "", LEGEND])


def _line(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"


def as_data(cells: Iterable[Cell]) -> list[dict[str, object]]:
    return [
        {
            "workload": cell.case.workload,
            "queries": cell.case.queries,
            "range_times": cell.case.stretch,
            "engine": cell.engine.value,
            "output": cell.case.sink,
            "input": asdict(cell.case.input),
            "files_per_batch": cell.case.files_per_batch,
            "kind": cell.kind,
            "cpu_seconds": cell.cpu,
            "note": cell.note,
            "run": _run_data(cell.sample),
            "shorter_run": _run_data(cell.shorter),
        }
        for cell in cells
    ]


def _run_data(sample: Sample | None) -> dict[str, object] | None:
    """Without folders: they are of one machine, and are gone after the run."""
    return None if sample is None else asdict(replace(sample, report=replace(sample.report, checkpoints=[])))
