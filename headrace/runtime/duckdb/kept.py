"""Databases that are kept for the next question: to open one takes DuckDB 20 ms, a connection to it 2 ms.

Each question has a connection of its own, and so do threads: what one registers, no other sees. Nothing
outside can be read through them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

_lock = threading.Lock()
_kept: dict[tuple[int, int, str], duckdb.DuckDBPyConnection] = {}
"""By process, since a forked one must not use what it has inherited; and by threads and memory."""


@contextmanager
def connection(threads: int, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an empty database that has so many threads and so much memory for all that use it."""
    key = (os.getpid(), threads, memory)
    with _lock:
        database = _kept.get(key) or _kept.setdefault(key, _opened(threads, memory))
        made = database.cursor()
    try:
        yield made
    except (duckdb.FatalException, duckdb.InternalException):
        # After these a database answers nothing any more.
        with _lock:
            if _kept.get(key) is database:
                del _kept[key]
        raise
    finally:
        made.close()


def _opened(threads: int, memory: str) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "memory_limit": memory,
        "python_enable_replacements": "false",
    }
    made = duckdb.connect(config=settings)
    made.execute("SET GLOBAL TimeZone = 'UTC'")
    made.execute("SET enable_external_access = false")
    return made
