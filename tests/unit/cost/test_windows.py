"""What a tree costs, against sums done by hand and against counts of drawn rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.cost.windows import (
    DEFAULTS,
    QueryLoad,
    TreeLoad,
    WindowCosts,
    plain_spark,
    plain_work,
    predict,
    seen,
    work,
)
from headrace.errors import InternalError

SECOND = 1_000_000
NOTHING = replace(DEFAULTS, **dict.fromkeys(DEFAULTS.to_dict(), 0.0))
# Many rows for each group, so that every group is in every fragment.
LOAD = TreeLoad(
    rate=10_000.0,
    arguments=2,
    edge_rate=1.0,
    groups=10.0,
    queries=(QueryLoad(60 * SECOND, SECOND, 10.0, 3), QueryLoad(300 * SECOND, 5 * SECOND, 10.0, 1)),
    batches_per_second=0.5,
    buckets=2,
)


def test_the_work_of_a_tree_by_hand() -> None:
    assert work(LOAD) == pytest.approx(
        {
            "batch": 0.5,
            "query_batch": 1.0,
            "row": 10_000,
            "row_argument": 20_000,
            "fragment": 1.5 * 10,  # one fragment a second, and half a cut more
            "fragment_slide": 2 * 10,
            "cell": 10 + 2,
            "cell_output": 30 + 2,
        }
    )


@pytest.mark.parametrize("name", work(LOAD))
def test_each_price_counts_once(name: str) -> None:
    priced = replace(NOTHING, **{name: 2.0})
    found = predict(LOAD, priced)
    assert found.cpu == pytest.approx(2.0 * work(LOAD)[name])
    assert found.parts[name] == found.cpu
    assert sum(found.parts.values()) == found.cpu


def test_memory_and_state_are_those_of_the_longest_range() -> None:
    costs = replace(NOTHING, fragment_state=20.0, fragment_memory=100.0, worker_memory=1e6, result_memory=7.0)
    found = predict(LOAD, costs)
    assert found.state == pytest.approx(300 * 10 * 20, rel=1e-6)
    results = (10 * (3 + 2) + 2 * (1 + 2)) / 0.5 * 7.0
    assert found.memory == pytest.approx(2e6 + 300 * 10 * 100 + results, abs=2)


def test_cpu_does_not_depend_on_the_range() -> None:
    longer = replace(LOAD, queries=tuple(replace(query, range=query.range * 10) for query in LOAD.queries))
    assert predict(longer).cpu == pytest.approx(predict(LOAD).cpu)
    assert plain_spark(longer) > 5 * plain_spark(LOAD) - 5 * DEFAULTS.plain_batch


@pytest.mark.parametrize(("groups", "rows"), [(10, 3), (100, 100), (1000, 5000), (50, 1)])
def test_groups_met_by_rows(groups: int, rows: int) -> None:
    rng = np.random.default_rng(groups + rows)
    drawn = [len(np.unique(rng.integers(0, groups, rows))) for _ in range(500)]
    assert seen(groups, rows) == pytest.approx(np.mean(drawn), rel=0.06)


def test_few_rows_make_few_fragment_rows() -> None:
    sparse = replace(LOAD, rate=5.0, groups=1e6, queries=(QueryLoad(60 * SECOND, SECOND, 1e6, 1),))
    assert sparse.fragment_rows == pytest.approx(5.0, rel=1e-3)
    assert work(sparse)["cell"] == pytest.approx(300.0, rel=1e-3)


def test_coarser_keys_are_rolled_up_once_for_all_their_queries() -> None:
    fine, coarse = QueryLoad(60 * SECOND, SECOND, 10.0, 1), QueryLoad(60 * SECOND, SECOND, 2.0, 1)
    one = replace(LOAD, queries=(fine, coarse))
    more = replace(LOAD, queries=(fine, coarse, replace(coarse, range=70 * SECOND)))
    assert one.rolled == more.rolled == pytest.approx(12.0)


def test_plain_spark_by_counting() -> None:
    """Rows drawn, put into their windows one by one."""
    rate, groups, size, slide, batch = 50, 7, 30, 5, 20
    rng = np.random.default_rng(3)
    times = rng.uniform(1000, 1000 + batch, rate * batch)
    keys = rng.integers(0, groups, rate * batch)
    rows = [
        (int(t // slide) - back, k) for t, k in zip(times, keys, strict=True) for back in range(size // slide)
    ]
    found = plain_work(rate, QueryLoad(size * SECOND, slide * SECOND, groups, 1), 1 / batch)
    assert found["expanded_row"] * batch == len(rows)
    assert found["plain_state"] * batch == pytest.approx(len(set(rows)), rel=0.15)
    assert (found["plain_row"], found["plain_batch"]) == (rate, 1 / batch)


def test_costs_as_data() -> None:
    assert WindowCosts.from_dict(DEFAULTS.to_dict()) == DEFAULTS
    with pytest.raises(InternalError, match="batch"):
        WindowCosts.from_dict({name: v for name, v in DEFAULTS.to_dict().items() if name != "batch"})
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InternalError, match="row is"):
            replace(DEFAULTS, row=wrong)


def test_impossible_loads_cannot_be_made() -> None:
    with pytest.raises(InternalError):
        replace(LOAD, queries=())
    with pytest.raises(InternalError):
        replace(LOAD, batches_per_second=0.0)
    with pytest.raises(InternalError):
        QueryLoad(SECOND, 0, 1.0, 1)
