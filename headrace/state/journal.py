"""Queries added and dropped by command, and the journal of it. Functions on an open transaction.

A query that is both added and dropped is there: one of the project file that was dropped comes back as added,
and is dropped again when that is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from headrace.errors import UserError
from headrace.state.records import AddedQuery, Change, Edits

_ADDED = ", ".join(field.name for field in fields(AddedQuery))
_CHANGE = ", ".join(field.name for field in fields(Change))


def edits(db: sqlite3.Connection) -> Edits:
    added = db.execute(f"SELECT {_ADDED} FROM added ORDER BY number").fetchall()
    dropped = db.execute("SELECT name FROM dropped").fetchall()
    pending = select(db, "WHERE state = 'pending' ORDER BY id")
    return Edits(tuple(AddedQuery(*row) for row in added), frozenset(row[0] for row in dropped), pending)


def select(db: sqlite3.Connection, rest: str, values: Sequence[object] = ()) -> tuple[Change, ...]:
    rows = db.execute(f"SELECT {_CHANGE} FROM changes {rest}", values).fetchall()
    return tuple(replace(Change(*row), from_start=bool(row[3])) for row in rows)


def ask_add(db: sqlite3.Connection, query: AddedQuery, from_start: bool, now: str) -> int:
    """Raises UserError where the name is not free at this very moment."""
    _check_free(db, query.name)
    number = db.execute("SELECT coalesce(max(number), 0) + 1 FROM added").fetchone()[0]
    db.execute(
        "INSERT INTO added (name, number, sql, sink, path, site) VALUES (?, ?, ?, ?, ?, ?)",
        (query.name, number, query.sql, query.sink, query.path, query.site),
    )
    return _ask(db, "add", query.name, from_start, now)


def _check_free(db: sqlite3.Connection, name: str) -> None:
    if _has(db, "added", name):
        raise UserError(f'query "{name}" was added already', hint="Drop it first, or choose another name.")
    leaving = select(db, "WHERE kind = 'drop' AND state = 'pending' AND query = ?", (name,))
    # Its tree must have been started without it once: else the tree would take the new query for the old.
    if leaving or _has(db, "doomed", name):
        raise UserError(
            f'query "{name}" is still being dropped',
            hint="That ends with the next start of its tree: add it after `headrace run` has begun.",
        )
    if db.execute("SELECT 1 FROM deployed WHERE query = ?", (name,)).fetchone():
        raise UserError(
            f'a query "{name}" has run before, and what it kept is still there',
            hint=f"Choose another name, or forget it with: headrace drop {name}",
        )
    if db.execute("SELECT 1 FROM trees WHERE id = ?", (name,)).fetchone():
        raise UserError(f'"{name}" is the name of a tree', hint="Choose another name.")


def ask_drop(db: sqlite3.Connection, name: str, in_file: bool, now: str) -> int:
    """Take the query out of the project. An add that nobody has seen running is taken back with it."""
    waiting = select(db, "WHERE kind = 'add' AND settled IS NULL AND query = ?", (name,))
    known = db.execute("DELETE FROM added WHERE name = ?", (name,)).rowcount > 0
    if in_file and not _has(db, "dropped", name):
        db.execute("INSERT INTO dropped (name) VALUES (?)", (name,))
        known = True
    deployed = db.execute("SELECT 1 FROM deployed WHERE query = ?", (name,)).fetchone() is not None
    if select(db, "WHERE kind = 'drop' AND state = 'pending' AND query = ?", (name,)) or not (
        known or deployed
    ):
        raise UserError(f'query "{name}" was dropped already')
    refuse(db, [change.id for change in waiting], "it was dropped before it ran", now)
    made = _ask(db, "drop", name, False, now)
    if not deployed:
        # Nobody runs it, so there is nothing left to do.
        db.execute("UPDATE changes SET state = 'applied', settled = ? WHERE id = ?", (now, made))
    return made


def _ask(db: sqlite3.Connection, kind: str, name: str, from_start: bool, now: str) -> int:
    made = db.execute(
        "INSERT INTO changes (kind, query, from_start, state, asked) VALUES (?, ?, ?, 'pending', ?)",
        (kind, name, int(from_start), now),
    ).lastrowid
    return int(made or 0)


def mark_applied(db: sqlite3.Connection, change: int, tree: str | None) -> None:
    db.execute("UPDATE changes SET state = 'applied', tree = ? WHERE id = ?", (tree, change))


def settle(db: sqlite3.Connection, change: Change) -> None:
    """Unless it was taken back meanwhile."""
    db.execute(
        "UPDATE changes SET settled = ?, valid_from = ?, pause = ?, message = ?"
        " WHERE id = ? AND state = 'applied'",
        (change.settled, change.valid_from, change.pause, change.message, change.id),
    )


def refuse(db: sqlite3.Connection, ids: Iterable[int], reason: str, now: str) -> None:
    """The query of a refused add is gone from the project. A drop is refused only where there was nothing to
    drop: what `ask_drop` has taken out does not come back."""
    for one in ids:
        db.execute(
            "DELETE FROM added WHERE name IN (SELECT query FROM changes WHERE id = ? AND kind = 'add')",
            (one,),
        )
        db.execute(
            "UPDATE changes SET state = 'refused', message = ?, settled = ? WHERE id = ?", (reason, now, one)
        )


def _has(db: sqlite3.Connection, table: str, name: str) -> bool:
    return db.execute(f"SELECT 1 FROM {table} WHERE name = ?", (name,)).fetchone() is not None
