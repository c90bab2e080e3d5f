"""Sums and means of doubles in DuckDB: the same in every order, and those of exact arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyarrow as pa
import pytest

from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.types import DataType
from headrace.runtime.duckdb.kept import connection
from headrace.runtime.duckdb.window_sql import _merge, _partials
from headrace.runtime.sqltext import DuckWriter

SQL = DuckWriter()
V = ColumnRef("v", DataType.DOUBLE)
CALLS = (AggregateCall("sum", V), AggregateCall("avg", V))


def answer(values: list[float | None]) -> tuple[float | None, ...]:
    rows = pa.table({"v": pa.array(values, pa.float64())})
    with connection(2, "1GB") as db:
        db.register("rows", rows)
        found = db.execute(f"SELECT {', '.join(SQL.aggregate(call) for call in CALLS)} FROM rows").fetchone()
    assert found is not None
    return found


def merged(values: list[float], panes: int) -> tuple[float | None, ...]:
    """The same, of the sums of panes."""
    rows = pa.table({"v": values, "pane": [n % panes for n in range(len(values))]})
    with connection(2, "1GB") as db:
        db.register("rows", rows)
        found: list[float | None] = []
        for call in CALLS:
            made = _partials(call, "x")
            inner = ", ".join(f"{text} AS {SQL.name(name)}" for name, text in made.items())
            sql = f"SELECT {_merge(call, made)} FROM (SELECT {inner} FROM rows GROUP BY pane)"
            found += db.execute(sql).fetchall()[0]
    return tuple(found)


@pytest.mark.parametrize("digits", [1, 3, 9])
def test_every_order_gives_the_exact_sum_rounded_once(digits: int) -> None:
    chance = random.Random(digits)
    for _ in range(20):
        values = [round(chance.uniform(-500, 3000), digits) for _ in range(chance.randrange(1, 400))]
        total, mean = math.fsum(values), math.fsum(values) / len(values)
        for _ in range(3):
            chance.shuffle(values)
            assert answer(list(values)) == (total, mean)
        assert merged(values, 7) == (total, mean)


def test_a_mean_of_equal_values_is_that_value() -> None:
    for count in (3, 7, 10, 30):
        assert Fraction(answer([0.1] * count)[0] or 0) == Fraction(math.fsum([0.1] * count))


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_passed_on(odd: float) -> None:
    total, mean = answer([1.5, odd, 2.5])
    assert repr((total, mean)) == repr((odd, odd))


def test_nothing_has_no_sum_and_nulls_are_left_out() -> None:
    assert answer([]) == answer([None]) == (None, None)
    assert answer([1.5, None, 2.5]) == (4.0, 2.0)


def test_large_and_small_values_keep_their_digits() -> None:
    assert answer([1e300, 1e300])[0] == 2e300
    assert answer([1e-300, 2e-300])[0] == pytest.approx(3e-300, rel=1e-15)
    assert answer([1e15, 0.25, -1e15])[0] == 0.25
