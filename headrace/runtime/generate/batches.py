"""The rows of a generated stream, cut into as many tables as there are files, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headrace.catalog.model import Stream
from headrace.runtime.generate.arrival import in_arrival_order
from headrace.runtime.generate.block import arrow_schema, generator_of
from headrace.runtime.generate.distributions import column_blocks
from headrace.runtime.generate.smart_plugs import smart_plug_blocks


def sizes(stream: Stream) -> list[int]:
    """Rows per file: equal but for one row. With fewer rows than files the last files are empty."""
    source = generator_of(stream)
    each, more = divmod(source.rows, source.files)
    return [each + (1 if i < more else 0) for i in range(source.files)]


def batches(stream: Stream) -> Iterator[pa.Table]:
    """One table per file. Raises UserError where the stream's columns do not fit its generator."""
    shape = generator_of(stream).shape
    blocks = smart_plug_blocks(stream) if shape == "smart-plugs" else column_blocks(stream)
    pieces = in_arrival_order(stream, blocks)
    pending = arrow_schema(stream).empty_table()
    for size in sizes(stream):
        while pending.num_rows < size:
            pending = pa.concat_tables([pending, next(pieces)])
        yield pending.slice(0, size).combine_chunks()
        pending = pending.slice(size)
