"""Window tables: rows go with the windows, and so does their memory; there is no way out of the database."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import EngineError
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.duckdb.window_sql import Given
from headrace.runtime.duckdb.window_tables import NoRoom, WindowDatabase
from tests.federated_cases import SECOND

SCHEMA = Schema([Column("ts", DataType.TIMESTAMP), Column("v", DataType.DOUBLE)])


def rows(times: list[int]) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "v": np.arange(len(times), dtype=float)})


@pytest.fixture
def database() -> WindowDatabase:
    made = WindowDatabase(threads=1)
    made.keep("0", SCHEMA, "ts", 80 * SECOND)
    return made


def test_chunks_are_dropped_whole_and_their_memory_is_given_back(database: WindowDatabase) -> None:
    held = []
    for second in range(0, 400, 4):
        times = np.random.default_rng(second).integers(0, 4 * SECOND, 3000) + second * SECOND
        database.take("0", rows(times.tolist()))
        database.evict("0", (second - 80) * SECOND)
        held.append((database.rows, len(database.relation("0").chunks), database.bytes))
    # 80 s of rows, and at most two eighths more.
    full = 3000 * 80 // 4
    assert max(count for count, _, _ in held) <= full * 5 // 4 + 6000
    assert max(chunks for _, chunks, _ in held) <= 12
    assert max(size for _, _, size in held[60:]) <= 1.3 * max(size for _, _, size in held[20:60])


def test_a_backlog_is_kept_in_pieces_that_go_one_by_one(database: WindowDatabase) -> None:
    database.take("0", rows([second * SECOND for second in range(5000)]))
    assert 8 <= len(database.relation("0").chunks) <= 33
    database.evict("0", 4000 * SECOND)
    assert 1000 <= database.rows <= 1200
    assert database.next_time("0", 4500 * SECOND + 1) == 4501 * SECOND
    assert database.next_time("0", 5000 * SECOND) is None
    got = database.read(database.kept("0", 4990 * SECOND, 5000 * SECOND))
    assert 10 <= got.num_rows <= 200


def test_a_relation_without_rows_has_columns(database: WindowDatabase) -> None:
    got = database.read(database.kept("0", 0, SECOND))
    assert got.column_names == ["ts", "v"] and not got.num_rows
    assert database.next_time("0", 0) is None and database.count("0", 0, SECOND) == 0


@pytest.mark.parametrize("text", ["read_text('/etc/hostname')", "(SELECT getenv('HOME') AS v)"])
def test_no_statement_reaches_outside(database: WindowDatabase, text: str) -> None:
    with pytest.raises(EngineError):
        database.read(Given(text, ("v",)))


def test_a_database_that_is_full_says_so_and_goes_on() -> None:
    small = WindowDatabase(memory="20MB", threads=1)
    small.keep("0", SCHEMA, "ts", 80 * SECOND)
    small.take("0", rows(list(range(100_000))))
    with pytest.raises(NoRoom, match="memory is full"):
        small.take("0", rows(list(range(5_000_000))))
    assert small.rows == 100_000
    small.close()
