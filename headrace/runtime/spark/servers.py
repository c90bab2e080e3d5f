"""Spark Connect servers on this machine, for development: each with a folder, a port, a log and a pid file.

    <folder>/server.json   who it is: process id, when that process began, port; from the first moment on
    <folder>/log           what Spark prints
    <folder>/python        what its workers run with (interpreter.py)
    <folder>/work/         its working directory, scratch and warehouse

A process id alone can be somebody else's by now; with the moment its process began it cannot.

A server is begun by a keeper, a small process of its own (this module, as a program), which holds on to a
pipe from us. It lets the server live on only when it is told so. Whatever happens to us before, kill -9
included, the pipe breaks, and the keeper ends the server and removes its folder: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from headrace.errors import EngineError
from headrace.runtime.files import write_json
from headrace.runtime.java import find_java
from headrace.runtime.spark.interpreter import worker_python

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_KEEP = "keep"
_ABSENT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
"""Settings of a user's own Spark that would turn ours into something else."""
_HOST = "127.0.0.1"
_GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _USUALLY_GIVEN = 15002, 32768
"""Of the ports that servers get; the first that systems usually give to connections."""
_STOP_SECONDS = 15.0
_LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class Wanted:
    """A server to start."""

    name: str
    folder: Path
    port: int
    memory: str = "1g"
    cores: int = 1


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started here. `started`: when its process began, in seconds since the epoch."""

    name: str
    folder: Path
    pid: int
    started: float
    port: int
    memory: str
    cores: int

    @property
    def address(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def process(self) -> psutil.Process | None:
        """The very process that was started, if it still runs."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            alive = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
            if alive and abs(process.create_time() - self.started) < 1.0:
                return process
        return None


def free_ports(count: int, given: Path = _GIVEN) -> list[int]:
    """Ports of the loopback that nobody listens on; all different: each is held until all are known.

    None that the system gives to connections, as long as there are others: while a server is dead, somebody's
    connection could have its port, and it could not be started again. A client that asks for the dead
    server can even be connected to itself. `given`: where the system says which it gives."""
    with contextlib.ExitStack() as held:
        any_port = held.enter_context(socket.create_server((_HOST, 0))).getsockname()[1]
        ours = max(_first_given(given) - _FIRST, 0)
        # Beginning anywhere: others may be looking for ports just now, too.
        wanted = [_FIRST + (any_port + number) % ours for number in range(ours)] + [0] * count
        found: list[int] = []
        for port in wanted:
            probe = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind((_HOST, port))
                found.append(int(probe.getsockname()[1]))
            if len(found) == count:
                break
        return found


