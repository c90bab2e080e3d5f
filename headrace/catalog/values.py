"""Whether a value written in the project file fits a column: rows of a table, constants of a generator.

Times and dates are written as text. Nothing is converted: `"1"` is not an int, `1.5` is not an int.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from headrace.catalog.model import Table
from headrace.catalog.problems import Problem, shown
from headrace.catalog.translate import described
from headrace.plan.types import INTEGERS, DataType
from headrace.units import counted, parse_instant

Value = str | int | float | bool | None
BITS = {DataType.INT: 32, DataType.BIGINT: 64}


def misfit(value: Value, kind: DataType) -> str | None:
    """What the column wants instead of this value; None where the value fits. NULL fits everywhere."""
    if value is None:
        return None
    match kind:
        case DataType.BOOLEAN:
            return None if isinstance(value, bool) else "true or false"
        case DataType.STRING:
            return None if isinstance(value, str) else "text (put it in quotes)"
        case DataType.TIMESTAMP:
            return None if _is_instant(value) else 'an instant like "2024-05-01 12:00:00"'
        case DataType.DATE:
            return None if _is_date(value) else 'a date like "2024-05-01"'
    if isinstance(value, (bool, str)):
        return "a whole number" if kind in INTEGERS else "a number"
    return _misfit_integer(value, kind) if kind in INTEGERS else None


def _misfit_integer(value: int | float, kind: DataType) -> str | None:
    if isinstance(value, float):
        return "a whole number"
    limit = 1 << (BITS[kind] - 1)
    return None if -limit <= value < limit else f"a number of {BITS[kind]} bits"


def _is_instant(value: Value) -> bool:
    try:
        return isinstance(value, str) and parse_instant(value) is not None
    except (ValueError, OverflowError):
        return False


def _is_date(value: Value) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value) is not None
    except ValueError:
        return False


def check_rows(table: Table) -> Iterator[Problem]:
    """Every inline row has as many values as the table has columns, each of its column's type."""
    width = len(table.columns)
    for number, row in enumerate(table.rows or ()):
        place = ("tables", table.name, "rows", number)
        if len(row) != width:
            columns = ", ".join(table.columns)
            message = (
                f"row {number + 1} has {counted(len(row), 'value')}, the table has {counted(width, 'column')}"
            )
            yield Problem(place, message, f"The columns in order: {columns}.")
            continue
        for position, (value, (name, kind)) in enumerate(zip(row, table.columns.items(), strict=True)):
            wanted = misfit(value, kind)
            if wanted is not None:
                message = (
                    f'row {number + 1}: column "{name}" ({kind}) must be {wanted}, not {described(value)}'
                )
                hint = f"Write {wanted}, or null; or declare the column with another type."
                yield Problem((*place, position), message, hint)


def check_table(table: Table) -> Iterator[Problem]:
    """A table has its rows from exactly one place."""
    place = ("tables", table.name)
    if table.source is not None and table.rows is not None:
        message = f'{shown(place)} has both "source" and "rows"'
        yield Problem((*place, "rows"), message, "Keep one of them.", at_key=True)
    elif table.source is None and table.rows is None:
        hint = 'Add "rows:" with a list of rows, or "source:" with a file.'
        yield Problem(place, f'{shown(place)} has neither "source" nor "rows"', hint, at_key=True)
    yield from check_rows(table)
