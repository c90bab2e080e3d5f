"""Jobs with state that are fed while they are moved: a tree of windows, an interval join, windows over joins,
and queries that are split between Spark and DuckDB.

All read one stream of small files that a feeder writes, one after the other, as long as the check goes on. At
the end each job is drained, and what it gave must be what a batch evaluation of the same files gives.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.catalog.model import Query, SinkKind
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedJob, FederatedMember, operators
from headrace.plan.placed import Job, TreeJob, TreeMember, shape_of
from headrace.rewrite.driver import rewrite
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import JobContext
from headrace.runtime.results import published, read_file, read_results
from headrace.runtime.sites import Unit
from headrace.service.members import normal_form, weavable
from headrace.sql.bind import bind_query
from tests.moves_order import disorder
from tests.spark.harness import context_of, with_files, write_batches
from tests.spark.plans import SECOND, SHAPES, STREAM, random_batches

_HOP = "FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{}' SECOND, INTERVAL '{}' SECOND))"
_QUERIES = {
    "means": f"SELECT window_start, plug, avg(value) AS m, count(*) AS n {_HOP.format(2, 10)} "
    "GROUP BY window_start, window_end, plug",
    "tops": f"SELECT window_end, plug, max(value) AS top {_HOP.format(3, 7)} "
    "WHERE value > 20 GROUP BY window_start, window_end, plug",
    "counts": f"SELECT window_end, count(*) AS n {_HOP.format(15, 60)} GROUP BY window_start, window_end",
}
_SPLIT = {
    "near": "SELECT a.window_start, a.window_end, a.plug, count(*) AS n "
    "FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] AS a WHERE a.value > 0.5 * (SELECT max(b.value) "
    "FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] AS b WHERE b.plug = a.plug) GROUP BY a.plug",
    "spread": "SELECT window_start, window_end, plug, stddev(value) AS d, max(value) AS top "
    "FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS] WHERE value > 10 GROUP BY plug",
}
JOBS = ("tree", "join", "window", "split")
_MEMBERS = {"tree": tuple(_QUERIES), "split": tuple(_SPLIT)}
_TIMES = {"join": "a.ts", "window": "window_start"}
"""The time column of the answers that DuckDB finds by looking at all pairs of rows."""
_SLICE, _REACH = 600 * SECOND, 60 * SECOND
"""So much event time is evaluated at once there; no row of an answer needs input further away than that."""
_ROWS = 40
_FILES_PER_BATCH = 4
"""So that a job that has stood still catches up; also by how many files one side of a join may be ahead."""


def tree() -> TreeJob:
    return TreeJob("tree", "local", shape_of(_members()), _members())


def _members() -> tuple[TreeMember, ...]:
    return tuple(_member(name, sql) for name, sql in _QUERIES.items())


def _member(name: str, sql: str) -> TreeMember:
    plan = normal_form(bind_query(Query(name=name, sql=sql), {"s": STREAM}, {}))
    aggregate = weavable(plan)
    assert not isinstance(aggregate, str), aggregate
    return TreeMember(name, plan, aggregate)


def split() -> FederatedJob:
    """All on DuckDB, but for the filter of one."""
    members = []
    for name, sql in _SPLIT.items():
        plan = rewrite(bind_query(Query(name=name, sql=sql), {"s": STREAM}, {}))
        engines = (Engine.SPARK if isinstance(node, lp.Filter) else Engine.DUCKDB for node in operators(plan))
        members.append(FederatedMember(name, plan, tuple(engines)))
    return FederatedJob("split", "local", tuple(members))


def plans() -> dict[str, lp.LogicalPlan]:
    """Of every query, by its name."""
    members: list[TreeMember | FederatedMember] = [*tree().members, *split().members]
    return {member.query: member.plan for member in members} | {
        "join": SHAPES["join"],
        "window": SHAPES["join_then_window"],
    }


@dataclass(frozen=True, slots=True)
class Load:
    """The jobs of one check, in one folder. `apart`: each site has storage of its own for what jobs keep;
    `fast`: for checkpoints only."""

    root: Path
    endpoints: Mapping[str, str]
    apart: bool = False
    fast: bool = False

    @property
    def input(self) -> Path:
        return self.root / "in"

    def units(self, *, drain: bool = False, jobs: Sequence[str] = JOBS) -> dict[str, Unit]:
        made: dict[str, Unit] = {}
        for name in jobs:
            plan = plans()
            whole: dict[str, TreeJob | FederatedJob] = {"tree": tree(), "split": split()}
            members = _MEMBERS.get(name, ())
            made[name] = Unit(
                whole[name] if name in whole else Job(name, name, "local", plan[name]),
                lambda site, name=name: self.context(name, site, drain=drain),  # type: ignore[misc]
                lambda site, members=members: {  # type: ignore[misc]
                    query: self.context(query, site, drain=drain) for query in members
                },
                drain,
            )
        return made

    def context(self, name: str, site: str, *, drain: bool = False) -> JobContext:
        """A drain takes all that is left at once."""
        limit = None if drain else _FILES_PER_BATCH
        streams = {"s": with_files(STREAM, self.input, files_per_batch=limit)}
        made = context_of(self.root, streams, {}, name=name, endpoint=self.endpoints[site])
        if self.apart and name in JOBS:
            made = replace(made, state=self.root / ".headrace" / f"jobs-of-{site}" / name)
        if self.fast and name in JOBS:
            storage = self.root / f"fast-{site}"
            storage.mkdir(parents=True, exist_ok=True)
            made = replace(made, storage=storage)
        return made

    def problems(self, jobs: Sequence[str] = JOBS) -> list[str]:
        """What differs from the reference, or is not in order for each key, for each query."""
        files = [pq.read_table(path) for path in sorted(self.input.glob("*.parquet"))]
        names = [query for job in jobs for query in _MEMBERS.get(job, (job,))]
        return [problem for name in names for problem in self._problem(name, files)]

    def _problem(self, query: str, files: Sequence[pa.Table]) -> list[str]:
        plan = plans()[query]
        approximate, spread = inexact_columns(plan)
        wanted = reference(query, pa.concat_tables(files))
        context = self.context(query, next(iter(self.endpoints)))
        got = read_results(context.results, SinkKind.PARQUET, plan.schema)
        found = multiset_difference(wanted, got, approximate=approximate, spread=spread)
        if not wanted.num_rows:
            return [f"{query}: the reference has no rows"]
        parts = [read_file(path, SinkKind.PARQUET, plan.schema) for path in published(context.results)]
        # Trees and split jobs publish a file for a batch, Spark one for each partition.
        together = context.shuffle_partitions if query in SHAPES or query == "window" else 1
        order = disorder(query, parts, files, _FILES_PER_BATCH, together)
        return [*([f"{query}: {found.text()}"] if found else []), *order]


def reference(query: str, rows: pa.Table) -> pa.Table:
    """The answer over all rows. Joins of streams are found slice by slice of their time, since all pairs of
    an hour's rows would take longer than the hour."""
    plan, time = plans()[query], _TIMES.get(query)
    if time is None:
        return evaluate(plan, {"s": rows})
    least, most = (bound.as_py() for bound in pc.min_max(_micros(rows["ts"])).values())
    found = []
    for start in range(least - _REACH, most + _REACH, _SLICE):
        near = _between(rows, "ts", start - _REACH, start + _SLICE + _REACH)
        found.append(_between(evaluate(plan, {"s": near}), time, start, start + _SLICE))
    return pa.concat_tables(found)


def _between(rows: pa.Table, time: str, start: int, end: int) -> pa.Table:
    micros = _micros(rows[time])
    return rows.filter(pc.and_(pc.greater_equal(micros, start), pc.less(micros, end)))


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())


class Feeder:
    """Writes a file every so many seconds until it is stopped."""

    def __init__(self, load: Load, seed: int, every: float, most: int = 2000, rows: int = _ROWS) -> None:
        self._load, self._every = load, every
        self._batches = random_batches(seed, batches=most, rows=rows)
        self._stop, self.written = threading.Event(), 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, first: int = 3) -> None:
        """The first files are there before any job is."""
        for _ in range(first):
            self._write()
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every) and self.written < len(self._batches):
            self._write()

    def _write(self) -> None:
        write_batches(self._load.input, [self._batches[self.written]], first=self.written)
        self.written += 1

    def stop(self) -> int:
        """How many files there are in all."""
        self._stop.set()
        self._thread.join()
        return self.written
