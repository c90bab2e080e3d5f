"""CPU and memory of real processes, and what jobs do by what is seen of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from headrace.runtime.executor import JobState, Progress
from headrace.service.measured import Activity, Done, Sampler, Usage

BURN = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
GRANDCHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"


def test_cpu_of_children_that_have_ended_is_counted() -> None:
    sampler = Sampler(time.monotonic)
    for code in (BURN, GRANDCHILD):
        before = sampler.sample().cpu_seconds
        subprocess.run([sys.executable, "-c", code], check=True)
        assert 0.29 < sampler.sample().cpu_seconds - before < 1.5


def test_own_cpu_is_counted_from_the_start_on() -> None:
    sampler = Sampler(time.monotonic)
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert sampler.sample().cpu_seconds > 0.18
    sampler.start()
    assert sampler.sample().cpu_seconds < 0.1


def test_memory_of_a_child_of_a_child_is_a_workers() -> None:
    hold = "held = bytearray(60_000_000); print('ready', flush=True); input()"
    engine = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        usage = Sampler(time.monotonic).sample()
        child.communicate(b"\n")
    assert usage.workers > 60_000_000
    assert usage.memory > usage.workers + 5_000_000
    assert usage.memory < usage.workers + 4 * psutil.Process().memory_info().rss


def test_memory_is_looked_at_now_and_then_and_the_most_stays() -> None:
    now = [0.0]
    sampler = Sampler(lambda: now[0], os.getpid())
    first = sampler.sample().memory
    held = bytearray(50_000_000)
    held[::4096] = b"x" * len(held[::4096])
    now[0] = 1.0
    assert sampler.sample().memory == first
    now[0] = 3.0
    most = sampler.sample().memory
    assert most > first + 40_000_000
    del held
    now[0] = 6.0
    assert sampler.sample().memory == most


def test_a_process_that_is_gone_takes_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        sampler = Sampler(time.monotonic, child.pid)
        child.communicate(b"\n")
    assert sampler.sample().memory == 0


def test_cores() -> None:
    assert Usage(10.0, 15.0, 0, 0).cores == 1.5
    assert Usage(0.0, 0.0, 0, 0).cores == 0.0


def _progress(batch: int | None, rows: int = 0, millis: int | None = None) -> Progress:
    return Progress("t", JobState.RUNNING, batch=batch, input_rows=rows, batch_millis=millis)


def test_batches_are_counted_by_their_numbers() -> None:
    seen = Activity()
    for progress in (_progress(None), _progress(7, 10, 500), _progress(7, 10, 500), _progress(10, 40, 200)):
        seen.see(progress)
    done = seen.jobs["t"]
    assert (done.rows, done.batches) == (40, 4)
    assert done.seconds == pytest.approx(0.5 + 3 * 0.2)


def test_a_job_that_never_ran_a_batch_did_nothing() -> None:
    seen = Activity()
    seen.see(_progress(None))
    assert seen.jobs["t"] == Done()
