"""What the queries of a tree had to answer, by a batch evaluation over all rows ever, and how many came late.

A query that was in the tree for a part of the time gives the windows that start at its `valid_from` or later
and that the watermark had reached when it left; it counts the late rows of the batches it saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.model import Stream
from headrace.plan.expr import conjunction
from headrace.plan.placed import TreeMember, split_filter
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import to_sql
from headrace.runtime.results import conform
from headrace.runtime.sqltext import DuckWriter
from tests.property.generate_trees import CLOSED, OPENED

_SQL = DuckWriter()
MARK, BATCH = "#arrival", "#batch"


@cache
def duck() -> duckdb.DuckDBPyConnection:
    """One for all cases of a process: opening one takes longer than a case's queries do."""
    connection = duckdb.connect(config={"threads": "1", "python_enable_replacements": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def ask(text: str, name: str, rows: pa.Table) -> pa.Table:
    """The answer to a query over rows that go by this name."""
    duck().register(name, rows)
    try:
        return duck().sql(text).to_arrow_table()
    finally:
        duck().unregister(name)


@dataclass(frozen=True, slots=True)
class Part:
    """When a query was in its tree: batches first <= n < last; None: to the end."""

    valid_from: int | None = None
    until: int | None = None
    """The watermark that the tree had reached when the query left."""
    first: int = 0
    last: int | None = None


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case. No problems: every answer was right."""

    seed: int
    queries: int
    rows: int
    late: int
    problems: tuple[str, ...]


class Judge:
    """`marks` has the watermark that was in force for the rows of each batch."""

    def __init__(self, stream: Stream, batches: Sequence[pa.Table], marks: Sequence[int]) -> None:
        self._stream = stream
        parts = [
            table.append_column(MARK, pa.array([mark] * len(table), pa.int64())).append_column(
                BATCH, pa.array([number] * len(table), pa.int64())
            )
            for number, (table, mark) in enumerate(zip(batches, marks, strict=True))
        ]
        self._rows = _naive(pa.concat_tables(parts), stream)

    def _answer(self, text: str) -> pa.Table:
        return ask(text, self._stream.name, self._rows)

    def expected(self, member: TreeMember, part: Part = WHOLE) -> pa.Table:
        text = to_sql(member.plan, {self._stream.name: MARK})
        rows = conform(self._answer(text), member.plan.schema)
        opens = _opens(rows, member.window.spec.range)
        if part.valid_from is not None:
            keep = pc.greater_equal(opens, part.valid_from)
            rows, opens = rows.filter(keep), opens.filter(keep)
        if part.until is not None:
            rows = rows.filter(pc.less_equal(opens, part.until - member.window.spec.range))
        return rows

    def late(self, member: TreeMember, part: Part = WHOLE) -> int:
        """Rows that missed a window that the query would have given."""
        _, conditions = split_filter(member.window.input)
        size, slide = member.window.spec.range, member.window.spec.slide
        time = f"epoch_us({_SQL.name(self._stream.time)})"
        before = f"({time} - {size})"
        first = f"({before} - (({before} % {slide}) + {slide}) % {slide} + {slide})"
        if part.valid_from is not None:
            first = f"greatest({first}, {-(-part.valid_from // slide) * slide})"
        wanted = [f"({_SQL.expr(conjunction(conditions))})"] if conditions else []
        wanted += [f'{first} <= {time} AND {first} + {size} <= "{MARK}"', f'"{BATCH}" >= {part.first}']
        wanted += [] if part.last is None else [f'"{BATCH}" < {part.last}']
        text = f"SELECT count(*) FROM {_SQL.name(self._stream.name)} WHERE {' AND '.join(wanted)}"
        return int(self._answer(text)["count_star()"][0].as_py())

    def problems(
        self, member: TreeMember, got: Sequence[pa.Table], late: int | None, part: Part = WHOLE
    ) -> tuple[int, int, list[str]]:
        """Rows and late rows there should be, and what is wrong; `late` None: not to be compared."""
        wanted = self.expected(member, part)
        given = pa.concat_tables(got) if got else member_schema(member).empty_table()
        approximate, spread = inexact_columns(member.plan)
        difference = multiset_difference(wanted, given, approximate=approximate, spread=spread)
        missed, found = self.late(member, part), list[str]()
        if difference:
            found.append(f"{member.query} {part}: {difference.text()}")
        if late is not None and late != missed:
            found.append(f"{member.query} {part}: {late} rows counted as late, {missed} were")
        return wanted.num_rows, missed, found


def member_schema(member: TreeMember) -> pa.Schema:
    empty = conform(pa.table({}), member.plan.schema)
    return empty.schema


def _naive(table: pa.Table, stream: Stream) -> pa.Table:
    """Instants as the reference has them: naive, in UTC."""
    place = table.schema.get_field_index(stream.time)
    return table.set_column(place, stream.time, table[stream.time].cast(pa.timestamp("us")))


def _opens(rows: pa.Table, size: int) -> pa.ChunkedArray:
    """Where the windows of result rows start, in microseconds."""
    names = set(rows.column_names)
    for name in OPENED:
        if name in names:
            return rows[name].cast(pa.int64())
    closed = next(name for name in CLOSED if name in names)
    return pc.subtract(rows[closed].cast(pa.int64()), size)
