"""Streams and tables as Spark views.

A stream's view is, bottom up: its source; the close marks of the job, a second source with nothing in it
until the stream is closed; rows without an event time dropped; the watermark; the close marks dropped.
The mark must pass the watermark operator and must not get further, so its filter is written on the event
time, which Spark does not push below a watermark. For the same reason a barrier (a predicate Spark has to
take for non-deterministic) stops the query's own filters: pushed below the watermark they would make it
depend on the query, and would drop the close mark, whose other columns are NULL.

A derived stream has promises of its maker in the place of guesses: only marks pass its watermark operator,
rows are put beside them above it. So rows never move the watermark, and none is late that its maker gave.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import FileSource, Format, GeneratorSource, RateSource, Stream, Table
from headrace.errors import InternalError, UserError
from headrace.plan.channels import DerivedScan
from headrace.plan.logical import StreamScan, TableScan
from headrace.plan.types import DataType, Schema
from headrace.runtime.spark.csv_files import csv_options, in_file_order
from headrace.runtime.spark.session import Session
from headrace.runtime.sqltext import SparkWriter

_SQL = SparkWriter()
CLOSE = datetime(9999, 12, 31, tzinfo=UTC)
"""The event time of a close mark."""
LAST = "TIMESTAMP '9999-12-01 00:00:00'"
"""Rows from here on are close marks; no event can be so late."""
_NEVER = "TIMESTAMP '0001-01-01 00:00:00'"
"""No event is so early: what must be before it passes the watermark operator and gets no further."""
_BARRIER = "spark_partition_id() >= 0"
_FOREVER = "36500d"
_PATTERN = frozenset("*?[]{}\\")
_FILE_URL = re.compile(r"file:(?://)?(?=/)")
_CHOICE = re.compile(r"\{([^{}]*)\}")


def schema_text(schema: Schema) -> str:
    """A schema as Spark DDL."""
    return _ddl((c.name, c.type) for c in schema)


def _ddl(columns: Iterable[tuple[str, DataType]]) -> str:
    return ", ".join(f"{_SQL.name(name)} {_SQL.type(kind)}" for name, kind in columns)


def batch_reader(session: Session, source: FileSource, schema: Schema, files: Iterable[Path]) -> Session:
    """A reader of the files of a source. Its rows may have more columns than were declared."""
    return _of_files(session, session.read, source, schema, files)


def _of_files(
    session: Session, reader: Session, source: FileSource, schema: Schema, files: Iterable[Path]
) -> Session:
    reader = reader.format(source.format.value)
    match source.format:
        case Format.CSV:
            columns = _ddl(in_file_order(session, source, schema, files))
            return reader.schema(columns).options(**csv_options(source))
        case Format.JSON | Format.PARQUET:
            return reader.schema(schema_text(schema))


def file_source(stream: Stream, root: Path, generated: Path) -> FileSource | None:
    """The files a stream is read from, absolute and without `..`, as Spark's log has them; None for a
    source that has none."""
    match stream.source:
        case FileSource():
            path = _FILE_URL.sub("", stream.source.path)
            absolute = path if "://" in path else os.path.normpath(root / path)
            return stream.source.model_copy(update={"path": absolute})
        case GeneratorSource():
            return FileSource(
                path=str(generated / stream.name),
                format=Format.PARQUET,
                files_per_batch=stream.source.files_per_batch,
            )
        case RateSource():
            return None


def _read_stream(
    session: Session, stream: Stream, root: Path, generated: Path, most_bytes: int | None
) -> Session:
    source = file_source(stream, root, generated)
    if source is None:
        assert isinstance(stream.source, RateSource)
        rate = session.readStream.format("rate").option("rowsPerSecond", stream.source.rows_per_second)
        return rate.load()
    reader = _of_files(session, session.readStream, source, stream.schema_, input_files(source))
    # Spark forgets files a week older than the newest one it has seen; we must read them all.
    reader = reader.option("maxFileAge", _FOREVER)
    if source.files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", source.files_per_batch)
    elif most_bytes is not None:
        reader = reader.option("maxBytesPerTrigger", most_bytes)
    return reader.load(source.path)


def is_pattern(path: str) -> bool:
    """Whether Spark takes the path for a pattern of names rather than for a name."""
    return bool(_PATTERN & set(path))


def check_path(stream: str, source: FileSource | None, root: Path) -> None:
    """Raises UserError for a path that Spark would find nothing at, or read otherwise than it is meant."""
    if source is None or "://" in source.path:
        return
    path = source.path
    named = next((p for p in (str(root), path) if is_pattern(p) and Path(p).exists()), None)
    if named is not None:
        raise UserError(
            f'stream "{stream}": Spark takes {named} for a pattern, not for the folder of that name',
            hint="Rename the folder: a name must have none of * ? [ ] { } \\.",
        )
    if not is_pattern(path) and not Path(path).exists():
        raise UserError(
            f'stream "{stream}": there is no folder {path}',
            hint="Create it, or correct `path` in headrace.yaml; files may be added while the query runs.",
        )


def stream_view(
    session: Session,
    scan: StreamScan,
    stream: Stream,
    *,
    name: str,
    root: Path,
    generated: Path,
    marks: Path | None,
    most_bytes: int | None = None,
) -> None:
    """Register the view of a scan. `marks` is the stream's folder of close marks; None: no watermark.
    `most_bytes`: of files in one micro-batch, where the source does not say how many files; at least one."""
    if isinstance(scan, DerivedScan):
        _derived_rows(session, scan, stream, marks).createOrReplaceTempView(name)
        return
    time = _SQL.name(scan.time)
    rows = _read_stream(session, stream, root, generated, most_bytes)
    rows = rows.select(*map(_SQL.name, scan.columns.names))
    if marks is not None:
        marks.mkdir(parents=True, exist_ok=True)
        # All columns, though a mark holds only the time: Parquet fills in NULLs at run time. NULLs written
        # into the plan would be folded into the join conditions of a batch that has only marks of a stream,
        # and the other stream's rows of that batch would match nothing.
        close = session.readStream.schema(schema_text(scan.columns)).format("parquet").load(str(marks))
        rows = rows.unionByName(close)
    rows = rows.where(f"{time} IS NOT NULL")
    if marks is not None:
        delay = -(-scan.watermark // 1000)
        rows = rows.withWatermark(scan.time, f"{delay} milliseconds")
        rows = rows.where(f"{time} < {LAST} AND {_BARRIER}")
    rows.createOrReplaceTempView(name)


def _derived_rows(session: Session, scan: DerivedScan, stream: Stream, marks: Path | None) -> Session:
    """Rows of a channel. `marks` has the promises that are due, besides the close marks."""
    assert isinstance(stream.source, FileSource)
    folder, time, names = Path(stream.source.path), _SQL.name(scan.time), scan.columns.names

    def files(path: Path) -> Session:
        reader = session.readStream.schema(schema_text(scan.columns)).format("parquet")
        return reader.option("maxFileAge", _FOREVER).load(str(path))

    rows = files(folder).where(f"{time} IS NOT NULL")
    if marks is None:
        return rows
    marks.mkdir(parents=True, exist_ok=True)
    # A promise has all event times of the stream, a close mark only the first.
    first = f"coalesce({time}, {_SQL.name(stream.time)}) AS {time}"
    promised = files(marks).selectExpr(*(first if name == scan.time else _SQL.name(name) for name in names))
    promised = promised.where(f"{time} IS NOT NULL").withWatermark(time, "0 milliseconds")
    # The watermark of a union is that of the inputs that have one; its columns are those of the first.
    return promised.where(f"{time} < {_NEVER}").unionByName(rows).where(_BARRIER)


def write_promise(marks: Path, name: str, times: Mapping[str, int]) -> None:
    """A promise for a derived stream, once: one row with its event times (microseconds)."""
    final = marks / f"promise-{name}.parquet"
    if not final.exists():
        row = {time: pa.array([micros], pa.timestamp("us", "UTC")) for time, micros in times.items()}
        staged = marks / "_promise.tmp"
        pq.write_table(pa.table(row), staged)
        staged.rename(final)


def write_close_mark(marks: Path, time: str) -> None:
    """Close a stream (once more): one row with the last event time there is. Whole, then renamed."""
    final = marks / f"close-{len(_marks(marks)):03d}.parquet"
    row = pa.table({time: pa.array([CLOSE], pa.timestamp("us", "UTC"))})
    staged = marks / "_close.tmp"
    pq.write_table(row, staged)
    staged.rename(final)


def _marks(folder: Path) -> list[Path]:
    return list(folder.glob("close-*.parquet"))


def table_view(session: Session, scan: TableScan, table: Table, *, name: str, root: Path) -> None:
    """Register a static table's view."""
    columns = [_SQL.name(c) for c in scan.columns.names]
    if table.source is not None:
        source = table.source.model_copy(update={"path": str(root / table.source.path)})
        rows = batch_reader(session, source, table.schema_, input_files(source)).load(source.path)
    elif table.rows is not None:
        rows = session.sql(_values(table))
    else:
        raise InternalError(f"table {table.name} has neither a source nor rows")
    rows.select(*columns).createOrReplaceTempView(name)


