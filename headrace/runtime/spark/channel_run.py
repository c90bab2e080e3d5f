"""One running job that reads or writes channels.

It is a job like any other (job.py) but for this:
- The files it has committed are put into its channel, under numbers that are the same on every try; then
  what the batch promises of those to come. `plan.channels.behind` says what may be promised. A job that joins
  nothing finds no row late, so it tells the watermark after the batch, for its readers to go by.
- It tells the channels that it reads how far it is, by what its checkpoint has for good, and passes promises
  that are due on to Spark: into the folder of close marks, where they are a source like another. All rows
  before a promise are then in batches that are committed, so it overtakes none.
- While its channel is full it stops, and goes on when its readers have caught up. Not when it drains: the
  input is finite then, and readers may be waiting for their turn.
- It drains when its makers have ended, and all they gave is in the channel: till then it reads on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from headrace.errors import UserError
from headrace.plan import logical as lp
from headrace.plan.channels import ChannelJob, DerivedScan, behind
from headrace.plan.placed import Job
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.parts import due, numbered, read_upto
from headrace.runtime.channels.ports import Ports
from headrace.runtime.channels.protocol import Mark
from headrace.runtime.executor import JobContext
from headrace.runtime.files import write_json
from headrace.runtime.spark.checkpoint import last_committed, read_batch, source_files
from headrace.runtime.spark.compile import Compiler
from headrace.runtime.spark.job import JobRun
from headrace.runtime.spark.late import LateCounter, late_points
from headrace.runtime.spark.publish import Publisher, committed
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.sources import CLOSE, stream_view, write_promise
from headrace.units import format_instant

_POLL_SECONDS = 0.25
_CLOSED = (int(CLOSE.timestamp()) - 366 * 24 * 3600) * 1_000_000
"""A watermark from here on comes from close marks: `ended` tells readers that."""


class ChannelCompiler(Compiler):
    """Reads a derived stream by the event time that the plan above goes by."""

    def _node(self, node: lp.LogicalPlan, keep: str | None) -> str:
        if isinstance(node, DerivedScan) and keep is not None:
            node = node.keeping(keep)
        return super()._node(node, keep)


class ChannelPublisher(Publisher):
    """Puts newly committed files into a channel."""

    def __init__(self, staging: Path, state: Path, channel: FileChannel, kind: Any) -> None:
        super().__init__(staging, None, state, kind)
        self._channel = channel

    def _give(self, path: Path, number: int) -> None:
        self._channel.put(number, path)


def _folder(source: Mapping[str, Any]) -> str:
    """What a file source reads, as Spark's progress has it: FileStreamSource[file:/a/folder]."""
    return unquote(str(source.get("description", ""))).removesuffix("]")


