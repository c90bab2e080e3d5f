"""Columns as the file writes them: `name: type`, the type by its own name or by a common other one."""

from __future__ import annotations

import re

from headrace.catalog.document import Data, Trail
from headrace.catalog.problems import Problem, shown
from headrace.catalog.translate import wrong_type
from headrace.ids import did_you_mean
from headrace.plan.types import COLUMN_TYPES, DataType

ALIASES = {
    "integer": DataType.INT,
    "int32": DataType.INT,
    "long": DataType.BIGINT,
    "int64": DataType.BIGINT,
    "real": DataType.FLOAT,
    "float32": DataType.FLOAT,
    "float64": DataType.DOUBLE,
    "text": DataType.STRING,
    "varchar": DataType.STRING,
    "bool": DataType.BOOLEAN,
    "datetime": DataType.TIMESTAMP,
}
TYPES: dict[str, DataType] = {**{t.value: t for t in COLUMN_TYPES}, **ALIASES}
"""Every type name a file may use."""

REFUSED = {
    "decimal": "use double, or bigint for amounts in the smallest unit",
    "numeric": "use double, or bigint for amounts in the smallest unit",
    "array": "give each element its own row",
    "list": "give each element its own row",
    "map": "give each key its own column",
    "struct": "give each field its own column",
    "interval": "use bigint, and say the unit in the column's name",
    "binary": "use string",
    "timestamp_ntz": "use timestamp: every time here is an instant in UTC",
}
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


def read_columns(body: Data, trail: Trail) -> tuple[dict[str, Data], list[Problem]]:
    """Column name -> our own name of its type, and what is wrong."""
    if not isinstance(body, dict):
        return {}, [wrong_type("a mapping (name: type)", body, trail)]
    if not body:
        return {}, [Problem(trail, f"{shown(trail)} names no column", "Write: columns: {ts: timestamp}")]
    columns: dict[str, Data] = {}
    problems = _doubles(body, trail)
    for name, written in body.items():
        if not _COLUMN.match(name):
            hint = "A column is letters, digits and _, at most 64, and does not start with a digit."
            problems.append(Problem((*trail, name), f'"{name}" is not a column name', hint, at_key=True))
        elif name.startswith("__"):
            hint = "Such names are kept for Headrace itself; rename the column."
            problems.append(Problem((*trail, name), f'"{name}" begins with two _', hint, at_key=True))
        found = read_type(written, (*trail, name))
        if isinstance(found, Problem):
            problems.append(found)
        else:
            columns[name] = found.value
    return columns, problems


def read_type(written: Data, trail: Trail) -> DataType | Problem:
    if not isinstance(written, str):
        return wrong_type("the name of a type", written, trail)
    name = written.strip().lower()
    if name in TYPES:
        return TYPES[name]
    base = re.split(r"[(<\[ ]", name)[0]
    if base in REFUSED:
        message = f'{shown(trail)}: columns of type "{written}" are not supported'
        return Problem(trail, message, REFUSED[base][0].upper() + REFUSED[base][1:] + ".", refused=True)
    if base in TYPES:
        hint = f'Write "{TYPES[base]}".'
    else:
        hint = did_you_mean(name, [t.value for t in COLUMN_TYPES], "types")
    return Problem(trail, f'{shown(trail)}: "{written}" is not a type', hint)


def _doubles(body: dict[str, Data], trail: Trail) -> list[Problem]:
    """Spark does not tell names apart by case."""
    seen: dict[str, str] = {}
    problems = []
    for name in body:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            message = f'columns "{first}" and "{name}" differ only in case'
            problems.append(Problem((*trail, name), message, "Rename one of them.", at_key=True))
    return problems
