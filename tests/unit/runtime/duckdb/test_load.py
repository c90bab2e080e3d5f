"""The finite input of sources, read for the reference."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import FileSource, Format, GeneratorSource, RateSource, Source, Stream, Table
from headrace.errors import NotSupported, UserError
from headrace.plan.types import DataType
from headrace.runtime.duckdb.load import load_stream, load_table

T = DataType
COLUMNS = {"k": T.STRING, "v": T.DOUBLE, "ts": T.TIMESTAMP}
FIRST = {"k": "a", "v": 1.5, "ts": datetime(2024, 1, 1, 12)}
SECOND = {"k": None, "v": None, "ts": datetime(2024, 1, 1, 12, 0, 1)}


def stream(source: Source) -> Stream:
    return Stream(name="s", columns=COLUMNS, time="ts", source=source)


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        (Format.CSV, "k,v,ts\na,1.5,2024-01-01 12:00:00\n,,2024-01-01T13:00:01+01:00\n"),
        (
            Format.JSON,
            '{"k":"a","v":1.5,"ts":"2024-01-01T12:00:00Z"}\n\n{"ts":"2024-01-01 12:00:01","z":1}\n',
        ),
    ],
)
def test_texts(tmp_path: Path, format_: Format, text: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"1.{format_}").write_text(text)
    (tmp_path / "in" / "_not_yet").write_text("half a li")
    found = load_stream(stream(FileSource(path="in", format=format_)), tmp_path, None)
    assert found.to_pylist() == [FIRST, SECOND]


def test_csv_goes_by_the_names_in_each_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,k,v\n2024-01-01 12:00:00,a,1.5\n")
    (tmp_path / "2.csv").write_text('more,v,k,ts\nx,,"",2024-01-01 12:00:01\n')
    source = FileSource(path="*.csv", format=Format.CSV)
    assert load_stream(stream(source), tmp_path, None).to_pylist() == [FIRST, {**SECOND, "k": ""}]
    (tmp_path / "3.csv").write_text("v,k,time\n1,a,2024-01-01\n")
    with pytest.raises(UserError, match=r'3\.csv.*"ts"'):
        load_stream(stream(source), tmp_path, None)


def test_csv_without_header_and_with_another_delimiter(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a;1.5;2024-01-01 12:00:00")
    source = FileSource(path="*.csv", format=Format.CSV, header=False, delimiter=";")
    assert load_stream(stream(source), tmp_path, None).to_pylist() == [FIRST]


def test_parquet_and_missing_columns(tmp_path: Path) -> None:
    times = pa.array([SECOND["ts"]], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"ts": times}), tmp_path / "1.parquet")
    source = FileSource(path=str(tmp_path / "1.parquet"), format=Format.PARQUET)
    assert load_stream(stream(source), Path("/elsewhere"), None).to_pylist() == [SECOND]


def test_generated_files(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    times = pa.array([FIRST["ts"]], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times, "k": ["a"], "v": [1.5]}), tmp_path / "s" / "0.parquet")
    assert load_stream(stream(GeneratorSource()), tmp_path, tmp_path).to_pylist() == [FIRST]


def test_endless_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupported):
        load_stream(stream(RateSource()), tmp_path, None)


def test_an_absent_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        load_stream(stream(FileSource(path="nowhere", format=Format.CSV)), tmp_path, None)
    assert load_stream(stream(FileSource(path="no*", format=Format.CSV)), tmp_path, None).num_rows == 0


def test_inline_tables(tmp_path: Path) -> None:
    table = Table(name="t", columns=COLUMNS, rows=(("a", 1.5, "2024-01-01 12:00:00"), (None, None, None)))
    assert load_table(table, tmp_path).to_pylist() == [FIRST, {"k": None, "v": None, "ts": None}]
    assert load_table(table.model_copy(update={"rows": ()}), tmp_path).num_rows == 0


def test_tables_of_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,v,ts\na,1.5,2024-01-01 12:00:00\n")
    table = Table(name="t", columns=COLUMNS, source=FileSource(path="t.csv", format=Format.CSV))
    assert load_table(table, tmp_path).to_pylist() == [FIRST]
