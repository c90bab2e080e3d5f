"""Names of parts, which marks are needed and due, and what must be remembered of parts that are gone."""

from __future__ import annotations

import re
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


def kept_marks(marks: Mapping[int, Mark], passed: int) -> dict[int, Mark]:
    """The promises that somebody may still need: each above what all readers have passed, and the newest of
    the others, for who comes later."""
    old = [number for number, mark in marks.items() if mark.parts <= passed]
    return {n: mark for n, mark in marks.items() if mark.parts > passed or n == max(old)}


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
