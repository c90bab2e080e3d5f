"""One running tree: a streaming query that answers many window queries.

It is a job like any other (job.py) as far as Spark's query, its checkpoint, closing and draining are
concerned. Its output is opened and given to each member's own sink, and late rows are counted by the bucket
engine, for each member. Its checkpoint belongs to the rows and keys of the tree, not to its members: a
restart with others is legal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import SinkKind
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.duckdb.above import Above
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.files import write_json
from headrace.runtime.spark.job import JobRun
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.tree_publish import Reader, TreePublisher
from headrace.runtime.spark.woven import bucket_ids, settings, woven_rows
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
    ) -> None:
        super().__init__(Job(tree.id, tree.id, tree.site, tree.members[0].plan), context, drain=drain)
        self.tree, self._members = tree, members
        self._above = {m.query: Above(m.plan, m.aggregate) for m in tree.members}
        self.tables: dict[str, list[Path]] = {}

    @property
    def fingerprint(self) -> str:
        return self.tree.fingerprint

    def _open_output(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        self._tree_publisher = self._publisher_of_members()

    def _publisher_of_members(self) -> TreePublisher:
        readers = {name: self._reader(name) for name in self._members}
        return TreePublisher(self._context.state / "staging", self._context.state, readers)

    def _reader(self, query: str) -> Reader:
        context = self._members[query]
        member = self.tree.member(query)
        above = self._above[query]

        def finish(results: pa.Table) -> pa.Table:
            return above.rows(as_rows(member, results))

        if context.sink.kind is SinkKind.PARQUET:
            return Reader(finish, context.results, True)
        taken = self.tables.setdefault(query, [])
        return Reader(finish, self._context.state / "given" / query, False, taken.append)

    def _frame(self, session: Session) -> Session:
        self._register(session, self.tree.shape.rows)
        spec = woven_spec(self.tree)
        return woven_rows(session, self.tree, spec, self._views.__getitem__, self._buckets(session))

    def _start(self, session: Session) -> Session:
        """A streaming query keeps the settings its session had at the start; other jobs of the session do
        not want these."""
        before = {name: session.conf.get(name, None) for name in settings()}
        for name, value in settings().items():
            session.conf.set(name, value)
        try:
            return super()._start(session)
        finally:
            for name, old in before.items():
                session.conf.unset(name) if old is None else session.conf.set(name, old)

    def _buckets(self, session: Session) -> tuple[int, ...]:
        """The bucket ids, as they were at the first start: the state partitions are fixed from then on."""
        path = self._context.state / "buckets.json"
        if not path.exists():
            write_json(path, bucket_ids(session, self._context.shuffle_partitions))
        return tuple(json.loads(path.read_text(encoding="utf-8")))

    def _take_output(self) -> None:
        done = self._tree_publisher.publish()
        self._observed.output_rows = sum(done.rows.values())
        self._observed.late_rows = sum(done.late.values())

    def _outcome(self) -> dict[str, object]:
        done = self._tree_publisher.done
        return {
            "output_rows": sum(done.rows.values()),
            "late_rows": sum(done.late.values()),
            "batch": self._observed.batch or 0,
        }

    def finished_before(self) -> None:
        self._tree_publisher = self._publisher_of_members()
        super().finished_before()

    def _end(self, state: JobState, error: str = "") -> None:
        super()._end(state, error)
        for above in self._above.values():
            above.close()

    def progress_of(self, query: str) -> Progress:
        """The progress of one member: the tree's, with the member's own rows."""
        done = self._tree_publisher.done
        return replace(
            self.progress(),
            job=query,
            output_rows=done.rows.get(query, 0),
            late_rows=done.late.get(query, 0),
        )
