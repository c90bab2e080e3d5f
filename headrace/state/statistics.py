"""What was gathered of jobs and sites, in a file of its own: newest samples, means by the minute, texts.

    samples   of the last ten minutes, and never more than MOST_ROWS
    minutes   means of the last day, and never more than MOST_ROWS
    texts     by name: what is believed now, and what the last rebalance has remembered

Nothing that runs depends on it, so it is apart from the state file: gathering never holds up a change, and a
file that is damaged is begun anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headrace.errors import UserError
from headrace.state.file import StateFile
from headrace.stats.samples import GAUGES, RATES

Kind = Literal["job", "site"]

FIGURES = (*RATES, *GAUGES)
MOST_ROWS = 100_000
SAMPLE_SECONDS = 600.0
MINUTE_SECONDS = 86_400.0
_MINUTE = 60
_VERSION = 1

_NAMES = ", ".join(FIGURES)
_COLUMNS = f"kind, name, site, at, watermark, {_NAMES}"
_TYPES = "kind TEXT NOT NULL, name TEXT NOT NULL, site TEXT NOT NULL, at REAL NOT NULL, watermark INTEGER, "
_TYPES += ", ".join(f"{name} REAL" for name in FIGURES)
_TABLES = (
    f"CREATE TABLE samples ({_TYPES}) STRICT",
    "CREATE INDEX samples_at ON samples (kind, name, at)",
    f"CREATE TABLE minutes ({_TYPES}) STRICT",
    "CREATE UNIQUE INDEX minutes_at ON minutes (kind, name, at)",
    "CREATE TABLE texts (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT",
    f"PRAGMA user_version = {_VERSION}",
)
_MEANS = (
    f"INSERT OR IGNORE INTO minutes ({_COLUMNS}) SELECT kind, name, max(site),"
    f" CAST(at / {_MINUTE} AS INTEGER) * {_MINUTE}.0 AS minute, max(watermark),"
    f" {', '.join(f'avg({name})' for name in FIGURES)} FROM samples"
    f" WHERE at < ?1 AND at >= coalesce((SELECT max(at) + {_MINUTE} FROM minutes), 0)"
    " GROUP BY kind, name, minute"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One look at one job or site, or the mean of a minute that began `at`. What was not seen is not in
    `figures`."""

    kind: Kind
    name: str
    site: str
    at: float
    """Seconds since the epoch."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Rates a second, and gauges (stats/samples.py)."""
    watermark: int | None = None


class Statistics(StateFile):
    """Use as a context manager, or call `close`."""

    _rolled: int | None = None
    """The minute up to which means were made."""

    def _prepare(self) -> None:
        with self._blaming_the_file():
            self._use_wal()
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._transaction(self._make_tables)

    def _make_tables(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise UserError(f"{self._path} is of another Headrace (format {version})")
        if version == 0:
            for statement in _TABLES:
                db.execute(statement)

    def add(self, rows: Sequence[Row], texts: Mapping[str, str]) -> None:
        """All of it in one transaction. Once a minute means are made, and what is too old goes."""
        values = [(r.kind, r.name, r.site, r.at, r.watermark, *map(r.figures.get, FIGURES)) for r in rows]
        minute = int(max((row.at for row in rows), default=0.0) // _MINUTE)

        def write(db: sqlite3.Connection) -> None:
            marks = ", ".join("?" * (len(FIGURES) + 5))
            db.executemany(f"INSERT INTO samples ({_COLUMNS}) VALUES ({marks})", values)
            _keep(db, texts)
            if rows and minute != self._rolled:
                _roll(db, float(minute * _MINUTE))

        self._transaction(write)
        self._rolled = minute if rows else self._rolled

    def keep(self, texts: Mapping[str, str]) -> None:
        self._transaction(lambda db: _keep(db, texts))

    def text(self, name: str) -> str | None:
        found = self._read(lambda db: db.execute("SELECT text FROM texts WHERE name = ?", (name,)).fetchone())
        return None if found is None else str(found[0])

    def samples(self, kind: Kind, name: str, count: int) -> tuple[Row, ...]:
        """The newest, the newest first."""
        return self._rows("samples", kind, name, count)

    def minutes(self, kind: Kind, name: str, count: int) -> tuple[Row, ...]:
        """The means of the latest whole minutes, the latest first."""
        return self._rows("minutes", kind, name, count)

    def _rows(self, table: str, kind: Kind, name: str, count: int) -> tuple[Row, ...]:
        sql = f"SELECT {_COLUMNS} FROM {table} WHERE kind = ? AND name = ? ORDER BY at DESC LIMIT ?"
        found = self._read(lambda db: db.execute(sql, (kind, name, count)).fetchall())
        return tuple(_row(one) for one in found)


def open_statistics(path: Path) -> Statistics:
    """The file, made where it is not there, and made anew where it cannot be read."""
    try:
        return Statistics(path)
    except UserError:
        if not path.is_file():
            raise
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return Statistics(path)


def _keep(db: sqlite3.Connection, texts: Mapping[str, str]) -> None:
    db.executemany(
        "INSERT INTO texts (name, text) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text",
        list(texts.items()),
    )


def _roll(db: sqlite3.Connection, before: float) -> None:
    db.execute(_MEANS, (before,))
    for table, seconds in (("samples", SAMPLE_SECONDS), ("minutes", MINUTE_SECONDS)):
        db.execute(f"DELETE FROM {table} WHERE at < ?", (before - seconds,))
        db.execute(f"DELETE FROM {table} WHERE rowid <= (SELECT max(rowid) FROM {table}) - ?", (MOST_ROWS,))


def _row(found: Sequence[object]) -> Row:
    kind, name, site, at, watermark, *values = found
    figures = {n: v for n, v in zip(FIGURES, values, strict=True) if isinstance(v, float)}
    assert kind in ("job", "site") and isinstance(at, float)
    mark = watermark if isinstance(watermark, int) else None
    return Row("job" if kind == "job" else "site", str(name), str(site), at, figures, mark)
