"""From merged lanes to the columns of an answer, with the meaning of plan/functions.py: NULL where no value
went in, a sample variance of one value is NULL, a BIGINT sum that does not fit stops the job (bigints.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from headrace.plan.types import DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows.bigints import has_wrapped, overflow
from headrace.runtime.windows.lanes import (
    NUMPY,
    Array,
    Block,
    Fold,
    Lane,
    lane_of,
    magnitude,
    moments,
    validity,
)
from headrace.runtime.windows.sketch import estimate
from headrace.runtime.windows.spec import Output, Partial

T = DataType
Lookup = Callable[[Lane], Block]
Values = tuple[Array, Array | None]
"""Values, and where they hold; None: everywhere."""


class Finisher:
    """How one output column is made. Which lanes it reads depends on what the data has shown so far: without
    NULLs nothing need be asked about them, and small sums need no check."""

    def __init__(
        self, output: Output, partials: tuple[Partial, ...], nullable: list[bool], wide: list[bool]
    ) -> None:
        self.output = output
        own = [lane_of(p, partials[p]) for p in output.partials]
        self._lanes = [moments(*output.partials)] if len(own) == 3 else own
        first = output.partials[0]
        summed = output.function in ("sum", "avg") and partials[first].type is T.BIGINT
        self._valid = (
            validity(first) if nullable[first] and output.function in ("sum", "min", "max") else None
        )
        self._size = magnitude(first) if summed and wide[first] else None

    @property
    def lanes(self) -> list[Lane]:
        return [lane for lane in (*self._lanes, self._valid, self._size) if lane is not None]

    @property
    def watched(self) -> bool:
        """Whether the sum may not fit."""
        return self._size is not None

    def refuse_overflow(self, lookup: Lookup, low: int, high: int, query: str) -> None:
        """`low` and `high` say which cells are those of the query."""
        if self._size is None:
            return
        wrapped, real = lookup(self._lanes[0])[0], lookup(self._size)[0]
        if has_wrapped(wrapped[low:high], real[low:high]):
            raise overflow(self.output.name, query)

    def column(self, lookup: Lookup) -> pa.Array:
        """Of all cells, whether their sums fit or not."""
        values, valid = self._values(lookup)
        return to_arrow(values, valid, self.output.type)

    def _values(self, lookup: Lookup) -> Values:
        main = lookup(self._lanes[0])
        if self._lanes[0].fold is Fold.SKETCH:
            return estimate(main[0]), None
        if self._lanes[0].fold is Fold.MOMENTS:
            return _spread(self.output.function, main[0], main[2])
        if self.output.function == "avg":
            return _ratio(main[0], lookup(self._lanes[1])[0])
        return main[0], None if self._valid is None else lookup(self._valid)[0]


def _ratio(total: Array, count: Array) -> Values:
    if bool(count.all()):
        return total / count, None
    some = count > 0
    return np.divide(total, count, out=np.zeros(len(count)), where=some), some


def _spread(function: str, count: Array, m2: Array) -> Values:
    divisor = count - 1 if function.endswith("_samp") else count
    values, some = _ratio(m2, np.maximum(divisor, 0))
    return (np.sqrt(values) if function.startswith("stddev") else values), some


def to_arrow(values: Array, valid: Array | None, kind: DataType) -> pa.Array:
    """A column without a copy where numpy and Arrow lay it out alike."""
    if valid is not None and bool(valid.all()):
        valid = None
    if kind is T.STRING:
        mask = None if valid is None else ~valid
        return pa.array(values, pa.string(), mask=mask, from_pandas=False)
    if kind is T.BOOLEAN:
        return pa.array(values.astype(np.bool_), mask=None if valid is None else ~valid)
    data = np.ascontiguousarray(values, NUMPY[kind])
    marks = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(ARROW[kind], len(data), [marks, pa.py_buffer(data)])
