"""Names of parts, which marks are needed and due, and what must be remembered of parts that are gone."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.runtime.channels.protocol import Mark

_PART = re.compile(r"part-(\d+)\.parquet")


def part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


def number_of(path: Path) -> int | None:
    """The number of a part; None: it is none."""
    found = _PART.fullmatch(path.name)
    return int(found[1]) if found else None


def numbered(folder: Path) -> dict[int, Path]:
    """The parts in a folder, in the order of their numbers."""
    found = ((number_of(path), path) for path in folder.iterdir())
    return dict(sorted((number, path) for number, path in found if number is not None))


def kept_marks(marks: Mapping[int, Mark], passed: int, there: Iterable[int]) -> dict[int, Mark]:
    """The promises that may still be due to somebody: the newest one, and of those before each part that is
    there, and that not all have passed, the newest. Of a maker that gives no rows all others are as good as
    that, however many there are. `there` must have been listed after the marks were: what is put later has a
    number that no mark is above."""
    parts = sorted(number for number in there if number >= passed)
    kept: dict[int, Mark] = {}
    below: int | None = None
    for number in sorted(marks, reverse=True):
        mark = marks[number]
        first = bisect_left(parts, mark.parts)
        if below is None or (first < len(parts) and parts[first] < below):
            kept[number] = mark
        below = mark.parts if below is None else min(below, mark.parts)
    return kept


def read_upto(marks: Mapping[int, Mark], there: Iterable[int], left: Iterable[int]) -> int:
    """Below which number a reader has read all there ever were. `left` are those of the parts `there` that it
    has not read; they must have been listed after the marks were. Parts without rows are never there, so that
    where none is left only the marks tell how many have been given."""
    first = min(left, default=None)
    if first is not None:
        return first
    return max(max(there, default=-1) + 1, max((mark.parts for mark in marks.values()), default=0))


def due(marks: Mapping[int, Mark], left: Iterable[int]) -> int | None:
    """The newest promise that overtakes nothing: all parts below its own are read. `left` are the parts that
    are there and not read; they must have been listed after the marks were."""
    first = min(left, default=None)
    able = [number for number, mark in marks.items() if first is None or mark.parts <= first]
    return max(able, default=None)


def latest(known: Mapping[str, int], rows: pa.Table, times: Iterable[str]) -> dict[str, int]:
    """The newest event times (microseconds), these rows included."""
    found = dict(known)
    for time in times:
        newest = (
            pc.max(rows[time]).cast(pa.timestamp("us")).cast(pa.int64()).as_py() if rows.num_rows else None
        )
        if newest is not None:
            found[time] = max(found.get(time, newest), newest)
    return found
