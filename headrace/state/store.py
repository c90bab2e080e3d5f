"""What is wanted and what was last seen, in one SQLite file that survives a restart.

Desired and observed are two fields that never overwrite each other: `want` writes the first, `observe`
the second. A job that is wanted with another fingerprint is another job: what was observed is forgotten.

The deployment says which query has its place in which tree. Only the process that holds the run lock writes
it; commands write what they ask for into the journal, and that process applies it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields

from headrace.errors import InternalError
from headrace.state import deployed, journal
from headrace.state.file import StateFile
from headrace.state.records import AddedQuery, Change, Deployment, Desired, Edits, JobRecord, Seen
from headrace.state.schema import VERSION

__all__ = ["VERSION", "Desired", "JobRecord", "Seen", "Store"]

_COLUMNS = ", ".join(field.name for field in fields(JobRecord))


class Store(StateFile):
    """The state file of one project."""

    # -- jobs: desired and observed, a row for each query ------------------------------------------

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

    def observe(self, seen: Sequence[Seen], now: str) -> None:
        """Keep what was seen of jobs that were wanted before, in one transaction: a tree has hundreds."""

        def write(db: sqlite3.Connection) -> list[str]:
            return [one.id for one in seen if not _observe(db, one, now)]

        unknown = self._transaction(write)
        if unknown:
            raise InternalError(f'job "{unknown[0]}" was observed but never wanted')

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
        rows = self._read(lambda db: db.execute(f"SELECT {_COLUMNS} FROM jobs {rest}", values).fetchall())
        return tuple(JobRecord(*row) for row in rows)

    # -- the deployment: written by the process that holds the run lock ----------------------------

    def deployment(self) -> Deployment:
        return self._read(deployed.read)

    def deploy(
        self,
        deployment: Deployment,
        edits: Edits,
        applied: Mapping[int, str | None] | None = None,
        forget: Collection[str] = (),
    ) -> bool:
        """Write the deployment, which changes it contains (with the tree that took each), and that some jobs
        are forgotten, in one transaction. False, and nothing is written, where a command has changed the
        edits since they were read: what was planned by them is out of date."""
        applied = applied or {}

        def write(db: sqlite3.Connection) -> bool:
            if journal.edits(db) != edits:
                return False
            deployed.write(db, deployment)
            for change, tree in applied.items():
                journal.mark_applied(db, change, tree)
            db.executemany("DELETE FROM jobs WHERE id = ?", [(name,) for name in forget])
            return True

        return self._transaction(write, durable=True)

    def removed(self, names: Collection[str]) -> None:
        """These doomed folders are gone."""
        rows = [(name,) for name in names]
        self._transaction(lambda db: db.executemany("DELETE FROM doomed WHERE name = ?", rows))

    # -- the journal: written by commands, applied by that process ---------------------------------

    def edits(self) -> Edits:
        return self._read(journal.edits)

    def any_pending(self) -> bool:
        """Cheap: asked in every round of a run."""
        found = self._read(
            lambda db: db.execute("SELECT 1 FROM changes WHERE state = 'pending' LIMIT 1").fetchone()
        )
        return found is not None

    def changes(self, ids: Collection[int]) -> tuple[Change, ...]:
        """These changes, in the order they were asked for."""
        marks = ", ".join("?" * len(ids))
        return self._read(lambda db: journal.select(db, f"WHERE id IN ({marks}) ORDER BY id", list(ids)))

    def unsettled(self) -> tuple[Change, ...]:
        """Changes that the deployment has, and that nobody has seen running yet."""
        rest = "WHERE state = 'applied' AND settled IS NULL ORDER BY id"
        return self._read(lambda db: journal.select(db, rest))

    def ask_add(self, query: AddedQuery, from_start: bool, now: str) -> int:
        """The id of the change. Raises UserError where the name is not free."""
        return self._transaction(lambda db: journal.ask_add(db, query, from_start, now), durable=True)

    def ask_add_after(self, seen: Edits, query: AddedQuery, from_start: bool, now: str) -> int | None:
        """The same, as long as the edits are those; None, and nothing is written, where a command has changed
        them: what was concluded from them is out of date."""

        def write(db: sqlite3.Connection) -> int | None:
            return journal.ask_add(db, query, from_start, now) if journal.edits(db) == seen else None

        return self._transaction(write, durable=True)

    def ask_drop(self, names: Mapping[str, bool], now: str) -> list[int]:
        """All of them or none; `names` says of each whether it is written in the project file."""
        return self._transaction(
            lambda db: [journal.ask_drop(db, name, in_file, now) for name, in_file in names.items()],
            durable=True,
        )

    def settle(self, change: Change) -> None:
        """It was seen running: from when on it is valid, how long the others paused, when that was."""
        self._transaction(lambda db: journal.settle(db, change))

    def refuse(
        self, ids: Collection[int], reason: str, now: str, deployment: Deployment | None = None
    ) -> None:
        """Take changes back, also ones that were applied: `deployment` is then the one without them."""

        def write(db: sqlite3.Connection) -> None:
            journal.refuse(db, ids, reason, now)
            if deployment is not None:
                deployed.write(db, deployment)

        self._transaction(write, durable=True)


def _observe(db: sqlite3.Connection, one: Seen, now: str) -> bool:
    """Whether there is such a job."""
    values = (one.observed, one.batch, one.input_rows, one.output_rows, one.late_rows, one.watermark)
    return (
        db.execute(
            "UPDATE jobs SET observed = ?, batch = ?, input_rows = ?, output_rows = ?, late_rows = ?,"
            " watermark = ?, error = ?, updated = ?, valid_from = coalesce(?, valid_from) WHERE id = ?",
            (*values, one.error, now, one.valid_from, one.id),
        ).rowcount
        > 0
    )
