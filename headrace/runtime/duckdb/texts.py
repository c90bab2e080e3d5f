"""Rows as JSON lines or CSV, as Spark's own sinks write them, so that a reader cannot tell who wrote a file.
CSV is that of RFC 4180: what must be quoted is, with quotes doubled; a backslash is a character as any other.

A line is made by SQL on whole columns, and the bytes of the column of lines are the file.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headrace.catalog.model import SinkKind
from headrace.errors import InternalError
from headrace.plan.types import DataType, Schema
from headrace.runtime.duckdb.kept import connection
from headrace.runtime.sqltext import DuckWriter

_SQL = DuckWriter()
_THREADS, _MEMORY = 1, "2GB"
_FLOATS = (DataType.FLOAT, DataType.DOUBLE)


def as_text(rows: pa.Table, schema: Schema, kind: SinkKind) -> bytes:
    """The content of a file with these rows."""
    match kind:
        case SinkKind.JSON:
            head, line = b"", _json_line(schema)
        case SinkKind.CSV:
            head, line = (",".join(map(_csv_name, schema.names)) + "\n").encode(), _csv_line(schema)
        case _:
            raise InternalError(f"{kind} is no text")
    with connection(_THREADS, _MEMORY) as database:
        database.register("#rows", rows)
        lines = database.sql(f'SELECT {line} || chr(10) AS line FROM "#rows"').to_arrow_table()["line"]
    return head + b"".join(_content(chunk) for chunk in lines.cast(pa.large_string()).chunks)


def _content(lines: pa.LargeStringArray) -> bytes:
    """All the lines of an array, one after the other."""
    _, offsets, data = lines.buffers()
    if data is None:
        return b""
    ends = memoryview(offsets).cast("q")
    return bytes(memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]])


def _json_line(schema: Schema) -> str:
    """NULLs are left out, as Spark does; a first field is never preceded by a comma."""
    fields = [_json_field(c.name, c.type) for c in schema]
    return f"'{{' || concat_ws(',', {', '.join(fields)}) || '}}'"


def _json_field(name: str, kind: DataType) -> str:
    column, label = _SQL.name(name), _literal(_quoted_json(name) + ":")
    return f"({label} || {_json_value(column, kind)})"


def _json_value(column: str, kind: DataType) -> str:
    if kind in _FLOATS:
        return _float(column, f"'\"' || {_odd_float(column)} || '\"'")
    if kind is DataType.STRING:
        return f"CAST(to_json({column}) AS VARCHAR)"
    text = _plain(column, kind)
    return f"'\"' || {text} || '\"'" if kind in (DataType.TIMESTAMP, DataType.DATE) else text


def _quoted_json(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _csv_line(schema: Schema) -> str:
    fields = [f"coalesce({_csv_value(_SQL.name(c.name), c.type)}, '')" for c in schema]
    return " || ',' || ".join(fields)


def _csv_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n\r') else name


def _csv_value(column: str, kind: DataType) -> str:
    """An empty text is two quotes, and nothing is NULL."""
    if kind in _FLOATS:
        return _float(column, _odd_float(column))
    if kind is DataType.STRING:
        quoted = f"""'"' || replace({column}, '"', '""') || '"'"""
        special = f"""{column} = '' OR regexp_matches({column}, '[,"\\r\\n]')"""
        return f"CASE WHEN {special} THEN {quoted} ELSE {column} END"
    return _plain(column, kind)


def _float(column: str, odd: str) -> str:
    """NULL stays NULL."""
    return f"CASE WHEN isfinite({column}) THEN CAST({column} AS VARCHAR) ELSE {odd} END"


def _odd_float(column: str) -> str:
    signs = f"WHEN {column} > 0 THEN 'Infinity' WHEN {column} < 0 THEN '-Infinity'"
    return f"CASE WHEN isnan({column}) THEN 'NaN' {signs} END"


def _plain(column: str, kind: DataType) -> str:
    form: Callable[[str], str] = {
        DataType.TIMESTAMP: lambda c: f"strftime({c}, '%Y-%m-%dT%H:%M:%S.%fZ')",
        DataType.DATE: lambda c: f"strftime({c}, '%Y-%m-%d')",
    }.get(kind, lambda c: f"CAST({c} AS VARCHAR)")
    return form(column)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
