"""Writes a generated stream once; a second call finds it done; a killed call is taken up where it stopped.

    _lock        held while writing; the system lets go of it when a process dies
    _spec.json   what the files being written are of
    part-*       each written under another name and renamed, so a part that exists is whole
    _done.json   the same as _spec.json, written last

Spark does not read files whose name starts with `_` or `.`. Parts of another specification are removed
before `_spec.json` is replaced, so the parts are always of the specification that is written there.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import Stream
from headrace.ids import fingerprint
from headrace.runtime.generate.batches import batches, sizes
from headrace.runtime.generate.block import generator_of

_VERSION = 1
"""Raised when the generator gives other rows for the same specification."""
_FIRST_MODIFIED = 1_577_836_800
"""2020-01-01. Spark reads files in order of modification time, by whole seconds on some file systems: part i
is dated i seconds later, so the order of arrival is the order of the files."""

Report = Callable[[int, int], None]


def materialise(stream: Stream, folder: Path, progress: Report | None = None) -> Path:
    """The folder with the stream's files, written if they are not there.

    `progress` is called with the rows done and the rows in all."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = _spec(stream)
    total, wanted = generator_of(stream).rows, len(sizes(stream))
    with _lock(folder):
        if not _is_done(folder, spec, wanted):
            _prepare(folder, spec)
            _write_parts(stream, folder, progress or _silent)
            _replace(folder / "_done.json", spec)
    if progress is not None:
        progress(total, total)
    return folder


def _silent(done: int, total: int) -> None:
    """Nobody is watching."""


def _spec(stream: Stream) -> str:
    """Everything the rows depend on, and nothing else: not the watermark, the site or the batch size."""
    source = generator_of(stream).model_dump(mode="json", exclude={"files_per_batch"})
    columns = {name: str(kind) for name, kind in stream.columns.items()}
    about = {
        "version": _VERSION,
        "stream": stream.name,
        "columns": list(columns.items()),
        "time": stream.time,
        "rate": stream.rate,
        "source": source,
    }
    mark = fingerprint(json.dumps(about, sort_keys=True))
    return json.dumps({"fingerprint": mark, **about}, indent=2, sort_keys=True) + "\n"


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with (folder / "_lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.parquet"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _is_done(folder: Path, spec: str, parts: int) -> bool:
    return _text(folder / "_done.json") == spec and all(_part(folder, i).exists() for i in range(parts))


def _prepare(folder: Path, spec: str) -> None:
    (folder / "_done.json").unlink(missing_ok=True)
    if _text(folder / "_spec.json") != spec:
        for part in folder.glob("part-*.parquet"):
            part.unlink()
        _replace(folder / "_spec.json", spec)


def _replace(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def _write_parts(stream: Stream, folder: Path, progress: Report) -> None:
    done, total = 0, generator_of(stream).rows
    for number, table in enumerate(batches(stream)):
        if not _part(folder, number).exists():
            _write_part(folder, number, table)
        done += table.num_rows
        progress(done, total)


def _write_part(folder: Path, number: int, table: pa.Table) -> None:
    new = folder / f"_part-{number:05d}.new"
    pq.write_table(table, new, compression="zstd")
    modified = _FIRST_MODIFIED + number
    os.utime(new, (modified, modified))
    new.replace(_part(folder, number))
