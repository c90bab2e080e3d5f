"""Text files hold what was written, whatever the values, and look as Spark's do."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.catalog.model import SinkKind
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.compare import multiset_difference
from headrace.runtime.delimited import read_delimited
from headrace.runtime.duckdb.texts import as_text
from headrace.runtime.results import arrow_schema, read_file

T = DataType
SCHEMA = Schema(
    Column(name, kind)
    for name, kind in [
        ("a b", T.INT),
        ("x", T.DOUBLE),
        ('q"u,o\\te', T.STRING),
        ("t", T.TIMESTAMP),
        ("d", T.DATE),
        ("b", T.BOOLEAN),
        ("f", T.FLOAT),
        ("l", T.BIGINT),
    ]
)
ROWS = [
    (
        1,
        0.1,
        'he"l,l\\o\n\u00e9\t',
        datetime(2024, 1, 2, 3, 4, 5, 678901),
        date(2020, 2, 29),
        True,
        0.25,
        2**62,
    ),
    (None, math.inf, "", datetime(1969, 12, 31, 23, 59, 59, 1), None, False, math.nan, -1),
    (None,) * 8,
    (-5, 1e300, "\\", datetime(2024, 1, 1), date(1, 1, 1), None, 1e30, 0),
    (0, -math.inf, " a ", datetime(2024, 1, 1), None, None, -0.0, 0),
]


def table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, arrow_schema(SCHEMA), strict=True)],
        schema=arrow_schema(SCHEMA),
    )


@pytest.mark.parametrize("kind", [SinkKind.JSON, SinkKind.CSV])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []])
def test_what_is_written_is_read_back(kind: SinkKind, rows: list[tuple[object, ...]], tmp_path: Path) -> None:
    path = tmp_path / f"part.{kind}"
    path.write_bytes(as_text(table(rows), SCHEMA, kind))
    assert not multiset_difference(table(rows), read_file(path, kind, SCHEMA))


def test_the_text_is_that_of_spark() -> None:
    rows = table([ROWS[1]])
    assert as_text(rows, SCHEMA, SinkKind.JSON) == (
        b'{"x":"Infinity","q\\"u,o\\\\te":"","t":"1969-12-31T23:59:59.000001Z","b":false,"f":"NaN","l":-1}\n'
    )
    head, line = as_text(rows, SCHEMA, SinkKind.CSV).decode().splitlines()
    assert head == 'a b,x,"q""u,o\\te",t,d,b,f,l'
    assert line == ',Infinity,"",1969-12-31T23:59:59.000001Z,,false,NaN,-1'


TEXTS = st.one_of(
    st.none(),
    st.text(st.one_of(st.sampled_from('a"\\,;\n\r \t\u2028é'), st.characters(codec="utf-8")), max_size=8),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
def test_any_reader_of_csv_reads_the_texts(rows: list[tuple[str | None, str | None]]) -> None:
    schema = Schema([Column("a", T.STRING), Column('b,"c"', T.STRING)])
    columns = [[row[k] for row in rows] for k in range(2)]
    written = pa.table([pa.array(c, pa.string()) for c in columns], schema=arrow_schema(schema))
    text = as_text(written, schema, SinkKind.CSV).decode()
    expected = [["a", 'b,"c"'], *([one or "" for one in row] for row in rows)]
    assert list(csv.reader(io.StringIO(text, newline=""))) == expected
    # Which of the empty ones are NULL is told by their quotes.
    assert list(read_delimited(text, ","))[1:] == [list(row) for row in rows]


def test_only_what_must_be_is_quoted() -> None:
    schema = Schema([Column("s", T.STRING), Column("i", T.INT)])
    texts = ["a b", "", None, 'q"', "a,b", "\\", "x\ry", "NULL"]
    rows = pa.table(
        [pa.array(texts, pa.string()), pa.array([1] * 8, pa.int32())], schema=arrow_schema(schema)
    )
    lines = ["s,i", "a b,1", '"",1', ",1", '"q""",1', '"a,b",1', "\\,1", '"x\ry",1', "NULL,1", ""]
    assert as_text(rows, schema, SinkKind.CSV).decode().split("\n") == lines


def test_slices_of_large_tables_are_whole() -> None:
    rows = pa.concat_tables([table(ROWS)] * 1000).slice(3, 4000)
    assert as_text(rows, SCHEMA, SinkKind.JSON).count(b"\n") == 4000
