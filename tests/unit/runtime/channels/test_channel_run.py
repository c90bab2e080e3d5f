"""Jobs at both ends of a channel, over checkpoints written by hand: what is given, promised and passed on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import FileSource, Format, Sink, Stream
from headrace.errors import UserError
from headrace.plan.bounds import TimeBound
from headrace.plan.channels import ChannelJob, DerivedStream
from headrace.plan.expr import ColumnRef
from headrace.plan.logical import (
    Aggregate,
    IntervalJoin,
    LogicalPlan,
    Project,
    StreamScan,
    Window,
    WindowSpec,
)
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.parts import numbered
from headrace.runtime.channels.ports import Ports
from headrace.runtime.channels.protocol import Limit, Mark
from headrace.runtime.executor import JobContext
from headrace.runtime.spark.channel_run import ChannelRun

SECOND = 1_000_000
BASE = Schema([Column("ts", DataType.TIMESTAMP)])


def _side(name: str) -> LogicalPlan:
    scan = StreamScan("s", BASE, "ts", 0)
    return Project(scan, ((f"{name}/ts", ColumnRef("ts", DataType.TIMESTAMP)),))


BOUNDS = (TimeBound("a/ts", "b/ts", 7 * SECOND), TimeBound("b/ts", "a/ts", 3 * SECOND))
JOIN = IntervalJoin(_side("a"), _side("b"), (), BOUNDS)
DERIVED = DerivedStream("via_1", "west", JOIN)
WINDOW = Aggregate(Window(DERIVED.scan(), "b/ts", WindowSpec(SECOND, SECOND)), (), ())
JOINS = ChannelJob("make", "west", JOIN, writes="via_1")
PLAIN = ChannelJob("send", "west", StreamScan("s", BASE, "ts", 0), writes="via_2")
READS = ChannelJob("q", "south", WINDOW, query="q")


class _Spark:
    """What Spark would leave behind for a job, batch by batch."""

    def __init__(self, state: Path, sources: Sequence[Path]) -> None:
        self.state, self._sources, self._batch = state, sources, -1
        self._positions: list[int] = [-1] * len(sources)
        self._staged = 0
        self.active = self.told = True
        for name in ("offsets", "commits", "staging/_spark_metadata"):
            folder = state / name if name.startswith("staging") else state / "checkpoint" / name
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def lastProgress(self) -> SimpleNamespace | None:
        if not self.told:
            return None
        sources = [{"description": f"FileStreamSource[file:{path}]"} for path in self._sources]
        event = {"batchId": self._batch, "sources": sources, "durationMs": {"addBatch": 1}}
        return SimpleNamespace(json=json.dumps(event))

    @property
    def recentProgress(self) -> list[SimpleNamespace]:
        last = self.lastProgress
        return [] if last is None else [last]

    @property
    def isActive(self) -> bool:
        return self.active

    def stop(self) -> None:
        self.active = False

    def batch(
        self, *, watermark: int = 0, after: int = 0, read: dict[int, list[Path]] | None = None, rows: int = 0
    ) -> None:
        """One committed batch; `read` are the files that each source takes."""
        self._batch += 1
        checkpoint = self.state / "checkpoint"
        for source, files in (read or {}).items():
            self._positions[source] += 1
            entries = [{"path": f.as_uri(), "batchId": self._positions[source]} for f in files]
            _log(checkpoint / "sources" / str(source) / str(self._positions[source]), entries)
        offsets = [{"logOffset": p} if p >= 0 else None for p in self._positions]
        lines = ["v1", json.dumps({"batchWatermarkMs": watermark // 1000})]
        lines += ["-" if one is None else json.dumps(one) for one in offsets]
        (checkpoint / "offsets" / str(self._batch)).write_text("\n".join(lines))
        staged = []
        if rows:
            path = self.state / "staging" / f"out-{self._staged}.parquet"
            self._staged += 1
            times = pa.array(range(rows), pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"ts": times, "a/ts": times, "b/ts": times}), path)
            staged = [{"path": path.as_uri()}]
        _log(self.state / "staging" / "_spark_metadata" / str(self._batch), staged)
        text = "v1\n" + json.dumps({"nextBatchWatermarkMs": after // 1000})
        (checkpoint / "commits" / str(self._batch)).write_text(text)


def _log(path: Path, entries: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["v1", *map(json.dumps, entries)]))


def _context(root: Path, job: ChannelJob) -> JobContext:
    base = FileSource(path=str(root / "in"), format=Format.PARQUET)
    derived = FileSource(path=str(root / "via_1" / "rows"), format=Format.PARQUET)
    times = dict.fromkeys(("a/ts", "b/ts"), DataType.TIMESTAMP)
    (root / "in").mkdir(exist_ok=True)
    return JobContext(
        streams={
            "s": Stream(name="s", columns={"ts": DataType.TIMESTAMP}, time="ts", source=base),
            "via_1": Stream(name="via_1", columns=times, time="a/ts", source=derived),
        },
        tables={},
        sink=Sink(),
        root=root,
        state=root / "jobs" / job.id,
        results=root / "results" / job.id,
        endpoint="local[1]",
    )


def _run(root: Path, job: ChannelJob, ports: Ports, spark: _Spark, *, drain: bool = False) -> ChannelRun:
    run = ChannelRun(job, _context(root, job), ports, drain=drain)
    run._views, run._query, run._whole = {}, spark, ()
    run._open_output(None, None)
    return run


def _maker(root: Path, job: ChannelJob, limit: Limit | None = None) -> tuple[ChannelRun, _Spark, FileChannel]:
    channel = FileChannel(root / str(job.writes), job.plan.times, limit)
    spark = _Spark(root / "jobs" / job.id, [root / "in"])
    return _run(root, job, Ports(output=channel), spark), spark, channel


def test_a_join_promises_what_its_bounds_allow(tmp_path: Path) -> None:
    run, spark, channel = _maker(tmp_path, JOINS)
    spark.batch(watermark=0, after=20 * SECOND, rows=3)
    run._take_output()
    assert list(numbered(channel.rows)) == [0]
    assert not channel.marks(), "there is no watermark yet"
    spark.batch(watermark=20 * SECOND, after=50 * SECOND, rows=2)
    run._take_output()
    # Rows of the next batch are late by the watermark of this one, not by the one after it.
    assert channel.marks() == {1: Mark(2, {"a/ts": 13 * SECOND, "b/ts": 17 * SECOND})}
    spark.batch(watermark=50 * SECOND, after=50 * SECOND)
    run._take_output()
    assert channel.marks()[2] == Mark(2, {"a/ts": 43 * SECOND, "b/ts": 47 * SECOND}), "no rows, but progress"


def test_a_cut_stream_promises_what_its_watermark_is_then(tmp_path: Path) -> None:
    run, spark, channel = _maker(tmp_path, PLAIN)
    spark.batch(watermark=0, after=20 * SECOND, rows=3)
    run._take_output()
    assert channel.marks() == {0: Mark(1, {"ts": 20 * SECOND})}
    closed = 253402214400 * SECOND
    spark.batch(watermark=20 * SECOND, after=closed)
    run._take_output()
    assert set(channel.marks()) == {0}, "the end is told otherwise"


def test_a_killed_maker_gives_nothing_twice(tmp_path: Path) -> None:
    run, spark, channel = _maker(tmp_path, JOINS)
    channel.enlist("q")
    for _ in range(3):
        spark.batch(watermark=20 * SECOND, rows=1)
    run._take_output()
    files = {n: path.stat().st_ino for n, path in numbered(channel.rows).items()}
    # Killed before it could write down what it had given.
    (tmp_path / "jobs" / "make" / "published.json").unlink()
    again = _run(tmp_path, JOINS, Ports(output=channel), spark)
    again._take_output()
    assert {n: path.stat().st_ino for n, path in numbered(channel.rows).items()} == files
    channel.advance("q", 2)
    again._take_output()
    assert list(numbered(channel.rows)) == [2]
    assert [p.name for p in (tmp_path / "jobs" / "make" / "staging").glob("*.parquet")] == ["out-2.parquet"]


def _reader(root: Path, scans: int = 1) -> tuple[ChannelRun, _Spark, FileChannel]:
    channel = FileChannel(root / "via_1", ("a/ts", "b/ts"))
    channel.enlist("q")
    close = root / "jobs" / "q" / "close" / "via_1"
    close.mkdir(parents=True)
    spark = _Spark(root / "jobs" / "q", [path for _ in range(scans) for path in (channel.rows, close)])
    run = _run(root, READS, Ports({"via_1": channel}, never_late=frozenset({"via_1"})), spark)
    return run, spark, channel


def _give(channel: FileChannel, count: int) -> list[Path]:
    staged = channel.folder / "staged.parquet"
    times = pa.array([1], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"a/ts": times, "b/ts": times}), staged)
    for number in range(count):
        channel.put(number, staged)
    return list(numbered(channel.rows).values())


def _promises(run: ChannelRun) -> list[Path]:
    return sorted(run._closing.marks("via_1").glob("promise-*"))


def test_a_promise_overtakes_no_row(tmp_path: Path) -> None:
    run, spark, channel = _reader(tmp_path)
    first, second = _give(channel, 2)
    channel.mark(4, Mark(1, {"a/ts": SECOND, "b/ts": 2 * SECOND}))
    channel.mark(5, Mark(2, {"a/ts": 3 * SECOND, "b/ts": 4 * SECOND}))
    spark.batch(read={0: []})
    run._observe()
    assert not _promises(run), "nothing was read"
    spark.batch(read={0: [first]})
    run._observe()
    assert [path.name for path in _promises(run)] == ["promise-000004-0.parquet"]
    spark.batch(read={0: [second], 1: _promises(run)})
    run._observe()
    newest = _promises(run)
    assert [path.name for path in newest] == ["promise-000004-0.parquet", "promise-000005-0.parquet"]
    assert pq.read_table(newest[1]).to_pylist()[0]["b/ts"].timestamp() == 4
    assert channel.place("q") == 2
    spark.batch(read={1: newest[1:]})
    run._observe()
    assert _promises(run) == newest[1:], "what Spark has read is removed, but for the newest"


def test_two_scans_of_a_channel_must_both_have_read(tmp_path: Path) -> None:
    run, spark, channel = _reader(tmp_path, scans=2)
    (only,) = _give(channel, 1)
    channel.mark(0, Mark(1, {"a/ts": SECOND, "b/ts": SECOND}))
    spark.batch(read={0: [only]})
    run._observe()
    assert channel.place("q") == 0 and not _promises(run)
    spark.batch(read={2: [only]})
    run._observe()
    assert channel.place("q") == 1 and len(_promises(run)) == 1


def test_what_a_killed_reader_has_read_is_told_without_another_batch(tmp_path: Path) -> None:
    """Its maker may be waiting for just that, and then there is no other batch."""
    run, spark, channel = _reader(tmp_path)
    first, second = _give(channel, 2)
    spark.batch(read={0: [first]})
    run._observe()
    assert channel.place("q") == 1
    spark.batch(read={0: [second]})
    # Killed here, and started again.
    spark.told = False
    again = _run(tmp_path, READS, Ports({"via_1": channel}, never_late=frozenset({"via_1"})), spark)
    again._observe()
    assert channel.place("q") == 2


def test_a_full_channel_holds_its_maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, spark, channel = _maker(tmp_path, JOINS, Limit(parts=2))
    run._session = None
    started = threading.Event()

    def start(session: object) -> _Spark:
        started.set()
        spark.active = True
        return spark

    monkeypatch.setattr(run, "_start", start)
    channel.enlist("q")
    spark.batch(watermark=SECOND, rows=1)
    run._take_output()
    assert spark.active
    spark.batch(watermark=SECOND, rows=1)
    waiting = threading.Thread(target=run._take_output, daemon=True)
    waiting.start()
    deadline = time.monotonic() + 30
    while spark.active and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not spark.active and not started.is_set()
    assert "full" in run.progress().notes[0]
    channel.advance("q", 1)
    waiting.join(timeout=30)
    assert started.is_set() and spark.active and not run.progress().notes


def test_a_drained_reader_is_not_finished_while_more_may_come(tmp_path: Path) -> None:
    run, _, channel = _reader(tmp_path)
    draining = ChannelRun(READS, _context(tmp_path, READS), run._ports, drain=True)
    state = tmp_path / "jobs" / "q"
    (state / "finished.json").write_text("{}")
    assert not draining.is_finished(), "its maker has not ended"
    channel.end()
    assert draining.is_finished()
    (state / "closing.json").write_text("[]")
    assert draining.is_finished()
    channel.reopen()
    with pytest.raises(UserError, match="more is to come"):
        draining.is_finished()
