"""A mixed integer linear program as it is written down, block by block, and as a solver reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Term = tuple[Ints, Floats | float]
"""Variables, one row of them a constraint (or one each), and their coefficients."""
LARGEST = 1e6
"""Coefficient in a row whose limit is at most 1. HiGHS takes no model with one of 10^15."""


class OutOfTime(Exception):
    """The model was not ready in time."""


@dataclass(frozen=True)
class LinearModel:
    """Minimise cost @ v where low <= rows @ v <= high, lower <= v <= upper, some v whole numbers."""

    cost: Floats
    rows: csr_array
    low: Floats
    high: Floats
    lower: Floats
    upper: Floats
    whole: NDArray[np.bool_]

    @property
    def size(self) -> tuple[int, int]:
        """Constraints, variables."""
        return len(self.high), len(self.cost)


class Draft:
    """A model in the making. Variables are numbers; arrays of numbers stand for families of variables."""

    def __init__(self, over: Callable[[], bool] | None = None) -> None:
        """`over`: whether there is no time left, asked at every block of rows; then OutOfTime is raised."""
        self._over = over
        self._cost: list[Floats] = []
        self._upper: list[Floats] = []
        self._lower: list[Floats] = []
        self._whole: list[NDArray[np.bool_]] = []
        self._triplets: list[tuple[Ints, Ints, Floats]] = []
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        self._columns = 0
        self._rows = 0

    def variables(
        self, *shape: int, cost: Floats | float = 0.0, upper: float = 1.0, whole: bool = True
    ) -> Ints:
        """A family of variables in [0, upper]."""
        size = int(np.prod(shape))
        family = np.arange(self._columns, self._columns + size).reshape(shape)
        self._cost.append(np.broadcast_to(cost, shape).astype(np.float64).ravel())
        self._upper.append(np.full(size, upper))
        self._lower.append(np.zeros(size))
        self._whole.append(np.full(size, whole))
        self._columns += size
        return family

    def at_most(self, high: Floats | float, *terms: Term) -> None:
        """One constraint for each row of the terms: their sum is at most `high`."""
        self._constrain(-np.inf, high, terms)

    def exactly(self, value: Floats | float, *terms: Term) -> None:
        self._constrain(value, value, terms)

    def model(self, pins: dict[int, float], floors: dict[int, float]) -> LinearModel:
        """The model with some variables pinned to a value and others given a lower bound."""
        lower, upper = np.concatenate(self._lower), np.concatenate(self._upper)
        for column, value in floors.items():
            lower[column] = value
        for column, value in pins.items():
            lower[column] = upper[column] = value
        row, column_of, value_of = (np.concatenate(part) for part in zip(*self._triplets, strict=True))
        shape = (self._rows, self._columns)
        low, high = np.concatenate(self._low), np.concatenate(self._high)
        scale = _scales(row, value_of, low, high)
        return LinearModel(
            np.concatenate(self._cost),
            csr_array((value_of * scale[row], (row, column_of)), shape=shape),
            low * scale,
            high * scale,
            lower,
            upper,
            np.concatenate(self._whole),
        )

    def _constrain(self, low: Floats | float, high: Floats | float, terms: tuple[Term, ...]) -> None:
        if self._over is not None and self._over():
            raise OutOfTime
        count = len(terms[0][0])
        rows = np.arange(self._rows, self._rows + count)
        for columns, coefficients in terms:
            block = columns.reshape(count, -1)
            values = np.broadcast_to(coefficients, columns.shape).astype(np.float64)
            self._triplets.append((np.repeat(rows, block.shape[1]), block.ravel(), values.ravel()))
        self._low.append(np.broadcast_to(low, count).astype(np.float64))
        self._high.append(np.broadcast_to(high, count).astype(np.float64))
        self._rows += count


def _scales(row: Ints, values: Floats, low: Floats, high: Floats) -> Floats:
    """By what to multiply each row, so that a limit is 1: solvers allow an absolute error, which must be
    small whatever units a problem is written in. Not where others would be too large for a solver then."""
    largest = np.zeros(len(high))
    np.maximum.at(largest, row, np.abs(values))
    size = np.where(high > 0, np.maximum(high, largest / LARGEST), largest)
    return np.where(
        np.isneginf(low) & np.isfinite(high) & (size > 0), 1.0 / np.where(size > 0, size, 1.0), 1.0
    )
