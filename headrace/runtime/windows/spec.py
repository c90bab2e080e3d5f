"""What a bucket is asked to answer, as data that travels to the workers as JSON.

The kept state does not depend on it: state is fragments under the names of their partial columns, so a
restart may bring another set of queries, and other partial columns, to the same state.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headrace.errors import InternalError
from headrace.plan.types import Column, DataType

FRAGMENT = "fragment_start"
"""The column of a pushed table that says where a row's fragment starts, in microseconds since the epoch."""


class PartialKind(StrEnum):
    """How two values of a partial column become one."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    """With COUNT and M2 of the same argument: merged by Chan's formula."""
    M2 = "m2"
    """Sum of squared differences from the mean."""
    SKETCH = "sketch"
    """The bytes of sketch.py: how many distinct values. Its type says nothing; it travels as binary."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial column. Its name is a function of what it computes, so that kept fragments can be recognised
    by a later set of queries."""

    name: str
    kind: PartialKind
    type: DataType


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    function: str
    """Of plan.functions.AGGREGATES."""
    partials: tuple[int, ...]
    """Positions in TreeSpec.partials: (count,), (sum,), (sum, count), (min,), (count, mean, m2),
    (sketch,)."""
    type: DataType


@dataclass(frozen=True, slots=True)
class QuerySpec:
    id: str
    range: int
    slide: int
    outputs: tuple[Output, ...]
    valid_from: int | None = None
    """Windows that start before this instant are not given. None: all are."""
    keys: tuple[int, ...] | None = None
    """Which of TreeSpec.keys the query groups by; fragments that differ in others are put together. None:
    all, in their order."""
    present: int | None = None
    """Position of the partial column that counts the rows of this query, where it does not want all: a
    window and key with none gives nothing, and late rows are counted by it. None: it wants all rows."""

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise InternalError(f"query {self.id}: range {self.range}, slide {self.slide}")

    @property
    def offset(self) -> int:
        """Where, after a multiple of the slide, a window closes."""
        return self.range % self.slide

    def first_after(self, instant: int) -> int:
        """The number of the first window that ends after `instant`; window k starts at k * slide."""
        return (instant - self.range) // self.slide + 1

    def last_by(self, instant: int) -> int:
        """The number of the last window that ends at `instant` or before."""
        return (instant - self.range) // self.slide


@dataclass(frozen=True, slots=True)
class TreeSpec:
    keys: tuple[Column, ...]
    partials: tuple[Partial, ...]
    queries: tuple[QuerySpec, ...]

    def __post_init__(self) -> None:
        names = [FRAGMENT, *(c.name for c in self.keys), *(p.name for p in self.partials)]
        if len(set(names)) != len(names):
            raise InternalError(f"TreeSpec: a column stands twice in {names}")
        for query in self.queries:
            if any(not 0 <= p < len(self.partials) for out in query.outputs for p in out.partials):
                raise InternalError(f"TreeSpec: query {query.id} reads a partial column that is not there")
            if query.keys is not None and any(not 0 <= k < len(self.keys) for k in query.keys):
                raise InternalError(f"TreeSpec: query {query.id} groups by a key that is not there")
            if query.present is not None and self.partials[query.present].kind is not PartialKind.COUNT:
                raise InternalError(f"TreeSpec: query {query.id} is present by what is no count")

    def to_json(self) -> str:
        return json.dumps(
            {
                "keys": [[c.name, c.type] for c in self.keys],
                "partials": [[p.name, p.kind, p.type] for p in self.partials],
                "queries": [_query_to_data(q) for q in self.queries],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TreeSpec:
        data = json.loads(text)
        return cls(
            tuple(Column(name, DataType(kind)) for name, kind in data["keys"]),
            tuple(Partial(n, PartialKind(k), DataType(t)) for n, k, t in data["partials"]),
            tuple(_query_from_data(q) for q in data["queries"]),
        )


def _query_to_data(query: QuerySpec) -> dict[str, Any]:
    return {
        "id": query.id,
        "range": query.range,
        "slide": query.slide,
        "outputs": [[o.name, o.function, list(o.partials), o.type] for o in query.outputs],
        "valid_from": query.valid_from,
        "keys": None if query.keys is None else list(query.keys),
        "present": query.present,
    }


def _query_from_data(data: dict[str, Any]) -> QuerySpec:
    outputs = tuple(Output(n, f, tuple(p), DataType(t)) for n, f, p, t in data["outputs"])
    keys = None if data["keys"] is None else tuple(data["keys"])
    size, slide = data["range"], data["slide"]
    return QuerySpec(data["id"], size, slide, outputs, data["valid_from"], keys, data["present"])
