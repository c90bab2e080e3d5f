"""Rows as Arrow tables of a declared schema, and the published results of a file sink read back as such.

Timestamps are naive and hold UTC, in microseconds. A column that is not there is NULL. Values of JSON and CSV
are read as Spark reads them (readers.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import SinkKind
from headrace.errors import UserError
from headrace.plan.types import DataType, Schema
from headrace.runtime import readers
from headrace.runtime.delimited import read_delimited
from headrace.runtime.header import positions
from headrace.runtime.readers import Readers, read

ARROW: dict[DataType, pa.DataType] = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INT: pa.int32(),
    DataType.BIGINT: pa.int64(),
    DataType.FLOAT: pa.float32(),
    DataType.DOUBLE: pa.float64(),
    DataType.STRING: pa.string(),
    DataType.DATE: pa.date32(),
    DataType.TIMESTAMP: pa.timestamp("us"),
}


def read_results(folder: Path, kind: SinkKind, schema: Schema) -> pa.Table:
    """All published rows of a file sink, in the order of the file names; no folder: no rows."""
    suffix = {SinkKind.PARQUET: ".parquet", SinkKind.JSON: ".json", SinkKind.CSV: ".csv"}.get(kind)
    if suffix is None:
        raise UserError(
            f"results of a {kind} sink are not kept",
            hint="Give the query a parquet, json or csv sink to read its results later.",
        )
    parts = [read_file(path, SinkKind(kind), schema) for path in published(folder) if path.suffix == suffix]
    return pa.concat_tables(parts) if parts else arrow_schema(schema).empty_table()


def published(folder: Path) -> list[Path]:
    """The data files below a folder; names that start with `.` or `_` are unfinished or not data."""
    if not folder.is_dir():
        return []
    hidden = (".", "_")
    found = [p for p in folder.rglob("*") if p.is_file()]
    return sorted(p for p in found if not any(n.startswith(hidden) for n in p.relative_to(folder).parts))


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([(c.name, ARROW[c.type]) for c in schema])


def read_file(
    path: Path, kind: SinkKind, schema: Schema, *, header: bool = True, delimiter: str = ","
) -> pa.Table:
    """The rows of one file, in the declared schema."""
    match kind:
        case SinkKind.JSON:
            return from_records(_json_records(path), schema, readers.JSON)
        case SinkKind.CSV:
            return from_records(_csv_records(path, schema, header, delimiter), schema, readers.CSV)
    try:
        return conform(pq.ParquetFile(path).read(), schema)
    except pa.ArrowInvalid as error:
        raise UserError(f"{path} cannot be read as the declared columns", detail=str(error)) from error


def conform(table: pa.Table, schema: Schema) -> pa.Table:
    """The declared columns in their declared types; others are left out, absent ones are NULL."""
    columns = []
    for column in schema:
        if column.name in table.column_names:
            columns.append(_typed(table[column.name], ARROW[column.type]))
        else:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, ARROW[column.type])]))
    return pa.table(columns, schema=arrow_schema(schema))


def zoned(table: pa.Table) -> pa.Table:
    """Timestamps as instants, which is what Spark's TIMESTAMP is, and what it writes into Parquet."""
    for k, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            to = pa.timestamp("us", "UTC")
            table = table.set_column(k, pa.field(field.name, to), table.column(k).cast(to))
    return table


def _typed(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(to):
        # A zoned timestamp holds UTC already; finer units are cut to microseconds, towards the past.
        if column.type.unit == "ns":
            column = _floor_to_micros(column)
        return column.cast(pa.timestamp("us", column.type.tz)).cast(to) if column.type.tz else column.cast(to)
    return column.cast(to)


def _floor_to_micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in column.chunks:
        nanos = chunk.cast(pa.int64()).to_pylist()
        micros = [None if n is None else n // 1000 for n in nanos]
        chunks.append(pa.array(micros, pa.int64()).cast(pa.timestamp("us", chunk.type.tz)))
    return pa.chunked_array(chunks, type=pa.timestamp("us", column.type.tz))


def from_records(
    records: Iterable[dict[str, object]], schema: Schema, readers: Readers = readers.INLINE
) -> pa.Table:
    """Records of values or texts, read by the declared types."""
    rows = list(records)
    columns = []
    for column in schema:
        reader = readers[column.type]
        values = [read(reader, row.get(column.name)) for row in rows]
        columns.append(pa.array(values, ARROW[column.type]))
    return pa.table(columns, schema=arrow_schema(schema))


def _json_records(path: Path) -> Iterator[dict[str, object]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            try:
                record = readers.json_value(line)
            except ValueError:
                record = {}
            yield record if isinstance(record, dict) else {}


def _csv_records(path: Path, schema: Schema, header: bool, delimiter: str) -> Iterator[dict[str, object]]:
    """Columns go by the names in the first line, or by position where it names none."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = read_delimited(file.read(), delimiter)
    places = list(range(len(schema.names)))
    if header:
        first = next(records, None)
        if first is None:
            return
        places = positions(first, schema.names, path)
    for record in records:
        yield {name: record[k] for name, k in zip(schema.names, places, strict=True) if k < len(record)}
