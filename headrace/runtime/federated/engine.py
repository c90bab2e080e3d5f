"""One micro-batch of a federated job.

In this order: the new rows go through the steps and into the window tables; then every window is given that
ends after the last batch's watermark and by this one's; then what no later window can need is forgotten. So a
row is late for exactly the windows that had ended by the watermark of the batch before its own, as it is in
Spark itself: the answer of a query depends neither on the split nor on where in the plan a late row would
have been dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import EngineError, InternalError
from headrace.plan import logical as lp
from headrace.plan.federated import Engine
from headrace.plan.federated_parts import Part
from headrace.runtime.duckdb.window_sql import Ends, Given, opened_windows
from headrace.runtime.duckdb.window_tables import MEMORY, NoRoom, WindowDatabase, apart, micros
from headrace.runtime.federated.ledger import Ledger
from headrace.runtime.federated.program import Kept, Member, Program, late_windows, part_name, row_names
from headrace.runtime.results import arrow_schema, conform

Rows = Mapping[lp.LogicalPlan, pa.Table]
OnSpark = Callable[[Part, Rows, Ends | None], pa.Table]
"""Does a part on Spark, as a batch: rows of its inputs to rows of its root."""

_FOREVER = 2**62
_PAIRS = 64_000_000
"""A statement puts at most about so many rows into windows: memory must not depend on how far the watermark
leaps."""
_WINDOWS = 64
"""And it is about at most so many windows."""


class Federation:
    """The window tables of a job and how far it is. Throw it away after an exception: the next one is made of
    what is on disk, which a batch changes only as a whole."""

    def __init__(
        self,
        program: Program,
        folder: Path,
        tables: Mapping[str, pa.Table],
        on_spark: OnSpark,
        *,
        start: int = 0,
        memory: str = MEMORY,
        threads: int = 2,
        pairs: int = _PAIRS,
    ) -> None:
        self._program, self.on_spark, self._pairs = program, on_spark, pairs
        self._names = row_names(program)
        self._ledger = Ledger(folder, start)
        self._ledger.make()
        self._epoch = self._ledger.epoch()
        self.database = WindowDatabase(memory=memory, threads=threads)
        for name, rows in tables.items():
            self.database.add_table(name, rows)
        self.done = self._ledger.done()
        self._ledger.clear(self.done.batch)
        until = self._ledger.until()
        for kept in program.kept:
            self.database.keep(kept.name, kept.schema, kept.time, kept.span)
            self.database.evict(kept.name, self._horizon(kept, until))
            for rows in self._ledger.kept(kept.name, self.done.batch):
                self.database.take(kept.name, rows)

    def close(self) -> None:
        self.database.close()

    def batch(self, number: int, watermark: int, fed: Mapping[int, pa.Table]) -> None:
        """Do batch `number`, in which `watermark` is in force, over the new rows of the feeds. A batch that
        is done already is not done again."""
        if number <= self.done.batch:
            return
        if number != self.done.batch + 1 and self.done.batch >= 0:
            raise InternalError(f"batch {number} comes after batch {self.done.batch}")
        known = self.done
        done = replace(known, batch=number, rows={**known.rows}, late={**known.late}, made={**known.made})
        until = self._ledger.until()
        fresh = self._stepped(fed)
        for node, name in self._names.items():
            _count(done.made, name, fresh[node])
        for member in self._program.members:
            self._count_late(member, fresh, done.late)
        for kept in self._program.kept:
            newest = self._take(kept, fresh[kept.node], number, until)
            if newest is not None and kept.node.window is None:
                done.seen = newest if done.seen is None else max(newest, done.seen)
        for member in self._program.members:
            rows = self._answer(member, fresh, max(watermark, done.given), until.get(member.query), done.made)
            if rows.num_rows:
                self._ledger.give(member.query, number, rows)
            done.rows[member.query] = done.rows.get(member.query, 0) + rows.num_rows
        done.given = max(watermark, done.given)
        self.done = done
        self._forget(until)

    # -- rows come in -------------------------------------------------------------------------------

    def _stepped(self, fed: Mapping[int, pa.Table]) -> dict[lp.LogicalPlan, pa.Table]:
        """The new rows of every relation of streams."""
        fresh: dict[lp.LogicalPlan, pa.Table] = {}
        for feed in self._program.feeds:
            rows = fed.get(feed.number)
            empty = arrow_schema(feed.schema).empty_table()
            fresh[feed.node] = empty if rows is None else conform(rows, feed.schema)
        for step in self._program.steps:
            columns = self._program.columns[step.root]
            if any(fresh[node].num_rows for node in step.inputs):
                fresh[step.root] = self._do(step, fresh, None).select(columns)
            else:
                fresh[step.root] = arrow_schema(step.root.schema).empty_table().select(columns)
        return fresh

    def _count_late(self, member: Member, fresh: Rows, counts: dict[str, int]) -> None:
        """Rows that miss a window of the member which was given before they came."""
        for window in late_windows(member):
            times = micros(fresh[window.input][window.time])
            late = _late(times, self.done.given, window.spec)
            if late:
                counts[member.query] = counts.get(member.query, 0) + late

    def _take(self, kept: Kept, rows: pa.Table, number: int, until: Mapping[str, int]) -> int | None:
        """Keep what some window may still need; the newest time of all that came."""
        times = micros(rows[kept.time])
        if not rows.num_rows or times.null_count == rows.num_rows:
            return None
        newest = int(pc.max(times).as_py())
        wanted = rows.filter(pc.greater_equal(times, self._horizon(kept, until)))
        if wanted.num_rows:
            for part in apart(wanted, kept.time, kept.span):
                self._ledger.keep(kept.name, number, int(pc.max(micros(part[kept.time])).as_py()), part)
            self.database.take(kept.name, wanted)
        return newest

    # -- windows go out -----------------------------------------------------------------------------

    def _given(self, member: Member) -> int:
        """Windows of the member that end by here have been given, or are another job's."""
        given = self.done.given - member.delay
        return given if member.after is None else max(given, member.after)

    def _answer(
        self, member: Member, fresh: Rows, watermark: int, until: int | None, counts: dict[str, int]
    ) -> pa.Table:
        plan, last = member.plan, _FOREVER if until is None else until
        if not member.parts:
            return conform(_between(fresh[plan], plan, member.after, last), plan.schema)
        found = [
            rows
            for ends in self._ends(member, self._given(member), min(watermark - member.delay, last))
            if (rows := self._over_windows(member, ends, counts)).num_rows
        ]
        return pa.concat_tables(found) if found else arrow_schema(plan.schema).empty_table()

    def _ends(self, member: Member, low: int, high: int) -> Iterator[Ends]:
        """The ends in (low, high] of windows that may have rows, a statement's worth at a time."""
        slide, residue = member.spec.slide, member.spec.range % member.spec.slide
        end = _aligned(low, residue, slide)
        while True:
            starts = [self._next_end(kept, end, residue, slide) for kept in member.kept]
            known = [start for start in starts if start is not None]
            if not known or min(known) > high:
                return
            end = max(end, min(known))
            last = min(high, self._last_end(member), end + (self._most(member, end) - 1) * slide)
            count = max((last - end) // slide, 0)
            yield Ends(end, end + count * slide, slide)
            end += (count + 1) * slide

    def _next_end(self, kept: Kept, end: int, residue: int, slide: int) -> int | None:
        """The first end at or after `end` of a window with rows of a kept relation."""
        if kept.node.window is not None:
            return self.database.next_time(kept.name, end)
        time = self.database.next_time(kept.name, end - kept.span)
        return None if time is None else max(end, _aligned(time, residue, slide))

    def _last_end(self, member: Member) -> int:
        """No window that ends later has rows."""
        newest = [
            chunk.newest + kept.span
            for kept in member.kept
            for chunk in self.database.relation(kept.name).chunks
        ]
        return max(newest)

    def _most(self, member: Member, end: int) -> int:
        """How many windows one statement may be about."""
        opened = {window.input for part in member.parts for window in opened_windows(part)}
        rows = [self.database.count(k.name, end - k.span, end) for k in member.kept if k.node in opened]
        return max(1, min(_WINDOWS, self._pairs // max(sum(rows), 1)))

    def _over_windows(self, member: Member, ends: Ends, counts: dict[str, int]) -> pa.Table:
        """Of windows that are too much for the database together, in halves."""
        made: dict[lp.LogicalPlan, pa.Table] = {}
        try:
            for part in member.parts:
                made[part.root] = self._do(part, made, ends)
        except NoRoom:
            if ends.count == 1:
                raise
            made.clear()
            half = ends.first + (ends.count // 2) * ends.slide
            halves = (replace(ends, last=half - ends.slide), replace(ends, first=half))
            return pa.concat_tables([self._over_windows(member, one, counts) for one in halves])
        for number, part in enumerate(member.parts):
            _count(counts, part_name(member, number), made[part.root])
        return made[member.plan]

    # -- an engine's share --------------------------------------------------------------------------

    def _do(self, part: Part, made: Rows, ends: Ends | None) -> pa.Table:
        """The rows of a part's root; its inputs are kept, or made before."""
        kept = {}
        if ends is not None:
            kept = {k.node: self._kept(k, ends) for k in self._program.kept if k.is_read_by(part)}
        if part.engine is Engine.SPARK:
            rows = {
                node: self.database.read(kept[node]) if node in kept else made[node] for node in part.inputs
            }
            return conform(self.on_spark(part, rows, ends), part.root.schema)
        try:
            given = {
                node: kept[node] if node in kept else self.database.put(str(number), made[node])
                for number, node in enumerate(part.inputs)
            }
            return self.database.evaluate(part.root, given, ends)
        finally:
            self.database.drop()

    def _kept(self, kept: Kept, ends: Ends) -> Given:
        if kept.node.window is not None:
            return self.database.kept(kept.name, ends.first, ends.last + 1)
        return self.database.kept(kept.name, ends.first - kept.span, ends.last)

    # -- what is not needed any more ----------------------------------------------------------------

    def _horizon(self, kept: Kept, until: Mapping[str, int]) -> int:
        """No window that is still to be given holds a row of a kept relation that is older."""
        horizons = [_FOREVER]
        for member in self._program.members:
            given = self._given(member)
            if kept not in member.kept or given >= until.get(member.query, _FOREVER):
                continue
            if kept.node.window is not None:
                horizons.append(given + 1)
            for window in kept.windows:
                size, slide = window.spec.range, window.spec.slide
                horizons.append(_aligned(given - size, 0, slide))
        return min(horizons)

    def _forget(self, until: Mapping[str, int]) -> None:
        horizons = {kept.name: self._horizon(kept, until) for kept in self._program.kept}
        for name, horizon in horizons.items():
            self.database.evict(name, horizon)
        self.done.kept, self.done.held = self.database.rows, self.database.bytes
        if self._ledger.epoch() != self._epoch:
            raise EngineError("the job was started again while this batch ran")
        self._ledger.write_done(self.done)
        for name, horizon in horizons.items():
            self._ledger.evict(name, horizon)


def _count(counts: dict[str, int], name: str, rows: pa.Table) -> None:
    counts[name] = counts.get(name, 0) + rows.num_rows


def _aligned(instant: int, residue: int, slide: int) -> int:
    """The first instant after this one that is `residue` more than a multiple of `slide`."""
    return instant + slide - (instant - residue) % slide


def _late(times: pa.ChunkedArray, given: int, spec: lp.WindowSpec) -> int:
    """How many instants lie in a window that ends by `given`: those before the last such end, since windows
    leave no gaps."""
    end = _aligned(given, spec.range % spec.slide, spec.slide) - spec.slide
    return int(pc.sum(pc.less(times, end)).as_py() or 0)


def _between(rows: pa.Table, plan: lp.LogicalPlan, after: int | None, last: int) -> pa.Table:
    """The rows whose windows end after the one and by the other."""
    if plan.window is None:
        return rows
    ends = micros(rows[plan.window.end])
    low = -_FOREVER if after is None else after
    return rows.filter(pc.and_(pc.greater(ends, low), pc.less_equal(ends, last)))
