"""Two real Spark Connect servers: jobs with state move between them while rows come in, and survive a kill.

`python -m tests.moves_check` does this a hundred times, with kill -9 of everybody.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.errors import UserError
from headrace.runtime.executor import JobState
from headrace.runtime.sites import REHEARSAL, GivenUp
from headrace.runtime.spark.checkpoint import last_committed
from headrace.runtime.spark.remote import Ledger
from headrace.runtime.spark.servers import kill, servers
from headrace.runtime.storage import CHECKPOINT, named
from headrace.service.sites import Up, down, status, up
from tests.moves_load import Feeder
from tests.moves_manager import Manager, fresh

pytestmark = [
    pytest.mark.spark,
    # Spark's client says so, in whichever thread, when a server is gone.
    pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED"),
]
JOBS = ("tree", "join")
PATIENCE = 30.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two servers; gone in the end, whatever happens."""
    found = tmp_path_factory.mktemp("project") / "sites"
    up(found, Up(2, "700m"), os.environ)
    yield found
    down(found)


def begun(root: Path, folder: Path) -> tuple[Manager, Feeder]:
    manager = Manager(root, folder, patience=PATIENCE, jobs=JOBS)
    feeder = Feeder(manager.load, seed=5, every=0.5, most=100)
    feeder.start()
    manager.begin()
    return manager, feeder


def test_servers_answer_and_are_not_started_twice(folder: Path) -> None:
    rows = status(folder, patience=PATIENCE)
    assert [row.state for row in rows] == ["answers", "answers"]
    assert all(row.pid and row.memory and row.spark.startswith("4.") for row in rows)
    with pytest.raises(UserError, match="2 sites run already") as caught:
        up(folder, Up(1), os.environ)
    assert f"process {rows[0].pid}" in caught.value.detail


def test_jobs_that_moved_answer_as_if_they_had_not(folder: Path, tmp_path: Path) -> None:
    """To storage of another site, so that all they keep is copied, and stay there. `tests.moves_check` moves
    more often, and by reference."""
    manager = Manager(tmp_path, folder, apart=True, patience=PATIENCE, jobs=JOBS)
    # A move is over with the first batch at the target: there must be rows until then.
    feeder = Feeder(manager.load, seed=4, every=1.5, most=100)
    feeder.start()
    manager.begin()
    try:
        for job in JOBS:
            outcome = manager.move(job, "site2")
            assert outcome.moved, outcome
        feeder.stop()
        assert manager.drain() == []
    finally:
        manager.executor.close()
    assert manager.load.problems(JOBS) == []
    assert Ledger(tmp_path / ".headrace", fresh).left() == []


def committed(checkpoint: Path) -> int:
    """The newest batch, once there is one: so there is something to take along."""
    deadline = time.monotonic() + 120
    while (newest := last_committed(checkpoint)) < 0:
        assert time.monotonic() < deadline, checkpoint
        time.sleep(0.1)
    return newest


def test_checkpoints_go_from_the_storage_of_one_site_to_that_of_another(folder: Path, tmp_path: Path) -> None:
    """There and, of one job, back; each move copies them, and leaves none behind."""
    manager = Manager(tmp_path, folder, fast=True, patience=PATIENCE, jobs=JOBS)
    feeder = Feeder(manager.load, seed=6, every=1.5, most=100)
    feeder.start()
    manager.begin()
    try:
        for job, target in ((JOBS[0], "site2"), (JOBS[1], "site2"), (JOBS[0], "site1")):
            before = committed(manager.sites.state(job, target) / CHECKPOINT)
            outcome = manager.move(job, target)
            assert outcome.moved, outcome
            here = manager.sites.state(job, target) / CHECKPOINT
            assert named(here) == tmp_path / f"fast-{target}" / job and last_committed(here) >= before
        feeder.stop()
        assert manager.drain() == []
    finally:
        manager.executor.close()
    assert manager.load.problems(JOBS) == []
    left = {
        site: sorted(one.name for one in (tmp_path / f"fast-{site}").iterdir()) for site in manager.sites_at
    }
    assert left == {"site1": [JOBS[0]], "site2": [JOBS[1]]}
    assert any((tmp_path / "fast-site1" / JOBS[0] / "state").iterdir())


def test_a_rehearsal_that_is_given_up_leaves_nothing_running(folder: Path, tmp_path: Path) -> None:
    manager = Manager(tmp_path, folder, patience=PATIENCE, jobs=("tree",))
    unit, executor = manager.load.units(jobs=("tree",))["tree"], manager.executor
    answers = iter([True, True])
    try:
        with pytest.raises(GivenUp):
            executor.rehearse(unit, "site2", lambda: next(answers, False))
        context = unit.context("site2")
        session = executor._sessions.get(context.endpoint, context.shuffle_partitions)
        assert next(answers, None) is None and list(session.streams.active) == []
        assert not list(tmp_path.rglob(f"{REHEARSAL}*"))
        executor.rehearse(unit, "site2")
    finally:
        executor.close()


def test_what_a_killed_manager_leaves_running_is_ended_by_the_next(folder: Path, tmp_path: Path) -> None:
    lost, feeder = begun(tmp_path, folder)
    assert len(Ledger(tmp_path / ".headrace", fresh).left()) == 1
    # As after kill -9: nobody stops or closes anything, and the servers go on.
    manager = Manager(tmp_path, folder, patience=PATIENCE, jobs=JOBS)
    try:
        manager.begin()
        for job in JOBS:
            while lost.executor.status(job) is JobState.RUNNING:
                time.sleep(0.1)
        feeder.stop()
        assert manager.drain() == []
    finally:
        manager.executor.close()
        lost.executor.close()
    assert manager.load.problems(JOBS) == []


def test_jobs_of_a_killed_site_go_on_at_the_other(folder: Path, tmp_path: Path) -> None:
    manager, feeder = begun(tmp_path, folder)
    try:
        assert {manager.sites.site_of(job) for job in JOBS} == {"site1"}
        kill(next(server for server in servers(folder) if server.name == "site1"))
        rescued: list[str] = []
        deadline = time.monotonic() + 120
        while len(rescued) < len(JOBS):
            assert time.monotonic() < deadline, rescued
            rescued += [outcome.site for outcome in manager.watch()]
            time.sleep(0.1)
        assert set(rescued) == {"site2"}
        assert status(folder, patience=PATIENCE)[0].state == "dead"
        feeder.stop()
        assert manager.drain() == []
    finally:
        manager.executor.close()
    assert manager.load.problems(JOBS) == []
