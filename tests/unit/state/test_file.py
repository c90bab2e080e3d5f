"""Closing a state file that another thread is using."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from headrace.state.file import StateFile


class _File(StateFile):
    def write_slowly(self, begun: Event, go_on: Event) -> None:
        def work(db: sqlite3.Connection) -> None:
            begun.set()
            assert go_on.wait(30)
            db.execute("CREATE TABLE kept (a INTEGER)")

        self._transaction(work)

    def has_kept(self) -> bool:
        names = self._read(lambda db: db.execute("SELECT name FROM sqlite_master").fetchall())
        return ("kept",) in names


def test_closing_waits_for_the_transaction_of_another_thread(tmp_path: Path) -> None:
    begun, go_on = Event(), Event()
    file = _File(tmp_path / "state.db")
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(file.write_slowly, begun, go_on)
        assert begun.wait(30)
        closing = pool.submit(file.close)
        try:
            with pytest.raises(TimeoutError):
                closing.result(0.1)
        finally:
            go_on.set()
        writing.result(30)
        closing.result(30)
    with _File(tmp_path / "state.db") as again:
        assert again.has_kept()
