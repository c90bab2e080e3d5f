"""From order of event time to order of arrival.

A row arrives at its event time plus a delay in [0, disorder), ties in order of event time. So when a row
a comes after a newer row b, then ts(a) + delay(a) >= ts(b) + delay(b), hence ts(b) - ts(a) <= disorder -
1: with a watermark delay of at least `disorder` no row is ever late.

A row still to be drawn arrives no earlier than its event time, so what arrives before the next block's
first event time can be given at once: only about one block and one `disorder` of rows are held.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace.catalog.model import Stream
from headrace.runtime.generate.block import Block, Micros, draws, generator_of


def in_arrival_order(stream: Stream, blocks: Iterator[Block]) -> Iterator[pa.Table]:
    """The rows of all blocks, in pieces, in order of arrival."""
    held, held_arrival = None, np.zeros(0, dtype=np.int64)
    for number, block in enumerate(blocks):
        if held is not None:
            arrived = held_arrival < block.times[0]
            yield _sorted(held.filter(pa.array(arrived)), held_arrival[arrived])
            held, held_arrival = held.filter(pa.array(~arrived)), held_arrival[~arrived]
        arrival = block.times + _delays(stream, number, len(block.times))
        held = block.table if held is None else pa.concat_tables([held, block.table])
        held_arrival = np.concatenate([held_arrival, arrival])
    if held is not None:
        yield _sorted(held, held_arrival)


def _delays(stream: Stream, number: int, rows: int) -> Micros:
    disorder = generator_of(stream).disorder
    if disorder <= 0:
        return np.zeros(rows, dtype=np.int64)
    return draws(stream, "delay", number).integers(0, disorder, size=rows, dtype=np.int64)


def _sorted(table: pa.Table, arrival: Micros) -> pa.Table:
    return table.take(pa.array(np.argsort(arrival, kind="stable")))
