"""The database beside a stream: window tables in DuckDB, and the statements over them.

In memory only, with a limit, and without a way out: no files, no network, no variables of the process. Rows
come as Arrow. What is kept of a relation lies in a few tables, its chunks: rows are appended to one of about
their time, which spans a share of the window, and a chunk is dropped whole once no window that is still to be
given can hold a row of it. So rows far in the future must not come into the chunk of others (`apart`), nor
may every straggler get one of its own. DELETE would not do: DuckDB keeps the deleted rows' memory until a
checkpoint, which a database in memory does not make by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import EngineError
from headrace.plan import logical as lp
from headrace.plan.types import Schema
from headrace.runtime.duckdb.window_sql import Ends, Given, WindowBuilder
from headrace.runtime.federated.memory import BYTES
from headrace.runtime.results import conform
from headrace.runtime.sqltext import DuckWriter

_SQL = DuckWriter()
_NEW = "#new"
_SHARE = 8
"""A chunk spans about this share of the longest window."""
_FEW = 100
"""A chunk of fewer rows is not worth another table."""
_PIECES = 32
"""Rows of one batch, of about one time, make at most about so many chunks."""
_NEAR = 4
"""Rows of a batch within so many windows of each other may be dropped together."""
MEMORY = f"{BYTES // 10**6}MB"


class NoRoom(EngineError):
    """What is kept, or what a statement needs beside it, does not fit the memory that the database has."""


def micros(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """Timestamps as microseconds since the epoch."""
    return pc.cast(column, pa.int64())


def apart(rows: pa.Table, time: str, span: int) -> list[pa.Table]:
    """The rows, those that are far from each other in tables of their own, oldest first: what is kept or
    dropped as one is kept for the newest of its rows. Each next table reaches four times as far from the
    oldest row, so there are few."""
    times = micros(rows[time])
    oldest, newest = pc.min(times).as_py(), pc.max(times).as_py()
    edge, low, found = _NEAR * max(span, 1), -1, list[pa.Table]()
    if newest - oldest < edge:
        return [rows]
    after = pc.subtract(times, oldest)
    while low < newest - oldest:
        part = rows.filter(pc.and_(pc.greater(after, low), pc.less_equal(after, edge)))
        if part.num_rows:
            found.append(part)
        low, edge = edge, _NEAR * edge
    return found


@dataclass(slots=True)
class Chunk:
    table: str
    rows: int
    oldest: int
    newest: int

    def with_(self, oldest: int, newest: int) -> tuple[int, int]:
        """What it would span with other rows."""
        return min(self.oldest, oldest), max(self.newest, newest)


@dataclass(slots=True)
class Relation:
    """What is kept of a node: the columns that are read, the event time, and its chunks, oldest first as they
    were made."""

    name: str
    schema: Schema
    time: str
    span: int
    """The longest range of the windows that read it, in microseconds."""
    chunks: list[Chunk] = field(default_factory=list)
    made: int = 0
    horizon: int | None = None
    """No older row is needed, as far as is known."""

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)

    def chunk_for(self, rows: int, oldest: int, newest: int, width: int) -> Chunk | None:
        """To which so many rows are to be added, in a table of about `width`; None: to one of their own."""
        few: Chunk | None = None
        for chunk in reversed(self.chunks):
            low, high = chunk.with_(oldest, newest)
            if high - low <= width or (low, high) == (chunk.oldest, chunk.newest):
                return chunk
            # Few rows may share one, if that keeps them for little longer, or for twice as long at most.
            longer = chunk.rows * (high - chunk.newest) + rows * (high - newest)
            twice = self.horizon is not None and high - self.horizon <= 2 * (low - self.horizon)
            if few is None and chunk.rows + rows <= _FEW and (twice or longer <= _FEW * self.span // 4):
                few = chunk
        return few


class WindowDatabase:
    def __init__(self, *, memory: str = MEMORY, threads: int = 2) -> None:
        self._connection = duckdb.connect(
            config={
                "memory_limit": memory,
                "threads": str(threads),
                "temp_directory": "",
                "python_enable_replacements": "false",
                "preserve_insertion_order": "false",
            }
        )
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")
        self._relations: dict[str, Relation] = {}
        self._passing: dict[str, int] = {}

    def close(self) -> None:
        self._connection.close()
        # Whoever still has this object, as the frames of a failed batch do, holds nothing of DuckDB.
        del self._connection

    # -- what is there ------------------------------------------------------------------------------

    def add_table(self, name: str, rows: pa.Table) -> None:
        """A static table, under its own name."""
        self._create(name, rows)

    def keep(self, name: str, schema: Schema, time: str, span: int) -> None:
        """Make room for a relation."""
        self._relations[name] = Relation(name, schema, time, span)

    def relation(self, name: str) -> Relation:
        return self._relations[name]

    @property
    def rows(self) -> int:
        return sum(relation.rows for relation in self._relations.values())

    @property
    def bytes(self) -> int:
        """Memory that DuckDB holds."""
        found = self._fetch("SELECT coalesce(sum(memory_usage_bytes), 0) FROM duckdb_memory()")
        return int(found[0][0])

    # -- rows come and go ---------------------------------------------------------------------------

    def take(self, name: str, rows: pa.Table) -> None:
        """Append rows to a relation."""
        relation = self._relations[name]
        if not rows.num_rows:
            return
        for part in apart(rows, relation.time, relation.span):
            self._take(relation, part)

    def _take(self, relation: Relation, rows: pa.Table) -> None:
        times = micros(rows[relation.time])
        oldest, newest = pc.min(times).as_py(), pc.max(times).as_py()
        width = max(relation.span // _SHARE, 1)
        while width * _PIECES < newest - oldest:
            width *= 2
        near = relation.span if rows.num_rows <= _FEW else 2 * width
        if newest - oldest <= near:
            self._append(relation, rows, oldest, newest, width)
            return
        # A batch that spans much time, as when a backlog is read: in pieces, each of which can go by itself.
        # They are cut at the same instants in every batch, so that the next one's find their chunks.
        piece = pc.divide(pc.subtract(times, oldest // width * width), width)
        for number in sorted(pc.unique(piece).to_pylist()):
            part = rows.filter(pc.equal(piece, number))
            own = micros(part[relation.time])
            self._append(relation, part, pc.min(own).as_py(), pc.max(own).as_py(), width)

    def _append(self, relation: Relation, rows: pa.Table, oldest: int, newest: int, width: int) -> None:
        chunk = relation.chunk_for(rows.num_rows, oldest, newest, width)
        if chunk is None:
            table = f"#k{relation.name}_{relation.made}"
            relation.made += 1
            self._create(table, conform(rows, relation.schema))
            relation.chunks.append(Chunk(table, rows.num_rows, oldest, newest))
            return
        with self._offered(conform(rows, relation.schema)):
            self._execute(f"INSERT INTO {_SQL.name(chunk.table)} SELECT * FROM {_SQL.name(_NEW)}")
        chunk.oldest, chunk.newest = chunk.with_(oldest, newest)
        chunk.rows += rows.num_rows

    def evict(self, name: str, horizon: int) -> None:
        """Drop the chunks all of whose rows are older than `horizon`."""
        relation = self._relations[name]
        relation.horizon = horizon
        for chunk in [c for c in relation.chunks if c.newest < horizon]:
            self._execute(f"DROP TABLE {_SQL.name(chunk.table)}")
            relation.chunks.remove(chunk)

    # -- statements ---------------------------------------------------------------------------------

    def kept(self, name: str, low: int, high: int) -> Given:
        """The kept rows of a relation, at least those in [low, high)."""
        relation = self._relations[name]
        columns = relation.schema.names
        wanted = [c for c in relation.chunks if c.newest >= low and c.oldest < high]
        if not wanted:
            nothing = (f"CAST(NULL AS {_SQL.type(c.type)}) AS {_SQL.name(c.name)}" for c in relation.schema)
            return Given(f"(SELECT {', '.join(nothing)} WHERE FALSE)", columns)
        names = ", ".join(map(_SQL.name, columns))
        texts = (f"SELECT {names} FROM {_SQL.name(c.table)}" for c in wanted)
        return Given(f"({' UNION ALL '.join(texts)})", columns)

    def read(self, given: Given) -> pa.Table:
        """Given rows, for another engine."""
        names = ", ".join(map(_SQL.name, given.columns))
        return self._arrow(f"SELECT {names} FROM {given.text}")

    def count(self, name: str, low: int, high: int) -> int:
        """At most so many kept rows lie in [low, high)."""
        chunks = self._relations[name].chunks
        return sum(c.rows for c in chunks if c.newest >= low and c.oldest < high)

    def next_time(self, name: str, low: int) -> int | None:
        """The oldest kept event time that is not before `low`; None: there is none."""
        relation, found = self._relations[name], list[int]()
        for chunk in relation.chunks:
            if chunk.oldest >= low:
                found.append(chunk.oldest)
            elif chunk.newest >= low:
                time = _SQL.micros(_SQL.name(relation.time))
                least = f"SELECT min({time}) FROM {_SQL.name(chunk.table)} WHERE {time} >= {low}"
                found.append(int(self._fetch(least)[0][0]))
        return min(found, default=None)

    def evaluate(
        self,
        plan: lp.LogicalPlan,
        given: Mapping[lp.LogicalPlan, Given],
        ends: Ends | None,
    ) -> pa.Table:
        """The rows of a plan over given relations, for the windows that end at `ends`. None: the plan has no
        windows, and is done row by row."""
        return conform(self._arrow(WindowBuilder(given, ends).text(plan)), plan.schema)

    def put(self, name: str, rows: pa.Table) -> Given:
        """Rows that are there for some statements only, until `drop`."""
        table = f"#p{name}"
        self._create(table, rows)
        self._passing[table] = rows.num_rows
        return Given(_SQL.name(table), tuple(rows.column_names))

    def drop(self) -> None:
        """Forget what was `put`."""
        for table in self._passing:
            self._execute(f"DROP TABLE {_SQL.name(table)}")
        self._passing.clear()

    # -- DuckDB -------------------------------------------------------------------------------------

    def _create(self, table: str, rows: pa.Table) -> None:
        with self._offered(rows):
            self._execute(f"CREATE TABLE {_SQL.name(table)} AS SELECT * FROM {_SQL.name(_NEW)}")

    def _offered(self, rows: pa.Table) -> _Offered:
        return _Offered(self._connection, rows)

    def _execute(self, text: str) -> None:
        try:
            self._connection.execute(text)
        except duckdb.Error as error:
            raise _failed("the database of window tables failed", error) from error

    def _arrow(self, text: str) -> pa.Table:
        try:
            return self._connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            raise _failed("DuckDB could not evaluate its part of the query", error) from error

    def _fetch(self, text: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(text).fetchall()
        except duckdb.Error as error:
            raise _failed("the database of window tables failed", error) from error


def _failed(message: str, error: duckdb.Error) -> EngineError:
    if isinstance(error, duckdb.OutOfMemoryException):
        hint = "Have the query on Spark (engine: spark), make its windows shorter, or filter more rows."
        return NoRoom(f"{message}: its memory is full", detail=str(error), hint=hint)
    return EngineError(message, detail=str(error))


class _Offered:
    """Arrow rows under a name that a statement can read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
        self._connection, self._rows = connection, rows

    def __enter__(self) -> None:
        self._connection.register(_NEW, self._rows)

    def __exit__(self, *_: object) -> None:
        self._connection.unregister(_NEW)
