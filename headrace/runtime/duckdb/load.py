"""The finite input of streams and tables, as Arrow tables, for the reference.

The reader is pyarrow and Python, not Spark and not DuckDB: an oracle should not share the reader of what it
judges. Each CSV file goes by its own first line here, while Spark is told one for all and fails at another.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import FileSource, GeneratorSource, SinkKind, Stream, Table
from headrace.errors import NotSupported, UserError
from headrace.plan.types import Schema
from headrace.runtime.results import arrow_schema, from_records, published, read_file


def load_stream(stream: Stream, root: Path, generated: Path | None) -> pa.Table:
    """All rows of a stream's source. `generated` is the folder of generated files, one folder a stream."""
    match stream.source:
        case FileSource():
            return _read(stream.source, root, stream.schema_, f'stream "{stream.name}"')
        case GeneratorSource() if generated is not None:
            files = published(generated / stream.name)
            return _concatenated(
                [read_file(f, SinkKind.PARQUET, stream.schema_) for f in files], stream.schema_
            )
    raise NotSupported(
        f'stream "{stream.name}": its source is not finite input',
        hint="Only file sources and generated files can be read as a batch.",
    )


def load_table(table: Table, root: Path) -> pa.Table:
    """All rows of a static table."""
    if table.source is not None:
        return _read(table.source, root, table.schema_, f'table "{table.name}"')
    names = table.schema_.names
    return from_records((dict(zip(names, row, strict=True)) for row in table.rows or ()), table.schema_)


def _read(source: FileSource, root: Path, schema: Schema, what: str) -> pa.Table:
    kind = SinkKind(source.format.value)
    parts = []
    for file in _files(source, root, what):
        try:
            parts.append(read_file(file, kind, schema, header=source.header, delimiter=source.delimiter))
        except UnicodeDecodeError as error:
            raise UserError(f"{what}: {file} is not UTF-8 text", detail=str(error)) from None
    return _concatenated(parts, schema)


def _files(source: FileSource, root: Path, what: str) -> list[Path]:
    path = root / source.path
    if path.is_dir():
        return published(path)
    if path.is_file():
        return [path]
    anchor = Path(path.anchor)
    found = sorted(anchor.glob(str(path.relative_to(anchor))))
    files = [f for hit in found for f in (published(hit) if hit.is_dir() else [hit])]
    if not files and "*" not in source.path:
        raise UserError(f"{what}: there is no folder {path}", hint="Correct `path` in headrace.yaml.")
    return files


def _concatenated(parts: list[pa.Table], schema: Schema) -> pa.Table:
    return pa.concat_tables(parts) if parts else arrow_schema(schema).empty_table()
