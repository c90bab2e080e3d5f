"""The arithmetic of a run, and its table. Needs no engine.

A figure is the median over the rounds. A ratio divides two medians of the same query in the same run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median

from rich.table import Table
from rich.text import Text


class Engine(StrEnum):
    PLAIN = "plain Spark"
    HEADRACE = "Headrace"
    DUCKDB = "DuckDB batch"


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one query on one engine."""

    wall: float
    cpu: float
    """Seconds, over all processes of the run: this one and the JVM."""
    output_rows: int
    problem: str = ""
    """Empty: the answer was right."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All rounds of one query on one engine."""

    query: str
    engine: Engine
    input_rows: int
    reference_rows: int
    samples: tuple[Sample, ...]

    @property
    def wall(self) -> float:
        return median(s.wall for s in self.samples)

    @property
    def cpu(self) -> float:
        return median(s.cpu for s in self.samples)

    @property
    def rows_per_second(self) -> float:
        return self.input_rows / self.wall

    @property
    def output_rows(self) -> int:
        return self.samples[-1].output_rows

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(s.problem for s in self.samples if s.problem)

    @property
    def answer(self) -> str:
        if self.problems:
            return "WRONG"
        left_open = self.reference_rows - self.output_rows
        return f"right, {left_open:,} left open" if left_open else "right"


@dataclass(frozen=True, slots=True)
class Ratio:
    wall: float
    cpu: float


def ratio(cells: Iterable[Cell], query: str, engine: Engine, base: Engine = Engine.PLAIN) -> Ratio:
    """How many times what `base` took `engine` took, for one query."""
    found = {cell.engine: cell for cell in cells if cell.query == query}
    return Ratio(found[engine].wall / found[base].wall, found[engine].cpu / found[base].cpu)


COLUMNS = (
    "query",
    "engine",
    "rows in",
    "rows out",
    "wall s",
    "min - max",
    "CPU s",
    "rows/s",
    "wall / plain",
    "CPU / plain",
    "answer",
)


def rows(cells: tuple[Cell, ...]) -> list[tuple[str, ...]]:
    """The table's rows as text."""
    shown: list[tuple[str, ...]] = []
    for cell in cells:
        beside = ratio(cells, cell.query, cell.engine)
        walls = [s.wall for s in cell.samples]
        figures = (
            f"{cell.input_rows:,}",
            f"{cell.output_rows:,}",
            f"{cell.wall:.2f}",
            f"{min(walls):.2f} - {max(walls):.2f}",
            f"{cell.cpu:.2f}",
            f"{cell.rows_per_second:,.0f}",
            f"{beside.wall:.2f}",
            f"{beside.cpu:.2f}",
        )
        shown.append((cell.query, cell.engine.value, *figures, cell.answer))
    return shown


def table(cells: tuple[Cell, ...]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in COLUMNS:
        made.add_column(column, justify="left" if column in ("query", "engine", "answer") else "right")
    before = ""
    for row in rows(cells):
        if before and row[0] != before:
            made.add_row()
        made.add_row(*map(Text, row), style="bold" if row[1] == Engine.HEADRACE else "")
        before = row[0]
    return made


def as_data(cells: tuple[Cell, ...]) -> list[dict[str, object]]:
    """The cells for a JSON file, samples included."""
    return [
        {
            "query": cell.query,
            "engine": cell.engine.value,
            "input_rows": cell.input_rows,
            "output_rows": cell.output_rows,
            "reference_rows": cell.reference_rows,
            "wall_seconds": cell.wall,
            "cpu_seconds": cell.cpu,
            "rows_per_second": cell.rows_per_second,
            "ratio_to_plain_spark": asdict(ratio(cells, cell.query, cell.engine)),
            "samples": [asdict(sample) for sample in cell.samples],
        }
        for cell in cells
    ]
