"""State as Spark's progress events tell it: rows and bytes over all operators; none is not nothing."""

from __future__ import annotations

from typing import Any

from headrace.runtime.spark.observed import Observed


def event(batch: int, *operators: dict[str, int]) -> dict[str, Any]:
    return {
        "batchId": batch,
        "sources": [{"description": "files", "numInputRows": 10}],
        "durationMs": {"addBatch": 5, "triggerExecution": 200},
        "stateOperators": list(operators),
    }


def test_rows_and_bytes_of_all_operators_are_added_up() -> None:
    observed = Observed("a", "/marks")
    observed.take(
        event(0, {"numRowsTotal": 3, "memoryUsedBytes": 500}, {"numRowsTotal": 4, "memoryUsedBytes": 20})
    )
    seen = observed.progress()
    assert (seen.state_rows, seen.state_bytes) == (7, 520)


def test_a_job_without_state_has_none() -> None:
    observed = Observed("a", "/marks")
    observed.take(event(0))
    assert (observed.progress().state_rows, observed.progress().state_bytes) == (None, None)
    observed.take(event(1, {"numRowsTotal": 2}))
    assert (observed.progress().state_rows, observed.progress().state_bytes) == (2, None)
