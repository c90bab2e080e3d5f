"""The comparison of answers, against a brute-force search for a pairing."""

from __future__ import annotations

import math
import random
from datetime import datetime
from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.plan.expr import AggregateCall, Call, ColumnRef
from headrace.plan.logical import Aggregate, Project, StreamScan, Window, WindowSpec
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.compare import inexact_columns, multiset_difference

T = DataType
Row = tuple[str | None, float | None, float | None]


def table(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.string(), pa.float64(), pa.float64())
    return pa.table({n: pa.array(c, t) for n, c, t in zip("kxy", columns, types, strict=True)})


def near(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    if math.isinf(left) or math.isinf(right):
        return left == right
    return abs(left - right) <= 1e-9 * max(abs(left), abs(right)) + 1e-9


def same(left: Row, right: Row) -> bool:
    return left[0] == right[0] and near(left[1], right[1]) and near(left[2], right[2])


def pairs(expected: list[Row], got: list[Row]) -> int:
    """The most rows that can be paired, by trying every order."""
    small, large = sorted((expected, got), key=len)
    best = 0
    for order in permutations(large, len(small)):
        hits = [same(a, b) for a, b in zip(small, order, strict=True)]
        best = max(best, sum(hits))
    return best


# Steps of 0.6e-9 around 0: neighbours are near, neighbours of neighbours are not.
FLOATS = st.sampled_from([None, math.nan, math.inf, 0.0, -0.0, 0.6e-9, 1.2e-9, 1.8e-9, 5.0, 5.000000001])
ROWS = st.lists(st.tuples(st.sampled_from(["a", None]), FLOATS, FLOATS), max_size=5)


@settings(deadline=None)
@given(ROWS, ROWS)
def test_as_many_rows_are_paired_as_can_be(expected: list[Row], got: list[Row]) -> None:
    found = multiset_difference(table(expected), table(got))
    best = pairs(expected, got)
    assert len(found.missing) == len(expected) - best
    assert len(found.extra) == len(got) - best
    assert bool(found) == (best < max(len(expected), len(got)))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), FLOATS, FLOATS), max_size=40), st.randoms())
def test_order_and_the_last_bits_do_not_matter(rows: list[Row], rng: random.Random) -> None:
    shaken = [(k, None if x is None else x * (1 + 1e-12), y) for k, x, y in rows]
    rng.shuffle(shaken)
    assert not multiset_difference(table(rows), table(shaken))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(-5, 5), FLOATS), min_size=1, max_size=30), st.data()
)
def test_one_changed_row_is_found(rows: list[Row], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows]
    changed[at] = (rows[at][0], 1e6, rows[at][2])
    found = multiset_difference(table(rows), table(changed))
    assert (len(found.missing), len(found.extra)) == (1, 1)
    assert found.extra[0][1] == 1e6


def test_a_row_given_twice_is_extra() -> None:
    one: Row = ("a", 1.0, None)
    found = multiset_difference(table([one]), table([one, one]))
    assert (found.missing, found.extra) == ((), (one,))
    assert found.text().splitlines() == [
        "expected 1 row, got 2",
        "columns: k, x, y",
        "extra 1:",
        "  (a, 1.0, None)",
    ]


def test_a_greedy_choice_is_undone() -> None:
    """0.6e-9 is near to 0 and to 1.2e-9; only one of the two ways to pair leaves nobody over."""
    expected, got = [("a", 0.6e-9, 0.0), ("a", 0.0, 0.0)], [("a", 0.6e-9, 0.0), ("a", 1.2e-9, 0.0)]
    assert not multiset_difference(table(list(expected)), table(list(got)))


def test_timestamps_are_instants() -> None:
    moment = datetime(2024, 1, 1, 12)
    naive = pa.table({"t": pa.array([moment], pa.timestamp("us"))})
    for other in (
        pa.timestamp("ms"),
        pa.timestamp("ns"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("s", "UTC"),
    ):
        assert not multiset_difference(naive, pa.table({"t": pa.array([moment], other)}))
    # 14:00 in Berlin in January is 13:00 UTC.
    berlin = pa.table({"t": pa.array([moment], pa.timestamp("us", "Europe/Berlin"))})
    shifted = pa.table({"t": pa.array([datetime(2024, 1, 1, 13)], pa.timestamp("us"))})
    assert not multiset_difference(naive, berlin)
    assert multiset_difference(naive, shifted)


@pytest.mark.parametrize(
    ("exact", "found", "same"),
    [(100, 122, True), (100, 80, True), (1, 3, True), (100, 140, False), (1, 5, False)],
)
def test_approximate_counts(exact: int, found: int, same: bool) -> None:
    left, right = pa.table({"n": [exact]}), pa.table({"n": [found]})
    assert bool(multiset_difference(left, right, approximate=frozenset({"n"}))) is not same
    assert multiset_difference(left, right)


def test_integers_are_exact_and_true_is_not_one() -> None:
    assert multiset_difference(pa.table({"n": [2**53]}), pa.table({"n": [2**53 + 1]}))
    assert multiset_difference(pa.table({"n": [True]}), pa.table({"n": [1]}))


def test_columns_go_by_name() -> None:
    left = pa.table({"a": [1], "b": ["x"]})
    assert not multiset_difference(left, pa.table({"b": ["x"], "a": [1]}))
    found = multiset_difference(left, pa.table({"a": [1], "c": ["x"]}))
    assert found.text() == "expected columns a, b; got a, c"


def test_spread_columns_are_given_more_room() -> None:
    left, right = pa.table({"v": [1.0]}), pa.table({"v": [1.00000005]})
    assert multiset_difference(left, right)
    assert not multiset_difference(left, right, spread=frozenset({"v"}))


def test_many_equal_rows_are_quick() -> None:
    rows: list[Row] = [("a", float(k % 3), 1.0) for k in range(20_000)]
    assert not multiset_difference(table(rows), table(rows[::-1]))


def test_inexact_columns_are_followed_through_the_plan() -> None:
    v, ts = Column("v", T.DOUBLE), Column("ts", T.TIMESTAMP)
    scan = StreamScan("s", Schema([v, ts]), "ts", 0)
    arg = ColumnRef("v", T.DOUBLE)
    calls = (("n", AggregateCall("approx_count_distinct", arg)), ("sd", AggregateCall("stddev_pop", arg)))
    plan = Aggregate(
        Window(scan, "ts", WindowSpec(1000, 1000)), (), (*calls, ("m", AggregateCall("max", arg)))
    )
    assert inexact_columns(plan) == (frozenset({"n"}), frozenset({"sd"}))
    twice = Call("+", (ColumnRef("n", T.BIGINT), ColumnRef("sd", T.DOUBLE)))
    shown = Project(plan, (("both", twice), ("m", ColumnRef("m", T.DOUBLE))))
    assert inexact_columns(shown) == (frozenset({"both"}), frozenset({"both"}))
