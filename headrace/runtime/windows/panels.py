"""Parts of a series as dense blocks of [part, key], over the keys that are active in them and no others.

Blocks over different keys are brought together over the union of their keys; where the keys are the same,
which is the rule in a busy bucket, nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headrace.runtime.windows.lanes import Array, Block, Lane
from headrace.runtime.windows.log import Log


@dataclass(slots=True)
class Cells:
    """Parts of a series as single cells: each (part, key) once, in that order."""

    parts: Array
    codes: Array
    block: Callable[[Lane], Block]


class Source(Protocol):
    """Where the parts of a series come from."""

    @property
    def keys(self) -> int:
        """Codes are below this."""
        ...

    def cells(self, low: int, high: int) -> Cells: ...


@dataclass(slots=True)
class Panel:
    """Blocks of [row, key] over some of the keys."""

    codes: Array
    """Ascending."""
    rows: int
    blocks: dict[Lane, Block]
    full: bool = False
    """Every key has a row in every row of the panel, so the presence lane need not be looked at."""

    def take(self, rows: Array) -> Panel:
        blocks = {lane: tuple(a[rows] for a in block) for lane, block in self.blocks.items()}
        return Panel(self.codes, len(rows), blocks, self.full)


@dataclass(slots=True)
class FragmentSource:
    """Fragments rolled up to parts of one slide, or to the first `head` microseconds of each slide."""

    log: Log
    slide: int
    head: int | None = None
    keys: int = 0

    def cells(self, low: int, high: int) -> Cells:
        a, b = self.log.between(low * self.slide, high * self.slide)
        starts, codes = self.log.starts[a:b], self.log.codes[a:b]
        parts = starts // self.slide
        chosen: Array | None = None
        if self.head is not None:
            chosen = np.flatnonzero(starts - parts * self.slide < self.head)
            parts, codes = parts[chosen], codes[chosen]
        places = (parts - low) * self.keys + codes
        order, firsts = _groups(places)
        if order is not None:
            chosen = order if chosen is None else chosen[order]
            parts, codes = parts[order][firsts], codes[order][firsts]

        def block(lane: Lane) -> Block:
            raw = self.log.block(lane, a, b)
            raw = raw if chosen is None else tuple(v[chosen] for v in raw)
            return raw if order is None or not len(firsts) else lane.grouped(raw, firsts)

        return Cells(parts, codes, block)


def _groups(places: Array) -> tuple[Array | None, Array]:
    """The order that brings equal places together, and where each begins; None where all differ and are in
    order already."""
    if len(places) < 2 or bool((places[1:] > places[:-1]).all()):
        return None, places
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    return order, np.flatnonzero(np.concatenate([[True], sorted_places[1:] != sorted_places[:-1]]))


def panel_of(source: Source, low: int, high: int, lanes: Sequence[Lane]) -> Panel:
    """The parts low..high - 1, dense over the keys that are active in them."""
    cells = source.cells(low, high)
    codes, places = _active(cells.codes, source.keys)
    width, rows = len(codes), high - low
    full = len(cells.codes) == rows * width and width > 0
    blocks = {}
    for lane in lanes:
        values = cells.block(lane)
        if full:
            blocks[lane] = tuple(_own(v).reshape(rows, width, *lane.tail) for v in values)
            continue
        block = lane.blank((rows, width))
        where = (cells.parts - low) * width + places
        for whole, value in zip(block, values, strict=True):
            whole.reshape(-1, *lane.tail)[where] = value
        blocks[lane] = block
    return Panel(codes, rows, blocks, full)


def _own(values: Array) -> Array:
    """Not a view of the log, which moves its rows when late ones come between them."""
    return values if values.base is None else values.copy()


def _active(codes: Array, keys: int) -> tuple[Array, Array]:
    """The distinct codes, ascending, and the position of each code among them."""
    seen = np.zeros(keys, np.bool_)
    seen[codes] = True
    active = np.flatnonzero(seen)
    if len(active) == keys:
        return active, codes
    place = np.empty(keys, np.int64)
    place[active] = np.arange(len(active))
    return active, place[codes]


def union(sets: list[Array]) -> tuple[Array, bool]:
    """All codes, ascending, and whether every set is all of them."""
    first = sets[0]
    if all(s is first or np.array_equal(s, first) for s in sets[1:]):
        return first, True
    return np.unique(np.concatenate(sets)), False


def standing(have: Array, want: Array) -> Array | None:
    """Where some keys stand among more of them; None where they are the same."""
    return None if len(have) == len(want) else np.searchsorted(want, have)


def widened(lane: Lane, narrow: Block, places: Array | None, width: int) -> Block:
    """A block over more keys than it has."""
    if places is None:
        return narrow
    wide = lane.blank((len(narrow[0]), width))
    for whole, part in zip(wide, narrow, strict=True):
        whole[:, places] = part
    return wide


def merged(left: Panel, right: Panel) -> Panel:
    """left (+) right, row by row."""
    codes, same = union([left.codes, right.codes])
    mine, theirs = standing(left.codes, codes), standing(right.codes, codes)
    blocks = {}
    for lane in left.blocks:
        out = blocks[lane] = lane.empty((left.rows, len(codes)))
        wide = widened(lane, left.blocks[lane], mine, len(codes))
        lane.merge(wide, widened(lane, right.blocks[lane], theirs, len(codes)), out)
    full = (left.full and len(left.codes) == len(codes)) or (right.full and same)
    return Panel(codes, left.rows, blocks, full)
