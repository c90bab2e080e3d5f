"""A small project and its plans, made by hand: service tests need no SQL, no files and no engine."""

from __future__ import annotations

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
from headrace.plan.logical import Aggregate, StreamScan, Window, WindowSpec
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.types import DataType

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
