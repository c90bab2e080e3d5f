"""The runs of a calibration: trees and plain queries over made-up rows whose amounts of work are known.

Most cases have much of one kind of work and little of the others, so that prices can be told apart; those "of
all" are there to be wrong about. Amounts are counted from the rows, not guessed from rates: the model's own
guesses (how many groups a number of rows meets) are not mixed up with what a unit costs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headrace.catalog.model import FileSource, Format, Project, Query, Site, Stream
from headrace.errors import InternalError
from headrace.plan.placed import Job, TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.service.binding import plan_query
from headrace.service.weaving import member_of

STREAM = "rows"
_START = 1_700_000_000
_MICROS = 1_000_000
_VALUES = 4
_AGGREGATES = ("avg", "max", "min", "sum")
_OLD = 1_600_000_000
"""Modification times of the files: Spark reads the oldest first."""
_BATCHES = ("batch", "query_batch", "plain_batch")
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    range: int
    slide: int
    outputs: int
    """One count, then aggregates of the values in turn."""


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of `seconds` of event time, evenly over `batches` micro-batches and `keys` groups."""

    name: str
    rows: int
    seconds: int
    keys: int
    batches: int
    windows: tuple[Window, ...]
    plain: bool = False
    """As Spark's own window; then there is one window."""

    def scaled(self, by: float) -> Case:
        return replace(self, rows=int(self.rows * by), seconds=max(60, int(self.seconds * by)))


def _windows(count: int, range_: int, slide: int, outputs: int) -> tuple[Window, ...]:
    """`count` queries that differ in their ranges."""
    return tuple(Window(range_ + number * slide, slide, outputs) for number in range(count))


WARM_UP = Case("warm-up", 200_000, 300, 100, 4, (*_windows(4, 30, 1, 3), Window(30, 3, 2)))
PLAIN_WARM_UP = Case("warm-up", 100_000, 60, 20, 4, _windows(1, 30, 1, 2), plain=True)
CASES = (
    Case("rows", 4_000_000, 600, 20, 2, _windows(1, 60, 10, 1)),
    Case("arguments", 2_000_000, 600, 20, 2, _windows(1, 60, 10, 5)),
    Case("fragments", 1_500_000, 300, 5_000, 2, _windows(1, 60, 1, 1)),
    Case("slides", 600_000, 600, 1_000, 2, tuple(Window(s, s, 1) for s in (7, 11, 13, 17, 19, 23))),
    Case("results", 300_000, 600, 400, 2, _windows(50, 60, 1, 1)),
    Case("wide results", 300_000, 600, 400, 2, _windows(16, 60, 1, 5)),
    Case("many queries", 4_000, 60, 4, 4, _windows(150, 60, 10, 1)),
    Case("more batches", 4_000, 60, 10, 9, _windows(1, 10, 10, 1)),
    Case("few batches", 1_000, 60, 10, 2, _windows(1, 10, 10, 1)),
    Case("of all: busy", 1_500_000, 300, 100, 3, (*_windows(10, 60, 1, 2), *_windows(4, 45, 5, 3))),
    Case("of all: sparse", 500_000, 600, 3_000, 3, (Window(120, 2, 2), Window(91, 3, 2), Window(60, 5, 4))),
)
PLAIN = (
    Case("plain: few batches", 1_000, 60, 10, 2, _windows(1, 10, 10, 1), plain=True),
    Case("plain: more batches", 4_000, 60, 10, 9, _windows(1, 10, 10, 1), plain=True),
    Case("plain: rows", 3_000_000, 600, 20, 2, _windows(1, 60, 60, 1), plain=True),
    Case("plain: overlap", 300_000, 120, 20, 2, _windows(1, 60, 1, 1), plain=True),
    Case("plain: state", 100_000, 120, 1_000, 2, _windows(1, 60, 2, 1), plain=True),
    Case("plain: of all", 400_000, 300, 100, 3, _windows(1, 30, 3, 2), plain=True),
)
FOOTPRINT = Case("footprint", 120_000, 300, 200, 10, _windows(1, 600, 1, 5))
HELD_OUT = Case(
    "not in the fit",
    800_000,
    400,
    300,
    5,
    (*_windows(20, 100, 1, 2), *_windows(5, 60, 5, 4), Window(90, 7, 3)),
)
QUICK = ("few batches", "rows", "results", "plain: overlap")
"""One case for each kind of work in `cost.fit.KINDS`."""


