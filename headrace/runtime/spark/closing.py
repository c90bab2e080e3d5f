"""When a drained job may close its streams, and what it has closed.

A close mark pushes the watermark to the end of time, so it must not be read before the last row. It may be
read WITH the last rows: rows of one batch are never late to each other. So the streams are closed as soon
as one batch can take all that is left of each of them, which saves the batches that a second round would
cost. `closing.json` lists, before the first mark is written, the input the streams were closed with: a file
that is not in it came afterwards, and the job says so instead of dropping its rows as late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from headrace.catalog.model import FileSource, Stream
from headrace.runtime.files import write_json
from headrace.runtime.spark.checkpoint import seen_files
from headrace.runtime.spark.sources import file_source, input_files, is_closed, write_close_mark


class Closing:
    def __init__(self, streams: Mapping[str, Stream], *, state: Path, root: Path, generated: Path) -> None:
        self._streams, self._state = streams, state
        self._checkpoint = state / "checkpoint"
        self._list = state / "closing.json"
        found = {name: file_source(stream, root, generated) for name, stream in streams.items()}
        self._sources: dict[str, FileSource] = {n: s for n, s in found.items() if s is not None}

    def marks(self, stream: str) -> Path:
        """The folder of a stream's close mark."""
        return self._state / "close" / stream

    @property
    def begun(self) -> bool:
        """Whether closing has begun; all marks may not be there yet."""
        return self._list.exists()

    @property
    def done(self) -> bool:
        return all(is_closed(self.marks(name)) for name in self._streams)

    def _inputs(self) -> dict[str, set[Path]]:
        return {name: {f.resolve() for f in input_files(s)} for name, s in self._sources.items()}

    def _seen(self) -> set[Path]:
        return {path.resolve() for path in seen_files(self._checkpoint)}

    def newcomers(self) -> list[Path]:
        """Input that came after the streams were closed."""
        closed_with = {Path(text) for text in json.loads(self._list.read_text(encoding="utf-8"))}
        return sorted(set().union(*self._inputs().values()) - closed_with)

    def one_batch_left(self) -> bool:
        """Whether the next batch takes all that is left of every stream."""
        seen = self._seen()
        for name, files in self._inputs().items():
            most = self._sources[name].files_per_batch
            if most is not None and len(files - seen) > most:
                return False
        return True

    def close(self) -> None:
        """Close every stream; may be called again after a crash."""
        if not self.begun:
            files = set[Path]().union(*self._inputs().values())
            write_json(self._list, sorted(map(str, files)))
        for name, stream in self._streams.items():
            self.marks(name).mkdir(parents=True, exist_ok=True)
            write_close_mark(self.marks(name), stream.time)
