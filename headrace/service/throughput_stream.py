"""The stream that splits are measured with: smart plugs at a given rate, as files that are a batch each.

The first files fill the longest window, in few large batches; then every file has the same few seconds of
event time, so that the batches after that are what a steady run does again and again. As in the paper the
plugs stay the same at every rate and report more often, and every second row is a load.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import FileSource, Format, PlannerChoices, Project, Query, Site, Stream
from headrace.plan.types import DataType

STREAM = "readings"
MICROS = 1_000_000
START = 1_378_058_400 * MICROS
DELAY = 1 * MICROS
HOUSEHOLDS, PLUGS = 5, 5
"""Of a house, of a household."""
_OLD = 1_600_000_000
_MOST_ROWS = 2_000_000
"""In a file that fills the windows: what a batch takes in is handed on as one table."""
COLUMNS = {
    "ts": DataType.TIMESTAMP,
    "property": DataType.STRING,
    "value": DataType.DOUBLE,
    "plug": DataType.INT,
    "household": DataType.INT,
    "house": DataType.INT,
}


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in. Times are in seconds."""

    rate: int
    houses: int = 16
    batch: int = 10
    fill: int = 300
    """As long as the longest window."""
    warm: int = 2
    """Batches after that which are not measured: the first gives the windows of the whole fill on Spark."""
    measured: int = 6

    @property
    def plugs(self) -> int:
        return self.houses * HOUSEHOLDS * PLUGS

    @property
    def fills(self) -> int:
        """Files that fill the windows; a divisor of the time, so that all are as long."""
        least = -(-self.rate * self.fill // _MOST_ROWS)
        return next(n for n in range(max(least, 1), self.fill + 1) if self.fill % n == 0)

    @property
    def files(self) -> int:
        return self.fills + self.warm + self.measured

    @property
    def first(self) -> int:
        """The number of the first measured batch."""
        return self.fills + self.warm

    @property
    def after(self) -> int:
        """Windows are wanted that end later: before, they were not full. Microseconds."""
        return START + self.fill * MICROS

    @property
    def rows_a_batch(self) -> int:
        return self.rate * self.batch

    def spans(self) -> Iterator[tuple[int, int]]:
        """Of each file: the numbers of its first row and of the one after its last."""
        each = self.fill // self.fills
        seconds = [k * each for k in range(self.fills)]
        seconds += [self.fill + k * self.batch for k in range(self.warm + self.measured + 1)]
        rows = [self.rate * second for second in seconds]
        yield from pairwise(rows)


def readings(load: Load, first: int, last: int) -> pa.Table:
    """Rows of the stream by their numbers, in order of time. Values are quarters, so that sums are exact in
    any order and a comparison with an average comes out the same on both engines."""
    number = np.arange(first, last, dtype=np.int64)
    plug = number // 2 % load.plugs
    # A multiplicative hash: the same row has the same value whichever file it is made for.
    drawn = (number * 2_654_435_761 % 4_294_967_291) % 1600
    parts = {
        "ts": pa.array(START + number * MICROS // load.rate, pa.timestamp("us", "UTC")),
        "property": pa.array(["load", "work"]).take(pa.array(number % 2)),
        "value": pa.array(drawn / 4),
        "plug": pa.array((plug % PLUGS).astype(np.int32)),
        "household": pa.array((plug // PLUGS % HOUSEHOLDS).astype(np.int32)),
        "house": pa.array((plug // (PLUGS * HOUSEHOLDS)).astype(np.int32)),
    }
    return pa.table(parts)


def write_readings(load: Load, folder: Path) -> None:
    """The files of a load, in the order of their modification times. What is there already stays."""
    done = folder / "_done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, (first, last) in enumerate(load.spans()):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(readings(load, first, last), path)
        os.utime(path, (_OLD + 10 * number, _OLD + 10 * number))
    done.touch()


def project_of(load: Load, rows: Path, name: str, sql: str, cores: float) -> Project:
    """With the trigger that the load stands for, which is what costs depend on; a run is given its files as
    fast as it takes them."""
    stream = Stream(
        name=STREAM,
        columns=COLUMNS,
        time="ts",
        watermark=DELAY,
        rate=load.rate,
        distinct={"property": 2, "plug": PLUGS, "household": HOUSEHOLDS, "house": load.houses},
        source=FileSource(path=str(rows), format=Format.PARQUET, files_per_batch=1),
    )
    endpoint = f"local[{max(1, int(cores))}]"
    return Project(
        name="throughput",
        root=rows,
        streams={STREAM: stream},
        tables={},
        sites={"local": Site(name="local", endpoint=endpoint, cpu=cores)},
        links=(),
        queries={name: Query(name=name, sql=sql)},
        planner=PlannerChoices(trigger=load.batch * MICROS),
    )
