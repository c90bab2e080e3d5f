"""Spark sessions: one classic session in this process, and any number of Spark Connect sessions.

A process can hold one SparkContext, so all sites with a master URL (`local[2]`, `spark://...`) of one run
must name the same master; `sc://` sites are remote and independent. Spark's own client goes on trying for
minutes where a server does not answer; here it gives up within seconds, so that jobs of a dead site are known
to have failed while there is time to start them elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.catalog.redact import redact
from headrace.errors import EngineError, NotSupported, SiteSilent
from headrace.runtime.java import find_java
from headrace.runtime.spark.causes import cause_of
from headrace.runtime.spark.health import knock, listens
from headrace.runtime.spark.remote import Ledger, named

Session = Any
"""A classic or Connect SparkSession: the same methods, different classes."""

_PATIENCE = 5.0
"""Seconds in which a Spark Connect server must take a connection, and let a session go."""
_RETRIES, _LONGEST_WAIT = 5, 1000
"""How often a call that finds nobody is tried again; the longest wait between, in ms. 3 s in all."""
_DYING_SECONDS = 2.0
"""From the end of a JVM's connections to its own."""
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
_CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_LOGGING = Path(__file__).with_name("log4j2.properties")


def settings(shuffle_partitions: int) -> dict[str, str]:
    """What every session is set to, remote ones included."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # A query's text is the user's: `${...}` in it is not ours to replace.
        "spark.sql.variable.substitute": "false",
        # The default (INT96) is read as nanoseconds by most, which wrap around before 1678 and after 2262.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # The default polls an idle source a hundred times a second, for every query.
        "spark.sql.streaming.pollingDelay": "50ms",
    }


def checkpoint_settings(version: str) -> dict[str, str]:
    """For a Spark of this version. What jobs keep is in folders, and the manager that Spark takes for those
    by itself starts a process (`readlink`) for each file that it looks at, dozens in a batch of a join. This
    one renames as the other does, and looks first whether the name is taken, as the other does too."""
    import pyspark

    ours, theirs = (one.split(".")[:2] for one in (pyspark.__version__, version))
    # Elsewhere the class may have another name, and no query would start.
    return {_CHECKPOINTS: _BY_FILE_SYSTEM} if ours == theirs else {}


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


@dataclass(slots=True)
class _Open:
    session: Session
    ledger: Ledger | None = None


class Sessions:
    """Opens sessions by endpoint and closes them all."""

    def __init__(self, environ: Mapping[str, str], *, scratch: Path, memory: str = "2g") -> None:
        self._environ = environ
        self._scratch = scratch
        self._memory = memory
        self._open: dict[str, _Open] = {}
        self._opening: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        """By endpoint: of two threads that ask for the same session only one opens it."""
        self._closing = threading.Lock()
        self._closed = False
        self._master: str | None = None
        self.engine_pid: int | None = None
        """The JVM that this process started, if any."""

    def get(self, endpoint: str, shuffle_partitions: int, ledger: Ledger | None = None) -> Session:
        """The session of an endpoint, opened on first use, and anew where its server was started anew. A
        remote one is written into the ledger before. Raises UserError where it cannot be opened, and
        EngineError once all are closed: a thread may still be at it when a run ends."""
        with self._opening[endpoint]:
            return self._get(endpoint, shuffle_partitions, ledger)

    def _get(self, endpoint: str, shuffle_partitions: int, ledger: Ledger | None) -> Session:
        if self._closed:
            raise _over()
        known = self._open.get(endpoint)
        remote = endpoint.startswith("sc://")
        if known is not None and (_is_usable(known.session) if remote else not engine_died(known.session)):
            return _made_current(known.session) if remote else known.session
        if known is not None and remote:
            self.forget(endpoint)
        elif known is not None:
            del self._open[endpoint]
            _bury(known.session)
        session = self._connect(endpoint, ledger) if remote else self._classic(endpoint, shuffle_partitions)
        wanted = settings(shuffle_partitions) | checkpoint_settings(str(session.version))
        for key, value in wanted.items():
            session.conf.set(key, value)
        self._keep(endpoint, _Open(session, ledger if remote else None))
        return session

    def _keep(self, endpoint: str, opened: _Open) -> None:
        """Raises EngineError, and ends it, where all others were closed meanwhile."""
        with self._closing:
            if not self._closed:
                self._open[endpoint] = opened
                return
        _end(endpoint, opened)
        raise _over()

    def forget(self, endpoint: str) -> None:
        """A remote session of which nothing more is expected. It stays in the ledger: what may still run in
        it is for the fence to find."""
        gone = self._open.pop(endpoint, None)
        if gone is not None:
            _let_go(gone.session)

    def sessions(self, endpoint: str) -> list[str]:
        """The id of the remote session that is open here, if any."""
        known = self._open.get(endpoint)
        return [] if known is None or known.ledger is None else [str(known.session.session_id)]

    def _classic(self, master: str, shuffle_partitions: int) -> Session:
        if self._master is not None and self._master != master:
            raise NotSupported(
                f"one process cannot use two Spark masters: {self._master} and {master}",
                hint="Give sites with a master the same endpoint, or use Spark Connect (sc://).",
            )
        os.environ.pop(_CONNECT_MODE, None)
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
            raise EngineError(f"Spark did not start on {master}", detail=cause_of(error)) from error
        session.sparkContext.setLogLevel("ERROR")
        _hush_workers(session, self._scratch / "workers.log")
        process = getattr(session.sparkContext._gateway, "proc", None)
        self.engine_pid = process.pid if process is not None else None
        self._master = master
        return session

    def _connect(self, address: str, ledger: Ledger | None) -> Session:
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession

        remote = address
        try:
            knock(address, _PATIENCE)
            if ledger is not None:
                fresh = ledger.fresh()
                ledger.begin(fresh, address)
                remote = named(address, fresh)
            session: Session = SparkSession.builder.remote(remote).create()
            session.client.set_retry_policies(
                [DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_WAIT, max_server_retry_delay=1000)]
            )
            _ = session.version
        except Exception as error:
            if ledger is not None and remote != address:
                ledger.end(fresh)
            raise SiteSilent(
                f"no Spark Connect server answers at {redact(address)}",
                detail=cause_of(error),
                hint="Start the server, or change the endpoint of the site in headrace.yaml.",
            ) from error
        return _made_current(session)

    def close(self) -> None:
        """For good: what is being opened just now is ended by who opens it."""
        with self._closing:
            self._closed = True
            opened = list(self._open.items())
            self._open.clear()
        for endpoint, one in opened:
            _end(endpoint, one)
        self._master = None


def _over() -> EngineError:
    return EngineError("the run is over, and opens no more sessions")


def _end(endpoint: str, opened: _Open) -> None:
    if endpoint.startswith("sc://"):
        _leave(endpoint, opened)
        return
    # A JVM that died, or was killed with us, cannot be told to stop, and need not be.
    with contextlib.suppress(OSError, *_gone()):
        opened.session.stop()


def _leave(address: str, opened: _Open) -> None:
    """End a remote session; where nobody answers, it stays in the ledger, for the next run to end."""
    if not listens(address, _PATIENCE):
        opened.session.release_session_on_close = False
    ended = _within(_PATIENCE, opened.session.stop) and opened.session.release_session_on_close
    if ended and opened.ledger is not None:
        opened.ledger.end(str(opened.session.session_id))


def _let_go(session: Session) -> None:
    """As its `stop`, but nobody waits: Spark's client tells a server again and again which replies it does
    not need any more, and a job that is to go on elsewhere would stand still until it gives up."""
    from pyspark.sql.connect.session import SparkSession

    session.release_session_on_close = False
    if SparkSession._default_session is session:
        SparkSession._default_session = None
    if getattr(SparkSession._active_session, "session", None) is session:
        SparkSession._active_session.session = None

    def close() -> None:
        with contextlib.suppress(Exception):
            session.client.close()

    threading.Thread(target=close, daemon=True).start()


def _made_current(session: Session) -> Session:
    """A few things of Spark's client, such as types written as text, go to the session that is current in the
    thread, and only in a mode that is the process's: that of Connect, unless there is a classic session."""
    from pyspark import SparkContext
    from pyspark.sql.connect.session import SparkSession

    if SparkContext._active_spark_context is None:
        os.environ[_CONNECT_MODE] = "1"
    SparkSession._active_session.session = session
    return session


