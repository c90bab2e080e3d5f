"""Rows of a result to show: the newest, newest last, always in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa

from headrace.plan.logical import LogicalPlan

Cell = bool | int | float | str | datetime | date | None


@dataclass(frozen=True, slots=True)
class Rows:
    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    """How many there are in all."""


def rows_of(name: str, table: pa.Table, plan: LogicalPlan, limit: int) -> Rows:
    """The last `limit` rows of a result of `plan`, by time. `limit` 0: all of them."""
    columns = tuple(table.column_names)
    ordered = table.sort_by([(c, "ascending") for c in _time_order(plan, columns)])
    kept = ordered.slice(max(0, table.num_rows - limit)) if limit else ordered
    cells = tuple(tuple(row[c] for c in columns) for row in kept.to_pylist())
    return Rows(name, columns, cells, table.num_rows)


def _time_order(plan: LogicalPlan, columns: tuple[str, ...]) -> list[str]:
    """Window end, window start, event times, then all the rest, so that ties have an order too."""
    first = [plan.window.end, plan.window.start] if plan.window else list(plan.times)
    return list(dict.fromkeys((*(c for c in first if c in columns), *columns)))
