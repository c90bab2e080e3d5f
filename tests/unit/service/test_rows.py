from __future__ import annotations

import pyarrow as pa

from headrace.service.rows import rows_of
from tests.unit.service.sample import counted, scan


def _table() -> pa.Table:
    return pa.table(
        {
            "k": [2, 1, 1, 2],
            "window_start": [0, 60, 0, 60],
            "window_end": [300, 360, 300, 360],
            "n": [1, None, 3, 4],
        }
    )


def test_newest_windows_last_and_ties_in_order() -> None:
    rows = rows_of("q", _table(), counted(), limit=0)
    assert rows.columns == ("k", "window_start", "window_end", "n")
    assert [(r[2], r[0]) for r in rows.rows] == [(300, 1), (300, 2), (360, 1), (360, 2)]
    assert rows.rows[2][3] is None


def test_a_limit_keeps_the_newest() -> None:
    rows = rows_of("q", _table(), counted(), limit=1)
    assert (rows.rows, rows.total) == (((2, 60, 360, 4),), 4)


def test_a_limit_larger_than_the_result() -> None:
    assert len(rows_of("q", _table(), counted(), limit=99).rows) == 4


def test_streams_are_ordered_by_event_time() -> None:
    table = pa.table({"v": [1.0, 2.0, 3.0], "ts": [30, 10, 20]})
    assert [r[1] for r in rows_of("q", table, scan(), limit=2).rows] == [20, 30]


def test_an_empty_result() -> None:
    rows = rows_of("q", _table().slice(0, 0), counted(), limit=5)
    assert (rows.rows, rows.total) == ((), 0)
