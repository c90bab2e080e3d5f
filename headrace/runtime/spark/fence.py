"""Keeps two engines off one project.

When Headrace is killed, its JVM notices only a moment later and may be in the middle of a batch; a new run
that started at once would share the checkpoint with it. So the JVM's process id is on disk while it lives,
and a new run first waits for that process to be gone, and ends it if it does not go.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from headrace.runtime.files import write_whole

_GRACE_SECONDS = 10.0


def _engine(pid: int, started: float) -> psutil.Process | None:
    """The process, if it is still the one that was written down and not a later one with its number."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        alive = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        if alive and abs(process.create_time() - started) < 1.0:
            return process
    return None


class Fence:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "engine.pid"

    def clear(self) -> None:
        """Return once no engine of an earlier run is left."""
        if not self._path.exists():
            return
        pid, started = self._path.read_text(encoding="utf-8").split()
        process = _engine(int(pid), float(started))
        if process is not None:
            try:
                process.wait(timeout=_GRACE_SECONDS)
            except psutil.TimeoutExpired:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
                process.wait(timeout=_GRACE_SECONDS)
        self._path.unlink(missing_ok=True)

    def raise_for(self, pid: int) -> None:
        """Write down the engine of this run."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, f"{pid} {psutil.Process(pid).create_time()}")

    def lower(self) -> None:
        self._path.unlink(missing_ok=True)
