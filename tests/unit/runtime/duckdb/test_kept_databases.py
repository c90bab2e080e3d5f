"""Kept databases: each question sees its own rows, in UTC, and nothing outside."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from headrace.runtime.duckdb import kept
from headrace.runtime.duckdb.kept import connection


def test_questions_do_not_see_each_other() -> None:
    with connection(1, "1GB") as one, connection(1, "1GB") as other:
        one.register("t", pa.table({"a": [1]}))
        other.register("t", pa.table({"a": [2, 3]}))
        assert one.sql("SELECT sum(a) FROM t").fetchall() == [(1,)]
        assert other.sql("SELECT sum(a) FROM t").fetchall() == [(5,)]
    with connection(1, "1GB") as later, pytest.raises(duckdb.CatalogException):
        later.sql("SELECT * FROM t")


def test_threads_do_not_see_each_other() -> None:
    found: dict[int, list[tuple[int]]] = {}

    def ask(number: int) -> None:
        for _ in range(20):
            with connection(1, "1GB") as database:
                database.register("t", pa.table({"a": [number] * 10}))
                found[number] = database.sql("SELECT DISTINCT a FROM t").fetchall()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [(number,)] for number in range(4)}


def test_nothing_outside_is_read_and_times_are_utc(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    rows = pa.table({"a": [1]})
    with connection(1, "1GB") as database:
        with pytest.raises(duckdb.PermissionException):
            database.sql(f"SELECT * FROM read_csv('{tmp_path / 'a.csv'}')").fetchall()
        with pytest.raises(duckdb.CatalogException):
            database.sql("SELECT * FROM rows").fetchall()
        assert rows.num_rows == 1
        [[zone]] = database.sql("SELECT current_setting('TimeZone')").fetchall()
        assert zone == "UTC"


def test_one_that_is_broken_is_not_kept() -> None:
    with connection(1, "1GB"):
        before = dict(kept._kept)
    with connection(1, "1GB"):
        assert kept._kept == before
    with pytest.raises(duckdb.FatalException), connection(1, "1GB"):
        raise duckdb.FatalException("told to break")
    assert set(before.values()) - set(kept._kept.values())
    with connection(1, "1GB") as database:
        assert database.sql("SELECT 1").fetchall() == [(1,)]
