"""The fake executor keeps the protocol's rules, so that a service tested on it is tested at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Sink
from headrace.errors import InternalError, UserError
from headrace.plan.channels import ChannelJob
from headrace.plan.expr import AggregateCall
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.logical import Aggregate, StreamScan, Window, WindowSpec
from headrace.plan.placed import Job
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.ports import Ports
from headrace.runtime.executor import Executor, JobContext, JobState
from headrace.runtime.fake import FakeExecutor, Script


def _job(name: str) -> Job:
    scan = StreamScan("s", Schema([Column("ts", DataType.TIMESTAMP)]), "ts", 0)
    return Job(name, name, "local", scan)


def _context() -> JobContext:
    return JobContext({}, {}, Sink(), Path("/p"), Path("/p/state"), Path("/p/results"), "local[1]")


def _start(executor: FakeExecutor, name: str = "q", *, drain: bool = True) -> None:
    executor.start(_job(name), _context(), drain=drain)


def test_it_is_an_executor() -> None:
    executor: Executor = FakeExecutor()
    executor.close()


def test_a_drained_job_gives_its_batches_and_finishes() -> None:
    executor = FakeExecutor({"q": Script(batches=2, rows=7, results=3, late=1)})
    _start(executor)
    seen = [executor.progress("q") for _ in range(6)]
    assert [p.state.value for p in seen] == ["running", "running", "draining", *["finished"] * 3]
    assert [p.batch for p in seen] == [None, 0, 1, 1, 1, 1]
    last = seen[-1]
    assert (last.input_rows, last.output_rows, last.late_rows, last.input_total) == (14, 6, 2, 14)


def test_without_drain_a_job_goes_on_until_stopped() -> None:
    executor = FakeExecutor({"q": Script(batches=1)})
    _start(executor, drain=False)
    assert {executor.progress("q").state for _ in range(20)} == {JobState.RUNNING}
    executor.stop("q")
    assert executor.status("q") is JobState.STOPPED
    assert executor.progress("q").state is JobState.STOPPED


def test_a_job_fails_at_its_batch_and_stays_failed() -> None:
    executor = FakeExecutor({"q": Script(fail_at=1, reason="disk full")})
    _start(executor)
    seen = [executor.progress("q") for _ in range(4)]
    assert [p.state.value for p in seen] == ["running", "running", "failed", "failed"]
    assert seen[-1].error == "disk full"
    executor.stop("q")
    assert executor.status("q") is JobState.FAILED


def test_a_job_can_refuse_to_start() -> None:
    executor = FakeExecutor({"q": Script(refuse=UserError("no"))})
    with pytest.raises(UserError, match="no"):
        _start(executor)
    with pytest.raises(InternalError):
        executor.status("q")


def test_a_running_job_cannot_start_twice_but_an_ended_one_can() -> None:
    executor = FakeExecutor()
    _start(executor)
    with pytest.raises(InternalError):
        _start(executor)
    executor.stop("q")
    _start(executor)
    assert executor.status("q") is JobState.STARTING


def test_close_stops_everything_and_is_final() -> None:
    executor = FakeExecutor()
    _start(executor, "a")
    _start(executor, "b")
    executor.close()
    assert (executor.status("a"), executor.status("b")) == (JobState.STOPPED, JobState.STOPPED)
    assert executor.most_at_once == 2
    with pytest.raises(InternalError):
        _start(executor, "c")


def test_a_job_over_channels_ends_after_its_makers(tmp_path: Path) -> None:
    scan = StreamScan("s", Schema([Column("ts", DataType.TIMESTAMP)]), "ts", 0)
    channel = FileChannel(tmp_path / "via", ("ts",))
    maker, reader = ChannelJob("m", "local", scan, writes="via"), ChannelJob("q", "local", scan, query="q")
    executor = FakeExecutor({"m": Script(batches=9)})
    channel.end()
    executor.start_channel(maker, _context(), Ports(output=channel), drain=True)
    assert not channel.ended(), "something may come again"
    executor.start_channel(reader, _context(), Ports({"via": channel}), drain=True)
    ended: list[str] = []
    while len(ended) < 2:
        left = [name for name in ("q", "m") if name not in ended]
        ended += [name for name in left if executor.progress(name).state is JobState.FINISHED]
    assert ended == ["m", "q"] and channel.ended()


def _federated(name: str, *queries: str, until: int | None = None) -> FederatedJob:
    scan = StreamScan("s", Schema([Column("ts", DataType.TIMESTAMP)]), "ts", 0)
    count = (("n", AggregateCall("count", None)),)
    plan = Aggregate(Window(scan, "ts", WindowSpec(1_000_000, 1_000_000)), (), count)
    members = tuple(FederatedMember(q, plan, (Engine.DUCKDB,), until=until) for q in queries)
    return FederatedJob(name, "local", members)


def test_the_members_of_a_federated_job_are_seen_as_the_job_is() -> None:
    executor = FakeExecutor()
    executor.start_federated(
        _federated("f", "a", "b"), _context(), {"a": _context(), "b": _context()}, drain=True
    )
    while executor.progress("f").state is not JobState.FINISHED:
        assert executor.progress("a").state is executor.status("f")
    assert executor.progress("b").job == "b" and executor.seen_until("f") == 3_000_000


def test_a_federated_job_past_its_last_window_is_finished() -> None:
    executor = FakeExecutor()
    executor.start_federated(_federated("f", "a"), _context(), {"a": _context()}, drain=False)
    for _ in range(3):
        executor.progress("f")
    with pytest.raises(InternalError):
        executor.set_until("f", ["a"], 1_000_000)
    with pytest.raises(InternalError):
        executor.set_until("f", ["z"], 9_000_000)
    executor.set_until("f", ["a"], 4_000_000)
    # Another job takes over meanwhile; the query is then seen as it is there.
    executor.start_federated(_federated("g", "a"), _context(), {"a": _context()}, drain=False)
    seen = [executor.progress("f").state for _ in range(4)]
    assert seen == [JobState.RUNNING, JobState.FINISHED, JobState.FINISHED, JobState.FINISHED]
    assert executor.progress("a").state is executor.status("g")


def test_a_last_window_may_be_told_twice_and_not_changed() -> None:
    """After a crash it is told again, when the job may be beyond it."""
    executor = FakeExecutor()
    executor.start_federated(_federated("f", "a"), _context(), {"a": _context()}, drain=False)
    executor.set_until("f", ["a"], 1_500_000)
    for _ in range(5):
        executor.progress("f")
    assert executor.seen_until("f") == 2_000_000
    executor.set_until("f", ["a"], 1_500_000)
    with pytest.raises(InternalError):
        executor.set_until("f", ["a"], 1_600_000)
    assert executor.until == {("f", "a"): 1_500_000}
