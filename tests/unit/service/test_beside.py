"""Calls beside a loop: a few at once, each answered, and none that keeps the process from ending."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from headrace.service.beside import Beside


def test_every_call_is_answered_and_few_run_at_once() -> None:
    beside: Beside[int] = Beside(2)
    running, most, lock = 0, 0, threading.Lock()

    def call(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1
        return number

    answers = [beside.submit(call, number) for number in range(12)]
    assert [answer.result(10) for answer in answers] == list(range(12))
    assert most == 2
    beside.close()


def test_what_a_call_raises_is_its_answer_and_the_next_one_runs() -> None:
    beside: Beside[float] = Beside(1)
    with pytest.raises(ZeroDivisionError):
        beside.submit(lambda: 1 / 0).result(10)
    assert beside.submit(lambda: 1 / 2).result(10) == 0.5
    beside.close()


def test_what_waits_is_given_up_when_it_is_closed() -> None:
    beside: Beside[bool] = Beside(1)
    begun, go = threading.Event(), threading.Event()

    def hold() -> bool:
        begun.set()
        return go.wait(10)

    first = beside.submit(hold)
    assert begun.wait(10)
    second = beside.submit(lambda: True)
    beside.close()
    assert second.cancelled()
    go.set()
    assert first.result(10)


def test_the_process_ends_though_a_call_hangs() -> None:
    text = (
        "import threading; from headrace.service.beside import Beside\n"
        "begun, b = threading.Event(), Beside(1)\n"
        "b.submit(lambda: (begun.set(), threading.Event().wait())); begun.wait(); b.close(); print('over')"
    )
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=50)
    assert ended.stdout == "over\n" and ended.returncode == 0
