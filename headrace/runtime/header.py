"""Which columns the first line of a CSV file names.

Names are told apart without regard to case, as SQL and Spark do. A column that is not declared is passed
over. One that is declared and not named is a mistake, unlike in Parquet and JSON, where it is NULL: nothing
but this line says where the values of a CSV file are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from headrace.errors import UserError
from headrace.runtime.delimited import Field, read_delimited

_MOST = 1 << 20
"""Bytes that are read to find a first line. A longer one is cut, and then fits no file."""


def positions(header: Sequence[Field], declared: Sequence[str], path: object) -> list[int]:
    """Where each declared column is. Raises UserError where one is not, or a name is there twice."""
    names = [(name or "").lower() for name in header]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise UserError(
            f'{path}: its first line names the column "{twice}" twice',
            hint="Give each column a name of its own, or say header: false where the first line is data.",
        )
    lost = next((name for name in declared if name.lower() not in names), None)
    if lost is not None:
        raise UserError(
            f'{path}: its first line does not name the column "{lost}"',
            detail=f"It names {', '.join(name or '(nothing)' for name in header)}.",
            hint="Correct the names of the columns, or say header: false where the first line is data.",
        )
    return [names.index(name.lower()) for name in declared]


def first_line(path: Path, delimiter: str) -> list[Field] | None:
    """The fields of the first line of a file; None: it has none."""
    with path.open("rb") as file:
        # What is no UTF-8 is for who reads the whole file to say.
        text = file.read(_MOST).decode("utf-8-sig", errors="replace")
    return next(read_delimited(text, delimiter), None)
