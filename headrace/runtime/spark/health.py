"""Does a Spark Connect server answer? Asked with a deadline, in a session of its own.

Spark's own client has no deadlines and goes on trying for minutes, so the question goes straight through
gRPC: one row through a real Spark job, which a server that merely takes connections cannot give. The session
is released again; jobs of other sessions notice nothing.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from headrace.catalog.redact import redact
from headrace.errors import EngineError
from headrace.runtime.spark.causes import cause_of

PORT = 15002
"""Of a Spark Connect address that names none."""
USER = "headrace"
"""Whose sessions ours are, where the address does not say. Not the login: another may take them over."""
_AT_ONCE = 16


class SiteDown(EngineError):
    """A site that does not answer."""

    kind = "site down"

    def __init__(self, site: str, address: str, reason: str, since: str = "") -> None:
        silent = f" since {since}" if since else ""
        super().__init__(
            f"site {site} ({redact(address)}) does not answer{silent}",
            detail=reason,
            hint="Start it again. Its jobs go on from their checkpoints, there or at another site.",
        )
        self.site = site


@dataclass(frozen=True, slots=True)
class Health:
    """What one question found."""

    answers: bool
    seconds: float
    """Until the answer, or until it was given up."""
    version: str = ""
    """Of Spark."""
    reason: str = ""
    """Why there was no answer."""


def place(address: str) -> tuple[str, int]:
    """Host and port of an `sc://` address."""
    where = urlparse(address)
    return where.hostname or "", where.port or PORT


def knock(address: str, seconds: float) -> None:
    """Raises OSError where nobody takes a connection."""
    socket.create_connection(place(address), seconds).close()


def listens(address: str, seconds: float) -> bool:
    """Whether somebody takes a connection."""
    try:
        knock(address, seconds)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Checker:
    """Asks sites. `clock` counts seconds; `fresh` gives the id of a session that nobody has."""

    clock: Callable[[], float]
    fresh: Callable[[], str]

    def check(self, address: str, seconds: float) -> Health:
        """Ask one site; back after `seconds` at the latest, and a moment."""
        began = self.clock()
        try:
            # gRPC would wait for a name or a port that does not exist until its deadline.
            knock(address, seconds)
            _load_client()
            began = self.clock()
            version = _ask(address, self.fresh(), lambda: began + seconds - self.clock())
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            return Health(False, self.clock() - began, reason=reason)
        except Exception as error:
            return Health(False, self.clock() - began, reason=told(error))
        return Health(True, self.clock() - began, version)

    def check_all(self, addresses: Mapping[str, str], seconds: float) -> dict[str, Health]:
        """Ask several sites at once: a silent one does not keep the others."""
        if not addresses:
            return {}
        with ThreadPoolExecutor(min(len(addresses), _AT_ONCE)) as pool:
            found = pool.map(lambda address: self.check(address, seconds), addresses.values())
            return dict(zip(addresses, found, strict=True))


class Wire:
    """A session of a Spark Connect server by bare gRPC: every call has the same deadline and is tried once.
    Naming the id of a session that is there takes it over; any other id opens a new one."""

    def __init__(self, address: str, session: str, left: Callable[[], float]) -> None:
        import pyspark.sql.connect.proto as messages
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

        self._messages: Any = messages
        self._left = left
        builder = DefaultChannelBuilder(address)
        who = messages.UserContext(user_id=builder.userId or USER)
        self._mine: dict[str, Any] = {"session_id": session, "user_context": who}
        self._metadata = list(builder.metadata())
        self._channel = builder.toChannel()
        self._stub: Any = SparkConnectServiceStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def _how(self) -> dict[str, Any]:
        return {"timeout": max(self._left(), 0.05), "metadata": self._metadata}

    def execute(self, fill: Callable[[Any], None]) -> list[Any]:
        """Run the plan that `fill` writes into the message; all replies."""
        request = self._messages.ExecutePlanRequest(**self._mine)
        fill(request.plan)
        return list(self._stub.ExecutePlan(request, **self._how()))

    def version(self) -> str:
        request = self._messages.AnalyzePlanRequest(**self._mine)
        request.spark_version.SetInParent()
        return str(self._stub.AnalyzePlan(request, **self._how()).spark_version.version)

    def release(self) -> None:
        """End the session, and with it all that runs in it."""
        self._stub.ReleaseSession(self._messages.ReleaseSessionRequest(**self._mine), **self._how())


def _load_client() -> None:
    """Spark's client takes a second to import, which is not the site's fault."""
    importlib.import_module("pyspark.sql.connect.client")


def _ask(address: str, session: str, left: Callable[[], float]) -> str:
    """The version of a server that has run a job for us."""

    def one_row(plan: Any) -> None:
        plan.root.range.end, plan.root.range.step = 1, 1

    with Wire(address, session, left) as wire:
        rows = sum(reply.arrow_batch.row_count for reply in wire.execute(one_row))
        if rows != 1:
            raise EngineError(f"it answers {rows} rows where one was asked for")
        version = wire.version()
        wire.release()
        return version


def told(error: Exception) -> str:
    """What gRPC or Spark says, in a line, without its stack."""
    return cause_of(error, 300)
