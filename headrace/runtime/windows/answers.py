"""From the log to the batches of every query. Queries with the same window are answered by one merge, those
with the same slide share parts, suffixes and prefixes.

A window is floor(range / slide) parts of the slide and, where the range is no multiple of it, the head of the
next part. What is held here can all be made again from the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.plan.logical import WINDOW_END, WINDOW_START
from headrace.plan.types import DataType
from headrace.runtime.windows.finish import Finisher, to_arrow
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.lanes import PRESENCE, Array, Block, Lane
from headrace.runtime.windows.log import Log
from headrace.runtime.windows.panels import FragmentSource, Panel, merged
from headrace.runtime.windows.runs import next_window, runs
from headrace.runtime.windows.scan import Series
from headrace.runtime.windows.spec import QuerySpec, TreeSpec

_CELLS = 1 << 16
"""Windows are worked off in stretches of about so many cells, which stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """A query, and how its output columns are made."""

    index: int
    query: QuerySpec
    finishers: tuple[Finisher, ...]


@dataclass(slots=True)
class _Frame:
    """The window and key columns of a panel: the same for all queries with its windows."""

    columns: list[pa.Array]
    picked: Array | None
    """Which cells have a row; None: all of them."""


class Answers:
    def __init__(self, spec: TreeSpec, log: Log, keys: Keys, wide: list[bool]) -> None:
        self._log, self._keys = log, keys
        self._names = [c.name for c in spec.keys]
        self._groups: dict[tuple[int, int, int | None], list[_Reader]] = {}
        for index, query in enumerate(spec.queries):
            finishers = tuple(Finisher(o, spec.partials, log.nullable, wide) for o in query.outputs)
            group = self._groups.setdefault((query.slide, query.range, query.valid_from), [])
            group.append(_Reader(index, query, finishers))
        self._sources: list[FragmentSource] = []
        self._parts: dict[int, Series] = {}
        self._heads: dict[tuple[int, int], Series] = {}
        self._series()
        self._repeated: tuple[Array, int, list[pa.Array]] | None = None

    def _series(self) -> None:
        """One series for each slide, and one for each head of it, with the lanes that their queries need."""
        parts: dict[int, dict[Lane, None]] = {}
        heads: dict[tuple[int, int], dict[Lane, None]] = {}
        for (slide, size, _), readers in self._groups.items():
            lanes = dict.fromkeys(_lanes(readers))
            parts.setdefault(slide, {}).update(lanes)
            if size % slide:
                heads.setdefault((slide, size % slide), {}).update(lanes)
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
        for readers in self._groups.values():
            yield from self._group(readers, after, upto)
        self._repeated = None

    def _group(
        self, readers: list[_Reader], after: int | None, upto: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        query, lanes = readers[0].query, _lanes(readers)
        length = query.range // query.slide
        most = max(length, _CELLS // max(1, len(self._keys)), 1)
        pieces: list[list[list[pa.Array]]] = [[] for _ in readers]
        for first, count in runs(
            query, self._log.starts, next_window(query, after), query.last_by(upto), most
        ):
            panel = self._panel(query, first, count, lanes)
            frame = self._frame(query, first, panel)
            lookup = _Lookup(panel, frame.picked)
            for piece, reader in zip(pieces, readers, strict=True):
                piece.append(frame.columns + [f.column(lookup) for f in reader.finishers])
        for piece, reader in zip(pieces, readers, strict=True):
            if piece:
                yield reader.index, self._batch(reader.query, piece)

    def _panel(self, query: QuerySpec, first: int, count: int, lanes: tuple[Lane, ...]) -> Panel:
        length, head = divmod(query.range, query.slide)
        if not head:
            return self._parts[query.slide].windows(first, count, length, lanes)
        rest = self._heads[query.slide, head].windows(first + length, count, 1, lanes)
        if not length:
            return rest
        return merged(self._parts[query.slide].windows(first, count, length, lanes), rest)

    def _frame(self, query: QuerySpec, first: int, panel: Panel) -> _Frame:
        width = len(panel.codes)
        starts = np.arange(first, first + panel.rows) * query.slide
        picked: Array | None = None
        if not panel.full:
            present = panel.blocks[PRESENCE][0].reshape(-1)
            picked = None if bool(present.all()) else np.flatnonzero(present)
        if picked is None:
            opens, keys = np.repeat(starts, width), self._every_key(panel)
        else:
            rows, places = np.divmod(picked, width)
            opens, taken = starts[rows], pa.array(panel.codes[places])
            keys = [column.take(taken) for column in self._keys.columns()]
        ends = [
            to_arrow(opens, None, DataType.TIMESTAMP),
            to_arrow(opens + query.range, None, DataType.TIMESTAMP),
        ]
        return _Frame(ends + keys, picked)

    def _every_key(self, panel: Panel) -> list[pa.Array]:
        """The key columns of a panel without holes; most queries of an advance ask for the same."""
        last = self._repeated
        if last is None or last[1] != panel.rows or not np.array_equal(last[0], panel.codes):
            taken = pa.array(panel.codes)
            keys = [column.take(taken) for column in self._keys.columns()]
            last = (panel.codes, panel.rows, [pa.concat_arrays([k] * panel.rows) for k in keys])
            self._repeated = last
        return last[2]

    def _batch(self, query: QuerySpec, pieces: list[list[pa.Array]]) -> pa.RecordBatch:
        columns = pieces[0] if len(pieces) == 1 else [pa.concat_arrays(c) for c in zip(*pieces, strict=True)]
        names = [WINDOW_START, WINDOW_END, *self._names, *(o.name for o in query.outputs)]
        return pa.record_batch(columns, names=names)

    def forget(self, horizon: int) -> None:
        """Drop what no window that starts at the horizon or later can use."""
        for slide, series in self._parts.items():
            series.forget(horizon // slide)


def _lanes(readers: list[_Reader]) -> tuple[Lane, ...]:
    read = [lane for reader in readers for f in reader.finishers for lane in f.lanes]
    return tuple(dict.fromkeys([PRESENCE, *read]))


class _Lookup:
    """The values of a lane, one for each row of the answer."""

    def __init__(self, panel: Panel, picked: Array | None) -> None:
        self._panel, self._picked = panel, picked
        self._done: dict[Lane, Block] = {}

    def __call__(self, lane: Lane) -> Block:
        if lane not in self._done:
            flat = tuple(a.reshape(-1) for a in self._panel.blocks[lane])
            self._done[lane] = flat if self._picked is None else tuple(a[self._picked] for a in flat)
        return self._done[lane]
