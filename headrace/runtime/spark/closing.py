"""When a drained job may close its streams, and what it has closed.

A close mark pushes the watermark to the end of time, so it must not be read before the last row. It may be
read WITH the last rows: rows of one batch are never late to each other. So the streams are closed as soon
as one batch can take all that is left of each of them, which saves the batches that a second round would
cost. Three things make that unsafe, and then the job reads to the end first: a source whose files we may list
otherwise than Spark does; a file that came since the start, which Spark may not have in its list yet; a batch
that Spark is just planning, which may have asked the input before the mark came and asks for marks after.

Each process that closes writes a mark of its own. A mark can be spent in vain: killed after the batch's
output was committed and before the batch was, Spark does not run the batch again and forgets its watermark;
and of two streams' watermarks a restart keeps only the lower one.

`closing.json` lists, before the first mark is written, the input the streams were closed with: a file
that is not in it came afterwards, and the job says so instead of dropping its rows as late.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from headrace.catalog.model import FileSource, Stream
from headrace.runtime.files import write_json
from headrace.runtime.spark.checkpoint import is_planned, seen_files
from headrace.runtime.spark.csv_files import about_header, check_header, unread_file
from headrace.runtime.spark.sources import (
    belongs,
    check_path,
    file_source,
    input_files,
    is_plain,
    write_close_mark,
)


class Closing:
    def __init__(
        self,
        streams: Mapping[str, Stream],
        *,
        state: Path,
        root: Path,
        generated: Path,
        most_bytes: int | None = None,
    ) -> None:
        """`most_bytes`: of files in one batch, for sources that do not say how many files."""
        self._streams, self._state, self._most_bytes = streams, state, most_bytes
        self._checkpoint = state / "checkpoint"
        self._list = state / "closing.json"
        found = {name: file_source(stream, root, generated) for name, stream in streams.items()}
        self._sources: dict[str, FileSource] = {n: s for n, s in found.items() if s is not None}
        self._at_start = self._inputs()
        self._closed: set[str] = set()

    def marks(self, stream: str) -> Path:
        """The folder of a stream's close mark."""
        return self._state / "close" / stream

    @property
    def begun(self) -> bool:
        """Whether closing has begun; all marks may not be there yet."""
        return self._list.exists()

    @property
    def done(self) -> bool:
        """Whether this process has closed every stream."""
        return self._closed == set(self._streams)

    def _inputs(self) -> dict[str, set[Path]]:
        return {name: set(input_files(source)) for name, source in self._sources.items()}

    def newcomers(self) -> list[Path]:
        """Input that came after the streams were closed."""
        closed_with = {Path(text) for text in json.loads(self._list.read_text(encoding="utf-8"))}
        return sorted(set().union(*self._inputs().values()) - closed_with)

    def check_paths(self, root: Path) -> None:
        """Raises UserError for an input that cannot be read as it is meant."""
        for name, stream in self._streams.items():
            check_path(name, self._sources.get(name), root)
            if name in self._sources:
                check_header(self._sources[name], stream.schema_, sorted(self._at_start[name]))

    def told(self, message: str) -> str:
        """What Spark says of a failure, and what can be seen of the file that it names."""
        file = unread_file(message)
        source = next((s for s in self._sources.values() if file is not None and belongs(file, s)), None)
        return message if file is None or source is None else message + about_header(file, source)

    def all_read(self) -> bool:
        """Whether all input has been read, as far as can be known."""
        unread = set[Path]().union(*self._inputs().values()) - seen_files(self._checkpoint)
        return all(map(is_plain, self._sources.values())) and not unread

    def one_batch_left(self) -> bool:
        """Whether the next batch takes all that is left of every stream, as far as can be known."""
        limited = {
            name: s
            for name, s in self._sources.items()
            if s.files_per_batch is not None or self._most_bytes is not None
        }
        if not all(map(is_plain, limited.values())):
            return False
        inputs, seen = self._inputs(), seen_files(self._checkpoint)
        few = all(self._fits(source, inputs[name] - seen) for name, source in limited.items())
        return few and inputs == self._at_start and is_planned(self._checkpoint)

    def _fits(self, source: FileSource, left: Collection[Path]) -> bool:
        """Whether one batch takes all these files."""
        if source.files_per_batch is not None:
            return len(left) <= source.files_per_batch
        try:
            size = sum(path.stat().st_size for path in left)
        except OSError:
            return False  # It is gone, or just being replaced.
        return self._most_bytes is None or len(left) <= 1 or size <= self._most_bytes

    def close(self) -> None:
        """Close every stream; a second call of a process does nothing."""
        if not self.begun:
            known = seen_files(self._checkpoint).union(*self._at_start.values())
            files = known.intersection(set[Path]().union(*self._inputs().values()))
            write_json(self._list, sorted(map(str, files)))
        for name, stream in self._streams.items():
            if name not in self._closed:
                self.marks(name).mkdir(parents=True, exist_ok=True)
                write_close_mark(self.marks(name), stream.time)
                self._closed.add(name)
