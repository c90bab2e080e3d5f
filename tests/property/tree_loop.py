"""A tree without Spark: the code its workers run, driven as Spark drives it, in one thread.

Level 1 (fragment, keys and arguments of a row) is computed by DuckDB and numpy and not by Spark SQL; from the
partials on everything is the product's own. What Spark adds is played: rows of a micro-batch come in several
Arrow batches, all buckets are there from the first on, the watermark of a batch is that of the batches before
it, state is what was last put into a store.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.plan.expr import conjunction
from headrace.plan.placed import TreeJob, TreeMember, TreeShape
from headrace.plan.types import Column, Schema
from headrace.runtime.duckdb.reference import sql_above, to_sql
from headrace.runtime.results import conform
from headrace.runtime.sqltext import DuckWriter
from headrace.runtime.windows.buckets import split
from headrace.runtime.windows.history import History, Position
from headrace.runtime.windows.opening import partial_table
from headrace.runtime.windows.spec import FRAGMENT, TreeSpec
from headrace.runtime.windows.tree import WovenSpec, as_rows, key_name, woven_spec
from headrace.runtime.windows.weaver import Weaver
from tests.property.tree_judge import ask

_SQL = DuckWriter()
_MICROS, _RESULTS = "#micros", "#results"
END = 253_370_764_800_000_000
"""9999-01-01 in microseconds: the watermark that closes a stream."""


class Watermark:
    """Spark's: known only at the end of a batch, in whole milliseconds, never falling, 1970 at first.
    `now` is that of the batch to come, `before` that of the last one."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.now = 0
        self.before = 0

    def batch(self, newest: int | None) -> int:
        """A batch is done; the newest event time in it, None: no rows. What watermark it ran under."""
        ran = self.before = self.now
        if newest is not None:
            self.now = max(self.now, (newest // 1000 - self.delay // 1000) * 1000)
        return ran


class Loop:
    """One tree over one stream, in `buckets` buckets. `newest` is the latest event time taken in."""

    def __init__(
        self, shape: TreeShape, stream: str, delay: int, *, buckets: int, rng: random.Random
    ) -> None:
        self._shape, self._stream, self._buckets, self._rng = shape, stream, buckets, rng
        self.watermark = Watermark(delay)
        self.newest: int | None = None
        self.history = History()
        self._given: dict[str, list[pa.Table]] = {}
        self.late = Counter[str]()
        self._weavers: dict[int, Weaver] = {}
        self.stores: dict[int, dict[str, bytes]] = {}

    # Members come and go; everything may be started again.

    def start(self, members: Sequence[TreeMember]) -> None:
        """Start, or start again, with these members."""
        tree = TreeJob("tree", "local", self._shape, tuple(members))
        at = None if self.newest is None else self._position()
        self.history = History.from_json(self.history.changed(tree, at).to_json())
        self._members = {self.history.members[m.query].id: m for m in members}
        self._woven = woven_spec(tree, self.history.valid)
        self._text = _level_one(tree, self._woven)
        self.restore()

    def restore(self) -> None:
        """All workers are new: what they know is in the stores."""
        spec = TreeSpec.from_json(self._woven.tree.to_json())
        self._weavers = {b: Weaver.restore(spec, store.items()) for b, store in self.stores.items()}

    def _position(self) -> Position:
        """As exactly as it is known here, or as roughly as it can be read from a checkpoint of Spark."""
        assert self.newest is not None
        if self._rng.random() < 0.5:
            return Position(self.watermark.before, self.newest)
        return Position(self.watermark.now, self.watermark.now + 1000 + self.watermark.delay)

    def valid_from(self, query: str) -> int | None:
        return self.history.members[query].valid_from

    # Batches.

    def batch(self, rows: pa.Table) -> None:
        """A micro-batch of rows of the stream."""
        level_one = self._level_one(rows)
        newest = _newest(rows)
        if rows.num_rows and not self._weavers:
            self._begin()
        if newest is not None:
            self.newest = newest if self.newest is None else max(self.newest, newest)
        self._run(level_one, self.watermark.batch(newest))

    def _begin(self) -> None:
        """The first batch with rows makes all buckets, at Spark's first watermark."""
        for bucket in range(self._buckets):
            weaver = Weaver(self._woven.tree)
            weaver.advance(0)
            self._weavers[bucket], self.stores[bucket] = weaver, {}

    def close(self) -> None:
        """The end of the stream: every window is given."""
        if self.watermark.now != self.watermark.before:
            self.batch_without_rows()
        self._run([], END)

    def batch_without_rows(self) -> None:
        self._run([], self.watermark.batch(None))

    def _run(self, batches: list[pa.RecordBatch], watermark: int) -> None:
        keys = [column.name for column in self._woven.tree.keys]
        spread = [key_name(key) for key in self._shape.spread]
        for batch in batches:
            partials = partial_table(batch, self._woven.arguments, keys)
            for bucket, part in split(partials, spread, self._buckets):
                self._weavers[bucket].take(part)
        for bucket, weaver in self._weavers.items():
            self._advance(weaver, watermark)
            puts, deletes = weaver.changes()
            for name in deletes:
                del self.stores[bucket][name]
            self.stores[bucket].update(puts)

    def _advance(self, weaver: Weaver, watermark: int) -> None:
        done = weaver.advance(watermark)
        for known_as, batch in done.results:
            member = self._members[known_as]
            self._given.setdefault(member.query, []).append(as_rows(member, pa.Table.from_batches([batch])))
        for known_as, count in done.late.items():
            self.late[self._members[known_as].query] += count

    def _level_one(self, rows: pa.Table) -> list[pa.RecordBatch]:
        """Fragment, keys and arguments of the rows, in a few Arrow batches."""
        found = ask(self._text, self._stream, rows)
        micros = found[_MICROS].to_numpy().astype(np.int64)
        starts = pa.array(fragment_starts(micros, self._woven.tree), pa.int64())
        read = conform(found.drop_columns([_MICROS]), _columns(self._woven))
        # Not add_column: where nothing but rows is counted there is no other column, and so no length.
        table = pa.Table.from_arrays([starts, *read.columns], names=[FRAGMENT, *read.column_names])
        cuts = sorted(self._rng.randrange(len(table) + 1) for _ in range(self._rng.choice((0, 0, 1, 3))))
        parts = (table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True))
        return [batch for part in parts for batch in part.combine_chunks().to_batches() if batch.num_rows]

    def given(self, member: TreeMember) -> list[pa.Table]:
        """The rows of a query: what its plan does above the window aggregate is done window by window, so it
        can as well be done at once."""
        parts = self._given.get(member.query)
        if not parts:
            return []
        rows = conform(pa.concat_tables(parts), member.aggregate.schema)
        text = sql_above(member.plan, member.aggregate, _RESULTS)
        return [conform(ask(text, _RESULTS, rows), member.plan.schema)]

    # What is kept.

    def kept(self) -> tuple[int, int]:
        """Entries and bytes in all stores."""
        entries = [data for store in self.stores.values() for data in store.values()]
        return len(entries), sum(map(len, entries))

    def known_keys(self) -> int:
        """Keys that have a code in memory, over all buckets."""
        return sum(weaver._bucket.known_keys for weaver in self._weavers.values())


def _newest(rows: pa.Table) -> int | None:
    times = rows["ts"].drop_null().cast(pa.int64()).to_numpy()
    return int(times.max()) if len(times) else None


def _level_one(tree: TreeJob, spec: WovenSpec) -> str:
    shape = tree.shape
    items = [f"{_SQL.micros(_SQL.name(shape.time))} AS {_SQL.name(_MICROS)}"]
    items += [f"{_SQL.expr(e)} AS {_SQL.name(key_name(e))}" for e in shape.keys]
    items += [f"{_SQL.expr(e)} AS {_SQL.name(name)}" for name, e in spec.columns]
    rows = f"SELECT {', '.join(items)} FROM ({to_sql(shape.rows)})"
    wanted = [shape.where(member) for member in tree.members]
    if not all(wanted):
        return rows
    return f"{rows} WHERE {' OR '.join(f'({_SQL.expr(conjunction(w))})' for w in wanted if w)}"


def _columns(spec: WovenSpec) -> Schema:
    return Schema((*spec.tree.keys, *(Column(name, e.type) for name, e in spec.columns)))


def fragment_starts(micros: np.ndarray, spec: TreeSpec) -> np.ndarray:
    """The last instant, at each of these or before, where a window of some query opens or closes."""
    found = np.full(len(micros), np.iinfo(np.int64).min)
    for query in spec.queries:
        for offset in (0, query.range):
            found = np.maximum(found, (micros - offset) // query.slide * query.slide + offset)
    return found