def engine_died(session: Session, error: BaseException | None = None) -> bool:
    """Whether the JVM that this process started for a session has ended. `error` is what was met: who finds
    its connection closed may know it before the system does."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return False
    process = getattr(session.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_SECONDS if isinstance(error, (OSError, *_gone())) else 0.0)
    return process.returncode is not None


def _bury(session: Session) -> None:
    """Have Spark's client start another JVM when it is asked for a session: it keeps the one that died."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.sparkContext.stop()
    with contextlib.suppress(Exception):
        session.sparkContext._gateway.shutdown_callback_server()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _is_usable(session: Session) -> bool:
    """Whether the server still has the session: one that was started anew has not."""
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception:
        return False
    return True


def _within(seconds: float, call: Any) -> bool:
    """Whether a call came back in time, and well. Calls to a server that hangs never come back: the thread is
    left to end with the process."""
    done: list[bool] = []

    def run() -> None:
        with contextlib.suppress(Exception):
            call()
            done.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(done)


def _hush_workers(session: Session, log: Path) -> None:
    """Spark passes on what its Python workers print to the JVM's stderr, which is the user's terminal, and
    some of them print at every start. Spark's own log was opened before and stays; what goes wrong in a
    worker comes as an error of its task."""
    java = session.sparkContext._jvm.java
    java.lang.System.setErr(java.io.PrintStream(java.io.FileOutputStream(str(log), True), True))


def _gone() -> tuple[type[Exception], ...]:
    """What a session throws when its JVM is no longer there, besides errors of the system."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    return (Py4JError,)
