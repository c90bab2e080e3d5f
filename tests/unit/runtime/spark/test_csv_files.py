"""The columns that Spark is told to expect in CSV files, and what is said of a file that has others."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import FileSource, Format, Stream
from headrace.errors import UserError
from headrace.plan.types import DataType
from headrace.runtime.spark.closing import Closing
from headrace.runtime.spark.csv_files import csv_options, in_file_order
from headrace.runtime.spark.sources import input_files

T = DataType
COLUMNS = {"ts": T.TIMESTAMP, "sold": T.INT, "bought": T.INT}


def stream(root: Path, *, header: bool = True) -> Stream:
    source = FileSource(path=str(root / "in"), format=Format.CSV, header=header)
    return Stream(name="s", columns=COLUMNS, time="ts", source=source)


def put(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root / "in" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".csv").write_text(text)


def order(one: Stream) -> list[tuple[str, DataType]]:
    assert isinstance(one.source, FileSource)
    return in_file_order(None, one.source, one.schema_, input_files(one.source))


def closing(root: Path) -> Closing:
    return Closing({"s": stream(root)}, state=root / "state", root=root, generated=root / "data")


def test_columns_are_those_of_the_first_file_that_has_any(tmp_path: Path) -> None:
    put(tmp_path, a="", b="TS,,bought\n", c="ts,sold,bought\n")
    with pytest.raises(UserError, match=r'b\.csv.*"sold"'):
        order(stream(tmp_path))
    put(tmp_path, b='TS,,bought,"more ""x""",Sold\n')
    named = [("ts", T.TIMESTAMP), ("\ufdd0", T.STRING), ("bought", T.INT)]
    assert order(stream(tmp_path)) == [*named, ('more "x"', T.STRING), ("sold", T.INT)]


def test_without_files_or_header_the_columns_are_the_declared_ones(tmp_path: Path) -> None:
    assert order(stream(tmp_path)) == list(COLUMNS.items())
    put(tmp_path, a="bought,sold,ts\n")
    assert order(stream(tmp_path, header=False)) == list(COLUMNS.items())
    assert csv_options(FileSource(path="in", format=Format.CSV))["enforceSchema"] == "false"
    assert csv_options(FileSource(path="in", format=Format.CSV, header=False))["enforceSchema"] == "true"


def test_columns_in_the_names_of_folders_are_in_no_file(tmp_path: Path) -> None:
    put(tmp_path, **{"sold=1__a": "bought,ts\n"})
    assert order(stream(tmp_path)) == [("bought", T.INT), ("ts", T.TIMESTAMP), ("sold", T.INT)]
    closing(tmp_path).check_paths(tmp_path)


def test_a_header_that_does_not_fit_is_said_before_anything_starts(tmp_path: Path) -> None:
    put(tmp_path, a="bought,sold,ts\n1,2,3\n")
    closing(tmp_path).check_paths(tmp_path)
    put(tmp_path, a="2024-01-01,1,2\n")
    with pytest.raises(UserError, match=r'a\.csv.*"ts"') as refused:
        closing(tmp_path).check_paths(tmp_path)
    assert "header: false" in refused.value.hint
    put(tmp_path, a="ts,sold,bought,Sold\n")
    with pytest.raises(UserError, match=r'a\.csv.*"sold" twice'):
        closing(tmp_path).check_paths(tmp_path)


def test_a_failure_names_the_header_of_the_file(tmp_path: Path) -> None:
    put(tmp_path, **{"a b": "bought,ts,sold\n"})
    file = (tmp_path / "in" / "a b.csv").as_uri()
    message = f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {file}.  SQLSTATE: KD001"
    assert "names bought, ts, sold. All CSV files" in closing(tmp_path).told(message)
    for other in ("[STREAM_FAILED] out of memory", message.replace("/in/", "/elsewhere/")):
        assert closing(tmp_path).told(other) == other
