"""A tree of window queries as one streaming DataFrame.

    rows of the stream (native: source, filters, projections, watermark)
      -> fragment, keys and aggregate arguments of every row (native)
      -> partial aggregates per fragment and key of an Arrow batch (Arrow, no state)
      -> one group a bucket of keys: the bucket engine (numpy), its fragments in Spark's state store
      -> results of each query as Arrow blobs, a few rows a batch for the JVM to carry

Results travel as blobs because a row costs the JVM a microsecond and numpy a few nanoseconds; they are opened
where they are published (tree_publish.py).

A bucket is a hash class of keys. There is one for each state partition, and its id is chosen so that Spark's
own hashing puts it there: no partition is idle, and none has two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.errors import InternalError
from headrace.plan.expr import conjunction
from headrace.plan.placed import TreeJob
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.results import arrow_schema
from headrace.runtime.spark.compile import Compiler, ViewOf
from headrace.runtime.spark.session import Session
from headrace.runtime.sqltext import SparkWriter
from headrace.runtime.windows.bucket import Bucket
from headrace.runtime.windows.opening import ROWS, Opening, fragment_sql, partial_table
from headrace.runtime.windows.spec import FRAGMENT, TreeSpec
from headrace.runtime.windows.tree import WovenSpec, from_json, key_name

if TYPE_CHECKING:
    import pandas as pd

_SQL = SparkWriter()
RESULTS, LATE = 0, 1
"""Kinds of output rows: `data` holds results; `rows` is a number of late rows."""
OUTPUT = "query string, kind int, rows bigint, data binary"
"""By name, not by number: what is staged may be published after queries have come and gone."""
_VERSION = "version"
_OPEN = "open"
_BIG_BATCH = "200000"

_WORKER: dict[str, tuple[str, Held]] = {}
"""Buckets that this Python worker has in memory, with the version of the state they are at. A worker that is
used again finds its bucket here; any other restores it from the state store."""


def settings() -> dict[str, str]:
    """What a session must be set to when a tree is started."""
    return {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
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
    partials = rows.mapInArrow(_partial(spec.to_json()), partial_schema(spec.tree))
    keys = [_SQL.name(key_name(key)) for key in tree.shape.spread]
    where = f"1 + pmod(hash({', '.join(keys)}), {len(ids)})" if keys else "1"
    bucket = f"element_at(array({', '.join(map(str, ids))}), {where}) AS __bucket"
    return (
        partials.selectExpr(bucket, "*")
        .groupBy("__bucket")
        .transformWithStateInPandas(processor(spec.to_json()), OUTPUT, "append", "eventTime")
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


def partial_columns(spec: TreeSpec) -> Schema:
    """What level 1 gives."""
    first = Column(FRAGMENT, DataType.BIGINT), *spec.keys, Column(ROWS, DataType.BIGINT)
    return Schema((*first, *(Column(p.name, p.type) for p in spec.partials)))


def partial_schema(spec: TreeSpec) -> str:
    return ", ".join(f"{_SQL.name(c.name)} {_SQL.type(c.type)}" for c in partial_columns(spec))


def _partial(spec_json: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def partial(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec, arguments = from_json(spec_json)
        keys = [key.name for key in spec.keys]
        for batch in batches:
            if batch.num_rows:
                yield from partial_table(batch, arguments, keys).combine_chunks().to_batches()

    return partial


@dataclass
class Held:
    """A bucket in a worker: its open fragments and its windows."""

    opening: Opening
    bucket: Bucket


def processor(spec_json: str) -> Any:
    """The stateful processor of a tree, for Spark."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class TreeProcessor(StatefulProcessor):
        """One bucket at a time. Order in a batch: its partials, then the watermark; a bucket without
        partials is woken by its timer, which stands at the end of its next window."""

        def init(self, handle: Any) -> None:
            self._handle = handle
            self._chunks = handle.getMapState("chunks", "name string", "data binary")
            self._spec, _ = from_json(spec_json)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            held = self._open(key)
            late = 0
            for frame in rows:
                late += held.opening.take(self._table(frame), held.bucket.watermark)
            yield self._advance(key, held, timerValues, late)

        def handleExpiredTimer(
            self, key: Any, timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield self._advance(key, self._open(key), timerValues, 0)

        def close(self) -> None:
            pass

        def _table(self, frame: pd.DataFrame) -> pa.Table:
            return pa.Table.from_pandas(frame[list(self._schema.names)], self._schema, preserve_index=False)

        @property
        def _schema(self) -> pa.Schema:
            return arrow_schema(partial_columns(self._spec))

        def _open(self, key: Any) -> Held:
            version = self._chunks.getValue((_VERSION,))
            known = _WORKER.pop(_name(spec_json, key), None)
            if version is None:
                return Held(Opening(self._spec), Bucket(self._spec))
            if known is not None and bytes(version[0]).decode() == known[0]:
                return known[1]
            items = {name[0]: bytes(data[0]) for name, data in self._chunks.iterator()}
            opened = items.pop(_OPEN, None)
            del items[_VERSION]
            held = None if opened is None else from_blob(opened)
            return Held(Opening(self._spec, held), Bucket.restore(self._spec, items.items()))

        def _advance(self, key: Any, held: Held, timers: Any, late: int) -> pd.DataFrame:
            watermark = timers.getCurrentWatermarkInMs()
            closed = held.opening.closed(watermark * 1000)
            if closed is not None:
                held.bucket.push(closed)
            results = list(held.bucket.advance(watermark * 1000))
            self._save(held)
            version = os.urandom(16).hex()
            self._chunks.updateValue((_VERSION,), (version.encode(),))
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            # In every batch that moves the watermark: what is late is judged by the last one.
            self._handle.registerTimer(watermark + 1)
            _WORKER[_name(spec_json, key)] = (version, held)
            return _frame([query.id for query in self._spec.queries], results, late)

        def _save(self, held: Held) -> None:
            puts, deletes = held.bucket.changes()
            for name in deletes:
                self._chunks.removeKey((name,))
            for name, data in puts.items():
                self._chunks.updateValue((name,), (data,))
            still_open = held.opening.held()
            if still_open is None:
                self._chunks.removeKey((_OPEN,))
            else:
                self._chunks.updateValue((_OPEN,), (to_blob(still_open),))

    return TreeProcessor()


def _name(spec_json: str, key: Any) -> str:
    return f"{key[0]} {spec_json}"


def _frame(ids: list[str], results: list[tuple[int, pa.RecordBatch]], late: int) -> pd.DataFrame:
    import pandas as pd

    found = [
        (ids[query], RESULTS, batch.num_rows, to_blob(pa.Table.from_batches([batch])))
        for query, batch in results
    ]
    if late:
        found += [(query, LATE, late, b"") for query in ids]
    return pd.DataFrame(found, columns=["query", "kind", "rows", "data"])


def to_blob(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_blob(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
