"""What a tree keeps and gives for one bucket of keys, in Spark's Python workers.

Order in a batch: its partials, then the watermark. A bucket without partials is woken by its timer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.runtime.windows import held
from headrace.runtime.windows.spec import TreeSpec
from headrace.runtime.windows.tree import from_json
from headrace.runtime.windows.weaver import Advanced, Weaver

if TYPE_CHECKING:
    import pandas as pd

RESULTS, LATE = 0, 1
"""Kinds of output rows: `data` holds results; `rows` is a number of late rows."""
BLOB_ROWS = 1 << 15
_FRAME_BLOBS = 64
_VERSION = "version"


@dataclass(frozen=True, slots=True)
class Bucket:
    """`name` is that of the tree and the bucket; `handle` and `chunks` are Spark's, of this batch."""

    name: str
    spec_json: str
    handle: Any
    chunks: Any

    def fed(self, blobs: Iterable[bytes], timers: Any) -> Iterator[pd.DataFrame]:
        """Take the partials of a batch, and give what its watermark closes."""
        weaver = self._open()
        for blob in blobs:
            if blob:
                weaver.take(from_blob(blob))
        yield from self._advance(weaver, timers)

    def _open(self) -> Weaver:
        spec, version = _spec(self.spec_json), self.chunks.getValue((_VERSION,))
        if version is None:
            return begun(spec)
        known = held.take(self.name, self.spec_json, bytes(version[0]).decode())
        if known is not None:
            return known
        items = {name[0]: bytes(data[0]) for name, data in self.chunks.iterator()}
        del items[_VERSION]
        return Weaver.restore(spec, items.items())

    def _advance(self, weaver: Weaver, timers: Any) -> Iterator[pd.DataFrame]:
        watermark = timers.getCurrentWatermarkInMs()
        advanced = weaver.advance(watermark * 1000)
        puts, deletes = weaver.changes()
        for name in deletes:
            self.chunks.removeKey((name,))
        for name, data in puts.items():
            self.chunks.updateValue((name,), (data,))
        version = os.urandom(16).hex()
        self.chunks.updateValue((_VERSION,), (version.encode(),))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        # In every batch that moves the watermark: what is late is judged by the last one.
        self.handle.registerTimer(watermark + 1)
        held.keep(self.name, self.spec_json, version, weaver)
        yield from frames(watermark, advanced)


@lru_cache(maxsize=8)
def _spec(spec_json: str) -> TreeSpec:
    return from_json(spec_json)[0]


def begun(spec: TreeSpec) -> Weaver:
    """A bucket at Spark's first watermark: windows that end there or before are never given."""
    weaver = Weaver(spec)
    weaver.advance(0)
    return weaver


def frames(watermark: int, advanced: Advanced) -> Iterator[pd.DataFrame]:
    """Results in blobs and frames of a moderate size. The last batch of an input closes all windows that are
    open, which may be millions: in one piece they fill the JVM, whose Parquet writer looks at its memory only
    after a hundred rows."""
    found: list[tuple[int, str, int, int, bytes]] = []
    for query, batch in advanced.results:
        for start in range(0, max(batch.num_rows, 1), BLOB_ROWS):
            part = batch.slice(start, BLOB_ROWS)
            found.append((watermark, query, RESULTS, part.num_rows, to_blob(pa.Table.from_batches([part]))))
            if len(found) == _FRAME_BLOBS:
                yield _framed(found)
                found = []
    found += [(watermark, query, LATE, late, b"") for query, late in advanced.late.items() if late]
    yield _framed(found)


def _framed(rows: list[tuple[int, str, int, int, bytes]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=["watermark", "query", "kind", "rows", "data"])


def to_blob(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_blob(data: bytes | pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
