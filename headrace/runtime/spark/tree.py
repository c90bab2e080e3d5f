"""One running tree: a streaming query that answers many window queries.

It is a job like any other (job.py) as far as Spark's query, its checkpoint, closing and draining are
concerned. Its output is opened and given to each member's own sink, and late rows are counted by the window
engine, for each member. Its checkpoint belongs to the shape of the tree, not to its members: it may be
started with others. `history.json` says who they are and from when on each is right. It is written before
Spark is started with them, from what the checkpoint says, so that a crash in between changes nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headrace.errors import EngineError, UserError
from headrace.plan import logical as lp
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.duckdb.above import Above
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.files import write_json, write_whole
from headrace.runtime.spark.checkpoint import newest_planned, next_watermark
from headrace.runtime.spark.job import JobRun, engine_message
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.tree_publish import KEPT, Reader, TreePublisher, taker
from headrace.runtime.spark.woven import bucket_ids, settings, woven_rows
from headrace.runtime.windows.history import History, Position
from headrace.runtime.windows.tree import as_rows, woven_spec


class TreeRun(JobRun):
    """`context` is the tree's own (its `sink` means nothing); `members` has the context of each query."""

    def __init__(
        self,
        tree: TreeJob,
        context: JobContext,
        members: Mapping[str, JobContext],
        *,
        drain: bool,
        on_rows: Callable[[str, Path], None] | None = None,
    ) -> None:
        super().__init__(Job(tree.id, tree.id, tree.site, tree.members[0].plan), context, drain=drain)
        self.tree, self._members, self._on_rows = tree, members, on_rows
        self._above: dict[str, Above] = {}
        self.tables: dict[str, list[pa.Table]] = {query: [] for query in members}
        """What the memory sinks of members hold."""

    @property
    def fingerprint(self) -> str:
        return self.tree.fingerprint

    def _open_output(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        self._remember_members()
        self._tree_publisher = self._publisher_of_members()

    # -- who the members are ----------------------------------------------------------------------

    @property
    def _history_file(self) -> Path:
        return self._context.state / "history.json"

    def _known(self) -> History:
        path = self._history_file
        return History.from_json(path.read_text(encoding="utf-8")) if path.exists() else History()

    def _remember_members(self) -> None:
        known = self._known()
        self._history = known.changed(self.tree, self._position())
        if self._history != known:
            write_whole(self._history_file, self._history.to_json())

    def _position(self) -> Position | None:
        """How far the tree has come. A batch that was planned and not committed is run again: its rows were
        not taken in, but its windows may have been given."""
        after, planned = next_watermark(self._checkpoint), newest_planned(self._checkpoint)
        if after is None or planned is None:
            return None
        scans = [node for node in lp.nodes(self.tree.shape.rows) if isinstance(node, lp.StreamScan)]
        # Watermarks are whole milliseconds, cut off.
        newest = after + 1000 + max(scan.watermark for scan in scans)
        return Position(max(after, planned.watermark), newest)

    def _publisher_of_members(self) -> TreePublisher:
        readers = {known.id: self._reader(query) for query, known in self._history.members.items()}
        return TreePublisher(self._context.state / "staging", self._context.state, readers)

    def _reader(self, query: str) -> Reader:
        context, member = self._members[query], self.tree.member(query)
        above = Above(member.plan, member.aggregate, context.tables, context.root)
        self._above[query] = above
        kept = context.sink.kind in KEPT

        def finish(results: pa.Table) -> pa.Table:
            return above.rows(as_rows(member, results))

        folder = context.results if kept else self._context.state / "given" / query
        take = None if kept else taker(query, context.sink.kind, self.tables[query], self._on_rows)
        return Reader(query, finish, member.plan.schema, context.sink.kind, folder, kept, take)

    # -- the streaming query ----------------------------------------------------------------------

    def _frame(self, session: Session) -> Session:
        self._register(session, self.tree.shape.rows)
        spec = woven_spec(self.tree, self._history.valid)
        return woven_rows(session, self.tree, spec, self._views.__getitem__, self._buckets(session))

    def _staged(self) -> tuple[str, dict[str, str]]:
        """Blobs, which live until they are opened: not worth compressing."""
        return "parquet", {"compression": "none", "parquet.enable.dictionary": "false"}

    def _start(self, session: Session) -> Session:
        """A streaming query keeps the settings its session had at the start; other jobs of the session do
        not want these."""
        try:
            before = {name: session.conf.get(name, None) for name in settings()}
            for name, value in settings().items():
                session.conf.set(name, value)
        except Exception as error:
            raise EngineError(f"Spark does not start {self.tree.id}", detail=engine_message(error)) from error
        try:
            return super()._start(session)
        finally:
            # A query that was started runs, and one that was not has told why, whatever becomes of these.
            with contextlib.suppress(Exception):
                for name, old in before.items():
                    session.conf.unset(name) if old is None else session.conf.set(name, old)

    def _buckets(self, session: Session) -> tuple[int, ...]:
        """The bucket ids, as they were at the first start: the state partitions are fixed from then on."""
        path = self._context.state / "buckets.json"
        if not path.exists():
            write_json(path, bucket_ids(session, self._context.shuffle_partitions))
        return tuple(json.loads(path.read_text(encoding="utf-8")))

    # -- what came of it --------------------------------------------------------------------------

    def _take_output(self) -> None:
        self._tree_publisher.publish()
        self._observed.output_rows = sum(self._of("rows", query) for query in self._members)
        self._observed.late_rows = sum(self._of("late", query) for query in self._members)

    def _of(self, what: str, query: str) -> int:
        counts: dict[str, int] = getattr(self._tree_publisher.done, what)
        return counts.get(self._history.members[query].id, 0)

    def _outcome(self) -> dict[str, object]:
        return {
            "output_rows": self._observed.output_rows,
            "late_rows": self._observed.late_rows,
            "batch": self._observed.batch or 0,
        }

    def is_finished(self) -> bool:
        """A tree whose streams are closed has nothing left for a member that was not there."""
        finished = super().is_finished()
        new = set(self._members) - set(self._known().members)
        if self._closing.begun and new:
            raise UserError(
                f"tree {self.tree.id} was drained: its streams are closed, and {min(new)} would get nothing",
                hint="Use --from-start, or --fresh, to read the input from its beginning.",
            )
        return finished

    def finished_before(self) -> None:
        self._history = self._known()
        self._tree_publisher = self._publisher_of_members()
        super().finished_before()
        self._close()

    def _end(self, state: JobState, error: str = "") -> None:
        super()._end(state, error)
        self._close()

    def _close(self) -> None:
        for above in self._above.values():
            above.close()

    def progress_of(self, query: str) -> Progress:
        """The progress of one member: the tree's, with the member's own rows."""
        return replace(
            self.progress(),
            job=query,
            output_rows=self._of("rows", query),
            late_rows=self._of("late", query),
            valid_from=self._history.members[query].valid_from,
        )
