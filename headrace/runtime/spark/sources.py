"""Streams and tables as Spark views.

A stream's view is, bottom up: its source; the close marks of the job, a second source with nothing in it
until the stream is closed; rows without an event time dropped; the watermark; the close marks dropped.
The mark must pass the watermark operator and must not get further, so its filter is written on the event
time, which Spark does not push below a watermark. For the same reason a barrier (a predicate Spark has to
take for non-deterministic) stops the query's own filters: pushed below the watermark they would make it
depend on the query, and would drop the close mark, whose other columns are NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import FileSource, Format, GeneratorSource, RateSource, Stream, Table
from headrace.errors import InternalError, UserError
from headrace.plan.logical import StreamScan, TableScan
from headrace.plan.types import DataType, Schema
from headrace.runtime.spark.session import Session
from headrace.runtime.sqltext import SparkWriter

_SQL = SparkWriter()
CLOSE = datetime(9999, 12, 31, tzinfo=UTC)
"""The event time of a close mark."""
LAST = "TIMESTAMP '9999-12-01 00:00:00'"
"""Rows from here on are close marks; no event can be so late."""
_BARRIER = "spark_partition_id() >= 0"
_FOREVER = "36500d"


def schema_text(schema: Schema) -> str:
    """A schema as Spark DDL."""
    return ", ".join(f"{_SQL.name(c.name)} {_SQL.type(c.type)}" for c in schema)


def reader_options(source: FileSource) -> dict[str, str]:
    match source.format:
        case Format.CSV:
            return {"header": str(source.header).lower(), "sep": source.delimiter}
        case Format.JSON | Format.PARQUET:
            return {}


def file_source(stream: Stream, root: Path, generated: Path) -> FileSource | None:
    """The files a stream is read from, absolute; None for a source that has none."""
    match stream.source:
        case FileSource():
            path = stream.source.path
            absolute = path if "://" in path or Path(path).is_absolute() else str(root / path)
            return stream.source.model_copy(update={"path": absolute})
        case GeneratorSource():
            return FileSource(
                path=str(generated / stream.name),
                format=Format.PARQUET,
                files_per_batch=stream.source.files_per_batch,
            )
        case RateSource():
            return None


def _read_stream(session: Session, stream: Stream, root: Path, generated: Path) -> Session:
    source = file_source(stream, root, generated)
    if source is None:
        assert isinstance(stream.source, RateSource)
        rate = session.readStream.format("rate").option("rowsPerSecond", stream.source.rows_per_second)
        return rate.load()
    if "://" not in source.path and "*" not in source.path and not Path(source.path).exists():
        raise UserError(
            f'stream "{stream.name}": there is no folder {source.path}',
            hint="Create it, or correct `path` in headrace.yaml; files may be added while the query runs.",
        )
    reader = session.readStream.schema(schema_text(stream.schema_)).format(source.format.value)
    # Spark forgets files a week older than the newest one it has seen; we must read them all.
    reader = reader.options(**reader_options(source)).option("maxFileAge", _FOREVER)
    if source.files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", source.files_per_batch)
    return reader.load(source.path)


def stream_view(
    session: Session,
    scan: StreamScan,
    stream: Stream,
    *,
    name: str,
    root: Path,
    generated: Path,
    marks: Path | None,
) -> None:
    """Register the view of a scan. `marks` is the stream's folder of close marks; None: no watermark."""
    time = _SQL.name(scan.time)
    rows = _read_stream(session, stream, root, generated).select(*map(_SQL.name, scan.columns.names))
    if marks is not None:
        marks.mkdir(parents=True, exist_ok=True)
        close = session.readStream.schema(f"{time} TIMESTAMP").format("parquet").load(str(marks))
        rows = rows.unionByName(close, allowMissingColumns=True)
    rows = rows.where(f"{time} IS NOT NULL")
    if marks is not None:
        delay = -(-scan.watermark // 1000)
        rows = rows.withWatermark(scan.time, f"{delay} milliseconds")
        rows = rows.where(f"{time} < {LAST} AND {_BARRIER}")
    rows.createOrReplaceTempView(name)


def write_close_mark(marks: Path, time: str) -> None:
    """Close a stream: one row with the last event time there is. Whole, then renamed; once."""
    final = marks / "close.parquet"
    if final.exists():
        return
    row = pa.table({time: pa.array([CLOSE], pa.timestamp("us", "UTC"))})
    staged = marks / "_close.tmp"
    pq.write_table(row, staged)
    staged.rename(final)


def is_closed(marks: Path) -> bool:
    return (marks / "close.parquet").exists()


def table_view(session: Session, scan: TableScan, table: Table, *, name: str, root: Path) -> None:
    """Register a static table's view."""
    columns = [_SQL.name(c) for c in scan.columns.names]
    if table.source is not None:
        path = root / table.source.path
        reader = session.read.schema(schema_text(table.schema_)).format(table.source.format.value)
        rows = reader.options(**reader_options(table.source)).load(str(path))
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
    """The files a local file source holds now; like Spark, without looking into sub-folders."""
    base = Path(source.path)
    if "*" in source.path:
        first = next(i for i, part in enumerate(base.parts) if "*" in part)
        roots = list(Path(*base.parts[:first]).glob(str(Path(*base.parts[first:]))))
    else:
        roots = [base] if base.exists() else []
    files = [p for path in roots for p in (path.iterdir() if path.is_dir() else [path])]
    return sorted({p for p in files if p.is_file() and not p.name.startswith(("_", "."))})
