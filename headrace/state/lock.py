"""One `headrace run` at a time in one project.

The lock is the operating system's (flock), so it ends with the process however that dies, kill -9
included. The file itself stays: removing it would let a third process lock a new file of the same name
while a second one still holds the old. It says who the owner is and what it does, for messages only.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.errors import InternalError, UserError

RUNNING, DRAINING = "run", "drain"
"""What a run says of itself; only the first takes changes while it goes on."""

_TRIES, _TRY_SECONDS = 5, 0.02


class Locked(UserError):
    """Another process holds the lock."""


class RunLock:
    """Hold it with `with RunLock(path):`, or `acquire` and `release`."""

    def __init__(self, path: Path, doing: str = "") -> None:
        """`doing` is for others to read, with `holder`."""
        self._path, self._doing = path, doing
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises UserError, with the owner's pid, if another process has it."""
        if self._descriptor is not None:
            raise InternalError(f"{self._path} is locked by this very lock already")
        descriptor = self._open()
        try:
            self._lock(descriptor)
        except BlockingIOError:
            owner = _text(descriptor).split(" ")[0]
            os.close(descriptor)
            raise self._taken(owner) from None
        except OSError as error:
            os.close(descriptor)
            raise UserError(f"the lock file {self._path} cannot be locked: {error.strerror}") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {self._doing}".strip().encode() + b"\n", 0)
        self._descriptor = descriptor

    @staticmethod
    def _lock(descriptor: int) -> None:
        """Try a few times: somebody may just be looking whether the lock is held."""
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(_TRY_SECONDS)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @staticmethod
    def holder(path: Path) -> str | None:
        """What the process that holds the lock does; None: nobody holds it."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"the lock file {path} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            return _text(descriptor).partition(" ")[2]
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"the lock file {self._path} cannot be opened: {error.strerror}") from None

    def _taken(self, owner: str) -> Locked:
        who = f"process {owner}" if owner.isdigit() else "another process"
        return Locked(
            f"{who} is running this project already",
            detail=f"It holds {self._path}.",
            hint=f"Wait for it to end, or stop it{f' (kill {owner})' if owner.isdigit() else ''}.",
        )


def _text(descriptor: int) -> str:
    return os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
