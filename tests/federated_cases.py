"""The paper's six queries over a small stream, every split of them, and batches of rows, for tests of
federation.

The shapes are those of the paper, the windows shorter, so that many of them pass in little time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.model import FileSource, Format, Query, Stream, Table
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedJob, FederatedMember, operators
from headrace.plan.federated_parts import Part
from headrace.plan.types import DataType
from headrace.rewrite.driver import rewrite
from headrace.runtime.compare import Difference, inexact_columns, multiset_difference
from headrace.runtime.duckdb.load import load_table
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.duckdb.window_sql import Ends
from headrace.runtime.duckdb.window_tables import WindowDatabase
from headrace.runtime.federated.engine import Federation, Rows
from headrace.runtime.federated.ledger import Ledger, read_given
from headrace.runtime.federated.program import Program, program_of
from headrace.sql.bind import bind_query

SECOND = 1_000_000
START = 1_700_000_040 * SECOND
DELAY = 3 * SECOND
STREAM = Stream(
    name="readings",
    columns={
        "ts": DataType.TIMESTAMP,
        "property": DataType.STRING,
        "value": DataType.DOUBLE,
        "plug": DataType.INT,
        "household": DataType.INT,
        "house": DataType.INT,
    },
    time="ts",
    watermark=DELAY,
    source=FileSource(path="in", format=Format.PARQUET),
)
NAMES = Table(
    name="names",
    columns={"house": DataType.INT, "name": DataType.STRING},
    rows=((0, "a"), (1, "b"), (1, "bb"), (3, "c")),
)
STREAMS, TABLES = {"readings": STREAM}, {"names": NAMES}
PLUG = "house, household, plug"


def _above(call: str, size: int) -> str:
    window = f"readings [RANGE {size} SECONDS SLIDE 1 SECOND]"
    same = " AND ".join(f"b.{key} = a.{key}" for key in PLUG.split(", "))
    return (
        "SELECT a.window_start, a.window_end, a.house, a.household, a.plug, count(*) AS n "
        f"FROM {window} AS a "
        f"WHERE a.property = 'load' AND a.value > {call} FROM {window} AS b "
        f"WHERE b.property = 'load' AND {same}) GROUP BY a.house, a.household, a.plug"
    )


def _beside(calls: str, columns: Sequence[str], sizes: Sequence[int]) -> str:
    parts = [
        f"(SELECT window_start, window_end, {PLUG}, {calls} "
        f"FROM readings [RANGE {size} SECONDS SLIDE 1 SECOND] "
        f"WHERE property = 'load' GROUP BY {PLUG}) AS m{size}"
        for size in sizes
    ]
    first = f"m{sizes[0]}"
    shown = [f"{first}.window_start", f"{first}.window_end", *(f"{first}.{key}" for key in PLUG.split(", "))]
    shown += [f"m{size}.{column} AS {column}{size}" for size in sizes for column in columns]
    text = f"SELECT {', '.join(shown)} FROM {parts[0]}"
    for size, part in zip(sizes[1:], parts[1:], strict=True):
        text += f" JOIN {part} ON " + " AND ".join(f"{first}.{k} = m{size}.{k}" for k in PLUG.split(", "))
    return text


QUERIES = {
    "cq1": _above("0.9 * (SELECT max(b.value)", 20),
    "cq2": _above("(SELECT avg(b.value)", 20),
    "cq3": _beside("max(value) AS top, avg(value) AS mean", ("top", "mean"), (20, 4)),
    "cq4": _beside("avg(value) AS mean", ("mean",), (20, 4)),
    "cq5": (
        "SELECT window_start, window_end, house, household, max(total) AS top "
        "FROM (SELECT window_start, window_end, house, household, "
        f" plug, sum(value) AS total FROM readings [RANGE 20 SECONDS SLIDE 1 SECOND] "
        f"WHERE property = 'load' GROUP BY {PLUG}) AS t GROUP BY window_start, window_end, house, household"
    ),
    "cq6": _beside("avg(value) AS mean", ("mean",), (4, 12, 20)),
}
"""CQ1-CQ6, which also show their windows."""


def plan_of(sql: str) -> lp.LogicalPlan:
    return rewrite(bind_query(Query(name="q", sql=sql), STREAMS, TABLES))


def splits(plan: lp.LogicalPlan) -> Iterator[tuple[Engine, ...]]:
    return itertools.product(tuple(Engine), repeat=len(operators(plan)))


def letters(engines: Sequence[Engine]) -> str:
    return "".join(engine.value[0] for engine in engines)


def readings(
    seed: int, seconds: int, *, rate: int = 12, disorder: int = 2 * SECOND, start: int = START
) -> pa.Table:
    """Rows in the order in which they come; some without a value or a household."""
    rng = np.random.default_rng(seed)
    count = seconds * rate
    times = np.sort(rng.integers(0, seconds * SECOND, count)) - rng.integers(0, max(disorder, 1), count)
    # Multiples of 1/4: sums are exact whatever their order, so comparisons with averages are, too.
    values = [None if v < 4 else v / 4 for v in rng.integers(0, 400, count).tolist()]
    return pa.table(
        {
            "ts": pa.array(start + times, pa.timestamp("us", "UTC")),
            "property": pa.array(np.where(rng.random(count) < 0.7, "load", "work").tolist()),
            "value": pa.array(values, pa.float64()),
            "plug": pa.array(rng.integers(0, 2, count), pa.int32()),
            "household": pa.array(
                [None if h == 2 else h for h in rng.integers(0, 3, count).tolist()], pa.int32()
            ),
            "house": pa.array(rng.integers(0, 2, count), pa.int32()),
        }
    )


def sliced(table: pa.Table, batches: int) -> list[pa.Table]:
    size = -(-table.num_rows // batches)
    return [table.slice(k * size, size) for k in range(batches)]


def watermarks(batches: Sequence[pa.Table], first: int, delay: int = DELAY) -> list[int]:
    """The watermark in force in each batch: the newest time of the batches before it, less the delay."""
    found, mark = [], first
    for batch in batches:
        found.append(mark)
        times = pc.drop_null(pc.cast(batch["ts"], pa.int64()))
        if len(times):
            mark = max(mark, (pc.max(times).as_py() - delay) // 1000 * 1000)
    return found


def with_arrival(batches: Sequence[pa.Table], marks: Sequence[int]) -> pa.Table:
    """All rows, each with the watermark by which it may be late: that of the batch before its own."""
    before = [marks[0], *marks[:-1]]
    return pa.concat_tables(
        batch.append_column("arrival", pa.array([mark] * batch.num_rows, pa.int64()))
        for batch, mark in zip(batches, before, strict=True)
    )


def answer(plan: lp.LogicalPlan, rows: pa.Table) -> pa.Table:
    tables = {"readings": rows, "names": load_table(NAMES, Path())}
    late = {"readings": "arrival"} if "arrival" in rows.column_names else None
    return evaluate(plan, tables, arrival_watermark=late)


def difference(plan: lp.LogicalPlan, wanted: pa.Table, got: pa.Table) -> Difference:
    approximate, spread = inexact_columns(plan)
    return multiset_difference(wanted, got, approximate=approximate, spread=spread)


def on_duckdb(part: Part, rows: Rows, ends: Ends | None) -> pa.Table:
    """Stands in for Spark: a part on Spark, done by DuckDB."""
    database = WindowDatabase(threads=1)
    try:
        for name in lp.tables_of(part.root):
            database.add_table(name, load_table(TABLES[name], Path()))
        given = {node: database.put(str(k), table) for k, (node, table) in enumerate(rows.items())}
        return database.evaluate(part.root, given, ends)
    finally:
        database.close()


@dataclass
class Driven:
    """A federated job fed batch by batch, with DuckDB in Spark's place."""

    job: FederatedJob
    folder: Path
    batches: Sequence[pa.Table]
    start: int = 0
    delay: int = DELAY
    pairs: int = 16_000_000
    known: dict[tuple[lp.LogicalPlan, int], pa.Table] = field(default_factory=dict)
    """What feeds give in a batch, for all splits of a query over the same rows."""
    marks: list[int] = field(init=False)
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        self.marks = watermarks([*self.batches, self.batches[0].slice(0, 0)], self.start, self.delay)
        self.marks[-1] = 253_000_000_000 * SECOND
        self.program = program_of(self.job)
        self.federation = self.opened()

    def opened(self) -> Federation:
        tables = {name: load_table(table, Path()) for name, table in TABLES.items()}
        return Federation(
            self.program,
            self.folder,
            tables,
            on_duckdb,
            start=self.start,
            threads=1,
            pairs=self.pairs,
        )

    def feeds(self, number: int) -> Mapping[int, pa.Table]:
        """What Spark would give in a batch: new rows, or the windows that its watermark closes."""
        for feed in self.program.feeds:
            if (feed.node, number) not in self.known:
                self.known[feed.node, number] = self._fed(feed.node, number)
        return {feed.number: self.known[feed.node, number] for feed in self.program.feeds}

    def _fed(self, node: lp.LogicalPlan, number: int) -> pa.Table:
        if node.shape is lp.Shape.STREAM:
            fresh = self.batches[number] if number < len(self.batches) else self.batches[0].slice(0, 0)
            return answer(node, fresh)
        taken = self.batches[: number + 1]
        rows = answer(node, with_arrival(taken, [self.start, *self.marks][1 : len(taken) + 1]))
        assert node.window is not None
        ends = pc.cast(rows[node.window.end], pa.int64())
        before = self.marks[number - 1] if number else self.start
        return rows.filter(pc.and_(pc.greater(ends, before), pc.less_equal(ends, self.marks[number])))

    def run(self, upto: int | None = None, first: int = 0) -> None:
        for number in range(first, len(self.marks) if upto is None else upto):
            self.federation.batch(number, self.marks[number], self.feeds(number))

    def answers(self, query: str) -> pa.Table:
        ledger = Ledger(self.folder)
        parts = [read_given(path) for _, name, path in ledger.given(10**9) if name == query]
        plan = next(m.plan for m in self.job.members if m.query == query)
        empty = answer(plan, self.batches[0].slice(0, 0))
        return pa.concat_tables([empty, *parts])


def job_of(
    queries: Mapping[str, tuple[lp.LogicalPlan, tuple[Engine, ...]]], name: str = "fed"
) -> FederatedJob:
    members = tuple(FederatedMember(q, plan, engines) for q, (plan, engines) in queries.items())
    return FederatedJob(name, "local", members)


S, D = Engine.SPARK, Engine.DUCKDB
CQ1, CQ3 = plan_of(QUERIES["cq1"]), plan_of(QUERIES["cq3"])
FILTERS = (S, S, D, D, D)
"""Of CQ1: the filters on Spark, the rest on DuckDB."""
BATCHES = sliced(readings(5, 30, rate=8), 3)


def assert_answer(driven: Driven, query: str, wanted: pa.Table) -> None:
    plan = next(m.plan for m in driven.job.members if m.query == query)
    found = difference(plan, wanted, driven.answers(query))
    assert wanted.num_rows and not found, found.text()
