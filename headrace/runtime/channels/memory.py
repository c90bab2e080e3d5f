"""A channel in this process: the twin of the file channel, for tests and for models of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.runtime.channels.parts import kept_marks, latest
from headrace.runtime.channels.protocol import Limit, Mark, Size


class MemoryChannel:
    def __init__(self, id_: str, times: tuple[str, ...], limit: Limit | None = None) -> None:
        self._id, self._times, self._limit = id_, times, limit or Limit()
        self._readers: dict[str, int] = {}
        self._told: dict[str, dict[str, int]] = {}
        self._gone = 0
        self._lost: dict[str, int] = {}
        self._over = False
        self.parts: dict[int, pa.Table] = {}
        self._marks: dict[int, Mark] = {}

    @property
    def id(self) -> str:
        return self._id

    def put(self, number: int, part: Path) -> None:
        if number >= self._gone:
            self.parts[number] = pq.read_table(part)

    def mark(self, number: int, mark: Mark) -> None:
        self._marks.setdefault(number, mark)

    def marks(self) -> Mapping[int, Mark]:
        return dict(self._marks)

    def end(self) -> None:
        self._over = True

    def reopen(self) -> None:
        self._over = False

    def ended(self) -> bool:
        return self._over

    def enlist(self, reader: str) -> Mapping[str, int]:
        if reader not in self._readers:
            self._readers[reader] = min(self.parts, default=self._gone)
            self._told[reader] = {time: newest + 1 for time, newest in self._lost.items()}
        return self._told[reader]

    def advance(self, reader: str, parts: int) -> None:
        self._readers[reader] = max(self._readers[reader], parts)

    def leave(self, reader: str) -> None:
        self._readers.pop(reader, None)
        self._told.pop(reader, None)

    def collect(self, given: int) -> int:
        if not self._readers:
            return self._gone
        passed = min(self._readers.values())
        self._marks = kept_marks(self._marks, passed, self.parts)
        upto = min(given, passed)
        for number in sorted(n for n in self.parts if n < upto):
            self._lost = latest(self._lost, self.parts.pop(number), self._times)
        self._gone = max(self._gone, upto)
        return self._gone

    def size(self) -> Size:
        return Size(len(self.parts), sum(part.nbytes for part in self.parts.values()))

    def full(self) -> bool:
        size = self.size()
        return size.parts >= self._limit.parts or size.bytes >= self._limit.bytes
