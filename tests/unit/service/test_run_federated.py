"""Runs of queries that are split between engines: what is deployed stays, and who leaves a job leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import GONE
from headrace.runtime.executor import JobState
from headrace.runtime.fake import FakeExecutor
from headrace.service.federated_records import is_gone, job_of, live, record_of
from headrace.service.layout import job_folder, results_folder, state_file
from headrace.service.planning import plan_project
from headrace.service.queries import list_queries
from headrace.service.rechoosing import Rules
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.service.view import job_rows, rows_read
from headrace.state.records import AddedQuery
from headrace.state.store import Store
from tests.unit.service.disk_engine import Death
from tests.unit.service.federated_sample import NEAR, PRICES, TOP, SplitEngine, calibrated, write
from tests.unit.service.sample import Clock

AUTO = f"{TOP}#engine: auto"
ALL = {"near": NEAR, "top": AUTO, "more": AUTO.replace("max", "min")}


class Ground:
    def __init__(self, root: Path, **queries: str) -> None:
        self.root = root
        self.project: Project = write(root, **(queries or ALL))
        self.engine: SplitEngine | None = None

    def run(
        self,
        rounds: int = 4,
        options: Options | None = None,
        at: Mapping[int, Callable[[], object]] | None = None,
        end: int = 10**9,
    ) -> Outcome:
        clock, count = Clock(), 0
        with Store(state_file(self.project)) as store:

            def watch(snapshot: Snapshot) -> None:
                nonlocal count
                count += 1
                if at and count in at:
                    at[count]()
                if count >= rounds:
                    runner.request_stop()

            hooks = Hooks(watch, rules=Rules(looks=10**9))
            runner = Runner(self.project, store, clock, clock.sleep, options or Options(), hooks)
            runner.prepare()
            self.engine = SplitEngine(Death(), end=end)
            return runner.run(self.engine)

    def jobs(self) -> dict[str, list[str]]:
        """The members that give something, by job."""
        with Store(state_file(self.project)) as store:
            found = map(job_of, store.deployment().federated)
            return {job.id: [member.query for member in live(job)] for job in found}

    def windows(self, name: str) -> list[int]:
        folder = results_folder(self.project, self.project.queries[name])
        return sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("part-*"))

    def folder(self, name: str) -> Path:
        return job_folder(self.project, name)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_queries_over_the_same_stream_are_one_job(ground: Ground) -> None:
    outcome = ground.run()
    (job,) = ground.jobs()
    assert ground.jobs() == {job: ["near", "top", "more"]}
    assert [(row["job"], row["tree"]) for row in job_rows(outcome.last)] == [
        ("near", job),
        ("top", job),
        ("more", job),
    ]
    rows = job_rows(outcome.last)
    assert rows_read(rows) == rows[0]["input_rows"] > 0, "rows are read once for all"
    assert ground.engine is not None and ground.engine.calls == [("start", job), ("stop", job), ("close", "")]
    assert {row["name"]: row["tree"] for row in list_queries(ground.project)} == dict.fromkeys(ALL, job)


def test_a_restart_goes_on_with_the_same_split(ground: Ground) -> None:
    """The planner would split otherwise now, and would make one job of four queries."""
    ground.run()
    before = ground.jobs()
    ground.project = write(ground.root, "planner: {federation: duckdb}", **ALL, new=NEAR)
    ground.run()
    (old, new) = ground.jobs()
    assert {old: ground.jobs()[old]} == before and ground.jobs()[new] == ["new"]
    count = len(ground.windows("near"))
    assert ground.windows("near") == ground.windows("top") == list(range(1, count + 1))


def test_a_drain_ends(ground: Ground) -> None:
    outcome = ground.run(99, Options(drain=True), end=5)
    assert outcome.exit_code == 0 and ground.windows("near") == [1, 2, 3, 4, 5]
    states = {watched.progress.state for watched in outcome.last.jobs if watched.progress}
    assert states == {JobState.FINISHED}


def test_a_query_gone_from_the_file_leaves_the_job_as_it_is_for_the_others(ground: Ground) -> None:
    ground.run()
    (job,) = ground.jobs()
    before = ground.windows("top")
    ground.project = write(ground.root, near=NEAR, more=ALL["more"])
    ground.run()
    assert ground.jobs() == {job: ["near", "more"]}
    assert ground.engine is not None
    (started,) = ground.engine.started
    assert [m.query for m in started.members if is_gone(m)] == ["top"]
    assert len(ground.windows("near")) > len(before)
    folder = ground.root / "results" / "top"
    assert len(list(folder.glob("part-*"))) == len(before), "nothing more, and nothing less"
    assert not ground.folder("top").exists()
    ground.project = write(ground.root, other=ALL["more"])
    ground.run()
    assert list(ground.jobs().values()) == [["other"]] and not ground.folder(job).exists()


def test_dropped_and_added_while_it_runs(ground: Ground) -> None:
    def ask() -> None:
        with Store(state_file(ground.project)) as store:
            store.ask_drop({"near": True}, "now")
            store.ask_add(AddedQuery("late", NEAR, "json", None, "local"), False, "now")

    ground.run(9, at={3: ask})
    first, second = ground.jobs()
    assert ground.jobs() == {first: ["top", "more"], second: ["late"]}
    assert ground.windows("top") == list(range(1, len(ground.windows("top")) + 1))
    late = ground.root / "results" / "late"
    assert (late / f"part-{second}-000001.json").exists(), "a new query reads its stream from the beginning"
    assert len(ground.windows("near")) < len(ground.windows("top"))


def test_fresh_for_one(ground: Ground) -> None:
    ground.run()
    (job,) = ground.jobs()
    ground.run(2, Options(fresh=True, only=("top",)))
    first, second = ground.jobs()
    assert (first, ground.jobs()) == (job, {job: ["near", "more"], second: ["top"]})
    ground.run()
    for name in ALL:
        assert ground.windows(name) == list(range(1, len(ground.windows(name)) + 1)), name


def test_fresh_for_all(ground: Ground) -> None:
    ground.run()
    ground.run(3, Options(fresh=True))
    assert len(ground.jobs()) == 1
    assert ground.windows("near") == ground.windows("more") == list(range(1, len(ground.windows("near")) + 1))


def test_a_changed_query_is_refused_until_fresh(ground: Ground) -> None:
    ground.run()
    ground.project = write(ground.root, **{**ALL, "top": AUTO.replace("max", "avg")})
    with pytest.raises(UserError, match='the plan of query "top" has changed'):
        ground.run()
    ground.run(options=Options(fresh=True, only=("top",)))
    assert list(ground.jobs().values()) == [["near", "more"], ["top"]]


def test_the_other_members_run_too(ground: Ground) -> None:
    ground.run()
    outcome = ground.run(options=Options(only=("top",)))
    assert any("also runs near, more" in note for note in outcome.notes)


def test_records_are_the_jobs(ground: Ground) -> None:
    (job,) = plan_project(ground.project).federated
    assert job_of(record_of(job)) == job
    gone = FederatedJob(job.id, job.site, job.members[:1])
    assert live(gone) == gone.members and GONE < 0


def faked(ground: Ground) -> tuple[Outcome, FakeExecutor]:
    clock, fake = Clock(), FakeExecutor()
    with Store(state_file(ground.project)) as store:
        runner = Runner(ground.project, store, clock, clock.sleep, Options(drain=True))
        runner.prepare()
        return runner.run(fake), fake


def test_an_ordinary_job_that_is_deployed_stays_one(tmp_path: Path) -> None:
    """Also where the planner would choose now, and Spark alone were a job that is watched."""
    ground = Ground(tmp_path, near=f"{NEAR}#engine: spark")
    calibrated(ground.project, replace(PRICES, statement=10.0))
    faked(ground)
    assert ground.jobs() == {}
    ground.project = write(tmp_path, near=NEAR)
    (watched,) = plan_project(ground.project).federated
    assert watched.on_spark
    outcome, fake = faked(ground)
    assert outcome.exit_code == 0 and ground.jobs() == {} and not fake.federated


def test_spark_alone_is_a_job_that_is_started_and_told_as_such(tmp_path: Path) -> None:
    ground = Ground(tmp_path, near=NEAR)
    calibrated(ground.project, replace(PRICES, statement=10.0))

    def ask() -> None:
        with Store(state_file(ground.project)) as store:
            store.ask_add(AddedQuery("late", NEAR, "json", None, "local"), False, "now")

    outcome = ground.run(9, at={3: ask})
    assert list(ground.jobs().values()) == [["near"], ["late"]]
    assert ground.engine is not None and all(job.on_spark for job in ground.engine.started)
    assert any("on Spark alone, to be chosen for again" in note for note in outcome.notes), outcome.notes
    assert ground.windows("near") == list(range(1, len(ground.windows("near")) + 1))


def test_the_fake_engine_runs_split_jobs_too(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    outcome, fake = faked(ground)
    (job,) = ground.jobs()
    assert outcome.exit_code == 0 and fake.calls[0] == ("start", job)
    assert set(fake.federated[job]) == set(ALL)
