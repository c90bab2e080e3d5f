"""Smoothing by time, ages, bounds, and that beliefs survive as JSON."""

from __future__ import annotations

import json
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.stats.beliefs import Beliefs
from headrace.stats.samples import Sample
from headrace.stats.smoothed import Smoothed, smooth


def test_half_of_it_after_a_half_life() -> None:
    first = smooth(None, 100.0, 0.0, 30.0)
    assert first == (100.0, 0.0)
    assert smooth(first, 0.0, 30.0, 30.0) == pytest.approx((50.0, 30.0))
    assert smooth(first, 0.0, 60.0, 30.0).value == pytest.approx(25.0)


@given(st.lists(st.floats(0.01, 50.0), min_size=1, max_size=20), st.floats(0, 1e6), st.floats(0, 1e6))
def test_time_counts_and_not_the_number_of_samples(steps: list[float], old: float, seen: float) -> None:
    """The same value seen many times in a stretch weighs as much as seen once at its end."""
    many = Smoothed(old, 0.0)
    for step in steps:
        many = smooth(many, seen, many.at + step, 30.0)
    once = smooth(Smoothed(old, 0.0), seen, many.at, 30.0)
    assert many.value == pytest.approx(once.value, rel=1e-9, abs=1e-6)


def test_totals_become_rates() -> None:
    beliefs = Beliefs(half_life=10.0)
    beliefs.take(Sample("job", 100.0, {"lag_seconds": 3.0}, {"rows_in": 5000.0}))
    found = beliefs.of("job")
    assert found is not None
    assert "rows_in" not in found.figures and found.selectivity is None
    assert found["lag_seconds"] == 3.0
    beliefs.take(Sample("job", 102.0, {}, {"rows_in": 5400.0, "rows_out": 7.0}))
    beliefs.take(Sample("job", 104.0, {}, {"rows_out": 107.0}))
    assert (found["rows_in"], found["rows_out"]) == (200.0, 50.0)
    assert found.selectivity == 0.25
    assert found["lag_seconds"] == 3.0
    assert (found.last_seen, found.age(110.0), found.samples) == (104.0, 6.0, 3)
    assert found.figures["rows_in"].age(110.0) == 8.0


def test_a_restart_is_no_negative_rate() -> None:
    beliefs = Beliefs()
    for at, total in ((0.0, 1000.0), (1.0, 1100.0), (2.0, 20.0), (3.0, 120.0)):
        beliefs.take(Sample("job", at, {}, {"rows_in": total}))
    found = beliefs.of("job")
    assert found is not None and found["rows_in"] == pytest.approx(100.0)


def test_silent_is_not_unseen() -> None:
    beliefs = Beliefs()
    beliefs.take_all([Sample("job", 0.0, {"cpu": 0.0}), Sample("job", 1.0, {"cpu": 0.0})])
    found = beliefs.of("job")
    assert found is not None
    assert found["cpu"] == 0.0 and found["memory"] is None
    assert beliefs.of("other") is None


def test_late_samples_change_nothing() -> None:
    beliefs = Beliefs()
    beliefs.take_all(
        [Sample("job", 5.0, {"cpu": 1.0}), Sample("job", 4.0, {"cpu": 9.0}), Sample("job", 5.0, {"cpu": 9.0})]
    )
    found = beliefs.of("job")
    assert found is not None and found["cpu"] == 1.0
    assert beliefs.stale == 2


def test_a_clock_that_was_set_back_begins_anew() -> None:
    beliefs = Beliefs(half_life=30.0)
    beliefs.take_all([Sample("job", 1e6 + n, {"cpu": 1.0}, {"rows_in": 10.0 * n}) for n in range(3)])
    back = 1e6 - 3600
    assert beliefs.take(Sample("job", back, {"cpu": 9.0}, {"rows_in": 50.0})) == {"cpu": 9.0}
    assert beliefs.take(Sample("job", back + 1, {"cpu": 9.0}, {"rows_in": 70.0})) == {
        "cpu": 9.0,
        "rows_in": 20.0,
    }
    found = beliefs.of("job")
    assert found is not None and found["cpu"] == 9.0 and found.age(back + 2) == 1.0
    assert beliefs.stale == 0


def test_the_longest_unseen_goes_first() -> None:
    beliefs = Beliefs(most=3)
    for at, name in enumerate(["a", "b", "c", "a", "d"]):
        beliefs.take(Sample(name, float(at), {"cpu": 1.0}))
    assert list(beliefs) == ["c", "a", "d"]
    assert beliefs.forget_unseen(now=10.0, seconds=7.0) == ["c"]
    beliefs.forget("a")
    beliefs.forget("a")
    assert len(beliefs) == 1


def test_beliefs_survive_as_json() -> None:
    beliefs = Beliefs(half_life=5.0, most=10)
    for at in range(4):
        beliefs.take(Sample("job", float(at), {"cpu": at / 2}, {"rows_in": 10.0 * at}))
        beliefs.take(Sample("site", float(at), {"memory": 1e9}))
    again = Beliefs.from_data(json.loads(json.dumps(beliefs.to_data())))
    assert again.to_data() == beliefs.to_data()
    for one in (beliefs, again):
        one.take(Sample("job", 9.0, {"cpu": 7.0}, {"rows_in": 500.0}))
    assert again.to_data() == beliefs.to_data()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"half_life": 1, "most": 1, "stale": 0, "beliefs": [1]},
        {"half_life": 0, "most": 1, "stale": 0, "beliefs": {}},
    ],
)
def test_what_are_no_beliefs_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Beliefs.from_data(data)


def test_unknown_figures_of_beliefs_are_refused() -> None:
    data = Beliefs().to_data()
    data["beliefs"]["x"] = {"last_seen": 1, "samples": 1, "totals": {}, "figures": {"cqu": [1, 1]}}
    with pytest.raises(ValueError, match="cqu is not known"):
        Beliefs.from_data(data)


@pytest.mark.parametrize(
    ("gauges", "totals", "at"),
    [
        ({"cpu": nan}, {}, 0.0),
        ({"cpu": -1.0}, {}, 0.0),
        ({"cqu": 1.0}, {}, 0.0),
        ({"rows_in": 1.0}, {}, 0.0),
        ({}, {"rows_in": inf}, 0.0),
        ({}, {}, nan),
    ],
)
def test_no_sample_is_wrong(gauges: dict[str, float], totals: dict[str, float], at: float) -> None:
    with pytest.raises(ValueError):
        Sample("job", at, gauges, totals)
