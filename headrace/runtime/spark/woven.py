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

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.errors import InternalError
from headrace.plan.expr import conjunction
from headrace.plan.placed import TreeJob
from headrace.runtime.spark.bucket_state import to_blob
from headrace.runtime.spark.compile import Compiler, ViewOf
from headrace.runtime.spark.session import Session
from headrace.runtime.sqltext import SparkWriter
from headrace.runtime.windows.buckets import split
from headrace.runtime.windows.opening import fragment_sql, partial_table
from headrace.runtime.windows.spec import FRAGMENT
from headrace.runtime.windows.tree import WovenSpec, from_json, key_name

if TYPE_CHECKING:
    import pandas as pd

_SQL = SparkWriter()
OUTPUT = "watermark bigint, query string, kind int, rows bigint, data binary"
"""The query by its id, not by number: what is staged may be published after queries have come and gone."""
_TO_BUCKETS = "bucket int, data binary"
_BIG_BATCH = "200000"


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
                made = partial_table(batch, arguments, keys, spec)
                yield _cells([(ids[k], to_blob(part)) for k, part in split(made, spread, len(ids))])

    return partial


def _cells(cells: list[tuple[int, bytes]]) -> pa.RecordBatch:
    buckets, blobs = zip(*cells, strict=True)
    columns = [pa.array(buckets, pa.int32()), pa.array(blobs, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "data"])


def processor(tree: str, spec_json: str) -> Any:
    """The stateful processor of a tree, for Spark.

    What it does is in bucket_state.py, and is imported where rows are: for every start of a query Spark makes
    a Python process at the driver that only asks which state there is, and all waits for that."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class TreeProcessor(StatefulProcessor):
        """One bucket at a time."""

        def init(self, handle: Any) -> None:
            self._handle = handle
            self._chunks = handle.getMapState("chunks", "name string", "data binary")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            yield from self._bucket(key).fed((blob for frame in rows for blob in frame["data"]), timerValues)

        def handleExpiredTimer(
            self, key: Any, timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield from self._bucket(key).fed((), timerValues)

        def close(self) -> None:
            pass

        def _bucket(self, key: Any) -> Any:
            from headrace.runtime.spark.bucket_state import Bucket

            return Bucket(f"{tree} {key[0]}", spec_json, self._handle, self._chunks)

    return TreeProcessor()
