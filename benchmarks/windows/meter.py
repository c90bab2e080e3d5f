"""CPU and memory of a command and all its descendants, measured from outside.

CPU is what the kernel says when a process is waited for (wait4: its own time and that of the children it has
waited for). This process makes itself the reaper of orphans, so a JVM that outlives the Python that started
it is waited for here. One hole is left: a parent that ignores SIGCHLD, as PySpark's daemon does, has its dead
children's time thrown away. For such children the last reading before their end counts, at most a poll old.

Memory is the largest sum of proportional set sizes at a poll: forked workers share pages, which must not
count once each.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

import psutil

_POLL_SECONDS = 0.1
_MEMORY_EVERY, _CALL_EVERY = 3, 10
"""Polls between two readings of memory, and between two calls back."""
_LINGER_SECONDS = 20
"""How long descendants may outlive the command."""
_SUBREAPER = 36
_SIGCHLD_BIT = 1 << (signal.SIGCHLD - 1)


@dataclass(slots=True)
class Usage:
    """One run of a command."""

    code: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    """Bytes."""
    by_program: dict[str, float] = field(default_factory=dict)
    """CPU seconds by name of the program, from the last readings: near the total, not exact."""
    timed_out: bool = False


class _Watch:
    """What the polls have seen of each descendant."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[int, float], float] = {}
        self.names: dict[tuple[int, float], str] = {}
        self.unwaited: dict[int, tuple[int, float]] = {}
        """Children of processes that ignore SIGCHLD: whoever waits for them here is taken out."""

    def poll(self) -> list[psutil.Process]:
        found = psutil.Process().children(recursive=True)
        for process in found:
            try:
                self._look(process)
            except (psutil.Error, OSError):
                continue
        return found

    def _look(self, process: psutil.Process) -> None:
        times, known = process.cpu_times(), (process.pid, process.create_time())
        if known not in self.names and _ignores_children(process.ppid()):
            self.unwaited[process.pid] = known
        if known not in self.names or self.names[known] in ("bash", "sh", "env"):
            # A script may have turned into the program it starts.
            self.names[known] = process.name()
        self.seconds[known] = times.user + times.system

    def by_program(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for known, seconds in self.seconds.items():
            name = self.names[known]
            found[name] = round(found.get(name, 0.0) + seconds, 2)
        return found

    def lost(self) -> float:
        return sum(self.seconds.get(known, 0.0) for known in self.unwaited.values())


def _ignores_children(pid: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("SigIgn:"):
            return bool(int(line.split()[1], 16) & _SIGCHLD_BIT)
    return False


def _memory(processes: list[psutil.Process]) -> int:
    total = 0
    for process in processes:
        try:
            text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
    return total


class _Run:
    """A started command, until nothing of it is left."""

    def __init__(self, command: list[str], out: IO[bytes], environ: Mapping[str, str]) -> None:
        self.usage, self.watch = Usage(), _Watch()
        self._began = time.perf_counter()
        self._child = subprocess.Popen(
            command, stdout=out, stderr=out, env=dict(environ), start_new_session=True
        )

    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def reap(self) -> bool:
        """Wait for whatever has ended; True: nothing is left."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.usage.cpu += used.ru_utime + used.ru_stime
            # Of one process, but exact: a short run may end between two polls.
            self.usage.peak = max(self.usage.peak, used.ru_maxrss * 1024)
            self.watch.unwaited.pop(pid, None)
            if pid == self._child.pid:
                self._child.returncode = self.usage.code = os.waitstatus_to_exitcode(status)
                self.usage.wall = self.seconds()

    def must_end(self, limit: float) -> bool:
        """Whether what is left has had its time: the command its limit, its descendants a while more."""
        if self.usage.wall:
            return self.seconds() > self.usage.wall + _LINGER_SECONDS
        self.usage.timed_out = self.seconds() > limit
        return self.usage.timed_out


def measure(
    command: list[str],
    *,
    log: Path,
    limit: float,
    environ: Mapping[str, str],
    each_second: Callable[[], None] = lambda: None,
) -> Usage:
    """Run a command to its end, or until `limit` seconds, and all its descendants. Linux only; this process
    must have no other children."""
    if not sys.platform.startswith("linux"):
        raise OSError("the benchmark reads /proc: it needs Linux")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with log.open("wb") as out:
        run = _Run(command, out, environ)
        try:
            _follow(run, limit, each_second)
        finally:
            # Whatever ends this process, an engine must not go on alone.
            _kill(psutil.Process().children(recursive=True))
    run.usage.cpu += run.watch.lost()
    run.usage.by_program = run.watch.by_program()
    return run.usage


def _follow(run: _Run, limit: float, each_second: Callable[[], None]) -> None:
    for turn in count():
        processes = run.watch.poll()
        if turn % _MEMORY_EVERY == 0:
            run.usage.peak = max(run.usage.peak, _memory(processes))
        if turn % _CALL_EVERY == 0:
            each_second()
        if run.reap():
            return
        if run.must_end(limit):
            _kill(processes)
        time.sleep(_POLL_SECONDS)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            continue
