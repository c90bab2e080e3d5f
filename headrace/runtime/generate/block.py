"""A block: some rows of a stream in order of event time, drawn from a seed of its own.

Blocks have a fixed number of rows, so that row i is the same whatever is asked for around it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.catalog.model import GeneratorSource, Stream
from headrace.errors import InternalError
from headrace.plan.types import DataType

BLOCK_ROWS = 1 << 16
Micros = npt.NDArray[np.int64]

ARROW: dict[DataType, pa.DataType] = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INT: pa.int32(),
    DataType.BIGINT: pa.int64(),
    DataType.FLOAT: pa.float32(),
    DataType.DOUBLE: pa.float64(),
    DataType.STRING: pa.string(),
    DataType.DATE: pa.date32(),
    DataType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, slots=True)
class Block:
    times: Micros
    """Event times, never falling, and never before those of the block in front."""
    table: pa.Table


def generator_of(stream: Stream) -> GeneratorSource:
    if not isinstance(stream.source, GeneratorSource):
        raise InternalError(f"stream {stream.name} is not generated")
    return stream.source


def draws(stream: Stream, purpose: str, block: int) -> np.random.Generator:
    """Random numbers for one purpose in one block. Two streams with one seed do not move together."""
    words = [zlib.crc32(text.encode()) for text in (stream.name, purpose)]
    # A seed may be negative; numpy takes none, so it is folded to 64 bits.
    seed = generator_of(stream).seed & (1 << 64) - 1
    return np.random.Generator(np.random.PCG64([seed, *words, block]))


def arrow_schema(stream: Stream) -> pa.Schema:
    return pa.schema([(name, ARROW[kind]) for name, kind in stream.columns.items()])
