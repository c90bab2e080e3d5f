"""Sessions that are closed while a thread opens another: all are ended, and none is left."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.runtime.spark import session as sessions
from headrace.runtime.spark.session import Sessions


class Remote:
    """As much of a session as it takes to open one and to end it."""

    version = "0.0"

    def __init__(self) -> None:
        self.conf, self.stopped, self.release_session_on_close = self, False, True

    def set(self, key: str, value: str) -> None:
        pass

    def stop(self) -> None:
        self.stopped = True


def test_a_session_that_comes_up_while_all_are_closed_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Remote] = {}
    opening, closed = threading.Event(), threading.Event()

    def connect(self: Sessions, address: str, ledger: object) -> Remote:
        if address == "sc://late:1":
            opening.set()
            assert closed.wait(60)
        return made.setdefault(address, Remote())

    monkeypatch.setattr(Sessions, "_connect", connect)
    monkeypatch.setattr(sessions, "checkpoint_settings", lambda version: {})
    monkeypatch.setattr(sessions, "listens", lambda address, seconds: True)
    found, told = Sessions({}, scratch=tmp_path), list[str]()
    for address in ("sc://a:1", "sc://b:1"):
        found.get(address, 1)

    def rehearse() -> None:
        try:
            found.get("sc://late:1", 1)
        except EngineError as error:
            told.append(error.message)

    thread = threading.Thread(target=rehearse)
    thread.start()
    assert opening.wait(60)
    found.close()
    closed.set()
    thread.join(60)
    assert {address: one.stopped for address, one in made.items()} == {
        "sc://a:1": True,
        "sc://b:1": True,
        "sc://late:1": True,
    }
    assert told == ["the run is over, and opens no more sessions"]
    with pytest.raises(EngineError, match="the run is over"):
        found.get("sc://a:1", 1)


def test_closing_goes_through_all_while_another_comes_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes just while the first is ended."""
    ended: list[str] = []
    found = Sessions({}, scratch=tmp_path)

    def leave(address: str, opened: object) -> None:
        ended.append(address)
        if address == "sc://a:1":
            with pytest.raises(EngineError, match="the run is over"):
                found._keep("sc://c:1", sessions._Open(Remote()))

    monkeypatch.setattr(sessions, "_leave", leave)
    for address in ("sc://a:1", "sc://b:1"):
        found._keep(address, sessions._Open(Remote()))
    found.close()
    assert ended == ["sc://a:1", "sc://c:1", "sc://b:1"]
