"""One running federated job: a streaming query whose batches go to a database beside it.

It is a job like any other (job.py) as far as Spark's query, its checkpoint, closing and draining are
concerned. What is done with a batch is in federated_batch.py and runtime/federated/; its files are in
`federated/` in the job's folder.

The watermark of a batch is that of the rows before it, so the last windows come out with one more batch.
Spark runs such a batch by itself only for its own state. Where no feed has any, an empty file among the close
marks, a tick, makes Spark run one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import EngineError, InternalError, UserError
from headrace.plan import logical as lp
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.federated.ledger import Done, Ledger
from headrace.runtime.federated.program import Member, counted, late_windows, program_of
from headrace.runtime.files import write_json
from headrace.runtime.spark.checkpoint import last_committed, newest_planned, next_watermark
from headrace.runtime.spark.closing import Closing
from headrace.runtime.spark.compile import is_stateful
from headrace.runtime.spark.federated_batch import BatchFunction, forget, to_text
from headrace.runtime.spark.federated_compile import feeds_text
from headrace.runtime.spark.federated_publish import FederatedPublisher
from headrace.runtime.spark.job import JobRun, engine_message
from headrace.runtime.spark.late import LateCounter, LatePoint, late_points
from headrace.runtime.spark.observed import Observed
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.sources import file_source
from headrace.runtime.spark.tree_publish import KEPT, Reader, taker

_TICKS = 3
"""A tick is removed when so many batches were committed after it: some batch has read it by then."""


class _Observed(Observed):
    """Counts rows of a stream once, though several feeds read it: equal scans are one source to Spark, which
    counts its rows once for each place that reads it."""

    def __init__(self, job: str, marks: str, reads: Mapping[str, int]) -> None:
        """`reads`: how many places read the files under a path."""
        super().__init__(job, marks)
        self._reads = reads

    def take(self, event: Mapping[str, Any]) -> None:
        for source in event["sources"]:
            name = unquote(str(source.get("description", "")))
            for path, count in self._reads.items():
                if name.endswith(f"{path}]"):
                    source["numInputRows"] = int(source.get("numInputRows", 0)) // count
        super().take(event)


class FederatedRun(JobRun):
    """`context` is the job's own (its `sink` means nothing); `members` has the context of each query."""

    _most_bytes = 64 << 20
    """A batch goes through the memory of one process, and its rows into DuckDB's, which is limited: a history
    that was there before the job must not come as one batch."""

    def __init__(
        self,
        job: FederatedJob,
        context: JobContext,
        members: Mapping[str, JobContext],
        *,
        drain: bool,
        on_rows: Callable[[str, Path], None] | None = None,
    ) -> None:
        super().__init__(Job(job.id, job.id, job.site, job.members[0].plan), context, drain=drain)
        self.federated, self._members, self._on_rows = job, members, on_rows
        read = dict.fromkeys(name for member in job.members for name in lp.streams_of(member.plan))
        self._streams = {name: context.streams[name] for name in read}
        self._closing = Closing(
            self._streams,
            state=context.state,
            root=context.root,
            generated=self._generated,
            most_bytes=self._most_bytes,
        )
        # The database needs the watermark, whatever Spark itself does with it.
        self._stateful = True
        self._program = program_of(job)
        self._counted = counted(self._program)
        self._observed = _Observed(job.id, str(context.state / "close"), self._reads())
        self._folder = context.state / "federated"
        self._ledger = Ledger(self._folder)
        self._done = self._ledger.done()
        self._late_of: dict[str, LateCounter] = {}
        self._late_before: dict[str, int] = {}
        self._ticked = -1
        self.tables: dict[str, list[pa.Table]] = {query: [] for query in members}
        """What the memory sinks of members hold."""

    @property
    def fingerprint(self) -> str:
        return self.federated.fingerprint

    def _reads(self) -> dict[str, int]:
        scans = [
            node
            for feed in self._program.feeds
            for node in lp.nodes(feed.node)
            if isinstance(node, lp.StreamScan)
        ]
        found: dict[str, int] = {}
        for scan in dict.fromkeys(scans):
            source = file_source(self._streams[scan.stream], self._context.root, self._generated)
            if source is not None:
                found[source.path] = max(found.get(source.path, 1), scans.count(scan))
        return found

    # -- windows are given up to here ---------------------------------------------------------------

    def set_until(self, queries: Collection[str], end: int) -> None:
        """Give no window of these members that ends later. Waits for the batch that is being done: it may not
        know. All of them are bound at once: a batch, or a kill, between two bounds would let the one member
        skip windows that another may have given, and then no later bound is right for both."""
        for query in queries:
            if query not in self._members:
                raise InternalError(f"job {self.federated.id} has no member {query}")
        with self._ledger.alone():
            until = self._ledger.until()
            if all(until.get(query) == end for query in queries):
                # Asked again after a crash: what was given beyond it since was given by the bound.
                return
            if self._ledger.done().given > end:
                names = ", ".join(queries)
                raise InternalError(f"job {self.federated.id} may have given windows of {names} after {end}")
            self._ledger.write_until({**until, **dict.fromkeys(queries, end)})

    def seen_until(self) -> int | None:
        """The newest event time taken in. Rows that only Spark's own state has seen show in the watermark."""
        marks = [] if self._done.seen is None else [self._done.seen]
        after = next_watermark(self._checkpoint)
        if after is not None and after > 0:
            # Watermarks are whole milliseconds, cut off.
            marks.append(after + 1000 + max(stream.watermark for stream in self._streams.values()))
        return max(marks, default=None)

    def _is_past(self) -> bool:
        """Whether every member has given the last window that it is to give."""
        until = self._ledger.until()
        ends = {member.query: until.get(member.query) for member in self._program.members}
        return all(
            (end := ends[member.query]) is not None and self._given(member) >= end
            for member in self._program.members
        )

    def _given(self, member: Member) -> int:
        """Up to where the windows of a member were given, for sure."""
        return self._done.given - member.delay

    # -- start --------------------------------------------------------------------------------------

    def is_finished(self) -> bool:
        finished = super().is_finished()
        return finished or (self._finished_file.exists() and self._is_past())

    def _open_output(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        forget(self._folder)
        self._epoch = self._ledger.begin_epoch()
        given = {m.query: m.until for m in self.federated.members if m.until is not None}
        if given:
            self._ledger.write_until({**self._ledger.until(), **given})
        self._of_members = self._publisher_of_members()
        self._late_of = {
            member.query: LateCounter(
                session,
                member.plan,
                self._streams,
                state=self._context.state,
                root=self._context.root,
                generated=self._generated,
                views=self._views,
                points=points,
                ledger=f"late-{member.query}.json",
            )
            for member in self._program.members
            if (points := self._spark_points(member))
        }

    def _spark_points(self, member: Member) -> tuple[LatePoint, ...]:
        """Where Spark, rather than the database, finds rows of a member late."""
        own = {LatePoint(w.input, w.time, w.spec) for w in late_windows(member)}
        over = {LatePoint(w.input, w.time, w.spec) for part in member.parts for w in part.windows()}
        return tuple(point for point in late_points(member.plan) if point not in own | over)

    def _publisher_of_members(self) -> FederatedPublisher:
        readers = {member.query: self._reader(member) for member in self._program.members}
        return FederatedPublisher(self.federated.id, self._ledger, self._context.state, readers)

    def _reader(self, member: Member) -> Reader:
        context = self._members[member.query]
        kind = context.sink.kind
        kept = kind in KEPT
        folder = context.results if kept else self._context.state / "given" / member.query
        take = None if kept else taker(member.query, kind, self.tables[member.query], self._on_rows)
        return Reader(member.query, lambda rows: rows, member.plan.schema, kind, folder, kept, take)

    def _frame(self, session: Session) -> Session:
        for feed in self._program.feeds:
            self._register(session, feed.node)
        for member in self._program.members:
            # Late rows of a feed may be counted below a join with a table.
            self._register_tables(session, member.plan)
        return session.sql(feeds_text(self._program.feeds, self._views.__getitem__))

    def _register_tables(self, session: Session, plan: lp.LogicalPlan) -> None:
        for node in lp.nodes(plan):
            if isinstance(node, lp.TableScan):
                self._register(session, node)

    def _start(self, session: Session) -> Session:
        context = self._context
        text = to_text(self.federated, context.tables, context.root, self._checkpoint, self._epoch)
        function = BatchFunction(self._folder, text)
        try:
            writer = self._frame(session).writeStream.outputMode("append").queryName(self.federated.id)
            writer = writer.foreachBatch(function).option("checkpointLocation", str(self._checkpoint))
            if context.trigger:
                writer = writer.trigger(processingTime=f"{context.trigger // 1000} milliseconds")
            return writer.start()
        except UserError:
            raise
        except Exception as error:
            raise EngineError(
                f"Spark does not start the federated job {self.federated.id}", detail=engine_message(error)
            ) from error

    # -- while it runs ------------------------------------------------------------------------------

    def _take_output(self) -> None:
        self._done = self._of_members.publish()
        committed = last_committed(self._checkpoint)
        for batch, dropped in self._observed.unheard():
            for counter in self._late_of.values():
                if batch <= committed:
                    counter.heard(batch, dropped)
        self._observed.output_rows = sum(self._done.rows.values())
        self._observed.late_rows = sum(self._late_rows(m.query) for m in self._program.members)
        self._tick(committed)
        if not self._drain and self._is_past() and self._query.isActive:
            write_json(self._finished_file, self._outcome())
            self._query.stop()

    def _late_rows(self, query: str) -> int:
        if query in self._late_before:
            return self._late_before[query]
        counter = self._late_of.get(query)
        return self._done.late.get(query, 0) + (0 if counter is None else counter.total)

    def _tick(self, committed: int) -> None:
        """Have Spark run an empty batch where the watermark has moved and nothing else will make it."""
        folder = self._closing.marks(next(iter(self._streams)))
        for old in folder.glob("tick-*.parquet"):
            if int(old.stem.split("-")[1]) + _TICKS <= committed:
                old.unlink(missing_ok=True)
        if committed <= self._ticked or any(is_stateful(feed.node) for feed in self._program.feeds):
            return
        planned, after = newest_planned(self._checkpoint), next_watermark(self._checkpoint)
        idle = planned is not None and planned.number == committed == self._done.batch
        needed = self._done.kept > 0 or self._observed.state is JobState.DRAINING
        if idle and needed and after is not None and after > self._done.given:
            self._ticked = committed
            self._write_tick(folder, committed)

    def _write_tick(self, folder: Path, number: int) -> None:
        stream = next(iter(self._streams.values()))
        nothing = pa.table({stream.time: pa.array([], pa.timestamp("us", "UTC"))})
        staged = folder / "_tick.tmp"
        pq.write_table(nothing, staged)
        staged.rename(folder / f"tick-{number:09d}.parquet")

    # -- the end ------------------------------------------------------------------------------------

    def _outcome(self) -> dict[str, object]:
        return {
            "output_rows": self._observed.output_rows,
            "late_rows": self._observed.late_rows,
            "batch": self._done.batch,
            "late": {m.query: self._late_rows(m.query) for m in self._program.members},
        }

    def finished_before(self) -> None:
        self._of_members = self._publisher_of_members()
        self._done = self._of_members.publish()
        self._late_before = json.loads(self._finished_file.read_text(encoding="utf-8"))["late"]
        super().finished_before()

    def _end(self, state: JobState, error: str = "") -> None:
        why = self._ledger.failure() if state is JobState.FAILED else ""
        super()._end(state, why or error)
        forget(self._folder)

    @property
    def done(self) -> Done:
        """How far the job is, what it keeps in memory and has given."""
        return self._done

    def progress(self) -> Progress:
        """What is kept in the database counts as state, too."""
        seen, made = super().progress(), self._done.made
        rows = tuple(
            (query, number, made.get(name, 0))
            for query, names in self._counted.items()
            for number, name in names.items()
        )
        return replace(seen, state_rows=self._done.kept + (seen.state_rows or 0), made=rows)

    def progress_of(self, query: str) -> Progress:
        """The progress of one member: the job's, with the member's own rows."""
        return replace(
            self.progress(),
            job=query,
            output_rows=self._done.rows.get(query, 0),
            late_rows=self._late_rows(query),
        )