def _first_given(given: Path) -> int:
    try:
        return int(given.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUALLY_GIVEN


def settings(wanted: Wanted, java_options: str = "") -> dict[str, str]:
    """Little of everything, reachable from this machine only."""
    work = wanted.folder / "work"
    return {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(wanted.port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": wanted.memory,
        "spark.driver.extraJavaOptions": java_options,
        "spark.local.dir": str(work / "scratch"),
        "spark.log.level": "WARN",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def command(wanted: Wanted, environ: Mapping[str, str]) -> list[str]:
    """Spark's Python package brings the Connect server; the launcher's process becomes the server's."""
    confs = settings(wanted, environ.get("HEADRACE_JAVA_OPTIONS", ""))
    flags = [part for key, value in confs.items() if value for part in ("--conf", f"{key}={value}")]
    submit = _spark_home() / "bin" / "spark-submit"
    return [str(submit), "--master", f"local[{wanted.cores}]", *flags, "--class", _MAIN, "spark-internal"]


def _spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name not in _ABSENT}
    return kept | {
        "SPARK_HOME": str(_spark_home()),
        "JAVA_HOME": str(find_java(environ).home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Starting:
    """A server that has been begun and is not ours to keep yet. Use as a context manager: it is gone at the
    end, unless `keep` was called."""

    def __init__(self, wanted: Wanted, environ: Mapping[str, str]) -> None:
        self.wanted = wanted
        # Asked first: where there is no Java, nothing is left.
        made = _environment(environ)
        if read(wanted.folder) is None:
            # What an `up` that was killed has left before its server was written down.
            shutil.rmtree(wanted.folder, ignore_errors=True)
        (wanted.folder / "work" / "scratch").mkdir(parents=True)
        # Workers must find what this process finds, Headrace itself included.
        made["PYSPARK_PYTHON"] = worker_python(wanted.folder, environ)
        about = json.dumps({"port": wanted.port, "memory": wanted.memory, "cores": wanted.cores})
        keeper = [sys.executable, "-m", __name__, str(wanted.folder), about, *command(wanted, environ)]
        self._keeper = subprocess.Popen(
            keeper,
            env=made,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C is for us; the keeper hears of it by its pipe.
            start_new_session=True,
        )

    def __enter__(self) -> Starting:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def check_alive(self) -> None:
        """Raises EngineError, with the end of its log, for a server that has given up."""
        server = read(self.wanted.folder)
        if self._keeper.poll() is None and (server is None or server.process() is not None):
            return
        raise EngineError(
            f"the Spark Connect server of {self.wanted.name} did not start",
            detail=log_end(self.wanted.folder),
            hint="Give it more memory (--memory 1g), or see what else runs on this machine.",
        )

    def keep(self) -> Server:
        """From now on the server lives by itself."""
        server = read(self.wanted.folder)
        if server is None or self._keeper.stdin is None:
            raise EngineError(f"the Spark Connect server of {self.wanted.name} did not start")
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.write(f"{_KEEP}\n")
            self._keeper.stdin.flush()
        if self._keeper.wait(timeout=_STOP_SECONDS):
            raise EngineError(f"the Spark Connect server of {self.wanted.name} was lost while it started")
        return server

    def abort(self) -> None:
        """End it, unless it was kept; returns once nothing is left of it."""
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._keeper.stdin.close()
        self._keeper.wait(timeout=2 * _STOP_SECONDS)


def read(folder: Path) -> Server | None:
    """The server of a folder; None: there is none. It may have died since."""
    try:
        data = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return Server(
            folder.name,
            folder,
            int(data["pid"]),
            float(data["started"]),
            int(data["port"]),
            str(data["memory"]),
            int(data["cores"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def servers(folder: Path) -> list[Server]:
    """All that were started in a folder of servers, dead ones too, by name."""
    found = [read(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []
    return [server for server in found if server is not None]


def stop(server: Server) -> None:
    """End the server, with the workers it has, and remove its folder. Nothing else is ever ended: a process
    that took over its number is left alone."""
    process = server.process()
    if process is not None:
        end(process)
    shutil.rmtree(server.folder, ignore_errors=True)


def kill(server: Server) -> bool:
    """kill -9, and wait until it is gone; whether there was anything to kill. The folder stays: `headrace
    sites` tells that it died."""
    process = server.process()
    if process is None:
        return False
    workers = _children(process)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
    _gone([process, *workers])
    return True


def end(process: psutil.Process) -> None:
    """Ask, wait, then insist. Python workers end when their server does; one that does not is ended too."""
    workers = _children(process)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
    _gone([process, *workers])


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _gone(processes: Sequence[psutil.Process]) -> None:
    _, left = psutil.wait_procs(processes, timeout=_STOP_SECONDS)
    for process in left:
        # psutil compares the time of creation again, so that this is never somebody else.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=_STOP_SECONDS)


def log_end(folder: Path) -> str:
    try:
        lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_LOG_LINES:])


def keep_or_end(folder: Path, about: Mapping[str, object], command: Sequence[str]) -> int:
    """The keeper: starts the server, writes down who it is, and waits for the word."""
    with (folder / "log").open("ab") as log:
        begun = subprocess.Popen(
            command, cwd=folder / "work", stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    process = psutil.Process(begun.pid)
    write_json(folder / "server.json", {**about, **asdict(_Identity(process.pid, process.create_time()))})
    if sys.stdin.readline().strip() == _KEEP and begun.poll() is None:
        return 0
    end(process)
    shutil.rmtree(folder, ignore_errors=True)
    return 1


@dataclass(frozen=True, slots=True)
class _Identity:
    pid: int
    started: float


if __name__ == "__main__":
    os._exit(keep_or_end(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]))
