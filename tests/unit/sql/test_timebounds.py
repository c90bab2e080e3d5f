"""Bounds against brute force: a condition holds for exactly the pairs of instants its bounds allow."""

from __future__ import annotations

from itertools import product

import pytest

from headrace.plan.bounds import TimeBound
from headrace.plan.logical import IntervalJoin, nodes
from headrace.sql.timebounds import range_bounds
from tests.unit.sql.binding import bind

INSTANTS = range(-6, 7)
CONDITIONS = {
    "a.ts <= b.ts": lambda a, b: a <= b,
    "b.ts < a.ts": lambda a, b: b < a,
    "a.ts + INTERVAL 2 MICROSECONDS >= b.ts": lambda a, b: a + 2 >= b,
    "INTERVAL 3 MICROSECONDS + b.ts > a.ts": lambda a, b: 3 + b > a,
    "a.ts - INTERVAL 2 MICROSECONDS < b.ts + INTERVAL 1 MICROSECOND": lambda a, b: a - 2 < b + 1,
    "b.ts BETWEEN a.ts - INTERVAL 1 MICROSECOND AND a.ts + INTERVAL 4 MICROSECONDS": lambda a, b: (
        a - 1 <= b <= a + 4
    ),
    "a.ts = b.ts + INTERVAL 3 MICROSECONDS": lambda a, b: a == b + 3,
    "a.ts - INTERVAL 1 MICROSECOND - INTERVAL 1 MICROSECOND >= b.ts": lambda a, b: a - 2 >= b,
}
WIDE = "b.ts <= a.ts + INTERVAL 1 HOUR AND a.ts <= b.ts + INTERVAL 1 HOUR"


def _join(sql: str) -> IntervalJoin:
    (join,) = (n for n in nodes(bind(sql)) if isinstance(n, IntervalJoin))
    return join


def _allows(bounds: tuple[TimeBound, ...], at: dict[str, int]) -> bool:
    return all(at[b.later] - at[b.earlier] <= b.at_most for b in bounds)


@pytest.mark.parametrize("text", CONDITIONS)
def test_bounds_are_the_condition(text: str) -> None:
    join = _join(f"SELECT a.id FROM auctions a JOIN bids b ON {text} AND {WIDE}")
    for a, b in product(INSTANTS, INSTANTS):
        assert _allows(join.time_bounds, {"a.ts": a, "b.ts": b}) == CONDITIONS[text](a, b)


def test_cql_ranges_mean_both_are_inside_at_the_later_time() -> None:
    join = _join("SELECT a.id FROM auctions [RANGE 3 MILLISECONDS] a, bids [RANGE 1 MILLISECOND] b")
    for a, b in product(range(-4000, 4001, 500), range(-4001, 4001, 500)):
        now = max(a, b)
        inside = a <= now < a + 3000 and b <= now < b + 1000
        assert _allows(join.time_bounds, {"a.ts": a, "b.ts": b}) == inside


def test_every_pair_of_three_ranges() -> None:
    bounds = range_bounds([("a", 10), ("b", 20), ("c", None)])
    assert {(b.earlier, b.later, b.at_most) for b in bounds} == {
        ("a", "b", 9),
        ("a", "c", 9),
        ("b", "a", 19),
        ("b", "c", 19),
    }


def test_bounds_through_a_third_stream_change_no_answer() -> None:
    """The implied bound between the first two streams allows every pair that the third one can join."""
    sql = (
        "SELECT c.url FROM clicks c, bids b, auctions a WHERE"
        " a.ts BETWEEN b.ts AND b.ts + INTERVAL 2 MICROSECONDS"
        " AND a.ts BETWEEN c.at - INTERVAL 1 MICROSECOND AND c.at"
    )
    first, second = (n for n in nodes(bind(sql)) if isinstance(n, IntervalJoin))
    for a, b, c in product(INSTANTS, INSTANTS, INSTANTS):
        at = {"a.ts": a, "b.ts": b, "c.at": c}
        wanted = b <= a <= b + 2 and c - 1 <= a <= c
        assert (_allows(first.time_bounds, at) and _allows(second.time_bounds, at)) == wanted
