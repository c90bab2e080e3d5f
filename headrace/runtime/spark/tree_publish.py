"""Opens the results of a tree and gives every query its own, exactly once.

Staged files hold blobs of many queries (woven.py). For each committed file, in the order of commit, the rows
of each query go through what its plan does above the window aggregate, and are written to its results folder
whole and under a name that is the same on every try. `published.json` says how many files were given, to
whom how many rows: a crash in between writes the same files once more. Rows of a query that is no longer
there are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.runtime.files import sync_folder, write_json
from headrace.runtime.spark.publish import MARKER, committed
from headrace.runtime.spark.woven import LATE, from_blob


@dataclass(frozen=True, slots=True)
class Reader:
    """Where the results of one query go."""

    finish: Callable[[pa.Table], pa.Table]
    """From rows of the window aggregate to rows of the query."""
    folder: Path
    published: bool
    """Whether the folder is the query's results folder, rather than one of the job's own."""
    take: Callable[[Path], None] | None = None


@dataclass(slots=True)
class Given:
    files: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)


class TreePublisher:
    def __init__(self, staging: Path, state: Path, readers: Mapping[str, Reader]) -> None:
        self._staging, self._readers = staging, readers
        self._ledger = state / "published.json"
        self.done = self._load()
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
        fresh = committed(self._staging)[self.done.files :]
        touched: set[Path] = set()
        for path in fresh:
            touched |= self._open(path, self.done.files)
            self.done.files += 1
        for folder in touched:
            sync_folder(folder)
        if fresh:
            write_json(
                self._ledger, {"files": self.done.files, "rows": self.done.rows, "late": self.done.late}
            )
        return self.done

    def _open(self, path: Path, number: int) -> set[Path]:
        """Give the results in one staged file; the folders that were written to."""
        blobs: dict[str, list[pa.Table]] = {}
        for row in pq.read_table(path).to_pylist():
            query = row["query"]
            if query not in self._readers:
                continue
            if row["kind"] == LATE:
                self.done.late[query] = self.done.late.get(query, 0) + row["rows"]
            else:
                blobs.setdefault(query, []).append(from_blob(row["data"]))
        touched = set()
        for query, tables in blobs.items():
            reader = self._readers[query]
            rows = reader.finish(pa.concat_tables(tables))
            if rows.num_rows:
                self._give(reader, rows, number)
                self.done.rows[query] = self.done.rows.get(query, 0) + rows.num_rows
                touched.add(reader.folder)
        return touched

    @staticmethod
    def _give(reader: Reader, rows: pa.Table, number: int) -> None:
        final = reader.folder / f"part-{number:06d}.parquet"
        staged = reader.folder / f".part-{number:06d}.tmp"
        pq.write_table(rows, staged)
        staged.rename(final)
        if reader.take is not None:
            reader.take(final)
