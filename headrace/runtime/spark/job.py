"""One running job: a streaming query, the thread that takes it to its end, and what was seen of it.

State on disk, all in the job's folder, each written whole and renamed:
    job.json          the fingerprint of the plan the checkpoint belongs to, before the first batch
    checkpoint/       Spark's own
    staging/          Spark's file sink; `published.json` says how much of it was given to the reader
    closing.json      the input the streams were closed with; close/<stream>/ the mark that closes one
    late.json         late rows up to a batch
    finished.json     the input was drained and every window given
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import RateSource, SinkKind
from headrace.errors import EngineError, UserError
from headrace.ids import fingerprint
from headrace.plan import logical as lp
from headrace.plan.placed import Job
from headrace.runtime.executor import ENDED, JobContext, JobState, Progress
from headrace.runtime.files import write_json
from headrace.runtime.spark.causes import cause_of, is_site_gone
from headrace.runtime.spark.checkpoint import last_committed
from headrace.runtime.spark.closing import Closing
from headrace.runtime.spark.compile import Compiler, is_stateful
from headrace.runtime.spark.late import LateCounter
from headrace.runtime.spark.observed import Observed
from headrace.runtime.spark.passing import DIED
from headrace.runtime.spark.publish import Publisher, file_format, writer_options
from headrace.runtime.spark.session import Session, engine_died
from headrace.runtime.spark.sources import (
    CLOSE,
    known_rows,
    stream_view,
    table_view,
)

_POLL_SECONDS = 0.25
_CLOSE_TRIES = 40


def engine_message(error: BaseException) -> str:
    """What stopped a query, without Spark's stack and plan."""
    return cause_of(error, 800)