class ChannelRun(JobRun):
    def __init__(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        super().__init__(Job(job.id, job.query or job.id, job.site, job.plan), context, drain=drain)
        self._channel_job, self._ports = job, ports
        self._behind = behind(job.plan) if job.writes is not None else {}
        self._began = last_committed(self._checkpoint)
        self._marked = self._seen = -1
        """The newest batch that was promised for, and whose files are in `taken`."""
        self._known: tuple[str, ...] = ()
        """What its sources read, once Spark has said so."""
        self._taken: dict[Path, int] = {}
        self._passed_on: dict[str, int] = {}
        self._unstaged = 0
        """Staged files with lower numbers are removed."""

    @property
    def fingerprint(self) -> str:
        return self._channel_job.fingerprint

    # -- before the start ---------------------------------------------------------------------------

    def is_finished(self) -> bool:
        finished = super().is_finished()
        if not finished or self._all_ended():
            return finished
        if self._closing.begun:
            raise UserError(
                f'"{self.job.query}" was drained: its streams are closed, and more is to come in a channel',
                hint="Use --fresh to start over from the beginning of the input.",
            )
        return False

    def finished_before(self) -> None:
        super().finished_before()
        if self._ports.output is not None:
            self._ports.output.end()

    def begin(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        self._session = session
        told = {name: channel.enlist(self.job.id) for name, channel in self._ports.inputs.items()}
        if self._ports.output is not None:
            self._ports.output.reopen()
        super().begin(session, on_file)
        self._whole = tuple(
            f"all rows of {name} from {format_instant(max(times.values()))} on; some before were gone"
            for name, times in told.items()
            if times
        )
        self._observed.notes = self._whole
        if self._ports.inputs:
            self._observed.totals = {}  # nobody knows how many rows are still to come

    # -- the streaming query --------------------------------------------------------------------------

    def _open_output(self, session: Session, on_file: Callable[[Path], None] | None) -> None:
        super()._open_output(session, on_file)
        context, late = self._context, self._ports.never_late
        points = [p for p in late_points(self.job.plan) if not late & set(lp.streams_of(p.rows))]
        self._late = LateCounter(
            session,
            self.job.plan,
            self._streams,
            state=context.state,
            root=context.root,
            generated=self._generated,
            views=self._views,
            points=tuple(points),
        )
        if self._ports.output is not None:
            staging, kind = context.state / "staging", context.sink.kind
            self._publisher = ChannelPublisher(staging, context.state, self._ports.output, kind)

    def _frame(self, session: Session) -> Session:
        self._register(session, self.job.plan)
        return session.sql(ChannelCompiler(self._view).query(self.job.plan))

    def _register(self, session: Session, plan: lp.LogicalPlan) -> None:
        for node in lp.nodes(plan):
            if isinstance(node, lp.StreamScan) and not isinstance(node, DerivedScan):
                self._view(node)
        # What is left are static tables: derived streams are there when it is known how they are read.
        scans = [n for n in dict.fromkeys(lp.nodes(plan)) if isinstance(n, DerivedScan)]
        for scan in scans:
            self._views[scan] = ""
        super()._register(session, plan)
        for scan in scans:
            del self._views[scan]

    @property
    def _watermarked(self) -> bool:
        return self._stateful or self._ports.output is not None

    def _view(self, scan: lp.StreamScan | lp.TableScan) -> str:
        if scan not in self._views and isinstance(scan, lp.StreamScan):
            name = f"hr_{self.fingerprint}_{scan.stream}_{len(self._views)}"
            stream_view(
                self._session,
                scan,
                self._streams[scan.stream],
                name=name,
                root=self._context.root,
                generated=self._generated,
                marks=self._closing.marks(scan.stream) if self._watermarked else None,
            )
            self._views[scan] = name
        return self._views[scan]

    # -- while it runs --------------------------------------------------------------------------------

    def _take_output(self) -> None:
        done = last_committed(self._checkpoint)
        super()._take_output()
        if done >= 0:
            self._promise(done)
            self._follow(done)
        self._collect()
        if self._ports.output is not None and not self._drain and self._ports.output.full():
            self._wait_for_readers(self._ports.output)

    def _promise(self, batch: int) -> None:
        """After the files of the batch, what they say of those to come."""
        output = self._ports.output
        if output is None or batch <= self._marked:
            return
        watermark = self._watermark(batch)
        if watermark is not None and 0 < watermark < _CLOSED:
            times = {time: watermark - most for time, most in self._behind.items()}
            output.mark(batch, Mark(self._publisher.done.files, times))
        self._marked = batch

    def _watermark(self, batch: int) -> int | None:
        """By which rows of the next batch are found late; for a job that finds none, after this batch."""
        if self._channel_job.joins:
            planned = read_batch(self._checkpoint, batch)
            return None if planned is None else planned.watermark
        path = self._checkpoint / "commits" / str(batch)
        lines = path.read_text(encoding="utf-8").splitlines()
        return int(json.loads(lines[1])["nextBatchWatermarkMs"]) * 1000

    def _follow(self, done: int) -> None:
        """Tell makers what was read, and Spark what they promise of the rest."""
        read = self._sources() if self._ports.inputs else ()
        if not read:
            return
        if self._late.batch < done <= self._began:
            # Nobody has heard of it, and nobody will: it was the last batch of a process that was killed.
            self._late.heard(done, dropped=True)
        if done > self._seen:
            self._taken, self._seen = taken_files(self._checkpoint, done), done
            self._forget_promises(read)
        for name, channel in self._ports.inputs.items():
            scans = sum(folder.endswith(str(channel.rows)) for folder in read)
            if not scans:
                continue
            marks = channel.marks()
            there = numbered(channel.rows)  # behind the marks, as `due` wants it
            left = [n for n, path in there.items() if self._taken.get(path, 0) < scans]
            self._pass_on(name, marks, left)
            if self._late.batch >= done:
                channel.advance(self.job.id, read_upto(marks, there, left))

    def _sources(self) -> tuple[str, ...]:
        """The folders that Spark's sources read, as its first progress tells them; they stay the same. They
        are written down: after a kill there may be no batch, and so no progress, until the maker goes on,
        which may wait for what was read before."""
        path = self._context.state / "sources.json"
        last = self._query.lastProgress if not self._known else None
        if last is not None:
            self._known = tuple(_folder(source) for source in json.loads(last.json)["sources"])
            write_json(path, list(self._known))
        elif not self._known and path.exists():
            return tuple(json.loads(path.read_text(encoding="utf-8")))
        return self._known

    def _pass_on(self, stream: str, marks: Mapping[int, Mark], left: list[int]) -> None:
        number = due(marks, left)
        if not self._watermarked or number is None or number <= self._passed_on.get(stream, -1):
            return
        # Each process gives the newest once more: a batch that was skipped after a kill has forgotten it.
        write_promise(self._closing.marks(stream), f"{number:06d}-{self._began + 1}", marks[number].times)
        self._passed_on[stream] = number

    def _forget_promises(self, read: Sequence[str]) -> None:
        """Those that Spark has read; not the newest, whose name says that it was given."""
        for stream in self._ports.inputs:
            folder = self._closing.marks(stream)
            scans = sum(path.endswith(str(folder)) for path in read)
            for path in sorted(folder.glob("promise-*.parquet"))[:-1]:
                if scans and self._taken.get(path, 0) >= scans:
                    path.unlink()

    def _collect(self) -> None:
        if self._ports.output is not None:
            given, state = self._publisher.done.files, self._context.state
            self._unstaged = collect(self._ports.output, state, given, self._unstaged)

    def _wait_for_readers(self, output: FileChannel) -> None:
        if self._stopping.is_set() or not self._query.isActive:
            return
        self._query.stop()
        self._observed.notes = (*self._whole, f"waits for the readers of {output.id}, which is full")
        super()._take_output()
        while output.full() and not self._stopping.is_set():
            self._collect()
            self._stopping.wait(_POLL_SECONDS)
        self._observed.notes = self._whole
        if not self._stopping.is_set():
            self._views.clear()
            self._query = self._start(self._session)

    # -- the end ----------------------------------------------------------------------------------------

    def _all_ended(self) -> bool:
        return all(channel.ended() for channel in self._ports.inputs.values())

    def _close_early(self) -> None:
        if self._all_ended():
            super()._close_early()

    def _drain_input(self) -> None:
        while not self._all_ended() and not self._stopping.is_set():
            self._observe()
            if not self._query.isActive:
                self._query.awaitTermination()
                return
            self._stopping.wait(_POLL_SECONDS)
        if self._stopping.is_set():
            return
        super()._drain_input()
        if self._ports.output is not None and not self._stopping.is_set():
            self._ports.output.end()


def taken_files(checkpoint: Path, batch: int) -> dict[Path, int]:
    """The files that were read by a batch or before it, with the number of sources that did so."""
    planned = read_batch(checkpoint, batch)
    found: dict[Path, int] = {}
    for source, last in enumerate(planned.offsets if planned is not None else ()):
        for path, position in (source_files(checkpoint, source) if last is not None else {}).items():
            if last is not None and position <= last:
                found[path] = found.get(path, 0) + 1
    return found


def collect(channel: FileChannel, state: Path, given: int, before: int = 0) -> int:
    """Remove what all readers of a channel have: there, and where its maker has staged it. `given` files are
    in the maker's ledger; those below `before` were removed by an earlier call. Returns below which number
    all are gone. Also for a maker that does not run any more, whose readers go on."""
    gone = channel.collect(given)
    if gone > before:
        for path in committed(state / "staging")[before:gone]:
            path.unlink(missing_ok=True)
    return max(gone, before)


def published_files(state: Path) -> int:
    """How many files a maker has put into its channel for good; 0: it never ran."""
    ledger = state / "published.json"
    return int(json.loads(ledger.read_text(encoding="utf-8"))["files"]) if ledger.exists() else 0


def advance_by_checkpoint(channel: FileChannel, reader: str, checkpoint: Path) -> None:
    """Tell a channel what a reader has committed that knows nothing of channels and reads it once."""
    done = last_committed(checkpoint)
    if done >= 0:
        taken = taken_files(checkpoint, done)
        marks = channel.marks()
        there = numbered(channel.rows)  # behind the marks, as `read_upto` wants it
        left = [number for number, path in there.items() if path not in taken]
        channel.advance(reader, read_upto(marks, there, left))
