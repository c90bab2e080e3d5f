"""Window tables: rows go with the windows, and so does their memory; there is no way out of the database."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import EngineError
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.duckdb.window_sql import Given
from headrace.runtime.duckdb.window_tables import NoRoom, WindowDatabase, apart
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
    assert 8 <= len(database.relation("0").chunks) <= 48
    database.evict("0", 4000 * SECOND)
    assert 1000 <= database.rows <= 1200
    assert database.next_time("0", 4500 * SECOND + 1) == 4501 * SECOND
    assert database.next_time("0", 5000 * SECOND) is None
    got = database.read(database.kept("0", 4990 * SECOND, 5000 * SECOND))
    assert 10 <= got.num_rows <= 200


@pytest.mark.parametrize("count", [20, 300])
def test_a_row_of_the_far_future_keeps_no_others(database: WindowDatabase, count: int) -> None:
    """Small batches and large ones; far rows are not worth a table each."""
    far = 4_070_908_800 * SECOND
    for second in range(0, 4000, 20):
        now = (1_700_000_000 + second) * SECOND
        database.take("0", rows([*(now + k * 20 * SECOND // count for k in range(count)), far + second]))
        database.evict("0", now - 80 * SECOND)
    assert 200 + 4 * count <= database.rows <= 200 + 7 * count
    assert len(database.relation("0").chunks) <= 20


def test_stragglers_go_where_rows_of_their_time_are(database: WindowDatabase) -> None:
    rng = np.random.default_rng(1)
    for second in range(300):
        head = rng.integers(0, SECOND, 300) + second * SECOND
        late = second * SECOND - rng.integers(0, 800 * SECOND, 20)
        database.take("0", rows([*head.tolist(), *late.tolist()]))
        database.evict("0", (second - 1200) * SECOND)
    chunks = database.relation("0").chunks
    assert database.rows == 300 * 320
    assert len(chunks) <= 120, "not one for each batch, nor for each straggler"
    assert sum(c.newest >= 200 * SECOND and c.oldest < 280 * SECOND for c in chunks) <= 25
    for chunk in chunks:
        times = database.read(Given(f'"{chunk.table}"', ("ts",)))["ts"].cast(pa.int64()).to_pylist()
        assert (len(times), min(times), max(times)) == (chunk.rows, chunk.oldest, chunk.newest)


def test_few_rows_far_from_each_other_share_tables(database: WindowDatabase) -> None:
    """A table takes memory, whatever it holds."""
    database.evict("0", 0)
    for hour in range(500):
        database.take("0", rows([hour * 3600 * SECOND, (hour * 3600 + 1) * SECOND]))
    assert database.rows == 1000 and len(database.relation("0").chunks) <= 40


def test_what_is_far_apart_is_cut(database: WindowDatabase) -> None:
    span = 10 * SECOND
    near = rows([5 * SECOND, 0, 40 * SECOND])
    assert apart(near.slice(0, 2), "ts", span) == [near.slice(0, 2)]
    far = pa.concat_tables([near, rows([161 * SECOND, 10**9 * SECOND, 10**9 * SECOND + 1])])
    cut = apart(far, "ts", span)
    assert [part.num_rows for part in cut] == [3, 1, 2]
    assert pa.concat_tables(cut).sort_by("ts") == far.sort_by("ts")


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
