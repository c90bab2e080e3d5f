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

BROADCAST = (
    "[STREAM_FAILED] Query [id = 8fbecd75, runId = a973a8a1] terminated with exception: Could not execute "
    "broadcast in 300 secs. You can increase the timeout for broadcasts via spark.sql.broadcastTimeout"
)
REPLY = (
    "[STREAM_FAILED] Query [id = 8fbecd75, runId = a973a8a1] terminated with exception: "
    "java.util.concurrent.TimeoutException: Futures timed out after [120 seconds] SQLSTATE: XXKST"
)


@pytest.mark.parametrize("reason", [AT_THE_DRIVER, IN_A_TASK, BROADCAST, REPLY])
def test_what_was_too_slow_passes(reason: str) -> None:
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
