"""Local servers without a server: the keeper, the pid file, and who is never ended. The JVM is in spark/."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from headrace.errors import EngineError
from headrace.runtime.spark import servers
from headrace.runtime.spark.servers import Server, Starting, Wanted, free_ports, kill, read, settings, stop

SLEEP = ["sleep", "60"]
ABOUT = '{"port": 1, "memory": "1g", "cores": 1}'
KEEPER = [sys.executable, "-m", "headrace.runtime.spark.servers"]


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that sleeps, in the place of a server."""
    monkeypatch.setattr(servers, "command", lambda wanted, environ: SLEEP)
    monkeypatch.setattr(servers, "_environment", dict)


def known(folder: Path) -> Server:
    found = read(folder)
    assert found is not None
    return found


def test_ports_are_free_and_differ() -> None:
    assert len(set(free_ports(20))) == 20


def test_ports_are_not_those_of_connections(tmp_path: Path) -> None:
    """A connection that has the port of a dead server keeps it from being started again."""
    given = tmp_path / "range"
    given.write_text("20000\t60999\n")
    assert all(15002 <= port < 20000 for port in free_ports(20, given))
    with socket.create_server(("127.0.0.1", free_ports(1, given)[0])) as taken:
        port = taken.getsockname()[1]
        given.write_text(f"{port + 1} 60999")
        assert port not in free_ports(5, given)


@pytest.mark.parametrize("text", ["1024 65535", "15004 60999", "", "?"])
def test_there_are_ports_where_all_are_those_of_connections(tmp_path: Path, text: str) -> None:
    given = tmp_path / "range"
    given.write_text(text)
    assert len(set(free_ports(5, given))) == 5 and 0 not in free_ports(5, given)


def test_a_server_is_reached_from_this_machine_only(tmp_path: Path) -> None:
    made = settings(Wanted("site1", tmp_path, 4711, "700m"))
    assert made["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert made["spark.connect.grpc.binding.port"] == "4711" and made["spark.driver.memory"] == "700m"
    assert made["spark.ui.enabled"] == "false"


def test_a_kept_server_lives_on_until_it_is_stopped(tmp_path: Path, no_spark: None) -> None:
    folder = tmp_path / "site1"
    with Starting(Wanted("site1", folder, 1), os.environ) as begun:
        until(lambda: read(folder) is not None)
        begun.check_alive()
        server = begun.keep()
    assert server.process() is not None and server.name == "site1"
    stop(server)
    assert not psutil.pid_exists(server.pid) and not folder.exists()


def test_its_workers_run_by_the_script_in_its_folder(
    tmp_path: Path, no_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    folder = tmp_path / "site1"
    with Starting(Wanted("site1", folder, 1), os.environ):
        until(lambda: read(folder) is not None)
        seen = known(folder).process()
        assert seen is not None and seen.environ()["PYSPARK_PYTHON"] == str(folder / "python")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with Starting(Wanted("site1", folder, 1), os.environ):
        until(lambda: read(folder) is not None)
        seen = known(folder).process()
        assert seen is not None and seen.environ()["PYSPARK_PYTHON"] == sys.executable


def test_without_java_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(_: object) -> dict[str, str]:
        raise EngineError("no Java was found")

    monkeypatch.setattr(servers, "_environment", no_java)
    with pytest.raises(EngineError):
        Starting(Wanted("site1", tmp_path / "site1", 1), os.environ)
    assert not list(tmp_path.iterdir())


def test_one_that_is_not_kept_leaves_nothing(tmp_path: Path, no_spark: None) -> None:
    folder = tmp_path / "site1"
    with pytest.raises(RuntimeError), Starting(Wanted("site1", folder, 1), os.environ):
        until(lambda: read(folder) is not None)
        pid = known(folder).pid
        raise RuntimeError
    assert not psutil.pid_exists(pid) and not folder.exists()


def test_one_that_gives_up_is_told_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "command", lambda *_: ["sh", "-c", "echo no port; exit 3"])
    monkeypatch.setattr(servers, "_environment", dict)
    folder = tmp_path / "site1"

    def gave_up() -> bool:
        try:
            begun.check_alive()
        except EngineError as error:
            return "no port" in error.detail
        return False

    with Starting(Wanted("site1", folder, 1), os.environ) as begun:
        until(gave_up)
    assert not folder.exists()


def test_a_killed_parent_leaves_nothing(tmp_path: Path) -> None:
    """kill -9 of whoever was starting a server: the keeper finds its pipe broken."""
    folder = tmp_path / "site1"
    (folder / "work").mkdir(parents=True)
    code = (
        "import subprocess, time\n"
        f"subprocess.Popen({[*KEEPER, str(folder), ABOUT, *SLEEP]!r}, stdin=subprocess.PIPE)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: read(folder) is not None)
    server = known(folder)
    assert server.process() is not None
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: server.process() is None and not folder.exists())


def test_the_keeper_writes_who_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.setattr("sys.stdin", io.StringIO("keep\n"))
    assert servers.keep_or_end(tmp_path, json.loads(ABOUT), SLEEP) == 0
    server = known(tmp_path)
    process = server.process()
    assert process is not None and process.name() == "sleep"
    assert kill(server) and not kill(server)
    assert read(tmp_path) == server


def test_a_process_that_took_over_the_number_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEP) as other:
        began = psutil.Process(other.pid).create_time()
        folder = tmp_path / "site1"
        folder.mkdir()
        about = {"pid": other.pid, "started": began - 100, **json.loads(ABOUT)}
        (folder / "server.json").write_text(json.dumps(about))
        server = known(folder)
        assert server.process() is None and not kill(server)
        stop(server)
        assert other.poll() is None and not folder.exists()
        other.kill()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_pid_file_that_cannot_be_read_is_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.json").write_text(text)
    assert read(tmp_path) is None
