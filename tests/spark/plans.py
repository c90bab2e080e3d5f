"""A small stream and plans over it, written by hand, and batches of its rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa

from headrace.catalog.model import FileSource, Format, Stream
from headrace.plan import logical as lp
from headrace.plan.bounds import TimeBound
from headrace.plan.expr import AggregateCall, Call, ColumnRef, Expr, Literal
from headrace.plan.types import Column, DataType, Schema

SECOND = 1_000_000
START = 1_700_000_040 * SECOND
SCHEMA = Schema(
    [Column("ts", DataType.TIMESTAMP), Column("plug", DataType.INT), Column("value", DataType.DOUBLE)]
)
DELAY = 5 * SECOND
STREAM = Stream(
    name="s",
    columns={c.name: c.type for c in SCHEMA},
    time="ts",
    watermark=DELAY,
    source=FileSource(path="unused", format=Format.PARQUET),
)
VALUE = ColumnRef("value", DataType.DOUBLE)
PLUG = ColumnRef("plug", DataType.INT)
SPEC = lp.WindowSpec(10 * SECOND, 3 * SECOND)

Row = tuple[int, int | None, float]


def table(rows: Sequence[Row]) -> pa.Table:
    ts, plug, value = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "plug": pa.array(plug, pa.int32()),
            "value": pa.array(value, pa.float64()),
        }
    )


def random_batches(seed: int, batches: int = 4, rows: int = 60) -> list[pa.Table]:
    """Rows half a second apart, out of order by less than the watermark delay."""
    rng = random.Random(seed)
    late = DELAY // 2 - 1
    made = [
        (START + i * SECOND // 2 - rng.randint(0, late), rng.choice((0, 1, 2, None)), rng.random() * 100)
        for i in range(batches * rows)
    ]
    return [table(made[k * rows : (k + 1) * rows]) for k in range(batches)]


def scan(prefix: str = "") -> lp.LogicalPlan:
    rows = lp.StreamScan("s", SCHEMA, "ts", DELAY)
    return prefixed(rows, prefix) if prefix else rows


def prefixed(plan: lp.LogicalPlan, prefix: str) -> lp.LogicalPlan:
    return lp.Project(plan, tuple((prefix + c.name, ColumnRef(c.name, c.type)) for c in plan.schema))


def windowed(spec: lp.WindowSpec = SPEC, least: float = 5.0) -> lp.Window:
    return lp.Window(lp.Filter(scan(), Call(">", (VALUE, Literal(least, DataType.DOUBLE)))), "ts", spec)


def aggregate(spec: lp.WindowSpec = SPEC) -> lp.Aggregate:
    calls = (("top", AggregateCall("max", VALUE)), ("n", AggregateCall("count", None)))
    return lp.Aggregate(windowed(spec), (("plug", PLUG),), calls)


def _plug_equal() -> tuple[tuple[Expr, Expr], ...]:
    return ((ColumnRef("a.plug", DataType.INT), ColumnRef("b.plug", DataType.INT)),)


def joined() -> lp.IntervalJoin:
    bounds = (TimeBound("a.ts", "b.ts", SECOND), TimeBound("b.ts", "a.ts", SECOND // 2))
    return lp.IntervalJoin(scan("a."), scan("b."), _plug_equal(), bounds)


def above_own_maximum(rows: lp.LogicalPlan | None = None) -> lp.Aggregate:
    """Per window and plug: how many rows are above 90 % of the window's own maximum."""
    pairs = lp.WindowJoin(prefixed(rows or windowed(), "a."), prefixed(aggregate(), "b."), _plug_equal())
    share = Call("*", (Literal(0.9, DataType.DOUBLE), ColumnRef("b.top", DataType.DOUBLE)))
    high = lp.Filter(pairs, Call(">", (ColumnRef("a.value", DataType.DOUBLE), share)))
    return lp.Aggregate(
        high, (("plug", ColumnRef("a.plug", DataType.INT)),), (("n", AggregateCall("count", None)),)
    )


def long_beside_short() -> lp.Project:
    """The maximum over 31 s beside the one over 10 s, both sliding by 3 s."""
    sides = (prefixed(aggregate(lp.WindowSpec(31 * SECOND, 3 * SECOND)), "a."), prefixed(aggregate(), "b."))
    pairs = lp.WindowJoin(*sides, _plug_equal())
    names = ("a.window_end", "a.plug", "a.top", "b.top")
    return lp.Project(pairs, tuple((n.replace(".", "_"), ColumnRef(n, pairs.schema[n].type)) for n in names))


def three_way() -> lp.IntervalJoin:
    """A third stream bounded only against the second, and joined on time alone."""
    bounds = (TimeBound("b.ts", "c.ts", SECOND // 3), TimeBound("c.ts", "b.ts", SECOND // 10))
    return lp.IntervalJoin(joined(), scan("c."), (), bounds)


SHAPES: dict[str, lp.LogicalPlan] = {
    "stateless": lp.Project(
        lp.Filter(scan(), Call(">", (VALUE, Literal(50.0, DataType.DOUBLE)))),
        (
            ("twice", Call("*", (VALUE, Literal(2, DataType.INT)))),
            ("ts", ColumnRef("ts", DataType.TIMESTAMP)),
            ("same", ColumnRef("ts", DataType.TIMESTAMP)),
        ),
    ),
    "aggregate": aggregate(),
    "nested": lp.Aggregate(
        aggregate(), (), (("top", AggregateCall("avg", ColumnRef("top", DataType.DOUBLE))),)
    ),
    "own_window": above_own_maximum(),
    # The rows pass another filter than the aggregate, so the two sides really have to be joined.
    "row_join": above_own_maximum(windowed(least=60.0)),
    "long_beside_short": long_beside_short(),
    "join": joined(),
    "three_way": three_way(),
    "join_then_window": lp.Aggregate(
        lp.Window(three_way(), "a.ts", SPEC), (), (("n", AggregateCall("count", None)),)
    ),
}
