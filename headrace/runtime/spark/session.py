"""Spark sessions: one classic session in this process, and any number of Spark Connect sessions.

A process can hold one SparkContext, so all sites with a master URL (`local[2]`, `spark://...`) of one run
must name the same master; `sc://` sites are remote and independent.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from headrace.catalog.redact import redact
from headrace.errors import EngineError, NotSupported, UserError
from headrace.runtime.java import find_java

Session = Any
"""A classic or Connect SparkSession: the same methods, different classes."""

_CONNECT_PORT = 15002
_PATIENCE = 5.0
"""Seconds in which a Spark Connect server must take a connection."""
_LOGGING = Path(__file__).with_name("log4j2.properties")


def settings(shuffle_partitions: int) -> dict[str, str]:
    """What every session is set to, remote ones included."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # A query's text is the user's: `${...}` in it is not ours to replace.
        "spark.sql.variable.substitute": "false",
        # The default polls an idle source a hundred times a second, for every query.
        "spark.sql.streaming.pollingDelay": "50ms",
    }


def _static_settings(memory: str, logs: Path, java_options: str) -> dict[str, str]:
    options = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} {java_options}".strip()
    return {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.scheduler.mode": "FAIR",
        "spark.driver.extraJavaOptions": options,
        "spark.sql.warehouse.dir": str(logs / "warehouse"),
        "spark.sql.ui.explainMode": "simple",
        "spark.ui.showConsoleProgress": "false",
    }


class Sessions:
    """Opens sessions by endpoint and closes them all."""

    def __init__(self, environ: Mapping[str, str], *, scratch: Path, memory: str = "2g") -> None:
        self._environ = environ
        self._scratch = scratch
        self._memory = memory
        self._open: dict[str, Session] = {}
        self._master: str | None = None
        self.engine_pid: int | None = None
        """The JVM that this process started, if any."""

    def get(self, endpoint: str, shuffle_partitions: int) -> Session:
        """The session of an endpoint, opened on first use. Raises UserError where it cannot be."""
        if endpoint in self._open:
            return self._open[endpoint]
        remote = endpoint.startswith("sc://")
        session = self._connect(endpoint) if remote else self._classic(endpoint, shuffle_partitions)
        for key, value in settings(shuffle_partitions).items():
            session.conf.set(key, value)
        self._open[endpoint] = session
        return session

    def _classic(self, master: str, shuffle_partitions: int) -> Session:
        if self._master is not None and self._master != master:
            raise NotSupported(
                f"one process cannot use two Spark masters: {self._master} and {master}",
                hint="Give sites with a master the same endpoint, or use Spark Connect (sc://).",
            )
        java = find_java(self._environ)
        os.environ["JAVA_HOME"] = str(java.home)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("headrace")
        java_options = self._environ.get("HEADRACE_JAVA_OPTIONS", "")
        if master.startswith("local"):
            # Nobody else has to reach this driver; workers of a cluster do.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        every = _static_settings(self._memory, self._scratch, java_options) | settings(shuffle_partitions)
        for key, value in every.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except Exception as error:
            raise EngineError(f"Spark did not start on {master}", detail=_first_line(error)) from error
        session.sparkContext.setLogLevel("ERROR")
        _hush_workers(session, self._scratch / "workers.log")
        process = getattr(session.sparkContext._gateway, "proc", None)
        self.engine_pid = process.pid if process is not None else None
        self._master = master
        return session

    def _connect(self, address: str) -> Session:
        from pyspark.sql.connect.session import SparkSession

        try:
            # The client itself would go on trying for minutes.
            _knock(address)
            session: Session = SparkSession.builder.remote(address).create()
            _ = session.version
        except Exception as error:
            raise UserError(
                f"no Spark Connect server answers at {redact(address)}",
                detail=_first_line(error),
                hint="Start the server, or change the endpoint of the site in headrace.yaml.",
            ) from error
        return session

    def close(self) -> None:
        for endpoint, session in self._open.items():
            if endpoint.startswith("sc://") and not _answers(endpoint):
                # There is nobody to release the session, and the client would go on trying for minutes.
                session.release_session_on_close = False
            # A JVM that died, or was killed with us, cannot be told to stop, and need not be.
            with contextlib.suppress(OSError, *_gone()):
                session.stop()
        self._open.clear()
        self._master = None


def _hush_workers(session: Session, log: Path) -> None:
    """Spark passes on what its Python workers print to the JVM's stderr, which is the user's terminal, and
    some of them print at every start. Spark's own log was opened before and stays; what goes wrong in a
    worker comes as an error of its task."""
    java = session.sparkContext._jvm.java
    java.lang.System.setErr(java.io.PrintStream(java.io.FileOutputStream(str(log), True), True))


def _gone() -> tuple[type[Exception], ...]:
    """What a session throws when its JVM is no longer there."""
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    return (Py4JNetworkError,)


def _knock(address: str) -> None:
    """Raises OSError where nobody takes a connection."""
    where = urlparse(address)
    socket.create_connection((where.hostname, where.port or _CONNECT_PORT), _PATIENCE).close()


def _answers(address: str) -> bool:
    try:
        _knock(address)
    except OSError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:500]
