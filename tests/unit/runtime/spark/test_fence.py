"""The fence waits for the engine it knows, ends it if it stays, and leaves other processes alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from headrace.runtime.spark import fence
from headrace.runtime.spark.fence import Fence


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_an_engine_that_stays_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "_GRACE_SECONDS", 0.3)
    process = sleeper()
    Fence(tmp_path).raise_for(process.pid)
    Fence(tmp_path).clear()
    assert not psutil.pid_exists(process.pid)
    process.wait()
    assert not (tmp_path / "engine.pid").exists()


def test_an_engine_that_goes_is_waited_for(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.7)"])
    Fence(tmp_path).raise_for(process.pid)
    began = time.monotonic()
    Fence(tmp_path).clear()
    assert time.monotonic() - began > 0.2
    assert process.wait(timeout=5) == 0


def test_a_later_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    process = sleeper()
    try:
        started = psutil.Process(process.pid).create_time() - 100
        (tmp_path / "engine.pid").write_text(f"{process.pid} {started}")
        Fence(tmp_path).clear()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_no_engine_is_no_trouble(tmp_path: Path) -> None:
    Fence(tmp_path).clear()
    Fence(tmp_path).lower()
