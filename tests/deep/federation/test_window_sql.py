"""The statement about some windows gives what the reference gives of those windows."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.plan import logical as lp
from headrace.runtime.duckdb.load import load_table
from headrace.runtime.duckdb.window_sql import Ends, Given, WindowBuilder
from headrace.runtime.duckdb.window_tables import WindowDatabase
from tests.federated_cases import NAMES, SECOND, answer, difference, plan_of, readings

HOP = "FROM readings [RANGE {} MILLISECONDS SLIDE {} MILLISECONDS]"
SHAPES = {
    "merged": "SELECT window_start, window_end, plug, count(*) AS n, count(value) AS v, sum(plug) AS p, "
    "sum(value) AS s, avg(value) AS m, min(property) AS low, max(value) AS top {} GROUP BY plug",
    "no keys": "SELECT window_start, window_end, avg(value) AS m {}",
    "not merged": "SELECT window_start, window_end, house, median(value) AS m, stddev_samp(value) AS d, "
    "approx_count_distinct(plug) AS k {} GROUP BY house",
    "having": "SELECT window_start, window_end, plug, count(*) AS n {} GROUP BY plug HAVING max(value) > 80",
    "of its window": "SELECT window_start, window_end, unix_seconds(window_end) - unix_seconds(ts) AS k, "
    "count(*) AS n {} GROUP BY unix_seconds(window_end) - unix_seconds(ts)",
    "with a table": "SELECT y.window_start, y.window_end, y.n, t.name FROM (SELECT window_start, "
    "window_end, house, count(*) AS n {} GROUP BY house) AS y LEFT JOIN names AS t ON y.house = t.house",
}


def database_of(rows: pa.Table, scan: lp.StreamScan, span: int) -> WindowDatabase:
    database = WindowDatabase(threads=1)
    database.add_table("names", load_table(NAMES, Path()))
    database.keep("0", scan.schema, "ts", span)
    for start in range(0, rows.num_rows, 50):
        database.take("0", rows.slice(start, 50).select(scan.schema.names))
    return database


def scan_of(plan: lp.LogicalPlan) -> lp.StreamScan:
    return next(node for node in lp.nodes(plan) if isinstance(node, lp.StreamScan))


def about(whole: pa.Table, low: int, high: int) -> pa.Table:
    """The rows of an answer that are of windows which end in [low, high]."""
    ends = pc.cast(whole["window_end"], pa.int64())
    return whole.filter(pc.and_(pc.greater_equal(ends, low), pc.less_equal(ends, high)))


@pytest.mark.parametrize(
    ("shape", "size", "slide"),
    [*((shape, 5500, 2000) for shape in SHAPES), ("merged", 4000, 1000), ("merged", 3000, 3000)],
)
def test_a_statement_about_some_windows(shape: str, size: int, slide: int) -> None:
    # Before 1970 as well: windows are found by arithmetic that must not turn around there.
    rows, rng = readings(3, 20, start=-9 * SECOND), random.Random(size)
    plan = plan_of(SHAPES[shape].format(HOP.format(size, slide)))
    scan, step = scan_of(plan), slide * 1000
    database, whole = database_of(rows, scan, size * 1000), answer(plan, rows)
    first = -8 * SECOND // step * step + size * 1000 % step
    for count in (1, 2, 9):
        start = first + rng.randrange(4) * step
        ends = Ends(start, start + (count - 1) * step, step)
        given: dict[lp.LogicalPlan, Given] = {scan: database.kept("0", ends.first - size * 1000, ends.last)}
        got = database.evaluate(plan, given, ends)
        wanted = about(whole, ends.first, ends.last)
        assert wanted.num_rows and not (found := difference(plan, wanted, got)), found.text()
    database.close()


def test_aggregates_that_merge_are_made_by_panes() -> None:
    plan = plan_of(SHAPES["merged"].format(HOP.format(4000, 1000)))
    scan = scan_of(plan)
    database = database_of(readings(1, 10), scan, 4 * SECOND)
    ends = Ends(0, 3 * SECOND, SECOND)
    assert "#pane" in WindowBuilder({scan: database.kept("0", 0, 1)}, ends).text(plan)
    other = plan_of(SHAPES["not merged"].format(HOP.format(4000, 1000)))
    scan = scan_of(other)
    assert "#pane" not in WindowBuilder({scan: database.kept("0", 0, 1)}, ends).text(other)
    database.close()
