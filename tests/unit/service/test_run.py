"""The runner on the fake engine: order, limits, failures, stopping, and what it writes down."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Format, Project, SinkKind
from headrace.errors import EngineError, UserError
from headrace.plan.placed import Job
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.fake import FakeExecutor, Script
from headrace.service.fleet import Fleet, Start, units_of
from headrace.service.folders import MARKER
from headrace.service.layout import job_folder
from headrace.service.refusals import refuse_endless
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.state.store import Store
from tests.unit.service.sample import Clock, only_jobs, placed, project, scan, sink


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "state.db") as opened:
        yield opened


def _runner(
    root: Path,
    store: Store,
    executor: FakeExecutor,
    options: Options,
    snapshots: list[Snapshot] | None = None,
    names: tuple[str, ...] = ("a", "b", "c"),
    minutes: int = 5,
) -> Running:
    watch = snapshots.append if snapshots is not None else (lambda _: None)
    return Running(project(root, names), executor, store, options, watch, minutes)


class Running:
    """A runner with its engine, prepared and run in one call."""

    def __init__(
        self,
        found: Project,
        executor: FakeExecutor,
        store: Store,
        options: Options,
        watch: Callable[[Snapshot], None] = lambda _: None,
        minutes: int = 5,
    ) -> None:
        self.watch, self.executor, clock = watch, executor, Clock()
        hooks = Hooks(lambda snapshot: self.watch(snapshot), planner=only_jobs(minutes))
        self.runner = Runner(found, store, clock, clock.sleep, options, hooks)

    def request_stop(self) -> None:
        self.runner.request_stop()

    def run(self) -> Outcome:
        self.runner.prepare()
        return self.runner.run(self.executor)


DRAIN = Options(drain=True)


def test_all_jobs_are_drained_a_few_at_a_time(tmp_path: Path, store: Store) -> None:
    names = ("a", "b", "c", "d", "e")
    executor = FakeExecutor({"b": Script(batches=6)})
    outcome = _runner(tmp_path, store, executor, DRAIN, names=names).run()
    assert (outcome.exit_code, outcome.failures, outcome.interrupted) == (0, (), False)
    assert executor.most_at_once == 2
    assert [name for what, name in executor.calls if what == "start"] == list(names)
    assert executor.closed
    assert {r.id: (r.desired, r.observed, r.output_rows) for r in store.all()} == {
        name: ("drained", "finished", 60 if name == "b" else 30) for name in names
    }


def test_the_next_job_starts_as_one_ends(tmp_path: Path, store: Store) -> None:
    """b is long; c, d and e pass by it one after the other."""
    snapshots: list[Snapshot] = []
    executor = FakeExecutor({"b": Script(batches=50)})
    _runner(tmp_path, store, executor, DRAIN, snapshots, ("a", "b", "c", "d", "e")).run()
    while_b_runs = [s for s in snapshots if s.jobs[1].progress and s.jobs[1].progress.state == "running"]
    last = while_b_runs[-1]
    assert [w.progress.state.value if w.progress else None for w in last.jobs] == [
        "finished",
        "running",
        "finished",
        "finished",
        "finished",
    ]


def test_waiting_jobs_have_no_progress_yet(tmp_path: Path, store: Store) -> None:
    snapshots: list[Snapshot] = []
    _runner(tmp_path, store, FakeExecutor(), DRAIN, snapshots).run()
    assert [w.progress is None for w in snapshots[1].jobs] == [False, False, True]


def test_without_drain_all_run_until_asked_to_stop(tmp_path: Path, store: Store) -> None:
    snapshots: list[Snapshot] = []
    executor = FakeExecutor()
    runner = _runner(tmp_path, store, executor, Options(), snapshots)

    def watch(snapshot: Snapshot) -> None:
        snapshots.append(snapshot)
        if len(snapshots) == 4:
            runner.request_stop()

    runner.watch = watch
    outcome = runner.run()
    assert executor.most_at_once == 3
    assert (outcome.exit_code, outcome.interrupted) == (0, True)
    assert {r.observed for r in store.all()} == {"stopped"}
    assert {r.desired for r in store.all()} == {"running"}


def test_an_interrupted_drain_says_so(tmp_path: Path, store: Store) -> None:
    runner = _runner(tmp_path, store, FakeExecutor(), DRAIN)
    runner.watch = lambda _: runner.request_stop()
    outcome = runner.run()
    assert (outcome.exit_code, outcome.interrupted) == (130, True)
    assert [name for what, name in runner.executor.calls if what == "start"] == ["a"]


def test_a_stop_after_the_last_job_ended_is_no_interruption(tmp_path: Path, store: Store) -> None:
    runner = _runner(tmp_path, store, FakeExecutor(), DRAIN, names=("a",))

    def watch(snapshot: Snapshot) -> None:
        progress = snapshot.jobs[0].progress
        if progress is not None and progress.state == "finished":
            runner.request_stop()

    runner.watch = watch
    assert runner.run().exit_code == 0


def test_one_job_fails_and_the_others_go_on(tmp_path: Path, store: Store) -> None:
    executor = FakeExecutor({"a": Script(fail_at=1, reason="out of memory")})
    outcome = _runner(tmp_path, store, executor, DRAIN).run()
    assert outcome.failures == (("a", "out of memory"),)
    assert outcome.exit_code == 1
    records = {r.id: r for r in store.all()}
    assert (records["a"].observed, records["a"].error) == ("failed", "out of memory")
    assert (records["b"].observed, records["c"].observed) == ("finished", "finished")


@pytest.mark.parametrize(
    ("refusals", "code"),
    [
        ({"a": UserError("was drained", hint="use --fresh")}, 2),
        ({"a": EngineError("no Java")}, 1),
        ({"a": UserError("was drained"), "b": EngineError("no Java")}, 1),
    ],
)
def test_jobs_that_do_not_start(
    tmp_path: Path, store: Store, refusals: dict[str, UserError | EngineError], code: int
) -> None:
    executor = FakeExecutor({name: Script(refuse=error) for name, error in refusals.items()})
    outcome = _runner(tmp_path, store, executor, DRAIN).run()
    assert outcome.exit_code == code
    assert dict(outcome.failures) == {name: error.render() for name, error in refusals.items()}
    records = {r.id: r.observed for r in store.all()}
    assert records == {n: "failed" if n in refusals else "finished" for n in ("a", "b", "c")}


def test_time_is_only_what_the_clock_says(tmp_path: Path, store: Store) -> None:
    snapshots: list[Snapshot] = []
    _runner(tmp_path, store, FakeExecutor(), DRAIN, snapshots, names=("a",)).run()
    assert [s.seconds for s in snapshots] == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.0]
    record = store.get("a")
    assert record is not None
    assert (record.started, record.updated[:21]) == ("2024-05-01T00:00:00.000+00:00", "2024-05-01T00:00:02.0")


def test_fresh_clears_what_earlier_runs_left(tmp_path: Path, store: Store) -> None:
    _runner(tmp_path, store, FakeExecutor(), DRAIN).run()
    results, state = tmp_path / "results" / "a", tmp_path / ".headrace" / "jobs" / "a"
    (results / "part-000000.parquet").write_text("rows")
    (state / "checkpoint").mkdir()
    _runner(tmp_path, store, FakeExecutor(), DRAIN).run()
    assert (state / "checkpoint").exists()
    _runner(tmp_path, store, FakeExecutor(), Options(drain=True, fresh=True)).run()
    assert [p.name for p in results.iterdir()] == [MARKER]
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("fresh", [False, True])
def test_foreign_files_are_refused_before_anything_starts(tmp_path: Path, store: Store, fresh: bool) -> None:
    precious = tmp_path / "results" / "c" / "thesis.tex"
    precious.parent.mkdir(parents=True)
    precious.write_text("years of work")
    executor = FakeExecutor()
    with pytest.raises(UserError, match="did not write"):
        _runner(tmp_path, store, executor, Options(drain=True, fresh=fresh)).run()
    assert precious.read_text() == "years of work"
    assert executor.calls == []
    assert store.all() == ()
    assert not (tmp_path / "results" / "a").exists()


def test_a_changed_plan_needs_fresh(tmp_path: Path, store: Store) -> None:
    _runner(tmp_path, store, FakeExecutor(), DRAIN).run()
    with pytest.raises(UserError, match='"a" has changed'):
        _runner(tmp_path, store, FakeExecutor(), DRAIN, minutes=6).run()
    outcome = _runner(tmp_path, store, FakeExecutor(), Options(drain=True, fresh=True), minutes=6).run()
    assert outcome.exit_code == 0


def test_sinks_without_files_get_no_results_folder(tmp_path: Path, store: Store) -> None:
    found = project(tmp_path, ("a", "b"), a=sink(SinkKind.CONSOLE), b=sink(SinkKind.JSON, "out/b"))
    executor = FakeExecutor()
    Running(found, executor, store, DRAIN).run()
    assert not (tmp_path / "results").exists()
    assert (tmp_path / "out" / "b" / MARKER).is_file()
    assert executor.context("b").results == (tmp_path / "out" / "b").resolve()


def test_master_takes_the_place_of_the_endpoint(tmp_path: Path, store: Store) -> None:
    executor = FakeExecutor()
    _runner(tmp_path, store, executor, Options(drain=True, master="spark://h:7077")).run()
    assert executor.context("a").endpoint == "spark://h:7077"
    again = FakeExecutor()
    _runner(tmp_path, store, again, DRAIN).run()
    assert again.context("a").endpoint == "local[2]"


def test_an_endless_stream_cannot_be_drained(tmp_path: Path) -> None:
    found = project(tmp_path, ("a", "b"))
    with pytest.raises(UserError, match=r'query "b" reads stream "endless"'):
        refuse_endless(found, {"a": scan(), "b": scan("endless")})
    refuse_endless(found, {"a": scan()})


def _with_stream(found: Project, **changes: object) -> Project:
    changed = found.streams["files"].model_copy(update=changes)
    return found.model_copy(update={"streams": {**found.streams, "files": changed}})


def _changes(found: Project) -> dict[str, Project]:
    source = found.streams["files"].source
    json_sink = found.queries["a"].model_copy(update={"sink": sink(SinkKind.JSON)})
    moved = found.queries["a"].model_copy(update={"sink": sink(SinkKind.PARQUET, "elsewhere")})
    return {
        "input path": _with_stream(found, source=source.model_copy(update={"path": "other"})),
        "input format": _with_stream(found, source=source.model_copy(update={"format": Format.CSV})),
        "input columns": _with_stream(found, columns=dict(reversed(found.streams["files"].columns.items()))),
        "sink kind": found.model_copy(update={"queries": {"a": json_sink}}),
        "sink path": found.model_copy(update={"queries": {"a": moved}}),
    }


@pytest.mark.parametrize("what", ["input path", "input format", "input columns", "sink kind", "sink path"])
def test_what_a_checkpoint_was_made_for_may_not_change(tmp_path: Path, store: Store, what: str) -> None:
    found = project(tmp_path, ("a",))
    Running(found, FakeExecutor(), store, DRAIN).run()
    changed = _changes(found)[what]
    with pytest.raises(UserError, match=f'the {what.split()[0]} of query "a" has changed'):
        Running(changed, FakeExecutor(), store, DRAIN).run()


def test_the_size_of_batches_may_change(tmp_path: Path, store: Store) -> None:
    found = project(tmp_path, ("a",))
    Running(found, FakeExecutor(), store, DRAIN).run()
    source = found.streams["files"].source.model_copy(update={"files_per_batch": 7})
    changed = _with_stream(found, source=source, rate=5.0)
    assert Running(changed, FakeExecutor(), store, DRAIN).run().exit_code == 0


def test_an_unforeseen_error_at_the_start_ends_one_job(tmp_path: Path, store: Store) -> None:
    class Full(FakeExecutor):
        def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
            if job.id == "b":
                raise OSError(28, "No space left on device")
            super().start(job, context, drain=drain)

    outcome = _runner(tmp_path, store, Full(), DRAIN).run()
    assert outcome.exit_code == 1
    assert [job for job, _ in outcome.failures] == ["b"]
    assert "No space left" in outcome.failures[0][1]
    assert {r.id: r.observed for r in store.all()} == {"a": "finished", "b": "failed", "c": "finished"}


def test_results_without_their_checkpoint_need_fresh(tmp_path: Path, store: Store) -> None:
    _runner(tmp_path, store, FakeExecutor(), DRAIN).run()
    (tmp_path / "results" / "a" / "part-000000.parquet").write_text("rows")
    shutil.rmtree(tmp_path / ".headrace")
    with pytest.raises(UserError, match="what that run kept is gone"):
        _runner(tmp_path, store, FakeExecutor(), DRAIN).run()
    assert _runner(tmp_path, store, FakeExecutor(), Options(drain=True, fresh=True)).run().exit_code == 0


class LosesCount(FakeExecutor):
    """As Spark does: after a stop nothing is known of rows any more."""

    forgets = False

    def progress(self, job_id: str) -> Progress:
        seen = super().progress(job_id)
        return replace(seen, input_rows=0) if self.forgets else seen


def test_rows_that_were_read_never_become_fewer(tmp_path: Path, store: Store) -> None:
    """Over starts of one run, over runs, and where the engine that read them is gone."""
    found = project(tmp_path, ("a",))
    executor = LosesCount()
    fleet = Fleet(executor, store, Clock(), Start(drain=True))
    [unit] = units_of(placed(found), found.queries)

    def look(times: int) -> Progress:
        for _ in range(times):
            fleet.observe()
        return fleet.seen["a"]

    assert fleet.start(found, unit) is None
    first = look(3)
    assert (first.input_rows, first.rows_read, first.input_total) == (200, 200, 300)
    executor.forgets = True
    fleet.stop(["a"])
    assert fleet.seen["a"].rows_read == 200 and store.all()[0].input_rows == 200
    executor.forgets = False
    fleet.start(found, unit)
    assert fleet.seen["a"].rows_read == 200
    again = look(2)
    assert (again.input_rows, again.rows_read) == (100, 300)
    later = Fleet(FakeExecutor(), store, Clock(), Start(drain=True))
    later.start(found, unit)
    assert later.seen["a"].rows_read == 300
    # What runs under another name has read nothing yet, whoever answered the query before.
    shutil.rmtree(job_folder(found, "a"))
    anew = Fleet(FakeExecutor(), store, Clock(), Start(drain=True))
    anew.start(found, unit)
    assert anew.seen["a"].rows_read == 0


def test_what_is_started_again_is_next_and_no_failure_while_it_waits(tmp_path: Path, store: Store) -> None:
    found = project(tmp_path, ("a", "b"))
    executor = FakeExecutor(scripts={"a": Script(fail_at=1, reason="busy")})
    fleet = Fleet(executor, store, Clock(), Start(drain=True))
    first, second = units_of(placed(found), found.queries)
    fleet.enlist(second)
    fleet.start(found, first)
    for _ in range(3):
        fleet.observe()
    assert fleet.seen["a"].state is JobState.FAILED
    fleet.again(first)
    assert fleet.waiting == ["a", "b"] and "a" not in fleet.seen and "a" not in fleet.states


class TellsLess(FakeExecutor):
    """As Spark after kill -9: of the batches before it, some were told to nobody."""

    def progress(self, job_id: str) -> Progress:
        seen = super().progress(job_id)
        return replace(seen, input_rows=min(seen.input_rows, 120))


def test_a_drained_job_has_read_all_of_its_input(tmp_path: Path, store: Store) -> None:
    snapshots: list[Snapshot] = []
    outcome = _runner(tmp_path, store, TellsLess(), DRAIN, snapshots, names=("a",)).run()
    seen = [s.jobs[0].progress for s in snapshots]
    assert max(p.rows_read for p in seen if p and p.state != "finished") == 120, "no more than was told"
    last = outcome.last.jobs[0].progress
    assert last is not None and (last.rows_read, last.input_total) == (300, 300)
    assert store.all()[0].input_rows == 300
