"""(e) DuckDB over all rows at once: what a batch job pays, a lower limit and the answer to compare with.

    pieces: partial aggregates of each key and piece of gcd(range, slide), once for all queries of that piece
    answer: a window function over the pieces of a key, empty ones included, with a frame of `range`;
            the rows where a window starts are kept

A deviation is computed from moments about a fixed shift near the mean, so that little is cancelled.
"""

from __future__ import annotations

import math
import time

import duckdb

from benchmarks.windows.spec import NONE, Report, RunSpec, given
from benchmarks.windows.workloads import KEY, TIME, VALUES, WindowQuery

_SHIFT = 50


def connect(spec: RunSpec) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {spec.cores}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"CREATE VIEW s AS FROM read_parquet('{spec.parquet}/*.parquet')")
    return connection


def piece(query: WindowQuery) -> int:
    return math.gcd(query.range, query.slide)


def pieces_sql(length: int) -> str:
    """Partial aggregates for each key and piece of `length` seconds, by the piece's start."""
    parts = ["count(*) AS n"]
    for name in VALUES:
        shifted = f"({name} - {_SHIFT})"
        parts += [f"sum({name}) AS s_{name}", f"min({name}) AS l_{name}", f"max({name}) AS h_{name}"]
        parts += [f"sum({shifted}) AS d_{name}", f"sum({shifted} * {shifted}) AS q_{name}"]
    start = f"epoch_us({TIME}) // {length * 1_000_000} * {length}"
    return f"SELECT {KEY}, {start} AS t, {', '.join(parts)} FROM s GROUP BY ALL"


def _aggregate(function: str, column: str) -> str:
    rows = "sum(n) OVER w"
    if function == "stddev":
        first, second = f"sum(d_{column}) OVER w", f"sum(q_{column}) OVER w"
        return f"sqrt(greatest({second} - {first} * {first} / {rows}, 0) / nullif({rows} - 1, 0))"
    return {
        "count": f"CAST({rows} AS BIGINT)",
        "sum": f"sum(s_{column}) OVER w",
        "avg": f"sum(s_{column}) OVER w / {rows}",
        "min": f"min(l_{column}) OVER w",
        "max": f"max(h_{column}) OVER w",
    }[function]


def dense_sql(length: int, longest: int) -> str:
    """The pieces, and empty ones between and before them, from the start of the first window on."""
    low = f"(SELECT (min(t) - {longest}) // {length} * {length} FROM pieces)"
    times = f"SELECT unnest(range({low}, (SELECT max(t) + 1 FROM pieces), {length})) AS t"
    grid = f"SELECT {KEY}, t FROM (SELECT DISTINCT {KEY} FROM pieces), ({times})"
    return f"FROM ({grid}) LEFT JOIN pieces USING ({KEY}, t) ORDER BY {KEY}, t"


def prepare(connection: duckdb.DuckDBPyConnection, queries: tuple[WindowQuery, ...]) -> None:
    """Make the pieces that the queries need."""
    for length in sorted({piece(query) for query in queries}):
        longest = max(query.range for query in queries if piece(query) == length)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE pieces AS {pieces_sql(length)}")
        connection.execute(f"CREATE TEMP TABLE pieces_{length} AS {dense_sql(length, longest)}")


def answer(query: WindowQuery) -> str:
    """After `prepare`: all windows of a query that have rows, as SQL."""
    named = zip(query.columns, query.aggregates, strict=True)
    wanted = ", ".join(f"{_aggregate(*pair)} AS {name}" for name, pair in named)
    length = piece(query)
    frame = f"ROWS BETWEEN CURRENT ROW AND {query.range // length - 1} FOLLOWING"
    return (
        f"SELECT make_timestamptz((t + {query.range}) * 1000000) AS window_end, {KEY}, "
        f"{', '.join(query.columns)} FROM (SELECT {KEY}, t, sum(n) OVER w AS rows_in, {wanted} "
        f"FROM pieces_{length} WINDOW w AS (PARTITION BY {KEY} ORDER BY t {frame})) "
        f"WHERE t % {query.slide} = 0 AND rows_in > 0"
    )


def main() -> None:
    began, spec, report = time.perf_counter(), given(), Report()
    connection = connect(spec)
    report.ready = time.perf_counter() - began
    prepare(connection, spec.queries)
    for query in spec.queries:
        if spec.sink == NONE:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE made AS {answer(query)}")
            continue
        folder = spec.results(query.name)
        folder.mkdir(parents=True)
        connection.execute(f"COPY ({answer(query)}) TO '{folder}/rows.parquet' (FORMAT parquet)")
    report.seconds = time.perf_counter() - began - report.ready
    report.write(spec.folder)


if __name__ == "__main__":
    main()
