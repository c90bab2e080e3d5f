"""From the log to the batches of every query. Queries with the same window are answered by one merge, those
with the same slide share parts, suffixes and prefixes.

A window is floor(range / slide) parts of the slide and, where the range is no multiple of it, the head of the
next part. What is held here can all be made again from the log.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace.runtime.windows.gang import Gang, Group, gangs_of
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.lanes import Array, Lane
from headrace.runtime.windows.log import Log
from headrace.runtime.windows.panels import FragmentSource, Panel, merged
from headrace.runtime.windows.readers import Frame, Frames, Reader, joined, reader_of
from headrace.runtime.windows.runs import next_window, runs
from headrace.runtime.windows.scan import Series
from headrace.runtime.windows.spec import Partial, QuerySpec

_CELLS = 1 << 16
"""Windows are worked off in stretches of about so many cells, which stay in the processor's cache."""


class Answers:
    def __init__(
        self, partials: tuple[Partial, ...], queries: list[tuple[int, QuerySpec]], log: Log, keys: Keys
    ) -> None:
        self._log, self._keys, self._frames = log, keys, Frames(keys)
        found: dict[tuple[int, int, int | None], list[Reader]] = {}
        for number, query in queries:
            windows = (query.slide, query.range, query.valid_from)
            found.setdefault(windows, []).append(reader_of(number, query, partials, log))
        self._groups = [Group(readers) for readers in found.values()]
        self._gangs = gangs_of(self._groups)
        self._sources: list[FragmentSource] = []
        self._parts: dict[int, Series] = {}
        self._heads: dict[tuple[int, int], Series] = {}
        self._series()

    def _series(self) -> None:
        """One series for each slide, and one for each head of it, with the lanes that their queries need."""
        parts: dict[int, dict[Lane, None]] = {}
        heads: dict[tuple[int, int], dict[Lane, None]] = {}
        for group in self._groups:
            lanes = dict.fromkeys(group.lanes)
            parts.setdefault(group.slide, {}).update(lanes)
            if group.head:
                heads.setdefault((group.slide, group.head), {}).update(lanes)
        self._parts = {slide: self._one(slide, None, lanes) for slide, lanes in parts.items()}
        self._heads = {(s, head): self._one(s, head, lanes) for (s, head), lanes in heads.items()}

    def _one(self, slide: int, head: int | None, lanes: dict[Lane, None]) -> Series:
        self._sources.append(FragmentSource(self._log, slide, head))
        return Series(self._sources[-1], tuple(lanes))

    def between(self, after: int | None, upto: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The windows that end later than `after`, and at `upto` or before."""
        for source in self._sources:
            source.keys = len(self._keys)
        for slide, series in self._parts.items():
            series.close(upto // slide)
        for gang in self._gangs:
            few, many = gang.due(after, upto, len(self._keys))
            for some in few:
                yield from self._gang(gang, some)
            for group in many:
                yield from self._group(group, after, upto)
        self._frames.clear()

    # Several windows of few queries.

    def _group(self, group: Group, after: int | None, upto: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        query = group.query
        pieces: list[list[pa.RecordBatch]] = [[] for _ in group.readers]
        first, last = next_window(query, after), query.last_by(upto)
        for low, count in runs(query, self._log.starts, first, last, self._most(group)):
            panel = self._panel(group, low, count)
            opens = np.arange(low, low + count) * query.slide
            made: dict[Lane | None, Frame] = {}
            for piece, reader in zip(pieces, group.readers, strict=True):
                if reader.counts not in made:
                    frame = self._frames.of(panel, opens, opens + query.range, reader.counts)
                    made[reader.counts] = frame
                frame = made[reader.counts]
                if len(frame):
                    frame.refuse_overflow(reader, 0, len(frame))
                    piece.append(frame.batch(reader))
        for piece, reader in zip(pieces, group.readers, strict=True):
            if piece:
                yield reader.index, joined(piece)

    def _most(self, group: Group) -> int:
        """How many windows at a time; few where a value is not 8 bytes but hundreds."""
        size = max((lane.tail[0] // 8 for lane in group.lanes if lane.tail), default=0)
        fit = _CELLS // max(1, len(self._keys))
        return max(1, fit * 8 // size) if size else max(group.length, fit, 1)

    def _panel(self, group: Group, first: int, count: int) -> Panel:
        if not group.head:
            return self._parts[group.slide].windows(first, count, group.length, group.lanes)
        rest = self._heads[group.slide, group.head].windows(first + group.length, count, 1, group.lanes)
        if not group.length:
            return rest
        whole = self._parts[group.slide].windows(first, count, group.length, group.lanes)
        return merged(whole, rest)

    # Few windows of several queries.

    def _gang(self, gang: Gang, some: Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """`some` are (group of the gang, window) in the order of groups."""
        owner, window = some
        opens = window * gang.slide
        closes = opens + gang.ranges[owner]
        starts = self._log.starts
        filled = np.searchsorted(starts, opens) < np.searchsorted(starts, closes)
        if not bool(filled.all()):
            owner, window, opens, closes = (a[filled] for a in (owner, window, opens, closes))
        if not len(owner):
            return
        panel = self._scattered(gang, window, gang.lengths[owner])
        frame = self._frames.of(panel, opens, closes, gang.counts)
        cells = np.searchsorted(owner, np.arange(len(gang.groups) + 1)) * len(panel.codes)
        bounds = cells if frame.picked is None else np.searchsorted(frame.picked, cells)
        yield from gang.batches(frame, bounds.tolist())

    def _scattered(self, gang: Gang, window: Array, lengths: Array) -> Panel:
        whole = self._parts[gang.slide].scattered(window, lengths, gang.size, gang.lanes)
        if not gang.head:
            return whole
        ends = window + lengths
        low, high = int(ends.min()), int(ends.max())
        rest = self._heads[gang.slide, gang.head].windows(low, high - low + 1, 1, gang.lanes)
        return merged(whole, rest.take(ends - low))

    def touch(self, starts: Array) -> None:
        """Fragments that start there have come; what was made of windows' parts that were over is made
        again. `starts` are ascending."""
        for slide, series in self._parts.items():
            over = int(np.searchsorted(starts, series.closed * slide))
            if over:
                series.touch(np.unique(starts[:over] // slide))

    def forget(self, horizon: int) -> None:
        """Drop what no window that starts at the horizon or later can use."""
        for slide, series in self._parts.items():
            series.forget(horizon // slide)
