"""Whether what a job has given is in order for each key: what was published first is not later than what
came after it. Two copies of a job, or one that has gone back, could give it otherwise even where every row is
there once.

Windows come by their ends, in one batch after the other. A row of a join comes when the later of its two rows
has come, so when the later of their two files was read; the two sides may be some files apart. A batch may be
several published files, with windows of any end in each: a file is compared with those that are so many
before it that they are of an earlier batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

_TIMES = ("window_end", "window_start")
_KEYS = ("plug", "a.plug")
_SIDES = ("a.value", "b.value")
Row = Mapping[str, object]


def disorder(
    query: str, parts: Sequence[pa.Table], files: Sequence[pa.Table], apart: int, together: int = 1
) -> list[str]:
    """What is out of order, at most one finding for each key. `parts` are the published files and `files`
    those of the input, as they came; `apart`: files by which one side of a join may be ahead of the other;
    `together`: published files of one batch, at most."""
    names: list[str] = parts[0].column_names if parts else []
    key = next((name for name in _KEYS if name in names), None)
    time = next((name for name in _TIMES if name in names), None)
    came = _came(files) if time is None else {}

    def when(row: Row) -> int:
        if time is not None:
            return int(row[time].timestamp() * 1_000_000)  # type: ignore[attr-defined]
        return max(came[row[side]] for side in _SIDES)

    latest: dict[object, int] = {}
    wrong: dict[object, str] = {}
    spans = [_spans(part, key, when) for part in parts]
    for number, found in enumerate(spans):
        for one, (_, last) in spans[number - together].items() if number >= together else ():
            latest[one] = max(last, latest.get(one, last))
        for one, (first, _) in found.items():
            before = latest.get(one)
            if before is not None and (first < before - apart if time is None else first <= before):
                wrong.setdefault(one, f"{query}: key {one} is out of order in its published file {number}")
    return list(wrong.values())


def _spans(part: pa.Table, key: str | None, when: Callable[[Row], int]) -> dict[object, tuple[int, int]]:
    found: dict[object, tuple[int, int]] = {}
    for row in part.to_pylist():
        one, at = row[key] if key is not None else None, when(row)
        low, high = found.get(one, (at, at))
        found[one] = min(low, at), max(high, at)
    return found


def _came(files: Sequence[pa.Table]) -> dict[object, int]:
    """In which file each value came: all of them differ."""
    return {value: number for number, rows in enumerate(files) for value in rows["value"].to_pylist()}