def rows_of(case: Case) -> pa.Table:
    """The rows in order of time; those of one batch stand together."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, case.seconds * _MICROS, case.rows)) + _START * _MICROS
    columns = {"ts": pa.array(times, pa.timestamp("us", "UTC"))}
    columns |= {"k": pa.array(rng.integers(0, case.keys, case.rows), pa.int32())}
    return pa.table(columns | {f"v{n}": pa.array(rng.normal(50, 10, case.rows)) for n in range(_VALUES)})


def write_rows(case: Case, table: pa.Table, folder: Path) -> None:
    """One file a batch."""
    folder.mkdir(parents=True)
    each = -(-table.num_rows // case.batches)
    for number in range(case.batches):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(table.slice(number * each, each), path)
        os.utime(path, (_OLD + 10 * number, _OLD + 10 * number))


def project_of(case: Case, rows: Path, site: Site) -> Project:
    columns = {"ts": DataType.TIMESTAMP, "k": DataType.INT} | {
        f"v{n}": DataType.DOUBLE for n in range(_VALUES)
    }
    source = FileSource(path=str(rows), format=Format.PARQUET, files_per_batch=1)
    stream = Stream(name=STREAM, columns=columns, time="ts", rate=case.rows / case.seconds, source=source)
    queries = {f"q{n}": _query(f"q{n}", window, site) for n, window in enumerate(case.windows)}
    return Project(
        name="calibration",
        root=rows,
        streams={STREAM: stream},
        tables={},
        sites={site.name: site},
        links=(),
        queries=queries,
    )


def _query(name: str, window: Window, site: Site) -> Query:
    more = [f"{_AGGREGATES[n]}(v{n}) AS a{n}" for n in range(window.outputs - 1)]
    sql = (
        f"SELECT window_end, k, {', '.join(['count(*) AS n', *more])} FROM TABLE(HOP(TABLE {STREAM}, "
        f"DESCRIPTOR(ts), INTERVAL '{window.slide}' SECOND, INTERVAL '{window.range}' SECOND)) "
        "GROUP BY window_start, window_end, k"
    )
    return Query(name=name, sql=sql, site=site.name)


def tree_of(project: Project, site: Site) -> TreeJob:
    members = tuple(_member(project, query) for query in project.queries.values())
    return TreeJob("tree", site.name, shape_of(members), members)


def _member(project: Project, query: Query) -> TreeMember:
    member = member_of(project, query)
    if isinstance(member, str):
        raise InternalError(f"calibration: {member}")
    return member


def job_of(project: Project) -> Job:
    return plan_query(project, next(iter(project.queries.values())))


def in_batches(work: Mapping[str, float], batches: int) -> Mapping[str, float]:
    """The work of a case that Spark did in so many batches."""
    return {name: n * batches if name in _BATCHES else n for name, n in work.items()}


def amounts(case: Case, table: pa.Table) -> Mapping[str, float]:
    """How much of each kind of work the case has, as if it were one batch."""
    times, keys, parts = _columns(case, table)
    if case.plain:
        return _plain_amounts(case, times, keys, parts)
    starts = _fragments(times, case.windows)
    fragments = _distinct(starts, keys)
    cells = [_cells(window, times, keys) for window in case.windows]
    slides = len({window.slide for window in case.windows})
    arguments = max(window.outputs for window in case.windows) - 1
    return {
        "job": 1,
        "batch": 1,
        "query_batch": len(case.windows),
        "row": case.rows,
        "row_argument": case.rows * arguments,
        "fragment": _distinct(parts, starts, keys),
        "fragment_slide": fragments * slides,
        "cell": sum(cells),
        "cell_output": sum(n * window.outputs for n, window in zip(cells, case.windows, strict=True)),
    }


def _plain_amounts(case: Case, times: Ints, keys: Ints, parts: Ints) -> Mapping[str, float]:
    window = case.windows[0]
    slide, size = window.slide * _MICROS, window.range * _MICROS
    overlap = -(-size // slide)
    last = times // slide
    first = int(last.min()) - overlap
    touched = np.zeros((case.batches, int(last.max()) - first + 1, case.keys), dtype=np.bool_)
    expanded = 0
    for back in range(overlap):
        inside = times < (last - back) * slide + size
        touched[parts[inside], last[inside] - back - first, keys[inside]] = True
        expanded += int(inside.sum())
    return {
        "plain_job": 1,
        "plain_batch": 1,
        "plain_row": case.rows,
        "expanded_row": expanded,
        "plain_state": int(touched.sum()),
    }


def _columns(case: Case, table: pa.Table) -> tuple[Ints, Ints, Ints]:
    """Times, keys, and the number of the batch of every row."""
    each = -(-table.num_rows // case.batches)
    times = table["ts"].cast(pa.int64()).to_numpy()
    keys = table["k"].cast(pa.int64()).to_numpy()
    return times, keys, np.arange(table.num_rows, dtype=np.int64) // each


def _fragments(times: Ints, windows: tuple[Window, ...]) -> Ints:
    """The last edge of any window at each instant or before it."""
    kinds = {(w.slide, offset) for w in windows for offset in (0, w.range % w.slide)}
    starts: Ints = np.maximum.reduce([times - (times - o * _MICROS) % (s * _MICROS) for s, o in kinds])
    return starts


def fragments(table: pa.Table, windows: tuple[Window, ...]) -> Ints:
    """Where the fragment of every row starts."""
    return _fragments(table["ts"].cast(pa.int64()).to_numpy(), windows)


def _cells(window: Window, times: Ints, keys: Ints) -> int:
    """Windows with a row, for each key: every row opens the windows since the one before it of its key."""
    order = np.lexsort((times, keys))
    slide, size = window.slide * _MICROS, window.range * _MICROS
    last = times[order] // slide
    first = (times[order] - size) // slide + 1
    same = np.diff(keys[order], prepend=-1) == 0
    since = np.where(same, np.maximum(first, np.roll(last, 1) + 1), first)
    return int((last - since + 1).sum())


def _distinct(*columns: Ints) -> int:
    if not len(columns[0]):
        return 0
    order = np.lexsort(columns)
    changes = np.zeros(len(order) - 1, dtype=np.bool_)
    for column in columns:
        changes |= np.diff(column[order]) != 0
    return 1 + int(changes.sum())
