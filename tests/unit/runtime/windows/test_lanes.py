from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.plan.types import Column, DataType
from headrace.runtime.windows.keys import Keys
from headrace.runtime.windows.lanes import lane_of, moments
from headrace.runtime.windows.spec import Partial, PartialKind

numbers = st.floats(-1e6, 1e6)


def test_variance_of_large_numbers_with_a_small_spread() -> None:
    """A sum of squares would leave nothing of it: 1e9 squared has no digit for 1."""
    values = [1e9 + k % 3 for k in range(300)]
    lane = moments(0, 1, 2)
    block = (np.ones((300, 1)), np.array(values)[:, None], np.zeros((300, 1)))
    count, mean, m2 = (a[-1, 0] for a in lane.running(block))
    assert count == 300 and math.isclose(mean, 1e9 + 1, rel_tol=1e-15)
    assert math.isclose(m2, 200, rel_tol=1e-6)


@given(st.lists(st.lists(numbers, max_size=4), min_size=1, max_size=6))
def test_moments_of_groups_are_those_of_all(groups: list[list[float]]) -> None:
    lane, flat = moments(0, 1, 2), [v for g in groups for v in g]
    means = [math.fsum(g) / max(1, len(g)) for g in groups]
    m2s = [math.fsum((v - m) ** 2 for v in g) for g, m in zip(groups, means, strict=True)]
    block = (np.array([float(len(g)) for g in groups]), np.array(means), np.array(m2s))
    running = lane.running(tuple(a[:, None] for a in block))
    for found in (lane.grouped(block, np.array([0])), tuple(a[-1] for a in running)):
        assert found[0][0] == len(flat)
        if flat:
            mean = math.fsum(flat) / len(flat)
            exact = math.fsum((v - mean) ** 2 for v in flat)
            assert math.isclose(found[1][0], mean, rel_tol=1e-9, abs_tol=1e-6)
            assert math.isclose(found[2][0], exact, rel_tol=1e-9, abs_tol=1e-3)


def test_nan_is_the_largest_number() -> None:
    values = np.array([math.nan, 1.0, -math.inf, math.nan])
    low = lane_of(0, Partial("p", PartialKind.MIN, DataType.DOUBLE)).running((values,))[0]
    high = lane_of(0, Partial("p", PartialKind.MAX, DataType.DOUBLE)).running((values,), backwards=True)[0]
    assert repr(low.tolist()) == "[nan, 1.0, -inf, -inf]"
    assert repr(high.tolist()) == "[nan, nan, nan, nan]"


def test_values_that_are_equal_are_one_key() -> None:
    keys = Keys((Column("a", DataType.DOUBLE),))
    other_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    assert keys.encode(pa.table({"a": [5.0]})).tolist() == [0]
    values = pa.array(np.array([-0.0, 5.0, math.nan, 0.0, other_nan, 2.0]))
    assert keys.encode(pa.table({"a": values})).tolist() == [1, 0, 2, 1, 2, 3]
    assert repr(keys.columns()[0].to_pylist()) == "[5.0, 0.0, nan, 2.0]"
    assert len(keys) == 4


def test_keys_keep_their_codes_and_the_gone_are_forgotten() -> None:
    keys = Keys((Column("a", DataType.DOUBLE), Column("b", DataType.STRING)))
    first = pa.table({"a": [math.nan, None, 1.0, math.nan], "b": ["x", "x", None, "x"]})
    assert keys.encode(first).tolist() == [0, 1, 2, 0]
    assert keys.encode(first.slice(1)).tolist() == [1, 2, 0]
    assert keys.keep(np.array([True, False, True])).tolist() == [0, -1, 1]
    assert keys.encode(first).tolist() == [0, 2, 1, 0]
    assert repr([c.to_pylist() for c in keys.columns()]) == "[[nan, 1.0, None], ['x', None, 'x']]"