class JobRun:
    """A job from `begin` to one of the ended states."""

    _most_bytes: int | None = None
    """Of input files in one micro-batch, for sources that do not say how many files; None: all there are."""

    def __init__(self, job: Job, context: JobContext, *, drain: bool) -> None:
        self.job, self._context, self._drain = job, context, drain
        self._checkpoint = context.state / "checkpoint"
        self._stateful = is_stateful(job.plan)
        self._streams = {name: context.streams[name] for name in lp.streams_of(job.plan)}
        self._generated = context.root / ".headrace" / "data"
        self._closing = Closing(
            self._streams, state=context.state, root=context.root, generated=self._generated
        )
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._observed = Observed(job.id, str(context.state / "close"))
        self.memory: list[pa.Table] = []

    @property
    def state(self) -> JobState:
        return self._observed.state

    @property
    def fingerprint(self) -> str:
        """Of what the checkpoint belongs to."""
        return self.job.fingerprint

    # -- before the start -------------------------------------------------------------------------

    def is_finished(self) -> bool:
        """Whether an earlier run drained this job and nothing has come since. Raises where the job
        cannot be run as asked; touches nothing."""
        self._check_fingerprint()
        endless = [n for n, s in self._streams.items() if isinstance(s.source, RateSource)]
        if self._drain and endless:
            raise UserError(
                f'query "{self.job.query}": stream "{endless[0]}" never ends, so it cannot be drained',
                hint="Run without --drain and stop it with Ctrl-C.",
            )
        self._closing.check_paths(self._context.root)
        if not self._closing.begun:
            return self._drain and self._finished_file.exists() and self._closing.all_read()
        fresh = self._closing.newcomers()
        if fresh or not self._drain:
            raise UserError(
                f'query "{self.job.query}" was drained: its streams are closed',
                detail=f"New input: {fresh[0]}" + (f" and {len(fresh) - 1} more." if fresh[1:] else ".")
                if fresh
                else "",
                hint="Use --fresh to start the query over from the beginning of its input.",
            )
        return self._finished_file.exists()

    @property
    def _finished_file(self) -> Path:
        return self._context.state / "finished.json"

    def _check_fingerprint(self) -> None:
        path = self._context.state / "job.json"
        if path.exists() and json.loads(path.read_text(encoding="utf-8"))["plan"] != self.fingerprint:
            raise UserError(
                f'query "{self.job.query}" was changed since its last run: '
                "what it has kept does not fit the new plan",
                hint="Use --fresh to start the query over, or undo the change.",
            )

    # -- start ------------------------------------------------------------------------------------

    def begin(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        """Start the streaming query and the thread that watches it."""
        context = self._context
        context.state.mkdir(parents=True, exist_ok=True)
        write_json(context.state / "job.json", {"plan": self.fingerprint, "query": self.job.query})
        # From here on there may be rows that were read and not given.
        self._finished_file.unlink(missing_ok=True)
        self._views: dict[lp.StreamScan | lp.TableScan, str] = {}
        self._open_output(session, on_file)
        if self._drain:
            self._close_early()
            self._observed.totals = known_rows(self._streams, context.root, self._generated)
        self._query = self._start(session)
        self._spark = session
        self._observed.state = JobState.RUNNING
        self._thread = threading.Thread(target=self._run, name=f"job {self.job.id}", daemon=True)
        self._thread.start()

    def _open_output(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        """Where results and late rows are counted and given."""
        context = self._context
        self._late = LateCounter(
            session,
            self.job.plan,
            self._streams,
            state=context.state,
            root=context.root,
            generated=self._generated,
            views=self._views,
        )
        kind = context.sink.kind
        to_files = kind in (SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV)
        taker = self._remember if kind is SinkKind.MEMORY else on_file
        self._publisher = Publisher(
            context.state / "staging", context.results if to_files else None, context.state, kind, taker
        )

    def _frame(self, session: Session) -> Session:
        """The streaming DataFrame of the job's output."""
        self._register(session, self.job.plan)
        return session.sql(Compiler(self._views.__getitem__).query(self.job.plan))

    def _register(self, session: Session, plan: lp.LogicalPlan) -> None:
        """The views of the plan's scans."""
        views, prefix = self._views, f"hr_{fingerprint(self.job.id)}"
        for node in lp.nodes(plan):
            if node in views:
                continue
            if isinstance(node, lp.StreamScan):
                views[node] = f"{prefix}_{node.stream}_{len(views)}"
                stream_view(
                    session,
                    node,
                    self._streams[node.stream],
                    name=views[node],
                    root=self._context.root,
                    generated=self._generated,
                    marks=self._closing.marks(node.stream) if self._stateful else None,
                    most_bytes=self._most_bytes,
                )
            elif isinstance(node, lp.TableScan):
                views[node] = f"{prefix}_{node.table}_{len(views)}"
                table = self._context.tables[node.table]
                table_view(session, node, table, name=views[node], root=self._context.root)

    def _start(self, session: Session) -> Session:
        context = self._context
        try:
            writer = self._frame(session).writeStream.outputMode("append").queryName(self.job.id)
            form, options = self._staged()
            writer = writer.format(form).option("path", str(context.state / "staging")).options(**options)
            if context.trigger:
                writer = writer.trigger(processingTime=f"{context.trigger // 1000} milliseconds")
            return writer.option("checkpointLocation", str(self._checkpoint)).start()
        except UserError:
            raise
        except Exception as error:
            raise EngineError(
                f'Spark does not start query "{self.job.query}"', detail=engine_message(error)
            ) from error

    def _staged(self) -> tuple[str, dict[str, str]]:
        """Format and options of the staged files."""
        kind = self._context.sink.kind
        return file_format(kind), writer_options(kind)

    # -- while it runs ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            if self._drain:
                self._drain_input()
            else:
                while self._query.isActive and not self._stopping.is_set():
                    self._observe()
                    self._stopping.wait(_POLL_SECONDS)
                if not self._stopping.is_set():
                    self._query.awaitTermination()
            self._end(JobState.STOPPED if self._stopping.is_set() else JobState.FINISHED)
        except Exception as error:
            if self._stopping.is_set():
                self._end(JobState.STOPPED)
            else:
                self._observed.lost = is_site_gone(error)
                died = engine_died(self._spark, error)
                self._end(JobState.FAILED, DIED if died else self._closing.told(engine_message(error)))

    def _drain_input(self) -> None:
        """Read the input to its end, close the streams, give what is still open."""
        self._settle()
        if self._stateful and not self._stopping.is_set():
            self._close_streams()
            self._reach_the_end()
        if not self._stopping.is_set():
            self._query.stop()
            self._observe()
            # A job without state that has had no input has had no batch either.
            if last_committed(self._checkpoint) < self._observed.last_batch:
                raise EngineError(
                    f"the checkpoint of the job is not here: {self._checkpoint}",
                    hint="A remote Spark must see the project folder under the same path.",
                )
            write_json(self._finished_file, self._outcome())

    def _outcome(self) -> dict[str, object]:
        """What `finished_before` needs to know of a drained job."""
        return {
            "output_rows": self._publisher.done.rows,
            "late_rows": self._late.total,
            "batch": self._late.batch,
        }

    def _close_early(self) -> None:
        """Close with the last batch where that can be foreseen, rather than after it."""
        if self._drain and self._stateful and not self._closing.done and self._closing.one_batch_left():
            self._close_streams()

    def _close_streams(self) -> None:
        self._observed.state = JobState.DRAINING
        self._closing.close()

    def _reach_the_end(self) -> None:
        """Until the watermark is where the close marks put it, and all it lets go has been given."""
        delay = max(s.watermark for s in self._streams.values()) // 1000 + 1
        end = int(CLOSE.timestamp()) * 1000 - delay
        for _ in range(_CLOSE_TRIES):
            self._settle()
            if self._stopping.is_set():
                return
            if (self._observed.watermark or 0) >= end * 1000:
                self._settle()
                return
            self._stopping.wait(_POLL_SECONDS)
        raise EngineError("the watermark did not reach the end of the closed streams")

    def _settle(self) -> None:
        """Wait until the query has nothing left to do, watching it meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            done: Future[None] = pool.submit(self._query.processAllAvailable)
            while not done.done():
                self._observe()
                self._close_early()
                self._stopping.wait(_POLL_SECONDS)
                if self._stopping.is_set():
                    self._query.stop()
            if not self._stopping.is_set():
                done.result()
        self._observe()

    def _observe(self) -> None:
        """Take in what Spark reports and publish what it has committed."""
        last = self._query.lastProgress
        if last is not None:
            newest = json.loads(last.json)
            # All of Spark's last hundred events only where one was missed: they are dear to fetch.
            missed = newest["batchId"] > self._observed.last_batch + 1
            for event in self._query.recentProgress if missed else ():
                self._observed.take(json.loads(event.json))
            self._observed.take(newest)
        self._take_output()

    def _take_output(self) -> None:
        """Count late rows and publish what is committed."""
        committed = last_committed(self._checkpoint)
        for batch, dropped in self._observed.unheard():
            if batch <= committed:
                self._late.heard(batch, dropped)
        self._publisher.publish()
        self._observed.late_rows = self._late.total
        self._observed.output_rows = self._publisher.done.rows

    def _remember(self, path: Path) -> None:
        self.memory.append(pq.read_table(path))

    # -- the end ----------------------------------------------------------------------------------

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=60)

    def _end(self, state: JobState, error: str = "") -> None:
        try:
            if self._query.isActive:
                self._query.stop()
            self._observe()
        except Exception as problem:
            if state is not JobState.FAILED:
                self._observed.lost = is_site_gone(problem)
            error = error or engine_message(problem)
            state = JobState.FAILED
        self._observed.error = error
        self._observed.state = state

    def finished_before(self) -> None:
        """Take over the outcome of the earlier run that drained this job."""
        data = json.loads(self._finished_file.read_text(encoding="utf-8"))
        self._observed.output_rows = int(data["output_rows"])
        self._observed.late_rows = int(data["late_rows"])
        batch = int(data["batch"])
        self._observed.batch = batch if batch >= 0 else None
        self._observed.notes = ("drained by an earlier run; nothing new",)
        self._observed.state = JobState.FINISHED

    def progress(self) -> Progress:
        return self._observed.progress()

    @property
    def ended(self) -> bool:
        return self.state in ENDED
