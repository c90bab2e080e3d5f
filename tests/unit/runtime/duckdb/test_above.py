"""What a query does above its window aggregate, done on batches, is what the reference does with all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import FileSource, Format, Query, Stream, Table
from headrace.plan.types import DataType
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.above import Above, unsupported
from headrace.runtime.duckdb.load import load_table
from headrace.runtime.duckdb.reference import evaluate
from headrace.service.members import normal_form, weavable
from headrace.sql.bind import bind_query

STREAM = Stream(
    name="s",
    columns={"ts": DataType.TIMESTAMP, "k": DataType.INT, "v": DataType.DOUBLE},
    time="ts",
    source=FileSource(path="in", format=Format.PARQUET),
)
NAMES = Table(
    name="names", columns={"k": DataType.INT, "name": DataType.STRING}, rows=((0, "zero"), (1, "one"))
)
INNER = "SELECT window_end AS e, k, sum(v) AS x FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] GROUP BY k"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, sum(v) AS x, window_end, k AS again FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] GROUP BY k",
        f"{INNER} HAVING sum(v) > 4",
        "SELECT window_start, sum(v) * 2 + k AS x FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] GROUP BY k",
        "SELECT y.window_end, max(y.x) AS top FROM (SELECT window_start, window_end, k, sum(v) AS x FROM s "
        "[RANGE 6 SECONDS SLIDE 2 SECONDS] GROUP BY k) AS y GROUP BY y.window_start, y.window_end",
        f"SELECT y.e, y.x, n.name FROM ({INNER}) AS y LEFT JOIN names AS n ON y.k = n.k",
        f"SELECT y.e, y.x, n.name FROM ({INNER}) AS y JOIN names AS n ON y.k = n.k WHERE n.name <> 'one'",
    ],
)
def test_batch_by_batch_it_is_the_same(sql: str) -> None:
    plan = normal_form(bind_query(Query(name="q", sql=sql), {"s": STREAM}, {"names": NAMES}))
    node = weavable(plan)
    assert not isinstance(node, str) and not unsupported(plan, node)
    rows = pa.table(
        {
            "ts": pa.array([i * 700_000 for i in range(60)], pa.timestamp("us")),
            "k": pa.array([i % 3 for i in range(60)], pa.int32()),
            "v": pa.array([float(i % 7) for i in range(60)]),
        }
    )
    tables = {"s": rows, "names": load_table(NAMES, Path())}
    results = evaluate(node, tables)
    above = Above(plan, node, {"names": NAMES})
    ends = sorted(set(results["window_end"].to_pylist()))
    batches = [
        results.filter(pa.array([e in part for e in results["window_end"].to_pylist()]))
        for part in (ends[:5], ends[5:6], ends[6:])
    ]
    got = pa.concat_tables([above.rows(batch) for batch in batches])
    above.close()
    wanted = evaluate(plan, tables)
    assert wanted.num_rows and not multiset_difference(wanted, got)
