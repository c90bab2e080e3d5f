"""What is measured: two seeded streams and three queries over them, as a Headrace project.

Rows arrive out of order, but never later than the watermark allows: no engine may drop one, so all of them
must give the same answers. The input comes in a fixed number of batches, however many rows it has.
"""

from __future__ import annotations

from pathlib import Path

from headrace.catalog.model import Distribution, GeneratorSource, Project, Query, Site, Stream
from headrace.plan.types import DataType
from headrace.service.data import materialise_all
from headrace.service.planning import plan_project
from headrace.units import parse_duration, parse_instant

DEVICES = 50
READINGS_A_SECOND = 100
ALARMS_A_SECOND = 10
WATERMARK = "5 seconds"
DISORDER = "3 seconds"
FILES = 6
FILES_PER_BATCH = 2

TUMBLING = "tumbling_count"
SLIDING = "sliding_avg"
JOIN = "interval_join"

SQL = {
    TUMBLING: """
        SELECT window_start, window_end, device, count(*) AS readings
        FROM readings [RANGE 10 SECONDS SLIDE 10 SECONDS]
        GROUP BY device
    """,
    SLIDING: """
        SELECT window_start, window_end, device, avg(value) AS mean
        FROM readings [RANGE 60 SECONDS SLIDE 6 SECONDS]
        GROUP BY device
    """,
    JOIN: """
        SELECT a.ts AS alarm_ts, r.ts AS ts, a.device AS device, a.level AS level, r.value AS value
        FROM alarms AS a JOIN readings AS r
        ON r.device = a.device AND r.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts
    """,
}


def project(root: Path, rows: int) -> Project:
    """The project, its data written below `root`. `rows` is the length of the larger stream."""
    device = Distribution(kind="uniform", low=0, high=DEVICES - 1)
    readings = _stream(
        "readings",
        {"ts": DataType.TIMESTAMP, "device": DataType.INT, "value": DataType.DOUBLE},
        {"device": device, "value": Distribution(kind="normal", mean=50, stddev=10)},
        rows,
        READINGS_A_SECOND,
    )
    alarms = _stream(
        "alarms",
        {"ts": DataType.TIMESTAMP, "device": DataType.INT, "level": DataType.INT},
        {"device": device, "level": Distribution(kind="uniform", low=1, high=5)},
        max(FILES, rows * ALARMS_A_SECOND // READINGS_A_SECOND),
        ALARMS_A_SECOND,
    )
    made = Project(
        name="benchmark",
        root=root,
        streams={"readings": readings, "alarms": alarms},
        tables={},
        sites={"local": Site(name="local")},
        links=(),
        queries={name: Query(name=name, sql=sql) for name, sql in SQL.items()},
    )
    materialise_all(made, plan_project(made))
    return made


def _stream(
    name: str, columns: dict[str, DataType], drawn: dict[str, Distribution], rows: int, rate: int
) -> Stream:
    source = GeneratorSource(
        seed=14,
        start=parse_instant("2024-05-01 12:00:00"),
        rows=rows,
        files=FILES,
        files_per_batch=FILES_PER_BATCH,
        disorder=parse_duration(DISORDER),
        columns=drawn,
    )
    watermark = parse_duration(WATERMARK)
    return Stream(name=name, columns=columns, time="ts", watermark=watermark, rate=rate, source=source)
