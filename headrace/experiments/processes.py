"""Many independent tasks on several processes; rows in the order of the tasks, whoever finished first."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Clock = Callable[[], float]
OnProgress = Callable[[int, int], None]
"""(tasks done, tasks in all)."""

T = TypeVar("T")
R = TypeVar("R")
Run = Callable[[T, Clock], Sequence[R]]
WarmUp = Callable[[Clock], None]
"""Called once in every process before its first task."""


def run_tasks(
    tasks: Sequence[T],
    run: Run[T, R],
    warm_up: WarmUp,
    workers: int,
    clock: Clock,
    on_progress: OnProgress,
) -> tuple[R, ...]:
    """`workers` 0: in this process. `run`, `warm_up` and `clock` must be importable by name."""
    on_progress(0, len(tasks))
    if not workers:
        return _here(tasks, run, warm_up, clock, on_progress)
    # Spawn: a forked child would inherit threads of the caller's progress bar in mid-step.
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=warm_up, initargs=(clock,)
    )
    try:
        futures = [pool.submit(run, task, clock) for task in tasks]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            on_progress(done, len(tasks))
        return tuple(row for future in futures for row in future.result())
    finally:
        pool.shutdown(cancel_futures=True)


def _here(
    tasks: Sequence[T], run: Run[T, R], warm_up: WarmUp, clock: Clock, on_progress: OnProgress
) -> tuple[R, ...]:
    warm_up(clock)
    rows: list[R] = []
    for done, task in enumerate(tasks, start=1):
        rows += run(task, clock)
        on_progress(done, len(tasks))
    return tuple(rows)
