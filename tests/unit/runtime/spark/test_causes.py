"""Errors as gRPC, Spark and Java write them: what is kept of them, and whose fault they are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkRuntimeError

from headrace.errors import EngineError
from headrace.runtime.spark.causes import cause_of, is_site_gone

CALL = """<_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: refused"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>"""
STACK = """Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: java.lang.RuntimeException: a task has failed
\tat org.apache.spark.Task.run(Task.scala:2)
Caused by: java.io.IOException: No space left on device
\t... 12 more"""
CHANGED = (
    "[INVALID_HANDLE.SESSION_CHANGED] The handle 1 is invalid. The existing Spark server driver instance has "
    "restarted. Please reconnect. SQLSTATE: HY000"
)

WORKER = """[STREAM_FAILED] Query [id = 64bb2665, runId = b10e0d29] terminated with exception: \
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/project/headrace/runtime/spark/woven.py", line 107, in partial
    made = partial_table(batch, arguments, keys, spec)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/project/headrace/runtime/windows/bigints.py", line 52, in refuse_part
    raise _refusal(f"the sum {name} of query {query}{also} does not fit a BIGINT within one fragment")
headrace.errors.EngineError: the sum s of query o6sum does not fit a BIGINT within one fragment
hint: Cast the argument to DOUBLE, or drop the query.
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: tree-c7144127 [id = 64bb2665, runId = b10e0d29]
Current Committed Offsets: {}

Current State: ACTIVE
Logical Plan:
~WriteToMicroBatchDataSourceV1 FileSink[file:/project/.headrace/jobs/tree-c7144127/staging], 64bb2665, Append
"""
"""Of a Python worker, as Spark in this process passes it on."""
_TRACEBACKS = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
ValueError: two

lines
"""
NO_FIT = (
    "the sum s of query o6sum does not fit a BIGINT within one fragment; "
    "hint: Cast the argument to DOUBLE, or drop the query."
)


class Call(Exception):
    """As gRPC throws it: it says itself what it is."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__()
        self._code, self._details = code, details

    def code(self) -> SimpleNamespace:
        return SimpleNamespace(name=self._code)

    def details(self) -> str:
        return self._details


class Connect(Exception):
    """As Spark's client passes it on."""

    def getGrpcStatusCode(self) -> SimpleNamespace:
        return SimpleNamespace(name="UNAVAILABLE")


class Captured(Exception):
    """As PySpark has it: a message, and the cause beside it."""

    def __init__(self, desc: str, cause: Exception | None = None) -> None:
        super().__init__(desc)
        self._desc, self._cause = desc, cause


ENDED = "[STREAM_FAILED] Query [id = 8e28] terminated with exception: "
WAITED = f"{ENDED}Exception thrown in awaitResult:  SQLSTATE: XXKST"
SLOW = "java.util.concurrent.TimeoutException: Futures timed out after [120 seconds]"
IT_WAS_SLOW = f"{ENDED}{SLOW} SQLSTATE: XXKST"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Captured(WAITED), WAITED),
        (Captured(WAITED, Captured("it failed", Captured(f"{SLOW}\n\tat x"))), IT_WAS_SLOW),
        (RuntimeError(f"{WAITED}\n\nJVM stacktrace:\n\tat x\nCaused by: {SLOW}\n\tat y"), IT_WAS_SLOW),
        (Captured("[OUTER] it is", Captured("not asked for")), "[OUTER] it is"),
        (RuntimeError("one line"), "one line"),
        (RuntimeError(""), "RuntimeError('')"),
        (
            RuntimeError(STACK),
            "Job aborted: java.io.IOException: No space left on device",
        ),
        (
            RuntimeError(CALL),
            "UNAVAILABLE: failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: refused",
        ),
        (
            RuntimeError("[OUTER] it is\nCaused by: [INNER.ONE] the cause\n\tat x"),
            "[INNER.ONE] the cause",
        ),
        (RuntimeError(WORKER), NO_FIT),
        (Call("INTERNAL", WORKER), f"INTERNAL: {NO_FIT}"),
        (
            RuntimeError(
                f"Task failed\n{_TRACEBACKS}\n\tat java.lang.Thread.run(Thread.java:1)\n\t... 3 more"
            ),
            "ValueError: two; lines",
        ),
        (
            RuntimeError("[PYTHON_EXCEPTION] Thrown: Traceback (most recent call last):\n  File cut short"),
            "[PYTHON_EXCEPTION] Thrown: Traceback (most recent call last):",
        ),
        (Call("DEADLINE_EXCEEDED", ""), "DEADLINE_EXCEEDED"),
        (
            Call("INTERNAL", STACK),
            "INTERNAL: Job aborted: java.io.IOException: No space left on device",
        ),
    ],
)
def test_what_tells_the_cause_is_kept(error: Exception, told: str) -> None:
    assert cause_of(error) == told
    assert cause_of(error, 12) == told[:12]


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (RuntimeError(CALL), True),
        (RuntimeError(CHANGED), True),
        (Connect("it does not matter what it says"), True),
        (PySparkRuntimeError(errorClass="NO_ACTIVE_SESSION", messageParameters={}), True),
        (ValueError("Cannot invoke RPC: Channel closed!"), True),
        (RuntimeError(STACK), False),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero."), False),
    ],
)
def test_a_lost_server_is_told_from_what_a_job_does(error: Exception, gone: bool) -> None:
    assert is_site_gone(error) is gone
    outer = EngineError("Spark does not start it")
    outer.__cause__ = error
    assert is_site_gone(outer) is gone
