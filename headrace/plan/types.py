"""Types of columns, and schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from headrace.errors import InternalError


class DataType(StrEnum):
    BOOLEAN = "boolean"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    """Only inside expressions: a duration added to a timestamp. Never a column."""


INTEGERS = frozenset({DataType.INT, DataType.BIGINT})
NUMBERS = INTEGERS | {DataType.FLOAT, DataType.DOUBLE}
COLUMN_TYPES = tuple(t for t in DataType if t is not DataType.INTERVAL)


def common_number(left: DataType, right: DataType) -> DataType:
    """The type two numbers meet in. Integers meet in BIGINT, so that INT arithmetic cannot wrap."""
    if left in INTEGERS and right in INTEGERS:
        return DataType.BIGINT
    return DataType.DOUBLE


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: DataType

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


class Schema:
    """An ordered set of columns with distinct names."""

    __slots__ = ("_by_name", "columns")

    def __init__(self, columns: Iterable[Column]) -> None:
        self.columns: tuple[Column, ...] = tuple(columns)
        self._by_name = {c.name: c for c in self.columns}
        if len(self._by_name) != len(self.columns):
            names = [c.name for c in self.columns]
            twice = sorted({n for n in names if names.count(n) > 1})
            raise InternalError(f"schema names a column twice: {', '.join(twice)}")

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(self.columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(map(str, self.columns))})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)
