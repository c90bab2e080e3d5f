"""Files as the reference reads them, and as Spark does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import FileSource, Format, SinkKind
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.duckdb.texts import as_text
from headrace.runtime.results import arrow_schema, conform, read_file
from headrace.runtime.spark.publish import writer_options
from headrace.runtime.spark.session import Sessions
from headrace.runtime.spark.sources import batch_reader
from tests.reader_texts import CSV_FIELDS, TEXTS, TOKENS

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Not stopped here: all tests of a process share one."""
    return Sessions(os.environ, scratch=tmp_path_factory.mktemp("spark")).get("local[2]", 2)


def of(kind: DataType) -> Schema:
    return Schema([Column("n", DataType.INT), Column("x", kind)])


def texts(rows: pa.Table) -> list[tuple[object, str]]:
    """NaN equals NaN, and -0.0 is another number than 0.0."""
    return [(row["n"], repr(row["x"])) for row in rows.to_pylist()]


def spark_rows(session: Any, path: Path, schema: Schema) -> Any:
    source = FileSource(path=str(path), format=Format(path.suffix[1:]))
    return batch_reader(session, source, schema, [path]).load(str(path))


def same(session: Any, path: Path, kind: DataType) -> None:
    rows = spark_rows(session, path, of(kind))
    ours = read_file(path, SinkKind(path.suffix[1:]), of(kind))
    assert texts(ours) == texts(conform(rows.orderBy("n").toArrow(), of(kind)))


def test_texts_are_read_as_spark_reads_them(session: Any, tmp_path: Path) -> None:
    for kind, given in TEXTS.items():
        path = tmp_path / f"{kind}.csv"
        path.write_text("n,x\n" + "".join(f"{n},{text}\n" for n, text in enumerate(given)), encoding="utf-8")
        same(session, path, kind)
        path = tmp_path / f"{kind}.json"
        lines = (json.dumps({"n": n, "x": text}) for n, text in enumerate(given))
        path.write_text("\n".join(lines), encoding="utf-8")
        same(session, path, kind)


def test_tokens_are_read_as_spark_reads_them(session: Any, tmp_path: Path) -> None:
    for kind, given in TOKENS.items():
        path = tmp_path / f"{kind}.json"
        lines = (f'{{"n": {n}, "x": {token}}}' for n, token in enumerate(given))
        path.write_text("\n".join(lines), encoding="utf-8")
        same(session, path, kind)


@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
def test_csv_is_read_as_spark_reads_it(session: Any, tmp_path: Path, line: str) -> None:
    """By the names of the header, whatever stands between quotes, and however lines end."""
    fields = [(field, read) for field, read in CSV_FIELDS if line == "\n" or "\n" not in field]
    fields += [(f'"two{line}lines"', "two\nlines")]
    path = tmp_path / "a.csv"
    rows = (f"-,{field},-,{n}" for n, (field, _) in enumerate(fields))
    lines = ["\ufeffmore,X,,N", "-,short", "", *rows]
    path.write_bytes("".join(one + line for one in lines).encode())
    same(session, path, DataType.STRING)
    found = spark_rows(session, path, of(DataType.STRING)).where("n IS NOT NULL").orderBy("n").toArrow()
    assert found["x"].to_pylist() == [read for _, read in fields]


def test_a_csv_file_with_another_header_is_never_misread(session: Any, tmp_path: Path) -> None:
    schema, source = of(DataType.STRING), FileSource(path=str(tmp_path), format=Format.CSV)
    (tmp_path / "a.csv").write_text("x,n\na,1\n")
    for header in ("n,x", "n", "x,more,n"):
        (tmp_path / "b.csv").write_text(f"{header}\n2,3\n")
        reader = batch_reader(session, source, schema, [tmp_path / "a.csv", tmp_path / "b.csv"])
        with pytest.raises(Exception, match=r"b\.csv"):
            reader.load(str(tmp_path)).select("n", "x").toArrow()


def test_what_spark_writes_is_what_trees_write(session: Any, tmp_path: Path) -> None:
    texts = [read for _, read in CSV_FIELDS] + ["\r", "a;b", "'", '""', " ", "a\tb", ","]
    schema = Schema([Column("n", DataType.INT), Column("x", DataType.STRING)])
    columns = [pa.array(range(len(texts)), pa.int32()), pa.array(texts, pa.string())]
    rows = pa.table(columns, schema=arrow_schema(schema))
    frame = session.createDataFrame(rows).coalesce(1)
    frame.write.format("csv").options(**writer_options(SinkKind.CSV)).save(str(tmp_path / "csv"))
    (written,) = (tmp_path / "csv").glob("part-*")
    assert written.read_bytes() == as_text(rows, schema, SinkKind.CSV)


def test_spark_writes_instants_of_any_year(session: Any, tmp_path: Path) -> None:
    session.sql("SELECT timestamp_micros(253402214400000001) AS t").write.parquet(str(tmp_path / "t"))
    (written,) = (tmp_path / "t").glob("part-*.parquet")
    found = pq.read_table(written)["t"]
    assert found.type == pa.timestamp("us", "UTC")
    assert found.cast(pa.int64()).to_pylist() == [253402214400000001]
