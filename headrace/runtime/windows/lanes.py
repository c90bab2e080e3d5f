"""Lanes: the quantities that are merged, each an operation with an identity over arrays of any shape.

A block is a tuple of equal-shaped arrays: one array for a sum, a minimum, a maximum or a mark, three for the
moments (count, mean, M2). A sketch has one array with an axis more, that of its registers. Nothing is ever
subtracted, so nothing drifts, and every fold goes in one fixed order: from left to right, or from right to
left.

NaN is larger than every number, as in Spark: a minimum passes it over (fmin), a maximum gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.plan.types import DataType
from headrace.runtime.windows.sketch import REGISTERS
from headrace.runtime.windows.spec import Partial, PartialKind, TreeSpec

Array = npt.NDArray[Any]
Block = tuple[Array, ...]
T = DataType

NUMPY: dict[DataType, Any] = {
    T.BOOLEAN: np.dtype(np.uint8),
    T.INT: np.dtype(np.int32),
    T.BIGINT: np.dtype(np.int64),
    T.FLOAT: np.dtype(np.float32),
    T.DOUBLE: np.dtype(np.float64),
    T.STRING: np.dtype(object),
    T.DATE: np.dtype(np.int32),
    T.TIMESTAMP: np.dtype(np.int64),
}
"""How the values of a column are held. Dates are days, timestamps microseconds."""


class _Last:
    """Larger than every string: the identity of a minimum of strings."""

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return other is self

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __ge__(self, other: object) -> bool:
        return True


LAST = _Last()


class Fold(Enum):
    ADD = "add"
    MIN = "min"
    MAX = "max"
    ANY = "any"
    """Whether there is a row, or a row with a value, at all."""
    MOMENTS = "moments"
    SKETCH = "sketch"


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """There is one object for each lane (the functions below remember what they made), so lanes are compared
    by identity: they are looked up many times a batch."""

    fold: Fold
    columns: tuple[int, ...]
    """Partial columns it reads: none for the presence of rows."""
    dtypes: tuple[Any, ...]
    identity: tuple[Any, ...]
    ufunc: np.ufunc
    """Not used by moments, which have a merge of their own."""
    tail: tuple[int, ...] = ()
    """The axes that every single value has."""

    def blank(self, shape: tuple[int, ...]) -> Block:
        """A block of identities."""
        whole = shape + self.tail
        return tuple(np.full(whole, i, d) for i, d in zip(self.identity, self.dtypes, strict=True))

    def empty(self, shape: tuple[int, ...]) -> Block:
        return tuple(np.empty(shape + self.tail, d) for d in self.dtypes)

    def merge(self, left: Block, right: Block, out: Block) -> None:
        """out = left (+) right; `out` may be either of them."""
        if self.fold is Fold.MOMENTS:
            _merge_moments(left, right, out)
        else:
            self.ufunc(left[0], right[0], out=out[0])

    def running(self, block: Block, backwards: bool = False) -> Block:
        """Row i: the fold of rows 0..i, or of rows i.. to the end, last row first."""
        view = tuple(a[::-1] for a in block) if backwards else block
        if self.fold is not Fold.MOMENTS:
            done: Block = (self.ufunc.accumulate(view[0], axis=0, dtype=self.dtypes[0]),)
        else:
            done = tuple(a.copy() for a in view)
            for row in range(1, len(done[0])):
                now = tuple(a[row] for a in done)
                _merge_moments(tuple(a[row - 1] for a in done), now, now)
        return tuple(a[::-1] for a in done) if backwards else done

    def grouped(self, block: Block, firsts: Array) -> Block:
        """One value for each group of neighbours; `firsts` are the positions where groups begin."""
        if self.fold is not Fold.MOMENTS:
            return (self.ufunc.reduceat(block[0], firsts, dtype=self.dtypes[0]),)
        ends = np.append(firsts[1:], len(block[0]))
        done = tuple(a[firsts] for a in block)
        for rank in range(1, int((ends - firsts).max())):
            more = np.flatnonzero(ends - firsts > rank)
            left, right = tuple(a[more] for a in done), tuple(a[firsts[more] + rank] for a in block)
            _merge_moments(left, right, left)
            for whole, part in zip(done, left, strict=True):
                whole[more] = part
        return done


def _merge_moments(left: Block, right: Block, out: Block) -> None:
    """Chan, Golub, LeVeque. With an empty side the other comes out unchanged, to the bit."""
    with np.errstate(invalid="ignore", over="ignore"):
        count = left[0] + right[0]
        delta = right[1] - left[1]
        share = np.divide(right[0], count, out=np.zeros_like(count), where=count > 0)
        # This order keeps delta * delta, which may overflow, away from a count of 0.
        spread = delta * (left[0] * share) * delta
        np.add(left[1], delta * share, out=out[1])
        np.add(left[2] + right[2], spread, out=out[2])
    out[0][...] = count


_BOOL = (np.dtype(np.bool_),)
_REAL = (np.dtype(np.float64),)
PRESENCE = Lane(Fold.ANY, (), _BOOL, (False,), np.logical_or)


@cache
def validity(column: int) -> Lane:
    """Whether the column has a value that is not NULL."""
    return Lane(Fold.ANY, (column,), _BOOL, (False,), np.logical_or)


@cache
def magnitude(column: int) -> Lane:
    """A BIGINT sum again, in doubles: beside the wrapped sum it shows an overflow (bigints.py)."""
    return Lane(Fold.ADD, (column,), _REAL, (-0.0,), np.add)


@cache
def moments(count: int, mean: int, m2: int) -> Lane:
    return Lane(Fold.MOMENTS, (count, mean, m2), _REAL * 3, (0.0, 0.0, 0.0), np.add)


@cache
def lane_of(position: int, partial: Partial) -> Lane:
    """The lane of one partial column by itself."""
    dtype = NUMPY[partial.type]
    match partial.kind:
        case PartialKind.SKETCH:
            ranks = (np.dtype(np.uint8),)
            return Lane(Fold.SKETCH, (position,), ranks, (0,), np.maximum, (REGISTERS,))
        case PartialKind.MIN:
            ufunc = np.fmin if dtype.kind == "f" else np.minimum
            return Lane(Fold.MIN, (position,), (dtype,), (_largest(dtype),), ufunc)
        case PartialKind.MAX:
            return Lane(Fold.MAX, (position,), (dtype,), (_smallest(dtype),), np.maximum)
    # -0.0 is what changes nothing when added; 0.0 would change -0.0.
    return Lane(Fold.ADD, (position,), (dtype,), (dtype.type(-0.0),), np.add)


def every_lane(spec: TreeSpec) -> tuple[Lane, ...]:
    """Lanes that between them have all partial columns; moments also have the count, which is a column by
    itself."""
    threes = {o.partials for q in spec.queries for o in q.outputs if len(o.partials) == 3}
    spread = {position for three in threes for position in three[1:]}
    alone = (lane_of(k, p) for k, p in enumerate(spec.partials) if k not in spread)
    return (*alone, *(moments(*three) for three in sorted(threes)))


def _largest(dtype: Any) -> Any:
    if dtype.kind == "O":
        return LAST
    return dtype.type(np.nan) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


def _smallest(dtype: Any) -> Any:
    if dtype.kind == "O":
        return ""
    return dtype.type(-np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).min)
