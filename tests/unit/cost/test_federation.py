"""Work of operators on both engines, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.cost.federation import (
    DEFAULTS,
    FederationCosts,
    Input,
    aggregate_work,
    filter_work,
    join_work,
    price,
    unit,
)
from headrace.errors import InternalError

# 100 rows a second in windows of 60 s that slide by 2 s: 6,000 rows, each in 30 windows.
ROWS = Input(rate=100.0, rows=6_000.0, slides=0.5, copies=30.0)
RESULTS = Input(rate=5.0, rows=10.0, slides=0.5)


def test_a_filter_looks_at_each_row_once_when_it_comes() -> None:
    assert filter_work(ROWS) == ({"spark_filter": 100.0}, {"duck_filter": 100.0})
    assert filter_work(RESULTS) == ({"spark_filter": 5.0}, {"duck_filter": 5.0})


def test_an_aggregate_copies_rows_on_spark_and_merges_panes_on_duckdb() -> None:
    spark, duck = aggregate_work(ROWS, groups=1.0, batches=0.25)
    # A batch spans 4 s: rows of it are in 30 + 2 windows.
    assert spark == pytest.approx(
        {"spark_batch": 0.25, "spark_row": 100.0, "spark_copy": 3_000.0, "spark_state": 32 * 0.25}
    )
    # 0.5 windows a second of 30 panes and one group each.
    assert duck == pytest.approx({"duck_scan": 6_000 * 0.25, "duck_pane": 15.0})
    assert aggregate_work(ROWS, 1.0, 0.25, mergeable=False)[1] == {"duck_scan": 3_000.0}
    assert aggregate_work(RESULTS, 1.0, 0.25)[1] == {"duck_scan": 5.0}


def test_a_join_takes_each_row_once_for_every_window() -> None:
    spark, duck = join_work(ROWS, 1.0)
    assert spark == {"spark_batch": 0.5, "spark_copy": 3_000.0, "spark_join": 3_000.0}
    assert duck == {"duck_join": 3_000.0}
    assert join_work(RESULTS, 1.0) == (
        {"spark_batch": 0.5, "spark_copy": 0.0, "spark_join": 5.0},
        {"duck_join": 5.0},
    )


def test_unit_costs_times_rows_are_the_work_of_a_second() -> None:
    work = aggregate_work(ROWS, 7.0, 1.0)
    found = unit(work, ROWS, DEFAULTS)
    assert found.spark * ROWS.rate == pytest.approx(price(work[0], DEFAULTS))
    assert found.held * ROWS.rows * ROWS.slides == pytest.approx(price(work[1], DEFAULTS))
    nothing = unit(work, Input(0.0, 0.0, 1.0), DEFAULTS)
    assert (nothing.spark, nothing.held) == (0.0, 0.0)


def test_costs_as_data() -> None:
    assert FederationCosts.from_dict(DEFAULTS.to_dict()) == DEFAULTS
    with pytest.raises(InternalError, match="names differ in more"):
        FederationCosts.from_dict({**DEFAULTS.to_dict(), "more": 1.0})
    with pytest.raises(InternalError, match="statement is -1"):
        replace(DEFAULTS, statement=-1)
