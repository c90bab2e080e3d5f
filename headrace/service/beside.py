"""Threads beside a loop that the end of the process does not wait for.

What they do may hang for as long as a remote engine hangs: Spark's client has no deadline of its own. Python
waits for the threads of a `ThreadPoolExecutor` before it exits, so a run that was told to stop would go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Beside(Generic[_T]):
    """At most `at_once` calls run at a time; others wait their turn."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._calls: SimpleQueue[tuple[Future[_T], Callable[[], _T]] | None] = SimpleQueue()
        self._threads = 0
        self._idle = threading.Semaphore(0)

    def submit(self, call: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> Future[_T]:
        """What the call will give. From one thread only, as `close`."""
        future: Future[_T] = Future()
        self._calls.put((future, lambda: call(*args, **named)))
        if not self._idle.acquire(blocking=False) and self._threads < self._at_once:
            self._threads += 1
            threading.Thread(target=self._work, name="beside", daemon=True).start()
        return future

    def _work(self) -> None:
        while (taken := self._calls.get()) is not None:
            future, call = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            self._idle.release()

    def close(self) -> None:
        """Calls that have not begun are given up; whatever has, goes on by itself."""
        while not self._calls.empty():
            waiting = self._calls.get()
            if waiting is not None:
                waiting[0].cancel()
        for _ in range(self._threads):
            self._calls.put(None)