def _values(table: Table) -> str:
    """An inline table as SQL text; every value goes through a string and the declared type's cast."""
    names, types = table.schema_.names, [c.type for c in table.schema_]
    rows = table.rows or ()
    selects = [
        "SELECT "
        + ", ".join(f"{_value(v, t)} AS {_SQL.name(n)}" for n, t, v in zip(names, types, row, strict=True))
        for row in rows
    ]
    if not selects:
        nothing = ", ".join(
            f"CAST(NULL AS {_SQL.type(t)}) AS {_SQL.name(n)}" for n, t in zip(names, types, strict=True)
        )
        return f"SELECT {nothing} WHERE FALSE"
    return " UNION ALL ".join(selects)


def _value(value: str | int | float | bool | None, type_: DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {_SQL.type(type_)})"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"CAST('{text}' AS {_SQL.type(type_)})"


def known_rows(streams: Mapping[str, Stream], root: Path, generated: Path) -> dict[str, int | None]:
    """Rows each finite stream holds now, where a footer tells it without reading the rows."""
    return {name: _rows_of(file_source(stream, root, generated)) for name, stream in streams.items()}


def _rows_of(source: FileSource | None) -> int | None:
    if source is None or source.format is not Format.PARQUET or "://" in source.path:
        return None
    try:
        return sum(int(pq.read_metadata(path).num_rows) for path in input_files(source))
    except (OSError, pa.ArrowInvalid):
        return None  # Spark will say what is wrong with the file.


