"""Which of Spark's faults pass."""

from __future__ import annotations

import pytest

from headrace.runtime.spark.passing import HINT, hinted, is_passing

AT_THE_DRIVER = (
    "[STREAM_FAILED] Query [id = 8fbecd75, runId = a973a8a1] terminated with exception: "
    "Python worker failed to connect back. SQLSTATE: XXKST"
)
IN_A_TASK = (
    "[STREAM_FAILED] Query [id = 8fbecd75, runId = a973a8a1] terminated with exception: Job aborted due to "
    "stage failure: Task 1 in stage 7.0 failed 1 times, most recent failure: Lost task 1.0 in stage "
    "7.0 (TID 9) (host driver): org.apache.spark.SparkException: Python worker failed to connect back."
)


@pytest.mark.parametrize("reason", [AT_THE_DRIVER, IN_A_TASK])
def test_a_worker_that_was_too_slow_passes(reason: str) -> None:
    assert is_passing(reason) and hinted(reason) == f"{reason}\nhint: {HINT}"


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "[STREAM_FAILED] Query [id = 1] terminated: Python worker exited unexpectedly (crashed)",
        "UNAVAILABLE: failed to connect to all addresses",
        "OSError: No space left on device",
    ],
)
def test_others_do_not(reason: str) -> None:
    assert not is_passing(reason) and hinted(reason) == reason
