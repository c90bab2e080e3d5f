"""A tree of window queries as one streaming DataFrame.

    rows of the stream (native: source, filters, projections, watermark)
      -> fragment, keys and aggregate arguments of every row (native)
      -> partial aggregates per fragment and key of an Arrow batch (Arrow, no state), a blob for each bucket
      -> one group a bucket of keys: the window engine (numpy), its fragments in Spark's state store
      -> results of each query as blobs

A blob is an Arrow stream in one binary cell. Partials and results travel so because a row costs the JVM a
microsecond and numpy a few nanoseconds, and because pandas, in which Spark hands rows over, makes doubles of
whole numbers beside a NULL. Results are opened where they are published (tree_publish.py).

A bucket is a hash class of keys. There is one for each state partition, and its id is chosen so that Spark's
own hashing puts it there: no partition is idle, and none has two. Every batch with input sends something to
every bucket, so that each knows the watermark of the batch before, by which rows are late.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.errors import InternalError
from headrace.plan.expr import conjunction
from headrace.plan.placed import TreeJob
from headrace.runtime.spark.compile import Compiler, ViewOf
from headrace.runtime.spark.session import Session
from headrace.runtime.sqltext import SparkWriter
from headrace.runtime.windows import held
from headrace.runtime.windows.buckets import split
from headrace.runtime.windows.opening import fragment_sql, partial_table
from headrace.runtime.windows.spec import FRAGMENT, TreeSpec
from headrace.runtime.windows.tree import WovenSpec, from_json, key_name
from headrace.runtime.windows.weaver import Advanced, Weaver

if TYPE_CHECKING:
    import pandas as pd

_SQL = SparkWriter()
RESULTS, LATE = 0, 1
"""Kinds of output rows: `data` holds results; `rows` is a number of late rows."""
OUTPUT = "watermark bigint, query string, kind int, rows bigint, data binary"
"""The query by its id, not by number: what is staged may be published after queries have come and gone."""
_TO_BUCKETS = "bucket int, data binary"
_VERSION = "version"
_BIG_BATCH = "200000"
BLOB_ROWS = 1 << 15
_FRAME_BLOBS = 64


def settings() -> dict[str, str]:
    """What a session must be set to when a tree is started."""
    return {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # Write what changed, not all there is.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": _BIG_BATCH,
    }


def bucket_ids(session: Session, partitions: int) -> tuple[int, ...]:
    """One id for each state partition, such that Spark's hash puts it there."""
    hashed = f"SELECT CAST(id AS INT) AS id, pmod(hash(CAST(id AS INT)), {partitions}) AS part"
    numbers = f"{hashed} FROM range({64 * partitions})"
    found = session.sql(f"SELECT part, min(id) FROM ({numbers}) GROUP BY part ORDER BY part").collect()
    if len(found) != partitions:
        raise InternalError(f"no bucket for some of {partitions} partitions")
    return tuple(int(row[1]) for row in found)


def woven_rows(
    session: Session, tree: TreeJob, spec: WovenSpec, view_of: ViewOf, ids: tuple[int, ...]
) -> Session:
    """The streaming DataFrame of a tree: rows of `OUTPUT`."""
    rows = session.sql(level_one(tree, spec, view_of))
    spread = tuple(key_name(key) for key in tree.shape.spread)
    return (
        rows.mapInArrow(_partial(spec.to_json(), spread, ids), _TO_BUCKETS)
        .groupBy("bucket")
        .transformWithStateInPandas(processor(tree.id, spec.to_json()), OUTPUT, "append", "eventTime")
    )


def level_one(tree: TreeJob, spec: WovenSpec, view_of: ViewOf) -> str:
    """Fragment, keys and aggregate arguments of every row."""
    shape = tree.shape
    micros = f"unix_micros({_SQL.name(shape.time)})"
    items = [f"{fragment_sql(micros, spec.tree.queries)} AS {FRAGMENT}"]
    items += [f"{_SQL.expr(e)} AS {_SQL.name(key_name(e))}" for e in shape.keys]
    items += [f"{_SQL.expr(e)} AS {_SQL.name(name)}" for name, e in spec.columns]
    rows = f"SELECT {', '.join(items)} FROM ({Compiler(view_of).rows(shape.rows, shape.time)})"
    wanted = [shape.where(member) for member in tree.members]
    if not all(wanted):
        return rows
    # What no member wants need not leave the JVM.
    some = dict.fromkeys(f"({_SQL.expr(conjunction(where))})" for where in wanted if where)
    return f"{rows} WHERE {' OR '.join(some)}"


def _partial(
    spec_json: str, spread: tuple[str, ...], ids: tuple[int, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def partial(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec, arguments = from_json(spec_json)
        keys = [key.name for key in spec.keys]
        yield _cells([(bucket, b"") for bucket in ids])
        for batch in batches:
            if batch.num_rows:
                made = partial_table(batch, arguments, keys)
                yield _cells([(ids[k], to_blob(part)) for k, part in split(made, spread, len(ids))])

    return partial


def _cells(cells: list[tuple[int, bytes]]) -> pa.RecordBatch:
    buckets, blobs = zip(*cells, strict=True)
    columns = [pa.array(buckets, pa.int32()), pa.array(blobs, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "data"])


def processor(tree: str, spec_json: str) -> Any:
    """The stateful processor of a tree, for Spark."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class TreeProcessor(StatefulProcessor):
        """One bucket at a time. Order in a batch: its partials, then the watermark. A bucket without
        partials is woken by its timer."""

        def init(self, handle: Any) -> None:
            self._handle = handle
            self._chunks = handle.getMapState("chunks", "name string", "data binary")
            self._spec, _ = from_json(spec_json)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            weaver = self._open(key)
            for frame in rows:
                for blob in frame["data"]:
                    if blob:
                        weaver.take(from_blob(blob))
            yield from self._advance(key, weaver, timerValues)

        def handleExpiredTimer(
            self, key: Any, timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield from self._advance(key, self._open(key), timerValues)

        def close(self) -> None:
            pass

        def _open(self, key: Any) -> Weaver:
            version = self._chunks.getValue((_VERSION,))
            if version is None:
                return begun(self._spec)
            known = held.take(f"{tree} {key[0]}", spec_json, bytes(version[0]).decode())
            if known is not None:
                return known
            items = {name[0]: bytes(data[0]) for name, data in self._chunks.iterator()}
            del items[_VERSION]
            return Weaver.restore(self._spec, items.items())

        def _advance(self, key: Any, weaver: Weaver, timers: Any) -> Iterator[pd.DataFrame]:
            watermark = timers.getCurrentWatermarkInMs()
            advanced = weaver.advance(watermark * 1000)
            puts, deletes = weaver.changes()
            for name in deletes:
                self._chunks.removeKey((name,))
            for name, data in puts.items():
                self._chunks.updateValue((name,), (data,))
            version = os.urandom(16).hex()
            self._chunks.updateValue((_VERSION,), (version.encode(),))
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            # In every batch that moves the watermark: what is late is judged by the last one.
            self._handle.registerTimer(watermark + 1)
            held.keep(f"{tree} {key[0]}", spec_json, version, weaver)
            yield from frames(watermark, advanced)

    return TreeProcessor()


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
