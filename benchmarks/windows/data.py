"""The input: rows of one stream, drawn once from a seed and kept under the cache folder.

Rows come in order of arrival: each at most 1.5 s behind the newest before it, within the watermark of 2 s, so
no engine may drop one. Keys and values are drawn evenly and normally. Flink reads the same rows as CSV, which
its PyPI package can read, in one file for each core: with more files than readers it would not keep to their
order, and rows would come late.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

START = 1_699_999_200
"""Seconds since the epoch: a multiple of an hour."""
_MICROS = 1_000_000
_DISORDER = 3 * _MICROS // 2
_FIRST_MTIME = 1_600_000_000
SEED = 14


@dataclass(frozen=True, slots=True)
class Input:
    """`events` rows over `span` seconds of event time, in `files` files of equal length in time."""

    events: int
    span: int
    keys: int
    files: int = 60

    @property
    def name(self) -> str:
        return f"e{self.events}-s{self.span}-k{self.keys}-f{self.files}"

    @property
    def per_file(self) -> int:
        return self.events // self.files


def make(cache: Path, wanted: Input) -> Path:
    """The folder of Parquet files, made where it is not there yet."""
    folder = cache / "data" / wanted.name
    if folder.exists():
        return folder
    staged = folder.with_name(f".{folder.name}.{os.getpid()}")
    staged.mkdir(parents=True)
    for number in range(wanted.files):
        path = staged / f"{number:04d}.parquet"
        pq.write_table(_rows(wanted, number), path)
        # Spark takes files in the order of their modification times.
        os.utime(path, (_FIRST_MTIME + 10 * number,) * 2)
    staged.rename(folder)
    return folder


def _rows(wanted: Input, number: int) -> pa.Table:
    chance = np.random.default_rng([SEED, wanted.keys, number])
    size = wanted.per_file
    low, high = (wanted.span * _MICROS * n // wanted.files for n in (number, number + 1))
    arrival = np.sort(chance.integers(low, high, size))
    times = START * _MICROS + np.maximum(arrival - chance.integers(0, _DISORDER, size), 0)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(chance.integers(0, wanted.keys, size), pa.int32()),
            "v": pa.array(chance.normal(50, 10, size)),
            "w": pa.array(np.round(chance.gamma(2.0, 30.0, size), 3)),
        }
    )


def prefix(cache: Path, whole: Path, files: int) -> Path:
    """A folder with the first so many files, linked, with the same modification times."""
    folder = cache / "data" / f"{whole.name}-first{files}"
    paths = sorted(whole.glob("*.parquet"))
    if files >= len(paths):
        return whole
    if not folder.exists():
        folder.mkdir()
        for path in paths[:files]:
            os.link(path, folder / path.name)
    return folder


def as_csv(folder: Path, parts: int) -> Path:
    """The rows of a folder as CSV: ts in whole milliseconds, which is all that Flink's windows look at."""
    made = folder.with_name(f"{folder.name}-csv{parts}")
    if made.exists():
        return made
    staged = made.with_name(f".{made.name}.{os.getpid()}")
    staged.mkdir(parents=True)
    tables = (pq.read_table(path) for path in sorted(folder.glob("*.parquet")))
    options = pc_csv.WriteOptions(include_header=False)
    outs = [(staged / f"{part}.csv").open("wb") for part in range(parts)]
    for table in tables:
        millis = pa.array(np.asarray(table["ts"].cast(pa.int64())) // 1000)
        flat = table.set_column(0, "ts", millis)
        for part, out in enumerate(outs):
            # Every so-manieth row: all parts go through time together.
            pc_csv.write_csv(flat.take(np.arange(part, flat.num_rows, parts)), out, options)
    for out in outs:
        out.close()
    staged.rename(made)
    return made


def count(folder: Path) -> int:
    return sum(int(pq.read_metadata(path).num_rows) for path in folder.glob("*.parquet"))
