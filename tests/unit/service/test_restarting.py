"""A run starts jobs again whose engine was at fault for a moment, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.runtime.executor import JobContext
from headrace.runtime.fake import FakeExecutor, Script
from headrace.runtime.sites import Ways
from headrace.service.run import Hooks, Options, Outcome, Runner
from headrace.state.store import Store
from tests.unit.service.sample import Clock, only_jobs, project

PASSING = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back."


@dataclass(slots=True)
class Busy(FakeExecutor):
    """Job `b` fails its first starts for `reason`: at the start itself, or a batch later."""

    failures: int = 1
    reason: str = PASSING
    at_start: bool = False
    starts: int = 0
    begun: list[float] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    seconds: Clock = field(default_factory=Clock)

    def _begin(self, job_id: str, context: JobContext, *, drain: bool) -> None:
        self.order.append(job_id)
        if job_id == "b":
            self.starts += 1
            self.begun.append(self.seconds.time.timestamp())
            bad = self.starts <= self.failures
            wrong = EngineError('Spark does not start query "b"', detail=self.reason)
            refused = Script(refuse=wrong) if self.at_start else Script(fail_at=1, reason=self.reason)
            self.scripts = {"b": refused if bad else Script()}
        FakeExecutor._begin(self, job_id, context, drain=drain)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "state.db") as opened:
        yield opened


def _run(
    root: Path,
    store: Store,
    engine: Busy,
    options: Options | None = None,
    cleared: list[str] | None = None,
    names: str = "abcd",
) -> Outcome:
    clock = engine.seconds
    hooks = Hooks(planner=only_jobs(), seconds=lambda: clock.time.timestamp())
    found, how = project(root, tuple(names)), options or Options(drain=True)
    runner = Runner(found, store, clock, clock.sleep, how, hooks)
    runner.prepare()
    fence = cleared if cleared is not None else []
    return runner.run(engine, Ways(lambda site: True, lambda job, site: fence.append(job)))


@pytest.mark.parametrize("at_start", [False, True])
def test_it_is_started_again_and_the_run_is_fine(tmp_path: Path, store: Store, at_start: bool) -> None:
    engine, cleared = Busy(failures=2, at_start=at_start), list[str]()
    outcome = _run(tmp_path, store, engine, cleared=cleared)
    assert (outcome.exit_code, outcome.failures, engine.starts) == (0, (), 3)
    assert cleared == ["b", "b"], "nothing of the failed job may be left"
    [note] = outcome.notes
    assert note.startswith("b has failed, and is started again in 2 s, up to 3 times: ")
    assert {record.id: record.observed for record in store.all()}["b"] == "finished"
    assert engine.most_at_once == 2, "it waits for its turn as any other"
    first, second, third = engine.begun
    assert second - first >= 2 and third - second >= 4


def test_it_comes_before_those_that_have_not_begun(tmp_path: Path, store: Store) -> None:
    names = "abcdefghijklmnop"
    engine = Busy(failures=1, at_start=True)
    outcome = _run(tmp_path, store, engine, names=names)
    assert (outcome.exit_code, sorted(engine.order)) == (0, sorted((*names, "b")))
    assert engine.order.index("b", 2) < engine.order.index("p"), "not when all the others are done"


def test_after_three_more_starts_it_has_failed(tmp_path: Path, store: Store) -> None:
    engine = Busy(failures=99)
    outcome = _run(tmp_path, store, engine)
    [(job, reason)] = outcome.failures
    assert (outcome.exit_code, job, engine.starts, len(outcome.notes)) == (1, "b", 4, 1)
    assert reason.startswith(PASSING) and "planner.parallel" in reason
    assert {r.id: r.observed for r in store.all()} == {
        "a": "finished",
        "b": "failed",
        "c": "finished",
        "d": "finished",
    }


def test_other_failures_are_final(tmp_path: Path, store: Store) -> None:
    engine = Busy(reason="no disk")
    outcome = _run(tmp_path, store, engine)
    assert (outcome.failures, engine.starts, outcome.notes) == ((("b", "no disk"),), 1, ())


def test_a_run_that_does_not_drain_does_it_too(tmp_path: Path, store: Store) -> None:
    engine = Busy(failures=1)
    clock, found = engine.seconds, project(tmp_path, ("a", "b"))
    hooks = Hooks(planner=only_jobs(), seconds=lambda: clock.time.timestamp())

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.slept > 20:
            runner.request_stop()

    runner = Runner(found, store, clock, sleep, Options(), hooks)
    runner.prepare()
    outcome = runner.run(engine)
    assert (outcome.exit_code, engine.starts) == (0, 2)
    assert {record.id: record.observed for record in store.all()} == {"a": "stopped", "b": "stopped"}
