"""The lock against real other processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.errors import InternalError, UserError
from headrace.state.lock import RunLock

HOLD = """
import sys, time
from pathlib import Path
from headrace.state.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
TRY = """
import sys
from pathlib import Path
from headrace.errors import UserError
from headrace.state.lock import RunLock
try:
    RunLock(Path(sys.argv[1])).acquire()
except UserError as error:
    print(error.message)
    sys.exit(error.exit_code)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".headrace" / "run.lock"


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_another_process_is_named(path: Path) -> None:
    with holder(path) as process:
        with pytest.raises(UserError, match=f"process {process.pid} is running this project") as caught:
            RunLock(path).acquire()
        assert f"kill {process.pid}" in caught.value.hint and str(path) in caught.value.detail


def test_this_process_refuses_another(path: Path) -> None:
    with RunLock(path):
        tried = subprocess.run(
            [sys.executable, "-c", TRY, str(path)], capture_output=True, text=True, check=False
        )
        assert tried.returncode == 2
        assert "is running this project already" in tried.stdout
    again = subprocess.run([sys.executable, "-c", TRY, str(path)], check=False)
    assert again.returncode == 0


def test_kill_9_releases(path: Path) -> None:
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=10) == -9
        with RunLock(path):
            pass


def test_a_normal_end_releases(path: Path) -> None:
    with holder(path) as process:
        process.communicate("go on\n", timeout=10)
        with RunLock(path):
            pass


def test_two_in_one_process(path: Path) -> None:
    with RunLock(path), pytest.raises(UserError, match="is running this project already"):
        RunLock(path).acquire()
    with RunLock(path):
        pass


def test_an_error_inside_releases(path: Path) -> None:
    with pytest.raises(KeyError), RunLock(path):
        raise KeyError
    RunLock(path).acquire()


def test_twice_is_our_bug(path: Path) -> None:
    lock = RunLock(path)
    lock.acquire()
    with pytest.raises(InternalError):
        lock.acquire()
    lock.release()
    lock.release()


def test_other_projects_are_free(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a"), RunLock(tmp_path / "b"):
        pass


def test_unusable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be opened"):
        RunLock(tmp_path / "file" / "run.lock").acquire()


def test_what_the_holder_does(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    assert RunLock.holder(path) is None
    assert not path.exists()
    with RunLock(path, "drain"):
        assert RunLock.holder(path) == "drain"
        with pytest.raises(UserError, match=rf"process {os.getpid()} is running"):
            RunLock(path).acquire()
    assert RunLock.holder(path) is None
    with RunLock(path):
        assert RunLock.holder(path) == ""


def test_looking_does_not_keep_a_run_from_starting(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    path.touch()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.002):
            RunLock.holder(path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            with RunLock(path):
                pass
    finally:
        stop.set()
        looking.join()
