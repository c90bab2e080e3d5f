"""Sessions on Spark Connect servers outlive the process that opened them: who opened which is on disk.

A killed Headrace leaves its streaming queries running on the servers, and a new one that started them again
would write into the same checkpoints. So the id of every session is written down before it is opened, in
.headrace/engines/ID.json. A new run takes each of these sessions over, stops what runs in it, and ends it.
A session that was ended, or whose server was started anew, has nothing running.

A server elsewhere that is silent is taken for dead after a while, and its sessions are buried: nobody waits
for them any more. It may only have been cut off, so they stay written down, and are ended once it answers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.catalog.redact import redact
from headrace.errors import EngineError
from headrace.runtime.files import sync_folder, write_json
from headrace.runtime.spark.health import USER, Wire, told

_CLOSED = "SESSION_CLOSED"
_BURIED = "buried"


@dataclass(frozen=True, slots=True)
class Left:
    """A session that may still be open. `address` is without secrets; `since` is when it was written down,
    in seconds since the epoch."""

    session: str
    address: str
    since: float = 0.0


class Ledger:
    """The sessions of one project."""

    def __init__(self, folder: Path, fresh: Callable[[], str]) -> None:
        """`folder` is the project's .headrace; `fresh` gives the id of a session that nobody has."""
        self._folder, self.fresh = folder / "engines", fresh

    def begin(self, session: str, endpoint: str) -> None:
        """Before it is opened."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_json(self._path(session), {"session": session, "address": redact(endpoint)})

    def end(self, session: str) -> None:
        """Once nothing runs in it."""
        self._path(session).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            sync_folder(self._folder)

    def bury(self, left: Left) -> None:
        """Its site is taken for dead."""
        about = {"session": left.session, "address": left.address, _BURIED: True}
        write_json(self._path(left.session), about)

    def left(self) -> list[Left]:
        """Those that are not buried."""
        return [left for left, is_buried in self._all() if not is_buried]

    def buried(self) -> list[Left]:
        return [left for left, is_buried in self._all() if is_buried]

    def _all(self) -> Iterator[tuple[Left, bool]]:
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                data = json.loads(path.read_text(encoding="utf-8"))
                left = Left(str(data["session"]), str(data["address"]), path.stat().st_mtime)
                yield left, bool(data.get(_BURIED))

    def _path(self, session: str) -> Path:
        return self._folder / f"{session}.json"


def address_of(left: Left, endpoints: Iterable[str]) -> str:
    """Where to reach a session: with the secrets of the endpoint that it was opened by."""
    return next((one for one in endpoints if redact(one) == left.address), left.address)


def named(address: str, session: str) -> str:
    """The address of one session, for Spark's client; of one user always, so that it can be taken over."""
    joined = address if "/;" in address else f"{address.rstrip('/')}/"
    who = "" if ";user_id=" in address else f";user_id={USER}"
    return f"{joined.rstrip(';')};session_id={session}{who}"


def stop_all(address: str, session: str, left: Callable[[], float]) -> list[str]:
    """Stop every streaming query of a session, and end the session; the names of those that ran. Returns only
    when they are stopped: Spark's stop waits for the thread of the query. Raises EngineError when it cannot
    be done before the deadline."""
    with _blaming(address), Wire(address, session, left) as wire:
        stopped = [_stop(wire, query) for query in _active(wire)]
        if _active(wire):
            raise EngineError(f"queries of an earlier run do not stop at {redact(address)}")
        wire.release()
        return stopped
    return []


def stop_named(address: str, session: str, name: str, left: Callable[[], float]) -> None:
    """Stop the streaming query of that name in a session that stays open. Raises as `stop_all` does."""
    with _blaming(address), Wire(address, session, left) as wire:
        for query in _active(wire):
            if query.name == name:
                _stop(wire, query)
        if any(query.name == name for query in _active(wire)):
            raise EngineError(f"query {name} does not stop at {redact(address)}")


@contextlib.contextmanager
def _blaming(address: str) -> Iterator[None]:
    """Errors of gRPC as ours; a session that is closed has nothing running, which is what was wanted."""
    try:
        yield
    except EngineError:
        raise
    except Exception as error:
        if _CLOSED not in str(error):
            raise EngineError(
                f"queries of an earlier run cannot be stopped at {redact(address)}", detail=told(error)
            ) from error


def _active(wire: Wire) -> list[Any]:
    def ask(plan: Any) -> None:
        plan.command.streaming_query_manager_command.active = True

    for reply in wire.execute(ask):
        if reply.HasField("streaming_query_manager_command_result"):
            return list(reply.streaming_query_manager_command_result.active.active_queries)
    return []


def _stop(wire: Wire, query: Any) -> str:
    def ask(plan: Any) -> None:
        plan.command.streaming_query_command.query_id.CopyFrom(query.id)
        plan.command.streaming_query_command.stop = True

    wire.execute(ask)
    return str(query.name)
