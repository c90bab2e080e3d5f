"""The reference against brute force in Python: every row with every window, every pair of rows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import EngineError
from headrace.plan import logical as lp
from headrace.plan.bounds import TimeBound
from headrace.plan.expr import AggregateCall, Call, ColumnRef, Literal
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.duckdb.reference import evaluate, to_sql

T = DataType
EPOCH = datetime(1970, 1, 1)
SECOND = 1_000_000
Row = dict[str, Any]
Rows = list[tuple[Any, ...]]
Late = Callable[[Row, int], bool]


def scan(name: str, prefix: str = "") -> lp.LogicalPlan:
    columns = Schema([Column("k", T.STRING), Column("v", T.INT), Column("ts", T.TIMESTAMP)])
    stream = lp.StreamScan(name, columns, "ts", 0)
    if not prefix:
        return stream
    return lp.Project(stream, tuple((prefix + c.name, ColumnRef(c.name, c.type)) for c in columns))


def random_rows(rng: random.Random, count: int) -> list[Row]:
    """Event times from 40 s before to 40 s after the epoch, often on whole seconds."""
    rows = []
    for _ in range(count):
        ts = rng.choice((rng.randrange(-40, 40) * SECOND, rng.randrange(-40 * SECOND, 40 * SECOND)))
        time = None if rng.random() < 0.05 else ts
        value = rng.choice((None, 1, 2, 3, -4))
        rows.append({"k": rng.choice(("a", "b", None)), "v": value, "ts": time})
    return rows


def arrow(rows: list[Row], *marks: str) -> pa.Table:
    columns = {
        "k": pa.array([r["k"] for r in rows], pa.string()),
        "v": pa.array([r["v"] for r in rows], pa.int32()),
        "ts": pa.array([r["ts"] for r in rows], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns | {m: pa.array([r[m] for r in rows], pa.int64()) for m in marks})


def bag(rows: Rows) -> Rows:
    return sorted(rows, key=repr)


def micros(value: Any) -> Any:
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def answer(plan: lp.LogicalPlan, tables: dict[str, pa.Table], **marks: Any) -> Rows:
    found = evaluate(plan, tables, **marks)
    assert tuple(found.column_names) == plan.schema.names
    return bag([tuple(map(micros, row.values())) for row in found.to_pylist()])


def timed(rows: list[Row]) -> list[Row]:
    return [r for r in rows if r["ts"] is not None]


def windows_of(time: int, size: int, slide: int) -> Iterator[tuple[int, int]]:
    """All windows that hold a time, found by trying every window of the epoch's neighbourhood."""
    for k in range(-200 * SECOND // slide, 200 * SECOND // slide):
        if k * slide <= time < k * slide + size:
            yield k * slide, k * slide + size


def counted(plan: lp.LogicalPlan, time: str, size: int, slide: int, key: str = "k") -> lp.LogicalPlan:
    window = lp.Window(plan, time, lp.WindowSpec(size, slide))
    value = ColumnRef(key[:-1] + "v", T.INT)
    calls = (("n", AggregateCall("count", None)), ("total", AggregateCall("sum", value)))
    return lp.Aggregate(window, ((key, ColumnRef(key, T.STRING)),), calls)


def in_time(row: Row, end: int) -> bool:
    return False


def behind(row: Row, end: int) -> bool:
    return row["m"] is not None and end <= row["m"]


def brute_counts(rows: list[Row], size: int, slide: int, late: Late = in_time) -> Rows:
    groups: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in timed(rows):
        for start, end in windows_of(row["ts"], size, slide):
            if not late(row, end):
                groups[start, end, row["k"]].append(row["v"])
    result = []
    for key, values in groups.items():
        known = [v for v in values if v is not None]
        result.append((*key, len(values), sum(known) if known else None))
    return bag(result)


@pytest.mark.parametrize(("size", "slide"), [(10, 3), (7, 7), (5, 1), (60, 20), (11, 4)])
def test_windows(size: int, slide: int) -> None:
    rows = random_rows(random.Random(size), 120)
    found = answer(counted(scan("s"), "ts", size * SECOND, slide * SECOND), {"s": arrow(rows)})
    assert found == brute_counts(rows, size * SECOND, slide * SECOND)
    assert len(found) > 15


def test_a_late_row_misses_the_windows_that_had_ended() -> None:
    rng = random.Random(5)
    rows = [r | {"m": rng.choice((None, rng.randrange(-40, 40) * SECOND))} for r in random_rows(rng, 150)]
    plan = counted(lp.Filter(scan("s"), Literal(True, T.BOOLEAN)), "ts", 10 * SECOND, 3 * SECOND)
    found = answer(plan, {"s": arrow(rows, "m")}, arrival_watermark={"s": "m"})
    assert found == brute_counts(rows, 10 * SECOND, 3 * SECOND, behind)
    assert found != answer(plan, {"s": arrow(rows, "m")})


def test_reserved_times_are_in_no_window_and_no_join() -> None:
    last = (datetime(9999, 12, 1) - EPOCH) // timedelta(microseconds=1)
    rows = [{"k": "a", "v": 1, "ts": ts} for ts in (0, last - SECOND, last)]
    kept, table = rows[:2], arrow(rows)
    windows = [(start, start + 5 * SECOND, "a", 1, 1) for start in (0, last - 5 * SECOND)]
    assert answer(counted(scan("s"), "ts", 5 * SECOND, 5 * SECOND), {"s": table}) == windows
    assert len(answer(scan("s"), {"s": table})) == 3
    assert answer(interval_join(BOUNDS), {"s": table, "t": table}) == brute_join(
        kept, kept, 2 * SECOND - 1, 5 * SECOND
    )


def interval_join(bounds: tuple[TimeBound, ...]) -> lp.LogicalPlan:
    on = ((ColumnRef("a.k", T.STRING), ColumnRef("b.k", T.STRING)),)
    residual = Call("<=", (ColumnRef("a.v", T.INT), ColumnRef("b.v", T.INT)))
    return lp.IntervalJoin(scan("s", "a."), scan("t", "b."), on, bounds, residual)


def brute_join(left: list[Row], right: list[Row], before: int, after: int) -> Rows:
    found = []
    for a, b in product(timed(left), timed(right)):
        keys = a["k"] is not None and a["k"] == b["k"]
        values = None not in (a["v"], b["v"]) and a["v"] <= b["v"]
        if keys and values and -before <= b["ts"] - a["ts"] <= after:
            found.append((a["k"], a["v"], a["ts"], b["k"], b["v"], b["ts"]))
    return bag(found)


BOUNDS = (TimeBound("a.ts", "b.ts", 5 * SECOND), TimeBound("b.ts", "a.ts", 2 * SECOND - 1))


def test_interval_join() -> None:
    left, right = random_rows(random.Random(1), 80), random_rows(random.Random(2), 80)
    found = answer(interval_join(BOUNDS), {"s": arrow(left), "t": arrow(right)})
    assert found == brute_join(left, right, 2 * SECOND - 1, 5 * SECOND)
    assert len(found) > 20


def test_a_join_takes_only_rows_later_than_the_watermark() -> None:
    rng = random.Random(3)
    left = [r | {"m": rng.choice((None, rng.randrange(-40, 40) * SECOND))} for r in random_rows(rng, 90)]
    right = random_rows(rng, 90)
    kept = [r for r in timed(left) if r["m"] is None or r["ts"] > r["m"]]
    inputs = {"s": arrow(left, "m"), "t": arrow(right)}
    found = answer(interval_join(BOUNDS), inputs, arrival_watermark={"s": "m"})
    assert found == brute_join(kept, right, 2 * SECOND - 1, 5 * SECOND)
    assert len(kept) < len(timed(left))


def test_a_joined_row_is_windowed_by_the_time_that_is_named() -> None:
    left, right = random_rows(random.Random(7), 60), random_rows(random.Random(8), 60)
    plan = counted(interval_join(BOUNDS), "b.ts", 10 * SECOND, 4 * SECOND, "b.k")
    found = answer(plan, {"s": arrow(left), "t": arrow(right)})
    joined = brute_join(left, right, 2 * SECOND - 1, 5 * SECOND)
    rows: list[Row] = [{"k": r[3], "v": r[4], "ts": r[5]} for r in joined]
    assert found == brute_counts(rows, 10 * SECOND, 4 * SECOND)


@pytest.mark.parametrize("outer", [False, True])
def test_table_join(outer: bool) -> None:
    rows = random_rows(random.Random(4), 30)
    table = lp.TableScan("dims", Schema([Column("key", T.STRING), Column("label", T.STRING)]))
    on = ((ColumnRef("k", T.STRING), ColumnRef("key", T.STRING)),)
    labels = [("a", "one"), ("a", "two"), (None, "none"), ("z", "other")]
    dims = pa.table({"key": [x for x, _ in labels], "label": [y for _, y in labels]})
    found = answer(lp.TableJoin(scan("s"), table, on, outer=outer), {"s": arrow(rows), "dims": dims})
    wanted: Rows = []
    for r in timed(rows):
        matches: Rows = [(x, y) for x, y in labels if x is not None and x == r["k"]]
        matches = matches or ([(None, None)] if outer else [])
        wanted += [(r["k"], r["v"], r["ts"], x, y) for x, y in matches]
    assert found == bag(wanted)


def test_window_join() -> None:
    """Ranges of 4 and 10 seconds, both sliding by 2: matched where the windows end together."""
    rows = random_rows(random.Random(6), 60)
    sides = []
    for name, size in (("a", 4), ("b", 10)):
        plan = counted(scan("s"), "ts", size * SECOND, 2 * SECOND)
        items = tuple((f"{name}.{c.name}", ColumnRef(c.name, c.type)) for c in plan.schema)
        sides.append(lp.Project(plan, items))
    on = ((ColumnRef("a.k", T.STRING), ColumnRef("b.k", T.STRING)),)
    found = answer(lp.WindowJoin(sides[0], sides[1], on), {"s": arrow(rows)})
    short = brute_counts(rows, 4 * SECOND, 2 * SECOND)
    long = brute_counts(rows, 10 * SECOND, 2 * SECOND)
    wanted = [a + b for a, b in product(short, long) if a[1] == b[1] and a[2] is not None and a[2] == b[2]]
    assert found == bag(wanted)
    assert found


def test_missing_columns_and_other_types_of_input_are_taken_as_declared() -> None:
    plan = scan("s")
    given = pa.table({"ts": pa.array([1, 2_000], pa.timestamp("ms")), "v": pa.array([1, 2], pa.int64())})
    assert answer(plan, {"s": given}) == bag([(None, 1, 1_000), (None, 2, 2_000_000)])


def test_names_cannot_break_out_of_the_text() -> None:
    odd = Schema([Column('a"; DROP', T.INT), Column("#mark", T.INT), Column("ts", T.TIMESTAMP)])
    plan = lp.StreamScan("select", odd, "ts", 0)
    seven, eight = pa.array([7], pa.int32()), pa.array([8], pa.int32())
    given = pa.table({'a"; DROP': seven, "#mark": eight, "ts": [EPOCH]})
    assert answer(plan, {"select": given}) == [(7, 8, 0)]


def test_equal_sub_plans_are_written_once() -> None:
    """A stream joined with itself: two projections, one scan."""
    on = ((ColumnRef("a.k", T.STRING), ColumnRef("b.k", T.STRING)),)
    plan = lp.IntervalJoin(scan("s", "a."), scan("s", "b."), on, BOUNDS)
    assert to_sql(plan).count('FROM "s"') == 1


def test_an_overflowing_sum_is_said_and_not_wrapped() -> None:
    big = Schema([Column("x", T.BIGINT), Column("ts", T.TIMESTAMP)])
    window = lp.Window(lp.StreamScan("s", big, "ts", 0), "ts", lp.WindowSpec(SECOND, SECOND))
    plan = lp.Aggregate(window, (), (("total", AggregateCall("sum", ColumnRef("x", T.BIGINT))),))
    given = pa.table({"x": [2**63 - 1, 1], "ts": [EPOCH, EPOCH]})
    with pytest.raises(EngineError):
        evaluate(plan, {"s": given})
