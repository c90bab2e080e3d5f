"""Sliding windows over a series of parts, two merges a window whatever its length.

A series is a sequence of parts; a window is n neighbouring ones. The series is cut into tiles of c parts, c
the largest power of two <= n (at most 64), at multiples of c. In a tile every suffix and every prefix is
folded once, and all windows of all queries of that scale share them:

    window = suffix of the tile it starts in (+) the whole tiles between (+) prefix of the tile it ends in

There is at most one whole tile between while n < 2c; longer windows ask the series of tile totals, once for
each change of tile, which is the same problem with n / c parts. So a window costs 2 merges + O(1 / c), the
suffixes and prefixes 2 merges a part for all queries together. That is the scheme of van Herk and of Gil and
Werman, with blocks that do not depend on the query. (The open tile is folded again at every advance: at most
c rows, for all queries together.)

Tiles stand at fixed places in time and folds have a fixed order: a window's value depends only on the parts
in it, its place and n, to the last bit, not on batches, restarts or the other keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from headrace.runtime.windows.lanes import PRESENCE, Array, Block, Lane
from headrace.runtime.windows.panels import Cells, Panel, Source, panel_of, standing, union, widened

TILE = 64
DIRECT = 4
"""Windows of at most so many parts are merged part by part: their tiles would be too small."""


def tile_size(length: int) -> int:
    """Of the tiles that windows of so many parts are cut into."""
    return min(TILE, 1 << (length.bit_length() - 1))


@dataclass(slots=True)
class _Tile:
    upto: int
    """Parts before this one are in it."""
    parts: Panel
    prefixes: dict[Lane, Block] = field(default_factory=dict)
    suffixes: dict[Lane, Block] = field(default_factory=dict)
    used: bool = True

    def prefix(self, lane: Lane) -> Block:
        if lane not in self.prefixes:
            self.prefixes[lane] = lane.running(self.parts.blocks[lane])
        return self.prefixes[lane]

    def suffix(self, lane: Lane) -> Block:
        if lane not in self.suffixes:
            self.suffixes[lane] = lane.running(self.parts.blocks[lane], backwards=True)
        return self.suffixes[lane]


Rows = Array | slice
Total = tuple[Array, dict[Lane, Block]]
"""Keys, and one row of each lane."""


@dataclass(slots=True)
class _Term:
    """What one stretch of windows takes from one place: rows of a block, or one row for all of them."""

    codes: Array
    full: bool
    block: Callable[[Lane], Block]
    spread: Array | None = None
    """Where its keys stand among those of all terms; None: they are the same."""


@dataclass(slots=True)
class _Stretch:
    """Rows low..high - 1 of a panel, and what they are made of."""

    low: int
    high: int
    terms: list[_Term]


class Scale:
    """A series cut into tiles of one size."""

    def __init__(self, source: Source, tile: int, lanes: tuple[Lane, ...]) -> None:
        self.source, self.size, self.lanes = source, tile, lanes
        self._tiles: dict[int, _Tile] = {}
        self.closed = 0
        """Parts before this one are over."""
        self._above: Series | None = None
        self._totals: dict[int, Total] = {}
        self._middles: dict[tuple[int, int], Panel] = {}

    def tile(self, number: int) -> _Tile:
        upto = min((number + 1) * self.size, self.closed)
        tile = self._tiles.get(number)
        if tile is None or tile.upto < upto:
            tile = self._tiles[number] = self._make(number)
        tile.used = True
        return tile

    def _make(self, number: int) -> _Tile:
        upto = min((number + 1) * self.size, self.closed)
        return _Tile(upto, panel_of(self.source, number * self.size, upto, self.lanes))

    def forget(self, before: int) -> None:
        """Drop the tiles that the last questions did not touch (they can be made again), and the totals of
        those that lie before a part."""
        self._tiles = {n: t for n, t in self._tiles.items() if t.used}
        for tile in self._tiles.values():
            tile.used = False
        self._totals = {n: t for n, t in self._totals.items() if n >= before // self.size}
        self._middles = {}
        if self._above is not None:
            self._above.forget(before // self.size)

    def touch(self, parts: Array) -> None:
        """These parts have changed: forget what they are in. The rest stays."""
        numbers = np.unique(parts // self.size)
        for number in numbers.tolist():
            self._tiles.pop(number, None)
            self._totals.pop(number, None)
        self._middles = {}
        if self._above is not None:
            self._above.touch(numbers)

    def total(self, number: int) -> Total:
        """The fold of a whole tile. It is kept, and a tile that was made only for it is not."""
        if number not in self._totals:
            tile = self._tiles.get(number)
            if tile is None or tile.upto < (number + 1) * self.size:
                tile = self._make(number)
            blocks = {lane: tuple(a[-1].copy() for a in tile.prefix(lane)) for lane in self.lanes}
            self._totals[number] = (tile.parts.codes, blocks)
        return self._totals[number]

    def above(self) -> Series:
        """The series of tile totals."""
        if self._above is None:
            self._above = Series(_TotalSource(self), self.lanes)
        self._above.close(self.closed // self.size)
        return self._above

    def windows(self, first: int, count: int, length: int, lanes: Sequence[Lane]) -> Panel:
        """The windows of `length` parts that start at parts first..first + count - 1."""
        stretches = []
        for low, high in self._cuts(first, count, length):
            head, last = low // self.size, (low + length - 1) // self.size
            opens, closes = low - head * self.size, low + length - 1 - last * self.size
            begin, end = slice(opens, opens + high - low), slice(closes, closes + high - low)
            stretches.append(_Stretch(low - first, high - first, self._terms(head, last, begin, end)))
        return _panel(stretches, count, lanes)

    def scattered(self, firsts: Array, lengths: Array, lanes: Sequence[Lane]) -> Panel:
        """Row k: the window of lengths[k] parts that starts at part firsts[k]."""
        lasts = firsts + lengths - 1
        heads, tails = firsts // self.size, lasts // self.size
        fresh = np.ones(len(firsts), np.bool_)
        fresh[1:] = (heads[1:] != heads[:-1]) | (tails[1:] != tails[:-1])
        cuts = [*np.flatnonzero(fresh).tolist(), len(firsts)]
        opens, closes = firsts - heads * self.size, lasts - tails * self.size
        stretches = [
            _Stretch(a, b, self._terms(int(heads[a]), int(tails[a]), opens[a:b], closes[a:b]))
            for a, b in pairwise(cuts)
        ]
        return _panel(stretches, len(firsts), lanes)

    def _cuts(self, first: int, count: int, length: int) -> Iterator[tuple[int, int]]:
        """Stretches of windows that start in one tile and end in one tile."""
        low, end = first, first + count
        while low < end:
            next_start = (low // self.size + 1) * self.size
            last = low + length - 1
            next_end = low + (last // self.size + 1) * self.size - last
            high = min(next_start, next_end, end)
            yield low, high
            low = high

    def _terms(self, head: int, last: int, opens: Rows, closes: Rows) -> list[_Term]:
        """What windows are made of that start in tile `head` and end in tile `last`, at these rows."""
        terms = [self._rows(head, opens, suffix=True)]
        between = last - head - 1
        if between > 0:
            terms.append(self._between(head + 1, between))
        if last > head:
            terms.append(self._rows(last, closes, suffix=False))
        # Time without rows adds nothing; leaving it out keeps the keys of what is left the same.
        return [term for term in terms if len(term.codes)] or terms[:1]

    def _rows(self, number: int, rows: Rows, *, suffix: bool) -> _Term:
        tile = self.tile(number)
        fold = tile.suffix if suffix else tile.prefix
        return _Term(tile.parts.codes, tile.parts.full, lambda lane: tuple(a[rows] for a in fold(lane)))

    def _between(self, tile: int, count: int) -> _Term:
        if count == 1:
            whole = self.tile(tile)
            return _Term(whole.parts.codes, whole.parts.full, lambda lane: _last_row(whole.prefix(lane)))
        panel = self._middles.get((tile, count))
        if panel is None:
            panel = self._middles[tile, count] = self.above().windows(tile, 1, count, self.lanes)
        blocks = panel.blocks
        return _Term(panel.codes, panel.full, lambda lane: blocks[lane])


def _panel(stretches: list[_Stretch], count: int, lanes: Sequence[Lane]) -> Panel:
    codes, same = union([term.codes for stretch in stretches for term in stretch.terms])
    if not same:
        for stretch in stretches:
            for term in stretch.terms:
                term.spread = standing(term.codes, codes)
    full = same and all(any(t.full for t in s.terms) for s in stretches) and len(codes) > 0
    blocks = {lane: lane.empty((count, len(codes))) for lane in lanes if lane is not PRESENCE or not full}
    for stretch in stretches:
        for lane, block in blocks.items():
            _fold_terms(lane, stretch.terms, len(codes), tuple(a[stretch.low : stretch.high] for a in block))
    if full:
        blocks[PRESENCE] = (np.broadcast_to(np.True_, (count, len(codes))),)
    return Panel(codes, count, blocks, full)


def _last_row(block: Block) -> Block:
    return tuple(a[-1:] for a in block)


def _fold_terms(lane: Lane, terms: list[_Term], width: int, out: Block) -> None:
    """out = the terms, from left to right."""
    blocks = [widened(lane, t.block(lane), t.spread, width) for t in terms]
    if len(blocks) == 1:
        for whole, part in zip(out, blocks[0], strict=True):
            whole[...] = part
        return
    lane.merge(blocks[0], blocks[1], out)
    for block in blocks[2:]:
        lane.merge(out, block, out)


class Series:
    """A source with the scales that its questions need."""

    def __init__(self, source: Source, lanes: tuple[Lane, ...]) -> None:
        self.source, self.lanes = source, lanes
        self._scales: dict[int, Scale] = {}
        self.closed = 0
        """Parts before this one are over; a late fragment may still `touch` them."""

    def close(self, parts: int) -> None:
        self.closed = parts

    def touch(self, parts: Array) -> None:
        """These parts have changed."""
        for scale in self._scales.values():
            scale.touch(parts)

    def windows(self, first: int, count: int, length: int, lanes: Sequence[Lane]) -> Panel:
        if length <= DIRECT:
            return self._direct(first, count, length, lanes)
        return self._scale(tile_size(length)).windows(first, count, length, lanes)

    def scattered(self, firsts: Array, lengths: Array, size: int, lanes: Sequence[Lane]) -> Panel:
        """Windows of any starts; `size` is the tile size of all the lengths."""
        return self._scale(size).scattered(firsts, lengths, lanes)

    def _scale(self, size: int) -> Scale:
        scale = self._scales.get(size)
        if scale is None:
            scale = self._scales[size] = Scale(self.source, size, self.lanes)
        scale.closed = self.closed
        return scale

    def _direct(self, first: int, count: int, length: int, lanes: Sequence[Lane]) -> Panel:
        parts = panel_of(self.source, first, first + count + length - 1, lanes)
        if length == 1:
            return parts
        blocks = {}
        for lane, block in parts.blocks.items():
            out = tuple(a[:count].copy() for a in block)
            for step in range(1, length):
                lane.merge(out, tuple(a[step : step + count] for a in block), out)
            blocks[lane] = out
        return Panel(parts.codes, count, blocks, parts.full)

    def forget(self, before: int) -> None:
        for scale in self._scales.values():
            scale.forget(before)


class _TotalSource:
    """The totals of a scale's tiles as parts of a coarser series."""

    def __init__(self, below: Scale) -> None:
        self._below = below

    @property
    def keys(self) -> int:
        return self._below.source.keys

    def cells(self, low: int, high: int) -> Cells:
        totals = [self._below.total(number) for number in range(low, high)]
        parts = np.repeat(np.arange(low, high), [len(codes) for codes, _ in totals])
        codes = np.concatenate([codes for codes, _ in totals])

        def block(lane: Lane) -> Block:
            rows = [blocks[lane] for _, blocks in totals]
            return tuple(np.concatenate([r[k] for r in rows]) for k in range(len(lane.dtypes)))

        return Cells(parts, codes, block)
