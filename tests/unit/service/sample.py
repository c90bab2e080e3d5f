"""A small project and its plans, made by hand: service tests need no SQL, no files and no engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headrace.catalog.model import (
    FileSource,
    Format,
    GeneratorSource,
    PlannerChoices,
    Project,
    Query,
    RateSource,
    Sink,
    SinkKind,
    Site,
    Source,
    Stream,
)
from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.logical import Aggregate, LogicalPlan, StreamScan, Window, WindowSpec
from headrace.plan.placed import Job, PlacedPlan, TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.service.deployment import Planner

COLUMNS = {"ts": DataType.TIMESTAMP, "k": DataType.INT, "v": DataType.DOUBLE}


def stream(name: str, source: Source) -> Stream:
    return Stream(name=name, columns=COLUMNS, time="ts", source=source)


STREAMS = {
    "files": stream("files", FileSource(path="input", format=Format.JSON)),
    "made": stream("made", GeneratorSource(rows=10, files_per_batch=2)),
    "endless": Stream(
        name="endless",
        columns={"timestamp": DataType.TIMESTAMP, "value": DataType.BIGINT},
        time="timestamp",
        source=RateSource(),
    ),
}


def project(
    root: Path, names: tuple[str, ...] = ("a", "b", "c"), parallel: int = 2, **sinks: Sink
) -> Project:
    queries = {n: Query(name=n, sql="SELECT 1", sink=sinks.get(n, Sink())) for n in names}
    return Project(
        name="sample",
        root=root,
        streams=STREAMS,
        tables={},
        sites={"local": Site(name="local", endpoint="local[2]")},
        links=(),
        queries=queries,
        planner=PlannerChoices(parallel=parallel),
    )


def scan(name: str = "files") -> StreamScan:
    found = STREAMS[name]
    return StreamScan(name, found.schema_, found.time, found.watermark)


def counted(over: str = "files", minutes: int = 5) -> Aggregate:
    spec = WindowSpec(minutes * 60_000_000, 60_000_000)
    window = Window(scan(over), STREAMS[over].time, spec)
    return Aggregate(window, (("k", ColumnRef("k", DataType.INT)),), (("n", AggregateCall("count", None)),))


def placed(found: Project, minutes: int = 5) -> PlacedPlan:
    return PlacedPlan(tuple(Job(n, n, "local", counted(minutes=minutes)) for n in found.queries))


def only_jobs(minutes: int = 5) -> Planner:
    """Every query as the same job, and no trees."""

    def plan_query(found: Project, query: Query) -> Job:
        return Job(query.name, query.name, query.site, counted(minutes=minutes))

    def place(found: Project, names: Sequence[str], taken: Collection[str]) -> PlacedPlan:
        return PlacedPlan(tuple(plan_query(found, found.queries[name]) for name in names))

    return Planner(plan_query, lambda found, query: "no trees here", place, lambda *_: None)


def query(name: str, sql: str = "5", sink: Sink | None = None) -> Query:
    """For `weaver`: the SQL is the range in minutes, or `alone` for a query that can be in no tree."""
    return Query(name=name, sql=sql, sink=sink or Sink())


def _plan(sql: str) -> LogicalPlan:
    return scan() if sql == "alone" else counted(minutes=int(sql))


def _member(found: Project, query: Query) -> TreeMember | str:
    plan = _plan(query.sql)
    return TreeMember(query.name, plan, plan) if isinstance(plan, Aggregate) else "it has no window"


def _place(found: Project, names: Sequence[str], taken: Collection[str]) -> PlacedPlan:
    """At most three to a tree."""
    at = {name: found.queries[name].site for name in names}
    parts = [(name, _member(found, found.queries[name])) for name in names]
    jobs = tuple(Job(name, name, at[name], _plan("alone")) for name, part in parts if isinstance(part, str))
    free = (f"tree-{number}" for number in range(1, 99) if f"tree-{number}" not in taken)
    trees: list[TreeJob] = []
    for site in dict.fromkeys(at.values()):
        members = [part for name, part in parts if isinstance(part, TreeMember) and at[name] == site]
        groups = [tuple(members[i : i + 3]) for i in range(0, len(members), 3)]
        trees += [TreeJob(next(free), site, shape_of(group), group) for group in groups]
    return PlacedPlan(jobs, tuple(trees))


def _best(found: Project, member: TreeMember, site: str | None, trees: Sequence[TreeJob]) -> TreeJob | None:
    able = [tree for tree in trees if site in (None, tree.site) and tree.shape.takes(member)]
    return next(iter(able), None)


def weaver() -> Planner:
    """Weaves without any SQL or search; a plan is a function of the text of `query`."""

    def plan_query(found: Project, query: Query) -> Job:
        return Job(query.name, query.name, query.site, _plan(query.sql))

    return Planner(plan_query, _member, _place, _best)


def sink(kind: SinkKind, path: str | None = None) -> Sink:
    return Sink(kind=kind, path=path)


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.time = datetime(2024, 5, 1, tzinfo=UTC)
        self.slept = 0

    def __call__(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        self.slept += 1
