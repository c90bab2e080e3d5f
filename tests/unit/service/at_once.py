"""`Beside` without threads, for tests that count rounds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class AtOnce:
    """Whoever asks has the answer, so that rounds are the same whatever the machine does meanwhile."""

    def __init__(self, count: int) -> None:
        pass

    def close(self) -> None:
        pass

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        made: Future[T] = Future()
        try:
            made.set_result(fn(*args, **kwargs))
        except BaseException as error:
            made.set_exception(error)
        return made
