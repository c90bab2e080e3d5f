"""Rows for the paper's plans, written as they would come: a file of each stream for every tick."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headrace.service.distribution_jobs import MICROS, NUMBERS

START = 1_700_000_000 * MICROS
_OLD = 1_600_000_000


def rows_between(stream: int, rate: float, first: float, last: float) -> pa.Table:
    """The rows of a stream by their times, in seconds since the start: the same whichever file they are
    for."""
    number = np.arange(int(np.ceil(first * rate)), int(np.ceil(last * rate)), dtype=np.int64)
    times = START + (number * MICROS / rate).astype(np.int64)
    u = (_mixed(number, stream) % NUMBERS).astype(np.int64)
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "u": pa.array(u)})


def _mixed(number: NDArray[np.int64], stream: int) -> NDArray[np.uint64]:
    """Splitmix64. A multiplicative hash would not do: rows of two streams that are equally far apart would
    all match, or none of them."""
    z = number.astype(np.uint64) + np.uint64(stream << 40)
    z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Feeder:
    """Event time goes with the wall clock, `ahead` seconds before it: they fill the windows at once."""

    def __init__(self, folder: Path, streams: Sequence[str], rate: float, tick: float, ahead: float) -> None:
        self._folder, self._streams, self._rate, self._tick = folder, tuple(streams), rate, tick
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._files = 0
        self.until = 0.0
        """Seconds of event time that were written."""
        self._ahead = ahead

    def start(self) -> None:
        self._write(self._ahead)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(max(0.0, began + self._files * self._tick - time.monotonic())):
            # A feeder that was held up gives what is due, in one file.
            self._write(self._ahead + max(self._tick, time.monotonic() - began))

    def _write(self, until: float) -> None:
        for number, name in enumerate(self._streams):
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            staged = folder / f".{self._files:05d}.tmp"
            pq.write_table(rows_between(number, self._rate, self.until, until), staged)
            os.utime(staged, (_OLD + self._files, _OLD + self._files))
            staged.rename(folder / f"{self._files:05d}.parquet")
        self._files += 1
        self.until = until

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def tables(self) -> dict[str, pa.Table]:
        """All that was written."""
        return {
            name: rows_between(number, self._rate, 0.0, self.until)
            for number, name in enumerate(self._streams)
        }
