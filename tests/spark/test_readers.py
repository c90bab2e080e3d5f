"""Files as the reference reads them, and as Spark does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.catalog.model import SinkKind
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.results import conform, read_file
from headrace.runtime.spark.session import Sessions
from headrace.runtime.spark.sources import schema_text
from tests.reader_texts import TEXTS, TOKENS

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


def same(session: Any, path: Path, kind: DataType) -> None:
    reader = session.read.schema(schema_text(of(kind)))
    rows = reader.option("header", True).csv(str(path)) if path.suffix == ".csv" else reader.json(str(path))
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
