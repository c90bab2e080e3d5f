"""Queries that are answered together while each has only a few windows to give.

In a small batch every query has one or two windows, and what costs is not the arithmetic but the calls:
dozens of Python and numpy for each query. So groups that have the slide, the lanes and the size of tiles in
common form a gang: their windows are rows of one panel, their answers slices of one record batch. A group
with many windows is better off alone: its rows are slices of tiles and need not be gathered.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace.runtime.windows.lanes import Array, Lane
from headrace.runtime.windows.readers import Frame, Reader, lanes_of
from headrace.runtime.windows.runs import next_window
from headrace.runtime.windows.scan import DIRECT, tile_size
from headrace.runtime.windows.spec import Output

_FEW = 4096
"""Cells of one query up to which it goes with others."""
_TOGETHER = 1 << 16
"""Cells that are worked off at once."""


class Group:
    """Queries with the same windows."""

    def __init__(self, readers: list[Reader]) -> None:
        self.readers, self.query = readers, readers[0].query
        self.slide = self.query.slide
        self.length, self.head = divmod(self.query.range, self.slide)
        self.lanes = lanes_of(readers)

    @property
    def kind(self) -> object:
        """Groups of one kind form a gang. None: this one stays alone."""
        counts = {reader.counts for reader in self.readers}
        if self.length <= DIRECT or len(counts) > 1 or any(lane.tail for lane in self.lanes):
            return None
        return (self.slide, self.head, tile_size(self.length), self.lanes, *counts)


class Gang:
    def __init__(self, groups: list[Group]) -> None:
        first = groups[0]
        # Long ranges first: their windows of one instant then start in the order of time, as tiles lie.
        self.groups = sorted(groups, key=lambda g: -g.query.range)
        self.slide, self.head, self.lanes = first.slide, first.head, first.lanes
        self.size = tile_size(max(1, first.length))
        self.counts: Lane | None = first.readers[0].counts
        self.ranges = np.array([g.query.range for g in self.groups])
        self.lengths = np.array([g.length for g in self.groups])
        self._floors = np.array([next_window(g.query, None) for g in self.groups])
        self._alone = len(groups) == 1
        # Outputs are looked up for every reader in every batch, and hashing them is slow.
        numbers: dict[tuple[Output, ...], int] = {}
        self._readers = [
            [(numbers.setdefault(reader.outputs, len(numbers)), reader) for reader in group.readers]
            for group in self.groups
        ]

    def due(self, after: int | None, upto: int, keys: int) -> tuple[list[Array], list[Group]]:
        """What there is to give: (group, window) for the groups that go together, in portions, and the groups
        that go alone."""
        if self._alone or after is None:
            return [], self.groups
        firsts = np.maximum((after - self.ranges) // self.slide + 1, self._floors)
        counts = np.maximum((upto - self.ranges) // self.slide + 1 - firsts, 0)
        many = counts * max(1, keys) > _FEW
        alone = [self.groups[k] for k in np.flatnonzero(many)] if bool(many.any()) else []
        counts[many] = 0
        return list(_portions(firsts, counts, max(1, keys))), alone

    def batches(self, frame: Frame, bounds: list[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of every reader; those of group k are bounds[k]..bounds[k + 1] - 1."""
        made: dict[int, pa.RecordBatch] = {}
        for readers, low, high in zip(self._readers, bounds[:-1], bounds[1:], strict=True):
            for number, reader in readers if high > low else ():
                frame.refuse_overflow(reader, low, high)
                whole = made.get(number)
                if whole is None:
                    whole = made[number] = frame.batch(reader)
                yield reader.index, whole.slice(low, high - low)


def _portions(firsts: Array, counts: Array, keys: int) -> Iterator[Array]:
    """[group, window] of all windows, in stretches of whole groups."""
    ends = np.cumsum(counts)
    if not len(ends) or not ends[-1]:
        return
    owner = np.repeat(np.arange(len(firsts)), counts)
    windows = np.arange(ends[-1]) - np.repeat(ends - counts - firsts, counts)
    whole = np.stack([owner, windows])
    portion = (ends * keys // _TOGETHER)[owner]
    cuts = np.flatnonzero(portion[1:] != portion[:-1]) + 1
    yield from np.split(whole, cuts, axis=1) if len(cuts) else [whole]


def gangs_of(groups: list[Group]) -> list[Gang]:
    kinds: dict[object, list[Group]] = {}
    alone: list[Gang] = []
    for group in groups:
        if group.kind is None:
            alone.append(Gang([group]))
        else:
            kinds.setdefault(group.kind, []).append(group)
    return alone + [Gang(found) for found in kinds.values()]
