"""From panels of merged windows to the record batches of queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.plan.logical import WINDOW_END, WINDOW_START
from headrace.plan.types import DataType
from headrace.runtime.windows.finish import Finisher, to_arrow
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.lanes import PRESENCE, Array, Block, Lane, lane_of
from headrace.runtime.windows.log import Log
from headrace.runtime.windows.panels import Panel
from headrace.runtime.windows.spec import Output, Partial, QuerySpec


@dataclass(frozen=True, slots=True)
class Reader:
    """A query, and how its output columns are made."""

    index: int
    query: QuerySpec
    finishers: tuple[Finisher, ...]
    watched: tuple[Finisher, ...]
    """Those whose sums may not fit: mostly none."""
    counts: Lane | None
    """Tells how many of the query's rows are in a cell; None: every row is."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.query.outputs


def reader_of(number: int, query: QuerySpec, partials: tuple[Partial, ...], log: Log) -> Reader:
    finishers = tuple(Finisher(o, partials, log.nullable, log.wide) for o in query.outputs)
    counts = None if query.present is None else lane_of(query.present, partials[query.present])
    return Reader(number, query, finishers, tuple(f for f in finishers if f.watched), counts)


def lanes_of(readers: list[Reader]) -> tuple[Lane, ...]:
    read = [lane for reader in readers for f in reader.finishers for lane in f.lanes]
    counts = [reader.counts for reader in readers if reader.counts is not None]
    return tuple(dict.fromkeys([PRESENCE, *counts, *read]))


class Frames:
    """Makes frames; most queries of an advance ask for the same keys, which are made once."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._last: tuple[Array, int, list[pa.Array]] | None = None

    def clear(self) -> None:
        self._last = None

    def of(self, panel: Panel, opens: Array, closes: Array, counts: Lane | None) -> Frame:
        """Row k of the panel is the window from opens[k] to closes[k]."""
        width, picked = len(panel.codes), _picked(panel, counts)
        if picked is None:
            firsts, lasts = np.repeat(opens, width), np.repeat(closes, width)
            keys = self._every_key(panel)
        else:
            rows, places = np.divmod(picked, width)
            firsts, lasts, taken = opens[rows], closes[rows], pa.array(panel.codes[places])
            keys = [column.take(taken) for column in self._keys.columns()]
        ends = [to_arrow(edge, None, DataType.TIMESTAMP) for edge in (firsts, lasts)]
        names = [WINDOW_START, WINDOW_END, *self._keys.names]
        return Frame(names, ends + keys, picked, panel)

    def _every_key(self, panel: Panel) -> list[pa.Array]:
        """The key columns of a panel without holes."""
        last = self._last
        if last is None or last[1] != panel.rows or not np.array_equal(last[0], panel.codes):
            taken = pa.array(panel.codes)
            keys = [column.take(taken) for column in self._keys.columns()]
            last = (panel.codes, panel.rows, [pa.concat_arrays([k] * panel.rows) for k in keys])
            self._last = last
        return last[2]


class Frame:
    """The cells of a panel that have rows of some query, with their window and key columns: the same for
    all queries with these windows and rows."""

    def __init__(self, names: list[str], columns: list[pa.Array], picked: Array | None, panel: Panel) -> None:
        self._names, self._columns, self._panel = names, columns, panel
        self.picked = picked
        """Which cells; None: all."""
        self._done: dict[Lane, Block] = {}

    def __len__(self) -> int:
        return len(self._columns[0])

    def _lookup(self, lane: Lane) -> Block:
        """The values of a lane, one for each row."""
        if lane not in self._done:
            flat = tuple(a.reshape(-1, *lane.tail) for a in self._panel.blocks[lane])
            self._done[lane] = flat if self.picked is None else tuple(a[self.picked] for a in flat)
        return self._done[lane]

    def refuse_overflow(self, reader: Reader, low: int, high: int) -> None:
        """In rows low..high - 1, which are those of the reader's query."""
        for finisher in reader.watched:
            finisher.refuse_overflow(self._lookup, low, high, reader.query.id)

    def batch(self, reader: Reader) -> pa.RecordBatch:
        """All rows, some of which may be for other queries with the same outputs."""
        columns = self._columns + [finisher.column(self._lookup) for finisher in reader.finishers]
        return pa.record_batch(columns, names=self._names + [o.name for o in reader.outputs])


def _picked(panel: Panel, counts: Lane | None) -> Array | None:
    """The cells that have a row of the query; None: all have."""
    if counts is not None:
        present = panel.blocks[counts][0].reshape(-1) != 0
    elif panel.full:
        return None
    else:
        present = panel.blocks[PRESENCE][0].reshape(-1)
    return None if bool(present.all()) else np.flatnonzero(present)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(pieces) for pieces in zip(*(b.columns for b in batches), strict=True)]
    return pa.record_batch(columns, schema=batches[0].schema)
