"""The tables of the state file, by version, and the way from each version to the next.

The version is kept in the file as PRAGMA user_version; 0 is a file that was just made. A new file goes all
the way from 0, so that old files and new ones have the same tables.
"""

from __future__ import annotations

import sqlite3

_JOBS = """
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
_TREES = """
CREATE TABLE trees (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    site TEXT NOT NULL,
    shape TEXT NOT NULL
) STRICT
"""
_DEPLOYED = """
CREATE TABLE deployed (
    query TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    tree TEXT REFERENCES trees (id),
    fingerprint TEXT NOT NULL
) STRICT
"""
_FEDERATED = """
CREATE TABLE federated (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    site TEXT NOT NULL,
    members TEXT NOT NULL
) STRICT
"""
_DOOMED = """
CREATE TABLE doomed (
    name TEXT PRIMARY KEY,
    results INTEGER NOT NULL,
    tree TEXT
) STRICT
"""
_ADDED = """
CREATE TABLE added (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    sql TEXT NOT NULL,
    sink TEXT NOT NULL,
    path TEXT,
    site TEXT NOT NULL
) STRICT
"""
_DROPPED = "CREATE TABLE dropped (name TEXT PRIMARY KEY) STRICT"
_CHANGES = """
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('add', 'drop')),
    query TEXT NOT NULL,
    from_start INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'applied', 'refused')),
    message TEXT NOT NULL DEFAULT '',
    tree TEXT,
    valid_from INTEGER,
    pause REAL,
    asked TEXT NOT NULL,
    settled TEXT
) STRICT
"""

_MOVES = """
CREATE TABLE moves (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'moving', 'moved', 'stayed', 'refused')),
    site TEXT,
    pause REAL,
    message TEXT NOT NULL DEFAULT '',
    asked TEXT NOT NULL,
    ended TEXT
) STRICT
"""
_MOVE_STEPS = """
CREATE TABLE move_steps (
    move INTEGER NOT NULL REFERENCES moves (id),
    number INTEGER NOT NULL,
    step TEXT NOT NULL,
    site TEXT NOT NULL,
    facts TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (move, number)
) STRICT
"""
_HOMES = "CREATE TABLE homes (job TEXT PRIMARY KEY, site TEXT NOT NULL) STRICT"
_CHANNELS = "CREATE TABLE channels (plan TEXT NOT NULL) STRICT"

_STEPS: tuple[tuple[str, ...], ...] = (
    (_JOBS,),
    (
        "ALTER TABLE jobs ADD COLUMN valid_from INTEGER",
        _TREES,
        _DEPLOYED,
        _DOOMED,
        _ADDED,
        _DROPPED,
        _CHANGES,
        # Looked at several times a second by a run.
        "CREATE INDEX open_changes ON changes (state, settled)",
        # Before trees every query was a job of its own.
        "INSERT INTO deployed SELECT id, rowid, NULL, fingerprint FROM jobs",
    ),
    (_FEDERATED, "ALTER TABLE deployed ADD COLUMN federated TEXT"),
    (
        _MOVES,
        _MOVE_STEPS,
        _HOMES,
        # One move of a job at a time; looked at several times a second by a run.
        "CREATE UNIQUE INDEX open_moves ON moves (job) WHERE state IN ('asked', 'moving')",
    ),
    (_CHANNELS,),
    ("ALTER TABLE deployed ADD COLUMN site TEXT",),
)
"""Step n leads from version n to n + 1."""

VERSION = len(_STEPS)


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring the tables to VERSION, inside a transaction of the caller's."""
    for step in _STEPS[version:]:
        for statement in step:
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")
