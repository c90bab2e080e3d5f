"""One SQLite file that several processes may have open: transactions, and errors that name the file.

Each call is one transaction. A kill at any moment keeps every call that returned; a power cut may lose the
last ones (WAL, synchronous NORMAL), which is harmless for what was observed, since what was delivered is
known from the jobs' own checkpoints. What is promised to a user is written through to the disk (`durable`).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from headrace.errors import StateUnusable, UserError
from headrace.state.schema import VERSION, migrate

T = TypeVar("T")

_BUSY_SECONDS = 10.0
_TRIES = 20


class StateFile:
    """Use as a context manager, or call `close`."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. Raises UserError if it cannot be used."""
        self._path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{path.parent} cannot be made: {error.strerror}") from None
        with self._blaming_the_file():
            self._db = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """A thread may be within a transaction: closing under it would crash the process."""
        with self._lock:
            self._db.close()

    def _prepare(self) -> None:
        with self._blaming_the_file():
            if self._db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                # In a transaction: two processes that find a new file must not both make the tables.
                self._transaction(self._make_tables)
            self._use_wal()
            self._db.execute("PRAGMA synchronous = NORMAL")

    def _use_wal(self) -> None:
        """Changing the journal does not wait while another process writes, as a transaction does."""
        for _ in range(_TRIES):
            if self._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                return
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError:
                self._transaction(lambda _: None)
        self._db.execute("PRAGMA journal_mode = WAL")

    def _make_tables(self, db: sqlite3.Connection) -> None:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise UserError(
                f"{self._path} was written by a newer Headrace (format {version}, this one knows {VERSION})",
                hint="Use the newer Headrace, or move the file away to begin anew.",
            )
        if version < VERSION:
            migrate(db, version)

    def _transaction(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = False) -> T:
        """Do the work whole or not at all. The write lock is taken at once, so it never fails half-way."""
        with self._lock, self._blaming_the_file():
            if durable:
                self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._db)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    self._db.execute("PRAGMA synchronous = NORMAL")
        return result

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Look at several tables as they were at one moment."""
        with self._lock, self._blaming_the_file():
            self._db.execute("BEGIN")
            try:
                return work(self._db)
            finally:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _blaming_the_file(self) -> Iterator[None]:
        """SQLite's errors about the file, as errors that say which file and what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            busy = "locked" in str(error)
            hint = "Another process holds it; try again." if busy else "Check the disk and the permissions."
            raise StateUnusable(f"the state file {self._path} cannot be used: {error}", hint=hint) from None
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            raise UserError(
                f"the state file {self._path} is damaged: {error}",
                hint="Move it away and run with --fresh: which query runs in which tree was kept there.",
            ) from None
