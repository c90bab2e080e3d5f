"""What a run really takes: CPU time and memory of this process and of all it has started.

A local Spark is a JVM that starts Python workers, so its cost is that of a tree of processes. One that has
ended is counted by its parent, which has waited for it. A remote Spark (sc://) is not in the tree, and
nothing is said of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from headrace.runtime.executor import Progress

_MEMORY_EVERY = 2.0
"""Seconds between two looks at memory: the kernel adds up a process's pages for each of them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What was taken since the start."""

    seconds: float
    cpu_seconds: float
    memory: int
    """The most bytes that were held at a time, as far as was looked."""
    workers: int
    """The most bytes held by the processes below the engine: its Python workers."""

    @property
    def cores(self) -> float:
        return self.cpu_seconds / self.seconds if self.seconds > 0 else 0.0


@dataclass(slots=True)
class Done:
    """What one job or tree did in this run."""

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    """That its batches took, as far as they were seen."""
    last: int | None = None
    """The number of its last batch."""


class Activity:
    """What jobs do, put together from what is seen of them now and then."""

    def __init__(self) -> None:
        self.jobs: dict[str, Done] = {}

    def see(self, progress: Progress) -> None:
        """Batches between two looks are taken to have been as long as the last of them. The first look at a
        job that goes on from a checkpoint does not tell how many there were: it counts as one."""
        done = self.jobs.setdefault(progress.job, Done())
        done.rows = max(done.rows, progress.input_rows)
        if progress.batch is None or progress.batch == done.last:
            return
        new = 1 if done.last is None else max(1, progress.batch - done.last)
        done.batches, done.last = done.batches + new, progress.batch
        done.seconds += new * (progress.batch_millis or 0) / 1000


class Sampler:
    """Counts from `start` on. Nothing runs beside it: somebody calls `sample` from time to time."""

    def __init__(self, clock: Callable[[], float], pid: int | None = None) -> None:
        self._root = psutil.Process(pid)
        self._clock = clock
        self.start()

    def start(self) -> None:
        """Count from here."""
        self._began = self._clock()
        self._before = self._cpu = self._cpu_seconds()
        self._memory = self._workers = 0
        self._looked = float("-inf")

    def sample(self) -> Usage:
        """What was taken until now."""
        # A process that ends between two lines of this code is in neither sum; the next look has it.
        self._cpu = max(self._cpu, self._cpu_seconds())
        now = self._clock()
        if now - self._looked >= _MEMORY_EVERY:
            self._looked = now
            held, workers = self._held()
            self._memory, self._workers = max(self._memory, held), max(self._workers, workers)
        return Usage(now - self._began, self._cpu - self._before, self._memory, self._workers)

    def _processes(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def _cpu_seconds(self) -> float:
        total = 0.0
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
                total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        return total

    def _held(self) -> tuple[int, int]:
        engines = {child.pid for child in self._children()}
        own = [(process.pid, _held_by(process)) for process in self._processes()]
        below = sum(held for pid, held in own if pid not in engines and pid != self._root.pid)
        return sum(held for _, held in own), below

    def _children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return list(self._root.children())
        return []


def _held_by(process: psutil.Process) -> int:
    """Pages shared by several processes count once over all of them: forked workers share most of theirs."""
    with contextlib.suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0
