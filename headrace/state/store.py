"""What is wanted of each job and what was last seen of it, in one SQLite file that survives a restart.

Desired and observed are two fields that never overwrite each other: `want` writes the first, `observe`
the second. A job that is wanted with another fingerprint is another job: what was observed is forgotten.
Several processes may have the file open; each call is one transaction. A kill at any moment keeps every
call that returned; a power cut may lose the last ones (WAL, synchronous NORMAL), which is harmless since
what was delivered is known from the jobs' own checkpoints.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

from headrace.errors import InternalError, UserError

VERSION = 1
"""Of the tables below; kept in the file as PRAGMA user_version. 0 is a file that was just made."""

Desired = Literal["running", "drained", "stopped"]
T = TypeVar("T")

_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    query TEXT NOT NULL,
    site TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    desired TEXT NOT NULL CHECK (desired IN ('running', 'drained', 'stopped')),
    observed TEXT,
    batch INTEGER,
    input_rows INTEGER NOT NULL DEFAULT 0,
    output_rows INTEGER NOT NULL DEFAULT 0,
    late_rows INTEGER NOT NULL DEFAULT 0,
    watermark INTEGER,
    error TEXT NOT NULL DEFAULT '',
    started TEXT,
    updated TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job. None: never observed. 0: observed and silent."""

    id: str
    query: str
    site: str
    fingerprint: str
    desired: Desired
    observed: str | None
    """A `JobState` as text."""
    batch: int | None
    input_rows: int
    output_rows: int
    late_rows: int
    watermark: int | None
    """Event time in microseconds."""
    error: str
    started: str | None
    """When it was last wanted running or drained (ISO, UTC); None: never."""
    updated: str


_COLUMNS = ", ".join(field.name for field in fields(JobRecord))


class Store:
    """The state file of one project. Use as a context manager, or call `close`."""

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
        self._db.close()

    def want(self, job_id: str, query: str, site: str, fingerprint: str, desired: Desired, now: str) -> None:
        """Say what should become of a job. `now` is ISO text in UTC."""

        def write(db: sqlite3.Connection) -> None:
            known = db.execute("SELECT fingerprint, started FROM jobs WHERE id = ?", (job_id,)).fetchone()
            if known is not None and known[0] != fingerprint:
                db.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
            started = now if desired != "stopped" else known[1] if known else None
            db.execute(
                "INSERT INTO jobs (id, query, site, fingerprint, desired, started, updated)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET query = excluded.query,"
                " site = excluded.site, desired = excluded.desired, started = excluded.started,"
                " updated = excluded.updated",
                (job_id, query, site, fingerprint, desired, started, now),
            )

        self._transaction(write)

    def observe(
        self,
        job_id: str,
        observed: str,
        batch: int | None,
        input_rows: int,
        output_rows: int,
        late_rows: int,
        watermark: int | None,
        error: str,
        now: str,
    ) -> None:
        """Keep what was seen of a job that was wanted before."""
        values = (observed, batch, input_rows, output_rows, late_rows, watermark, error, now, job_id)

        def write(db: sqlite3.Connection) -> int:
            return db.execute(
                "UPDATE jobs SET observed = ?, batch = ?, input_rows = ?, output_rows = ?, late_rows = ?,"
                " watermark = ?, error = ?, updated = ? WHERE id = ?",
                values,
            ).rowcount

        if self._transaction(write) == 0:
            raise InternalError(f'job "{job_id}" was observed but never wanted')

    def get(self, job_id: str) -> JobRecord | None:
        found = self._select("WHERE id = ?", (job_id,))
        return found[0] if found else None

    def all(self) -> tuple[JobRecord, ...]:
        """Every job, by id."""
        return self._select("ORDER BY id", ())

    def forget(self, job_id: str) -> None:
        """Remove a job; nothing happens if it is not there."""
        self._transaction(lambda db: db.execute("DELETE FROM jobs WHERE id = ?", (job_id,)))

    def _select(self, rest: str, values: Sequence[str]) -> tuple[JobRecord, ...]:
        with self._lock, self._blaming_the_file():
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM jobs {rest}", values).fetchall()
        return tuple(JobRecord(*row) for row in rows)

    def _prepare(self) -> None:
        with self._blaming_the_file():
            # The transaction comes first: two processes that make the file at once must not both make tables.
            self._transaction(self._make_tables)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")

    def _make_tables(self, db: sqlite3.Connection) -> None:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise UserError(
                f"{self._path} was written by a newer Headrace (format {version}, this one knows {VERSION})",
                hint="Use the newer Headrace, or move the file away to begin anew.",
            )
        if version == 0:
            db.execute(_TABLES)
            db.execute(f"PRAGMA user_version = {VERSION}")

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work whole or not at all. The write lock is taken at once, so it never fails half-way."""
        with self._lock, self._blaming_the_file():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._db)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        return result

    @contextmanager
    def _blaming_the_file(self) -> Iterator[None]:
        """SQLite's errors about the file, as errors that say which file and what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            busy = "locked" in str(error)
            hint = "Another process holds it; try again." if busy else "Check the disk and the permissions."
            raise UserError(f"the state file {self._path} cannot be used: {error}", hint=hint) from None
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            raise UserError(
                f"the state file {self._path} is damaged: {error}",
                hint="Move it away and run again: jobs go on from their own checkpoints.",
            ) from None
