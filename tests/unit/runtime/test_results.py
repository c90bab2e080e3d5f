"""Results read back from files: texts as Spark 4.3 writes them, by hand, and Parquet written by pyarrow."""

from __future__ import annotations

import math
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.catalog.model import SinkKind
from headrace.errors import UserError
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.delimited import read_delimited
from headrace.runtime.results import read_results
from tests.reader_texts import CSV_FIELDS

T = DataType
SCHEMA = Schema(
    [
        Column("i", T.INT),
        Column("s", T.STRING),
        Column("t", T.TIMESTAMP),
        Column("d", T.DATE),
        Column("x", T.DOUBLE),
        Column("b", T.BOOLEAN),
    ]
)
MOMENT, DAY = datetime(2024, 1, 1, 0, 0, 0, 123000), date(2024, 2, 29)
CSV = '''i,s,t,d,x,b
0,"say ""x""",2024-01-01T00:00:00.123Z,2024-02-29,3.3333333333333335,true
1,,,,NaN,
2,"",2024-01-01T00:00:00.123Z,2024-02-29,-Infinity,false
3,a\\b,2024-01-01T01:00:00.123+01:00,2024-02-29,1E-5,false
4,"q\\""z,
break",2024-01-01T00:00:00.123Z,2024-02-29,0.0,true
x,y,yesterday,2024-13-01,one,maybe
'''
JSON = r"""
{"i":0,"s":"say \"x\"","t":"2024-01-01T00:00:00.123Z","d":"2024-02-29","x":3.3333333333333335,"b":true}
{"i":1,"x":"NaN"}
{"i":2,"s":"","t":"2024-01-01T00:00:00.123Z","d":"2024-02-29","x":"-Infinity","b":false}
{"i":3,"s":"a\\b","t":"2024-01-01T01:00:00.123+01:00","d":"2024-02-29","x":1.0E-5,"b":false}
{"i":4,"s":"q\\\"z,\nbreak","t":"2024-01-01T00:00:00.123Z","d":"2024-02-29","x":0.0,"b":true}
{"i":1.5,"s":"y","t":"yesterday","d":"2024-13-01","x":"one","b":"maybe"}
"""
ROWS = [
    (0, 'say "x"', MOMENT, DAY, 10 / 3, True),
    (1, None, None, None, "nan", None),
    (2, "", MOMENT, DAY, -math.inf, False),
    (3, "a\\b", MOMENT, DAY, 1e-5, False),
    (4, 'q\\"z,\nbreak', MOMENT, DAY, 0.0, True),
    (None, "y", None, None, None, None),
]


def plain(table: pa.Table) -> list[tuple[object, ...]]:
    return [
        tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in r.values())
        for r in table.to_pylist()
    ]


@pytest.mark.parametrize(("kind", "text"), [(SinkKind.CSV, CSV), (SinkKind.JSON, JSON)])
def test_texts_are_read_by_the_declared_types(tmp_path: Path, kind: SinkKind, text: str) -> None:
    (tmp_path / f"part-0.{kind}").write_text(text, encoding="utf-8")
    assert plain(read_results(tmp_path, kind, SCHEMA)) == ROWS


def test_parquet_is_read_recursively_and_hidden_names_are_not(tmp_path: Path) -> None:
    zoned = pa.table({"t": pa.array([1_500], pa.timestamp("ms", "UTC")), "i": pa.array([7], pa.int32())})
    for name in ("a.parquet", "sub/b.parquet", ".hidden.parquet", "_tmp/c.parquet", "a.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(zoned, tmp_path / name)
    found = read_results(tmp_path, SinkKind.PARQUET, Schema([Column("i", T.INT), Column("t", T.TIMESTAMP)]))
    assert found.to_pylist() == [{"i": 7, "t": datetime(1970, 1, 1, 0, 0, 1, 500000)}] * 2
    assert found.schema.field("t").type == pa.timestamp("us")


def test_nanoseconds_are_cut_towards_the_past(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([-1, 1_999], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    found = read_results(tmp_path, SinkKind.PARQUET, Schema([Column("t", T.TIMESTAMP)]))
    assert found["t"].cast(pa.int64()).to_pylist() == [-1, 1]


def test_an_absent_folder_has_no_rows_and_the_schema(tmp_path: Path) -> None:
    found = read_results(tmp_path / "nothing", SinkKind.JSON, SCHEMA)
    assert (found.num_rows, tuple(found.column_names)) == (0, SCHEMA.names)


def test_a_file_that_does_not_fit_is_the_users_to_know(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": ["many"]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet"):
        read_results(tmp_path, SinkKind.PARQUET, SCHEMA)


def test_console_results_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        read_results(tmp_path, SinkKind.CONSOLE, SCHEMA)
    assert "parquet" in refused.value.hint


def written(field: str | None) -> str:
    return "" if field is None else '"' + field.replace('"', '""') + '"'


FIELDS = st.one_of(st.none(), st.text(st.sampled_from('ab\\",\n\r;'), max_size=6))


@settings(deadline=None)
@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_read(records: list[list[str | None]], line: str) -> None:
    lines: list[list[str | None]] = [["a", "b"], *records]
    text = "".join(",".join(map(written, record)) + line for record in lines)
    expected = [[f if f is None else f.replace(line, "\n") for f in record] for record in lines]
    assert list(read_delimited(text, ",")) == expected
    assert list(read_delimited(text.removesuffix(line), ",")) == expected


@pytest.mark.parametrize(("given_", "read"), CSV_FIELDS)
def test_fields_are_read_as_spark_reads_them(given_: str, read: str | None) -> None:
    assert list(read_delimited(f"n,s\n1,{given_}\n2,z", ",")) == [["n", "s"], ["1", read], ["2", "z"]]


def csv(folder: Path, text: str) -> list[dict[str, object]]:
    (folder / "part-0.csv").write_text(text, encoding="utf-8")
    columns = Schema([Column("i", T.INT), Column("s", T.STRING)])
    return list(read_results(folder, SinkKind.CSV, columns).to_pylist())


@pytest.mark.parametrize("header", ["i,s", "I,S", "\ufeffi,s", '"i","s",""'])
def test_a_header_names_the_columns(tmp_path: Path, header: str) -> None:
    assert csv(tmp_path, f"{header}\n1,a\n2\n") == [{"i": 1, "s": "a"}, {"i": 2, "s": None}]


def test_columns_come_in_any_order_and_others_are_passed_over(tmp_path: Path) -> None:
    assert csv(tmp_path, "s,other,i\na,b,1\n") == [{"i": 1, "s": "a"}]
    assert csv(tmp_path, "") == []


@pytest.mark.parametrize("header", ["i,t", "i,s,S", "i, s", "1,a"])
def test_a_header_that_leaves_a_column_open_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(UserError, match=r"part-0\.csv"):
        csv(tmp_path, f"{header}\n1,a\n")
