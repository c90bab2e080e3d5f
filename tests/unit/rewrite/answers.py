"""Small data for the streams and tables of `building`, and what a plan answers on it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headrace.plan.logical import LogicalPlan
from headrace.runtime.duckdb.reference import evaluate

_START = datetime(2024, 5, 1, tzinfo=UTC)
_TIME = pa.timestamp("us", tz="UTC")


def data(seed: int = 0, rows: int = 90) -> Mapping[str, pa.Table]:
    """Two minutes of rows with few keys, some NULLs and both zeros, so that groups and matches happen."""
    draw = random.Random(seed)
    plugs = [{"pk": k, "name": n, "watts": w} for k, n, w in [(0, "a", 1.0), (1, "b", 3.0), (1, "c", None)]]
    readings = [
        {
            "ts": _moment(draw, 120),
            "k": draw.choice([0, 1, 2, None]),
            "v": draw.choice([-0.0, 0.0, 1.0, 2.5, 4.0, None]),
            "s": draw.choice(["load", "work", None]),
        }
        for _ in range(rows)
    ]
    switches = [
        {"ts2": _moment(draw, 120), "k2": draw.choice([0, 1, 2]), "on2": draw.choice([True, False, None])}
        for _ in range(rows // 3)
    ]
    return {
        "readings": pa.Table.from_pylist(readings, pa.schema(_READINGS)),
        "switches": pa.Table.from_pylist(switches, pa.schema(_SWITCHES)),
        "plugs": pa.Table.from_pylist(plugs, pa.schema(_PLUGS)),
    }


_READINGS = [("ts", _TIME), ("k", pa.int32()), ("v", pa.float64()), ("s", pa.string())]
_SWITCHES = [("ts2", _TIME), ("k2", pa.int32()), ("on2", pa.bool_())]
_PLUGS = [("pk", pa.int32()), ("name", pa.string()), ("watts", pa.float64())]


def _moment(draw: random.Random, seconds: int) -> datetime:
    return _START + timedelta(seconds=draw.randrange(seconds))


def answer(plan: LogicalPlan, tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
    """The multiset of rows. Sums of a few halves are exact, so rows compare exactly but for -0.0 = 0.0."""
    found = evaluate(plan, tables)
    assert tuple(found.column_names) == plan.schema.names
    return Counter(tuple(row.values()) for row in found.to_pylist())


def same_answer(before: LogicalPlan, after: LogicalPlan, seed: int = 0) -> bool:
    tables = data(seed)
    return before == after or answer(before, tables) == answer(after, tables)