def input_files(source: FileSource) -> list[Path]:
    """The files a local file source holds now: those of the folder and, as Spark has it, of its sub-folders
    that are named `column=value`."""
    if not is_pattern(source.path):
        roots = [Path(source.path)]
    else:
        roots = [path for pattern in patterns(source.path) for path in _matching(PurePath(pattern))]
    return sorted({path for root in roots for path in _leaves(root)})


def _matching(pattern: PurePath) -> Iterator[Path]:
    first = next((i for i, part in enumerate(pattern.parts) if is_pattern(part)), len(pattern.parts) - 1)
    return Path(*pattern.parts[:first]).glob(str(PurePath(*pattern.parts[first:])))


def patterns(path: str) -> list[str]:
    """Spark's pattern as patterns that Python knows: each `{a,b}` written out, `[^a]` as `[!a]`."""
    choice = _CHOICE.search(path)
    if choice is None:
        return [path.replace("[^", "[!")]
    before, after = path[: choice.start()], path[choice.end() :]
    return [done for text in choice[1].split(",") for done in patterns(before + text + after)]


def _leaves(path: Path) -> Iterator[Path]:
    if path.is_file() and not path.name.startswith(("_", ".")):
        yield path
    elif path.is_dir():
        for child in path.iterdir():
            if child.is_file() or ("=" in child.name and not child.name.startswith(("_", "."))):
                yield from _leaves(child)


def belongs(path: Path, source: FileSource) -> bool:
    """Whether a file that some source has read is one of this local source's."""
    places = (path, *path.parents)
    if not is_pattern(source.path):
        return Path(source.path) in places
    return any(place.match(pattern) for pattern in patterns(source.path) for place in places)


def is_plain(source: FileSource) -> bool:
    """Whether the source is a local folder of files and nothing else, so that we list what Spark lists."""
    path = Path(source.path)
    local = "://" not in source.path and not is_pattern(source.path) and path.is_dir()
    return local and not any(child.is_dir() for child in path.iterdir())
