"""Which bucket a key belongs to. Part of what a checkpoint relies on: it must never change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.runtime.windows.sketch import hashed

_STEP = np.uint64(0x9E3779B97F4A7C15)


def split(rows: pa.Table, spread: Sequence[str], buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of every bucket that has any. Without columns to go by, all are in the first."""
    if buckets == 1 or not spread:
        yield 0, rows
        return
    of = bucket_of(rows, spread, buckets)
    for bucket in np.unique(of).tolist():
        yield bucket, rows.filter(pa.array(of == bucket))


def bucket_of(rows: pa.Table, spread: Sequence[str], buckets: int) -> NDArray[np.int64]:
    """Equal keys are in the same bucket, NULL like any value."""
    mixed = np.zeros(rows.num_rows, np.uint64)
    for name in spread:
        column = rows[name].combine_chunks()
        mixed = (mixed ^ hashed(column)) * _STEP + column.is_null().to_numpy(zero_copy_only=False)
    # The low bits of a product depend on low bits only; the high ones on all.
    found: NDArray[np.int64] = ((mixed >> np.uint64(32)) % np.uint64(buckets)).astype(np.int64)
    return found
