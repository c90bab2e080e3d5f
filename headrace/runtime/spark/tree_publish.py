"""Opens the results of a tree and gives every query its own, exactly once.

Staged files hold blobs of many queries (woven.py), several files a batch. What a query does above its window
aggregate may need all rows of a window, and these come in one batch: so committed files are taken batch by
batch, which the watermark in each row tells apart. The rows of each query go through the rest of its plan and
are written to its results folder whole, under a name that is the same on every try. `published.json` says how
many files were given, to whom how many rows: a crash in between writes the same files once more. Then the
staged files are removed. Results of a member that is no longer there are left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import SinkKind
from headrace.errors import InternalError
from headrace.plan.types import Schema
from headrace.runtime.duckdb.texts import as_text
from headrace.runtime.files import sync_folder, write_json
from headrace.runtime.results import zoned
from headrace.runtime.spark.bucket_state import LATE, from_blob
from headrace.runtime.spark.publish import MARKER, committed, file_format, last_logged


@dataclass(frozen=True, slots=True)
class Reader:
    """Where the results of one member go."""

    query: str
    finish: Callable[[pa.Table], pa.Table]
    """From rows of the window aggregate to rows of the query."""
    schema: Schema
    kind: SinkKind
    folder: Path
    published: bool
    """Whether the folder is the query's results folder, rather than one of the job's own."""
    take: Callable[[Path], None] | None = None


@dataclass(slots=True)
class Given:
    files: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    """By the id of the member, as `late`."""
    late: dict[str, int] = field(default_factory=dict)


Staged = tuple[int, Path]
"""A file of staged output, and its number."""


KEPT = frozenset({SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV})
"""Sinks whose results stay as files."""


def taker(
    query: str,
    kind: SinkKind,
    held: list[pa.Table],
    on_rows: Callable[[str, Path], None] | None,
) -> Callable[[Path], None] | None:
    """What becomes of results that are not kept: shown or put into `held`, and their file is removed. None:
    nobody wants them."""
    if kind is not SinkKind.MEMORY and on_rows is None:
        return None

    def take(path: Path) -> None:
        if kind is SinkKind.MEMORY:
            held.append(pq.read_table(path))
        elif on_rows is not None:
            on_rows(query, path)
        path.unlink()

    return take


class TreePublisher:
    def __init__(self, staging: Path, state: Path, readers: Mapping[str, Reader]) -> None:
        """`readers` by the id of the member."""
        self._staging, self._readers = staging, readers
        self._ledger = state / "published.json"
        self.done = self._load()
        self._logged = -1
        self._remove(committed(staging)[: self.done.files])
        for reader in readers.values():
            reader.folder.mkdir(parents=True, exist_ok=True)
            if reader.published:
                (reader.folder / MARKER).touch()

    def _load(self) -> Given:
        if not self._ledger.exists():
            return Given()
        data = json.loads(self._ledger.read_text(encoding="utf-8"))
        return Given(int(data["files"]), dict(data["rows"]), dict(data["late"]))

    def publish(self) -> Given:
        """Publish what was committed since the last call."""
        logged = last_logged(self._staging)
        if logged == self._logged:
            return self.done
        fresh = committed(self._staging)[self.done.files :]
        touched = {folder for batch in _batches(fresh, self.done.files) for folder in self._open(batch)}
        for folder in touched:
            sync_folder(folder)
        self.done.files += len(fresh)
        self._logged = logged
        write_json(self._ledger, {"files": self.done.files, "rows": self.done.rows, "late": self.done.late})
        self._remove(fresh)
        return self.done

    @staticmethod
    def _remove(files: Iterable[Path]) -> None:
        """What was given is in the results; Spark's log goes on naming the file, which nobody reads."""
        for path in files:
            path.unlink(missing_ok=True)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    def _open(self, batch: Sequence[Staged]) -> set[Path]:
        """Give the results of one batch; the folders that were written to."""
        number = min(place for place, _ in batch)
        blobs: dict[str, list[pa.Buffer]] = {}
        for _, path in batch:
            rows = pq.ParquetFile(path, memory_map=True).read()
            said = zip(
                *(rows[name].to_pylist() for name in ("query", "kind", "rows")), rows["data"], strict=True
            )
            for member, kind, count, data in said:
                if member not in self._readers:
                    continue
                if kind == LATE:
                    self.done.late[member] = self.done.late.get(member, 0) + count
                else:
                    # Not as bytes: a batch of many queries is large, and need not be there twice.
                    blobs.setdefault(member, []).append(data.as_buffer())
        touched = set()
        for member, found in blobs.items():
            reader = self._readers[member]
            rows = reader.finish(pa.concat_tables([from_blob(data) for data in found]))
            if rows.num_rows:
                if reader.published or reader.take is not None:
                    write_part(reader, rows, f"part-{number:06d}")
                self.done.rows[member] = self.done.rows.get(member, 0) + rows.num_rows
                touched.add(reader.folder)
        return touched


def _batches(files: Sequence[Path], first: int) -> list[list[Staged]]:
    """The staged files, batch by batch: a file is of one batch, since a batch has one watermark. Only that is
    read here, so that one batch at a time is in memory."""
    found: dict[int, list[Staged]] = {}
    for number, path in enumerate(files, start=first):
        marks = pq.ParquetFile(path).read(columns=["watermark"])["watermark"].unique().to_pylist()
        if len(marks) > 1:
            raise InternalError(f"staged file {path.name} is of {len(marks)} batches")
        for mark in marks:
            found.setdefault(mark, []).append((number, path))
    return [found[watermark] for watermark in sorted(found)]


def write_part(reader: Reader, rows: pa.Table, part: str) -> None:
    """One file of results, whole and durable, in the format of the reader's sink."""
    name = f"{part}.{file_format(reader.kind)}"
    staged = reader.folder / f".{name}.tmp"
    with staged.open("wb") as out:
        if file_format(reader.kind) == "parquet":
            pq.write_table(zoned(rows), out)
        else:
            out.write(as_text(rows, reader.schema, reader.kind))
        out.flush()
        # The staged original is removed once this is noted.
        os.fsync(out.fileno())
    final = staged.rename(reader.folder / name)
    if reader.take is not None:
        reader.take(final)
