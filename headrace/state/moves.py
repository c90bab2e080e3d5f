"""Moves of jobs between sites: what commands ask for, the journal of each, and where jobs live since then.

    asked -> moving (steps are being written) -> moved | stayed
      |
      +--> refused

A job has one open move at a time; of those that have ended, the latest are kept. Where a job lives is written
with the end of its move, in one transaction; one that was never moved has no home, and is where its query
says.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from headrace.errors import UserError
from headrace.runtime.relocate import Entry, Move, Outcome, Step
from headrace.state.file import StateFile

MoveState = Literal["asked", "moving", "moved", "stayed", "refused"]
_COLUMNS = "id, job, source, target, state, site, pause, message, asked, ended"
_OPEN = "state IN ('asked', 'moving')"
_KEPT = 1000
"""Ended moves that are kept, the latest: a service that evens out its sites makes some every minute."""


@dataclass(frozen=True, slots=True)
class MoveRecord:
    id: int
    job: str
    source: str
    target: str
    state: MoveState
    site: str | None
    """Where the job is since the move ended."""
    pause: float | None
    message: str
    asked: str
    ended: str | None

    @property
    def move(self) -> Move:
        return Move(self.id, self.job, self.source, self.target)


class Moves(StateFile):
    """Implements `relocate.Journal`. `now` gives ISO text in UTC."""

    def __init__(self, path: Path, now: Callable[[], str]) -> None:
        super().__init__(path)
        self.now = now

    # -- what commands ask --------------------------------------------------------------------------

    def ask(self, job: str, source: str, target: str) -> int:
        """Raises UserError where a move of the job is open already."""

        def write(db: sqlite3.Connection) -> int:
            known = _select(db, f"WHERE job = ? AND {_OPEN}", (job,))
            if known:
                raise UserError(
                    f"job {job} is being moved to {known[0].target} already",
                    hint="Wait for that move to end: headrace status",
                )
            _prune(db)
            made = db.execute(
                "INSERT INTO moves (job, source, target, state, asked) VALUES (?, ?, ?, 'asked', ?)",
                (job, source, target, self.now()),
            ).lastrowid
            return int(made or 0)

        return self._transaction(write, durable=True)

    def any_asked(self) -> bool:
        """Cheap: asked in every round of a run."""
        found = self._read(
            lambda db: db.execute("SELECT 1 FROM moves WHERE state = 'asked' LIMIT 1").fetchone()
        )
        return found is not None

    def is_open(self, job: str) -> bool:
        return bool(self._read(lambda db: _select(db, f"WHERE job = ? AND {_OPEN}", (job,))))

    def from_where(self, record: MoveRecord, source: str) -> MoveRecord:
        """The move as it is, from where the job is: whoever asked may have thought that it was elsewhere."""
        if record.source == source:
            return record
        self._transaction(
            lambda db: db.execute("UPDATE moves SET source = ? WHERE id = ?", (source, record.id)),
            durable=True,
        )
        return replace(record, source=source)

    def asked(self) -> tuple[MoveRecord, ...]:
        return self._read(lambda db: _select(db, "WHERE state = 'asked' ORDER BY id"))

    def get(self, move: int) -> MoveRecord | None:
        found = self._read(lambda db: _select(db, "WHERE id = ?", (move,)))
        return found[0] if found else None

    def latest(self, count: int) -> tuple[MoveRecord, ...]:
        """The newest moves, the newest first."""
        return self._read(lambda db: _select(db, "ORDER BY id DESC LIMIT ?", (count,)))

    def refuse(self, move: int, reason: str) -> None:
        """It was asked for and is not begun."""
        self._transaction(
            lambda db: db.execute(
                "UPDATE moves SET state = 'refused', message = ?, ended = ? WHERE id = ? AND state = 'asked'",
                (reason, self.now(), move),
            ),
            durable=True,
        )

    # -- the journal of moves, as relocate has it ---------------------------------------------------

    def write(self, move: Move, entry: Entry) -> None:
        row = (move.id, entry.step.value, entry.site, json.dumps(dict(entry.facts)), self.now())

        def write(db: sqlite3.Connection) -> None:
            db.execute("UPDATE moves SET state = 'moving' WHERE id = ?", (move.id,))
            db.execute(
                "INSERT INTO move_steps (move, number, step, site, facts, at) VALUES (?1, (SELECT"
                " count(*) FROM move_steps WHERE move = ?1), ?2, ?3, ?4, ?5)",
                row,
            )

        self._transaction(write, durable=True)

    def end(self, outcome: Outcome) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE moves SET state = ?, site = ?, pause = ?, message = ?, ended = ? WHERE id = ?",
                (
                    "moved" if outcome.moved else "stayed",
                    outcome.site,
                    outcome.pause,
                    outcome.reason,
                    self.now(),
                    outcome.move.id,
                ),
            )
            job = outcome.move.job
            # One that stayed, or was started again where it was, may still be led elsewhere by the file.
            if outcome.site != outcome.move.source or _has_home(db, job):
                _settle(db, job, outcome.site)

        self._transaction(write, durable=True)

    def open_moves(self) -> Sequence[tuple[Move, Sequence[Entry]]]:
        def read(db: sqlite3.Connection) -> list[tuple[Move, Sequence[Entry]]]:
            moving = _select(db, "WHERE state = 'moving' ORDER BY id")
            return [(one.move, _entries(db, one.id)) for one in moving]

        return self._read(read)

    def entries(self, move: int) -> tuple[Entry, ...]:
        return self._read(lambda db: _entries(db, move))

    # -- where jobs live ----------------------------------------------------------------------------

    def homes(self) -> Mapping[str, str]:
        """The site of every job that was moved, whatever the project file says."""
        return self._read(lambda db: dict(db.execute("SELECT job, site FROM homes").fetchall()))

    def settle(self, job: str, site: str) -> None:
        """The job lives there from now on."""
        self._transaction(lambda db: _settle(db, job, site), durable=True)

    def forget(self, job: str) -> None:
        """A job that is no more."""
        self._transaction(lambda db: db.execute("DELETE FROM homes WHERE job = ?", (job,)))


def _settle(db: sqlite3.Connection, job: str, site: str) -> None:
    db.execute(
        "INSERT INTO homes (job, site) VALUES (?, ?) ON CONFLICT (job) DO UPDATE SET site = excluded.site",
        (job, site),
    )


def _has_home(db: sqlite3.Connection, job: str) -> bool:
    return db.execute("SELECT 1 FROM homes WHERE job = ?", (job,)).fetchone() is not None


def _prune(db: sqlite3.Connection) -> None:
    """Forget ended moves, with their steps, but for the latest."""
    ended = f"SELECT id FROM moves WHERE NOT {_OPEN} ORDER BY ended DESC, id DESC LIMIT -1 OFFSET {_KEPT}"
    db.execute(f"DELETE FROM move_steps WHERE move IN ({ended})")
    db.execute(f"DELETE FROM moves WHERE id IN ({ended})")


def _select(db: sqlite3.Connection, rest: str, values: Sequence[object] = ()) -> tuple[MoveRecord, ...]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM moves {rest}", values).fetchall()
    return tuple(MoveRecord(*row) for row in rows)


def _entries(db: sqlite3.Connection, move: int) -> tuple[Entry, ...]:
    rows = db.execute(
        "SELECT step, site, facts FROM move_steps WHERE move = ? ORDER BY number", (move,)
    ).fetchall()
    return tuple(Entry(Step(step), site, json.loads(facts)) for step, site, facts in rows)
