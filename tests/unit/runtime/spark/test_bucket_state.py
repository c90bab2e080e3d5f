"""How the results of a batch leave a bucket."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.runtime.spark.bucket_state import BLOB_ROWS, LATE, RESULTS, frames, from_blob
from headrace.runtime.windows.weaver import Advanced


def batch(rows: int, first: int = 0) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array(range(first, first + rows), pa.int64())})


def test_many_results_leave_in_small_blobs_and_frames_and_in_order() -> None:
    many = 70 * BLOB_ROWS + 5
    given = [("a", batch(many)), ("b", batch(3)), ("a", batch(2, many)), ("c", batch(0))]
    made = list(frames(7, Advanced(given, {"a": 0, "b": 4})))
    assert len(made) > 1
    rows: list[Any] = [row for frame in made for row in frame.itertuples(index=False)]
    assert {row.watermark for row in rows} == {7}
    assert [(row.query, row.rows, row.data) for row in rows if row.kind == LATE] == [("b", 4, b"")]
    results = [row for row in rows if row.kind == RESULTS]
    assert max(row.rows for row in results) == BLOB_ROWS
    assert max(len(row.data) for row in results) < 12 * BLOB_ROWS
    found: dict[str, list[int]] = {}
    for row in results:
        table = from_blob(row.data)
        assert table.num_rows == row.rows
        found.setdefault(row.query, []).extend(table["x"].to_pylist())
    assert found == {"a": list(range(many + 2)), "b": [0, 1, 2], "c": []}


def test_a_bucket_without_results_gives_an_empty_frame() -> None:
    (made,) = frames(7, Advanced([], {}))
    assert list(made.columns) == ["watermark", "query", "kind", "rows", "data"]
    assert len(made) == 0
