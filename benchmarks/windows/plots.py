"""Figures for docs/: CPU over the number of queries, CPU over the range, state over a day. SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.windows.cells import AT_LEAST, MEASURED, Cell
from benchmarks.windows.engines import NAMES, Engine
from benchmarks.windows.spec import FILES

_COLOURS = {
    Engine.PLAIN: "#b8442f",
    Engine.FRAGMENTS: "#c99a2e",
    Engine.HEADRACE: "#1f6fb2",
    Engine.FLINK: "#7a4fa3",
    Engine.DUCKDB: "#6b6b6b",
}


def draw(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Every figure that the cells have something for."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for workload in dict.fromkeys(cell.case.workload for cell in cells):
        found = [c for c in cells if _counts(c) and c.case.workload == workload and c.case.stretch == 1]
        found = [c for c in found if c.case.input == found[0].case.input]
        if len({cell.case.queries for cell in found}) > 1:
            made += over_queries(found, workload, folder / f"cpu-{workload}")
    inputs = {cell.case.input for cell in cells if cell.case.stretch > 1}
    found = [c for c in cells if _counts(c) and c.case.input in inputs]
    if len({cell.case.stretch for cell in found}) > 1:
        made += over_range(found, folder / "cpu-range")
    return made


def _counts(cell: Cell) -> bool:
    return cell.cpu is not None and cell.case.sink == FILES and cell.engine in _COLOURS


def _new(title: str, across: str, up: str) -> tuple[Any, Any]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path) -> list[Path]:
    from matplotlib import pyplot as plt

    paths = [path.with_suffix(suffix) for suffix in (".svg", ".png")]
    for each in paths:
        # Without a date the file changes only when the figures do.
        figure.savefig(each, dpi=130, metadata={"Date": None} if each.suffix == ".svg" else None)
    plt.close(figure)
    return paths


def _series(axes: Any, cells: Sequence[Cell], engine: Engine, across: Sequence[float]) -> None:
    """A line for one engine; hollow marks are figures that were not measured over the whole input. What is
    only known to be more is no part of the line."""
    colour = _COLOURS[engine]
    points = list(zip(across, cells, strict=True))
    known = [(place, cell.cpu) for place, cell in points if cell.kind != AT_LEAST]
    axes.plot(
        *zip(*known, strict=True) if known else ([], []), color=colour, linewidth=1.6, label=NAMES[engine]
    )
    for place, cell in points:
        fill, mark = colour if cell.kind == MEASURED else "white", "^" if cell.kind == AT_LEAST else "o"
        axes.plot([place], [cell.cpu], mark, color=colour, markerfacecolor=fill, markersize=6)


def _title(cells: Sequence[Cell]) -> str:
    given = cells[0].case.input
    return f"{given.events:,} events, {given.span / 3600:g} h, {given.keys} keys"


def over_queries(cells: Sequence[Cell], workload: str, path: Path) -> list[Path]:
    figure, axes = _new(f"{workload}: {_title(cells)}", "queries", "CPU seconds")
    for engine in _COLOURS:
        own = sorted((c for c in cells if c.engine is engine), key=lambda c: c.case.queries)
        if own:
            _series(axes, own, engine, [cell.case.queries for cell in own])
    counts = sorted({cell.case.queries for cell in cells})
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)
    axes.annotate(
        "hollow: scaled or foretold; triangle: more than this",
        (0.99, 0.01),
        xycoords="axes fraction",
        ha="right",
        fontsize=8,
    )
    return _save(figure, path)


def over_range(cells: Sequence[Cell], path: Path) -> list[Path]:
    queries = max(cell.case.queries for cell in cells)
    figure, axes = _new(f"{queries} queries, slide 1 s, {_title(cells)}", "range, seconds", "CPU seconds")
    for engine in _COLOURS:
        own = sorted((c for c in cells if c.engine is engine), key=lambda c: c.case.stretch)
        if own:
            _series(axes, own, engine, [cell.case.made[0].range for cell in own])
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    ranges = sorted({cell.case.made[0].range for cell in cells})
    axes.set_xticks(ranges, [f"{length:,}" for length in ranges])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)
    return _save(figure, path)


def over_day(state: Sequence[tuple[float, int]], path: Path) -> list[Path]:
    """State on disk over a run; the run goes through event time at an even pace."""
    figure, axes = _new("24 h of event time: state on disk", "share of the run", "MiB")
    last = state[-1][0]
    axes.plot(
        [s / last for s, _ in state], [size / 2**20 for _, size in state], color=_COLOURS[Engine.HEADRACE]
    )
    axes.set_ylim(bottom=0)
    return _save(figure, path)
