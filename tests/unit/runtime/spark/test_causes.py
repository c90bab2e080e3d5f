"""Errors as gRPC, Spark and Java write them: what is kept of them, and whose fault they are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

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


@pytest.mark.parametrize(
    ("error", "told"),
    [
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
        (RuntimeError(STACK), False),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero."), False),
    ],
)
def test_a_lost_server_is_told_from_what_a_job_does(error: Exception, gone: bool) -> None:
    assert is_site_gone(error) is gone
