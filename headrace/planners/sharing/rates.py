"""Edge rates for a search: as floats, many at a time, and one kind of row for every method.

A tree is a row; weaving is the bitwise OR of rows; `rate` reads a row. Where the classes of a problem allow
a table (see atoms.py) the row holds marked atoms and reading it is a sum over states. Otherwise (hundreds of
slides into the thousands) the row is the set of the tree's classes, and its rate is found by conditioning on
the primes that its slides share.

Floats are within 1e-12 of the exact rate (sums of positive terms, a few thousand at most). The one exception
is a row that needs more than conditioning.BRANCHES branches: beyond that the events left are treated as
independent. Searches may use such a figure; a report never does: it is computed again, exactly or with
stated bounds, by edges.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.planners.sharing.atoms import Event, build_table
from headrace.planners.sharing.conditioning import read_set
from headrace.planners.sharing.jit import Floats, Ints, Rows, inner, kernel
from headrace.planners.sharing.primes import prime_powers

MOST_CELLS = 1 << 14
"""The widest table row. Beyond it, conditioning tree by tree is faster."""
__all__ = ["Floats", "Ints", "Rates", "Rows", "rates_of", "read"]


@dataclass(frozen=True)
class Rates:
    """The rows of the classes, and what reading a row needs."""

    rows: Rows
    tabled: bool
    weights: Floats
    values: Floats
    groups: Ints
    event_start: Ints
    """Events of class c: event_start[c] .. event_start[c + 1] - 1."""
    primes: Ints
    """primes[event, k]: the prime powers of the event's slide, 0 where there are fewer."""
    exponents: Ints
    residues: Ints
    """The event's residue modulo that prime power."""

    def of(self, rows: Rows) -> Floats:
        """The rates of many rows."""
        return read_rows(np.atleast_2d(rows), *self.tables)

    def with_class(self, rows: Rows, row: Rows) -> Floats:
        """The rates of many rows, each woven with the same other row."""
        return read_unions(rows, row, *self.tables)

    @property
    def tables(self) -> tuple[bool, Floats, Floats, Ints, Ints, Ints, Ints, Ints]:
        return (
            self.tabled,
            self.weights,
            self.values,
            self.groups,
            self.event_start,
            self.primes,
            self.exponents,
            self.residues,
        )


def rates_of(classes: Sequence[Sequence[Event]], most_cells: int = MOST_CELLS) -> Rates:
    """Prepare the rates of any union of `classes`."""
    table = build_table(classes, most_cells)
    if table is not None:
        none = np.zeros((0, 1), dtype=np.int64)
        return Rates(
            table.rows, True, table.weights, table.values, table.groups, none[:, 0], none, none, none
        )
    start, primes, exponents, residues = _events(classes)
    empty = np.zeros(0)
    groups = np.zeros(1, dtype=np.int64)
    return Rates(
        _members(len(classes)), False, empty, empty.reshape(0, 0), groups, start, primes, exponents, residues
    )


def _members(count: int) -> Rows:
    """Row i has only bit i: OR-ing rows makes sets."""
    rows = np.zeros((count, (count + 15) // 16), dtype=np.uint16)
    index = np.arange(count)
    rows[index, index // 16] = 1 << (index % 16)
    return rows


def _events(classes: Sequence[Sequence[Event]]) -> tuple[Ints, Ints, Ints, Ints]:
    powers = {s: prime_powers(s) for events in classes for _, s in events}
    width = max((len(f) for f in powers.values()), default=1) or 1
    flat = [event for events in classes for event in events]
    start = np.cumsum([0, *(len(events) for events in classes)], dtype=np.int64)
    primes, exponents, residues = (np.zeros((len(flat), width), dtype=np.int64) for _ in range(3))
    for i, (a, s) in enumerate(flat):
        for k, (p, e) in enumerate(powers[s]):
            primes[i, k], exponents[i, k], residues[i, k] = p, e, a % p**e
    return start, primes, exponents, residues


@inner
def read_table(row: Rows, weights: Floats, values: Floats, groups: Ints) -> float:
    """The rate of a row of marked atoms."""
    words = values.shape[0]
    silent = 0.0
    for state in range(weights.shape[0]):
        left = weights[state]
        base = state * words
        for g in range(groups.shape[0] - 1):
            taken = 0.0
            for k in range(groups[g], groups[g + 1]):
                taken += values[k, row[base + k]]
            left *= 1.0 - taken
            if left <= 0.0:
                break
        silent += left
    return 1.0 - silent


@inner
def read(
    row: Rows,
    tabled: bool,
    weights: Floats,
    values: Floats,
    groups: Ints,
    start: Ints,
    primes: Ints,
    exponents: Ints,
    residues: Ints,
) -> float:
    """The edge rate of one row, by whichever method the problem uses."""
    if tabled:
        return read_table(row, weights, values, groups)
    return read_set(row, start, primes, exponents, residues)


@kernel
def read_rows(
    rows: Rows,
    tabled: bool,
    weights: Floats,
    values: Floats,
    groups: Ints,
    start: Ints,
    primes: Ints,
    exponents: Ints,
    residues: Ints,
) -> Floats:
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        out[i] = read(rows[i], tabled, weights, values, groups, start, primes, exponents, residues)
    return out


@kernel
def read_unions(
    rows: Rows,
    row: Rows,
    tabled: bool,
    weights: Floats,
    values: Floats,
    groups: Ints,
    start: Ints,
    primes: Ints,
    exponents: Ints,
    residues: Ints,
) -> Floats:
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        out[i] = read(rows[i] | row, tabled, weights, values, groups, start, primes, exponents, residues)
    return out
