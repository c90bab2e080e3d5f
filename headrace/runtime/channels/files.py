"""A channel of Parquet files in a folder that its maker and all its readers see.

    rows/part-NNNNNN.parquet    rows, linked from what the maker has committed
    marks/NNNNNN.json           a promise of the maker
    readers/READER.json         how far a reader is, and from when on it gets all rows
    gone.json                   the parts that were removed, and the newest event times among their rows
    ended.json                  nothing more comes

Every file is written whole and renamed. Numbers are the same on every try, so that a maker that was killed
repeats nothing; a part that is gone is not put there again. `gone.json` is written before the first part is
removed, and readers are looked up once more in between: one that comes at that moment either stops the
removal or knows of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from headrace.runtime.channels.parts import kept_marks, latest, numbered, part_name
from headrace.runtime.channels.protocol import Limit, Mark, Size
from headrace.runtime.files import link_or_copy, sync_folder, write_json


class FileChannel:
    def __init__(self, folder: Path, times: tuple[str, ...], limit: Limit | None = None) -> None:
        """`times` are the event-time columns of its rows."""
        self.folder, self._times, self._limit = folder, times, limit or Limit()
        self.rows, self._promises, self._readers = (folder / name for name in ("rows", "marks", "readers"))
        for path in (self.rows, self._promises, self._readers):
            path.mkdir(parents=True, exist_ok=True)

    @property
    def id(self) -> str:
        return self.folder.name

    # -- for the maker ------------------------------------------------------------------------------

    def put(self, number: int, part: Path) -> None:
        if number >= self._gone()[0]:
            link_or_copy(part, self.rows / part_name(number))
            sync_folder(self.rows)

    def mark(self, number: int, mark: Mark) -> None:
        path = self._promise(number)
        if not path.exists():
            write_json(path, {"parts": mark.parts, "times": dict(mark.times)})

    def marks(self) -> Mapping[int, Mark]:
        found: dict[int, Mark] = {}
        for path in sorted(self._promises.glob("[0-9]*.json")):
            data = _read(path)
            if data is not None:
                found[int(path.stem)] = Mark(int(data["parts"]), dict(data["times"]))
        return found

    def _promise(self, number: int) -> Path:
        return self._promises / f"{number:06d}.json"

    def end(self) -> None:
        write_json(self._end, {"ended": True})

    def reopen(self) -> None:
        self._end.unlink(missing_ok=True)

    def ended(self) -> bool:
        return self._end.exists()

    @property
    def _end(self) -> Path:
        return self.folder / "ended.json"

    def collect(self, given: int) -> int:
        before, lost = self._gone()
        places = self._places()
        if not places:
            return before
        passed = min(places)
        marks = self.marks()
        there = numbered(self.rows)
        for number in set(marks) - set(kept_marks(marks, passed, there)):
            self._promise(number).unlink(missing_ok=True)
        upto = min(given, passed)
        going = [path for number, path in there.items() if number < upto]
        if not going and upto <= before:
            return before
        now = lost
        for path in going:
            now = latest(now, pq.read_table(path, columns=list(self._times)), self._times)
        write_json(self._gone_file, {"parts": max(upto, before), "times": now})
        if any(place < upto for place in self._places()):
            write_json(self._gone_file, {"parts": before, "times": lost})
            return before
        for path in going:
            path.unlink(missing_ok=True)
        return max(upto, before)

    @property
    def _gone_file(self) -> Path:
        return self.folder / "gone.json"

    def _gone(self) -> tuple[int, dict[str, int]]:
        data = _read(self._gone_file)
        return (int(data["parts"]), dict(data["times"])) if data else (0, {})

    def size(self) -> Size:
        sizes = []
        for path in numbered(self.rows).values():
            try:
                sizes.append(path.stat().st_size)
            except FileNotFoundError:  # collected meanwhile
                continue
        return Size(len(sizes), sum(sizes))

    def full(self) -> bool:
        size = self.size()
        return size.parts >= self._limit.parts or size.bytes >= self._limit.bytes

    # -- for readers --------------------------------------------------------------------------------

    def enlist(self, reader: str) -> Mapping[str, int]:
        path = self._reader(reader)
        data = _read(path)
        if data is None or "whole" not in data:
            # First that it is there, so that nothing goes any more, and then what had gone by then.
            write_json(path, {"parts": 0})
            gone, lost = self._gone()
            whole = {time: newest + 1 for time, newest in lost.items()}
            # A removal that was cut short has left some, and the reader will read them.
            data = {"parts": min(numbered(self.rows), default=gone), "whole": whole}
            write_json(path, data)
        return dict(data["whole"])

    def advance(self, reader: str, parts: int) -> None:
        data = _read(self._reader(reader))
        if data is not None and parts > int(data["parts"]):
            write_json(self._reader(reader), {**data, "parts": parts})

    def place(self, reader: str) -> int:
        return int((_read(self._reader(reader)) or {"parts": 0})["parts"])

    def leave(self, reader: str) -> None:
        self._reader(reader).unlink(missing_ok=True)

    def readers(self) -> list[str]:
        return sorted(path.stem for path in self._readers.glob("*.json"))

    def _places(self) -> list[int]:
        return [self.place(reader) for reader in self.readers()]

    def _reader(self, reader: str) -> Path:
        return self._readers / f"{reader}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found
