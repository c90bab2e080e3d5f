"""Whether an engine's rows are right: compared with the DuckDB batch job's, query by query.

Small answers are compared row by row, joined on window and key. Of large ones the number of rows and sums
are compared: exact sums of a hash of (window, key), and for each aggregate the sum of its values, each
weighted by a number in [1, 2) drawn from that hash, so that a value in the wrong place shows. Doubles are
added in other orders by every engine: they are equal within 1e-9 of their size, deviations within 1e-6.

Plain Spark leaves the last windows open. It must give all windows that end by the watermark after the last
row, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.windows import duckdb_batch
from benchmarks.windows.spec import RunSpec
from benchmarks.windows.workloads import KEY, TIME, WATERMARK_SECONDS, WindowQuery

FULL_ROWS = 2_000_000
"""Answers of up to so many rows are compared row by row."""
_NEAR, _NEAR_SPREAD = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class Checked:
    rows: int
    """Of all queries."""
    problem: str = ""
    """Empty: all is right."""
    full: bool = True
    """Whether every row was compared."""
    left_open: int = 0
    """Rows of windows that the engine never closed."""


def found_sql(spec: RunSpec, query: WindowQuery) -> str | None:
    """What an engine wrote, as (epoch of window end, key, aggregates); None: nothing."""
    folder = spec.results(query.name)
    columns = ", ".join(query.columns)
    if list(folder.glob("*.parquet")):
        return f"SELECT epoch_us(window_end) // 1000000 AS e, {KEY}, {columns} FROM '{folder}/*.parquet'"
    if not (folder.exists() and [path for path in folder.iterdir() if path.stat().st_size]):
        return None
    types = {"e": "TIMESTAMP", KEY: "INT"}
    pairs = zip(query.columns, query.aggregates, strict=True)
    types |= {name: "BIGINT" if function == "count" else "DOUBLE" for name, (function, _) in pairs}
    declared = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    read = f"read_csv('{folder}/*', header = false, columns = {{{declared}}})"
    return f"SELECT epoch_us(e) // 1000000 AS e, {KEY}, {columns} FROM {read}"


class Checker:
    """Holds the answers to one set of queries over one input, as far as they were asked for."""

    def __init__(self, spec: RunSpec) -> None:
        self._connection = duckdb_batch.connect(spec)
        self._connection.execute("SET memory_limit = '6GB'")
        duckdb_batch.prepare(self._connection, spec.queries)
        (last,) = self._one(f"SELECT epoch_us(max({TIME})) FROM s")
        self._closed = (last - WATERMARK_SECONDS * 1_000_000) // 1_000_000

    def _one(self, sql: str) -> tuple[int, ...]:
        row = self._connection.execute(sql).fetchone()
        assert row is not None
        return row

    def check(self, spec: RunSpec, *, open_end: bool) -> Checked:
        rows, left, full = 0, 0, True
        for query in spec.queries:
            one = self._query(spec, query, open_end=open_end)
            rows, left, full = rows + one.rows, left + one.left_open, full and one.full
            if one.problem:
                return Checked(rows, f"{query.name}: {one.problem}", full, left)
        return Checked(rows, "", full, left)

    def _query(self, spec: RunSpec, query: WindowQuery, *, open_end: bool) -> Checked:
        self._expect(query)
        (every,) = self._one("SELECT count(*) FROM expected")
        if open_end:
            self._connection.execute(f"DELETE FROM expected WHERE e > {self._closed}")
        (wanted,) = self._one("SELECT count(*) FROM expected")
        source = found_sql(spec, query)
        if source is None:
            return Checked(0, f"no rows, {wanted:,} expected" if wanted else "", True, every - wanted)
        full = wanted <= FULL_ROWS
        kind = "TABLE" if full else "VIEW"
        self._connection.execute(f"CREATE OR REPLACE TEMP {kind} found AS {source}")
        problem = self._row_by_row(query) if full else self._by_sums(query)
        self._connection.execute(f"DROP {kind} found")
        return Checked(wanted, problem, full, every - wanted)

    def _expect(self, query: WindowQuery) -> None:
        columns = ", ".join(query.columns)
        rows = f"SELECT epoch_us(window_end) // 1000000 AS e, {KEY}, {columns}"
        sql = f"CREATE OR REPLACE TEMP TABLE expected AS {rows} FROM ({duckdb_batch.answer(query)})"
        self._connection.execute(sql)

    def _row_by_row(self, query: WindowQuery) -> str:
        (found, distinct) = self._one(f"SELECT count(*), count(DISTINCT (e, {KEY})) FROM found")
        (expected,) = self._one("SELECT count(*) FROM expected")
        if found != expected or distinct != found:
            return f"{found:,} rows, {distinct:,} distinct, {expected:,} expected"
        far = " OR ".join(_far(name, function) for name, (function, _) in _named(query))
        joined = f"expected AS x LEFT JOIN found AS y ON x.e = y.e AND x.{KEY} = y.{KEY}"
        (wrong,) = self._one(f"SELECT count(*) FROM {joined} WHERE y.e IS NULL OR {far}")
        return f"{wrong:,} of {expected:,} rows differ" if wrong else ""

    def _by_sums(self, query: WindowQuery) -> str:
        texts = [f"count(*), sum(hash(e, {KEY}) % 1000003)"]
        weight = f"(1 + (hash({KEY}, e) % 65536) / 65536)"
        texts += [f"sum({weight} * {name}), sum(abs({name})), count({name})" for name in query.columns]
        sql = f"SELECT {', '.join(texts)} FROM "
        mine, theirs = self._one(f"{sql} expected"), self._one(f"{sql} found")
        if mine[:2] != theirs[:2]:
            return f"{theirs[0]:,} rows, {mine[0]:,} expected, or other windows and keys"
        for place, (name, (function, _)) in enumerate(_named(query)):
            own, other = (sums[2 + 3 * place : 5 + 3 * place] for sums in (mine, theirs))
            if own[2] != other[2] or abs(own[0] - other[0]) > _tolerance(function) * own[1]:
                return f"{name} ({function}): weighted sum {other[0]}, {own[0]} expected"
        return ""


def _named(query: WindowQuery) -> list[tuple[str, tuple[str, str]]]:
    return list(zip(query.columns, query.aggregates, strict=True))


def _tolerance(function: str) -> float:
    return _NEAR_SPREAD if function == "stddev" else _NEAR


def _far(name: str, function: str) -> str:
    """Whether two values differ; NULL is NULL only. One row alone has no deviation, for some engines NaN."""
    mine, theirs = f"x.{name}", f"CASE WHEN isnan(y.{name}::DOUBLE) THEN NULL ELSE y.{name} END"
    near = f"abs({mine} - {theirs}) <= {_tolerance(function)} * greatest(1, abs({mine}))"
    return f"NOT coalesce({near}, {mine} IS NULL AND ({theirs}) IS NULL)"
