"""What is gathered of jobs and sites: rates, cores by the time of batches, restarts, and files that fail."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from headrace.catalog.model import Project, Sink, SinkKind, Site
from headrace.runtime.executor import JobState, Progress
from headrace.runtime.fake import FakeExecutor
from headrace.service.fleet import Fleet, Start
from headrace.service.gathered import STATISTICS, Gathered, gathered_of, site_key
from headrace.service.gathering import Gathering, facts_of
from headrace.service.layout import own_folder, state_file
from headrace.service.probing import Processes, Seen, SiteUse, nothing
from headrace.state.statistics import Statistics
from headrace.state.store import Store
from tests.unit.service import sample
from tests.unit.service.served import project


class Watch:
    """A fleet of jobs whose progress is what a test says, and a gatherer that looks every five seconds."""

    def __init__(self, found: Project, store: Store) -> None:
        self.project, self.clock, self.notes = found, sample.Clock(), list[str]()
        self.fleet = Fleet(FakeExecutor(), store, self.clock, Start())
        for job in sample.placed(found).jobs:
            unit = replace(job, site=found.queries[job.id].site)
            self.fleet.units[unit.id] = unit
        self.uses: dict[str, SiteUse] = {}
        self.gathering = self.again()

    def again(self) -> Gathering:
        return Gathering(
            lambda project: Seen(self.uses), self.notes.append, lambda: self.clock().timestamp(), self.clock
        )

    def see(self, job: str, rows: int, batch: int, **more: int) -> None:
        seen = Progress(job, JobState.RUNNING, batch, rows, rows // 10, batch_millis=1000)
        self.fleet.states[job] = replace(seen, **more)  # type: ignore[arg-type]

    def look(self, seconds: float = 5.0) -> Gathered:
        self.clock.sleep(seconds)
        assert self.gathering.look(self.project, self.fleet)
        return self.gathering.latest


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    found = project(tmp_path, "ab")
    with Store(state_file(found)) as store:
        made = Watch(found, store)
        yield made
        made.gathering.close()


def test_rates_come_from_two_looks(watch: Watch) -> None:
    watch.see("a", 1000, 10, lag=2_500_000, state_rows=50, state_bytes=4096, watermark=77)
    found = watch.look()
    assert found.cores() == {} and found.busy("a") is None
    watch.see("a", 2000, 12, lag=2_500_000, state_rows=50, state_bytes=4096, watermark=78)
    found = watch.look(10.0)
    job = found.job("a")
    assert job is not None and (job["rows_in"], job["rows_out"], job.selectivity) == (100.0, 10.0, 0.1)
    assert (job["lag_seconds"], job["batch_seconds"], found.state_bytes("a")) == (2.5, 1.0, 4096)
    assert found.busy("a") == found.cores()["a"] == pytest.approx(0.2)
    assert found.job("b") is None and found.jobs["b"].state == "starting"
    with Statistics(own_folder(watch.project) / STATISTICS) as file:
        newest, first = file.samples("job", "a", 9)
    assert newest.watermark == 78 and newest.figures["cpu"] == pytest.approx(0.2)
    assert newest.figures["rows_in"] == 100.0
    assert newest.at - first.at == 10.0 and "rows_in" not in first.figures and newest.site == "east"


def test_a_job_is_in_one_batch_at_a_time(watch: Watch) -> None:
    """Batches between two looks are taken to be as long as the last."""
    for number in (0, 20):
        watch.see("a", number, number)
        found = watch.look()
    assert found.busy("a") == 1.0


def test_cores_of_a_site_go_to_its_jobs_by_the_time_of_their_batches(watch: Watch) -> None:
    watch.uses = {"east": SiteUse(0.9, 1e6)}
    for number in (0, 1):
        watch.see("a", 100 * number, 2 * number)
        watch.see("b", 100 * number, number)
        found = watch.look()
    assert found.cores() == pytest.approx({"a": 0.6, "b": 0.3})
    site = found.site("east")
    assert site is not None and (site["cpu"], site["memory"]) == (0.9, 1e6)


def test_it_looks_no_more_often_than_told(watch: Watch) -> None:
    watch.look()
    watch.clock.sleep(4.9)
    assert not watch.gathering.look(watch.project, watch.fleet)


def test_a_site_with_other_jobs_is_believed_anew(watch: Watch) -> None:
    watch.uses = {"east": SiteUse(1.0), "west": SiteUse(0.0)}
    for number in range(3):
        watch.see("a", number, number)
        watch.see("b", number, number)
        watch.look()
    watch.fleet.units["b"] = replace(watch.fleet.units["b"], site="west")
    watch.uses = {"east": SiteUse(0.5), "west": SiteUse(0.4)}
    found = watch.look()
    assert [found.beliefs.of(site_key(name))["cpu"] for name in ("east", "west")] == [0.5, 0.4]  # type: ignore[index]


def test_what_was_gathered_outlives_the_run(watch: Watch) -> None:
    for number in (0, 1):
        watch.see("a", 100 * number, number)
        watch.look()
    before = gathered_of(watch.project)
    assert before is not None and Gathered.from_text(before.to_text()).to_text() == before.to_text()
    assert before.jobs == watch.gathering.latest.jobs
    watch.gathering.close()
    watch.gathering = watch.again()
    watch.see("a", 5, 2)
    found = watch.look().job("a")
    assert found is not None and found["rows_in"] == 20.0, (
        "rows were counted anew: no rate, and no negative one"
    )
    del watch.fleet.units["a"]
    assert watch.look().job("a") is None


def test_jobs_that_ended_are_not_sampled(watch: Watch) -> None:
    watch.see("a", 0, 0)
    watch.look()
    watch.see("a", 10, 1)
    at = watch.look().at
    watch.see("a", 10, 1, state=JobState.FAILED)  # type: ignore[arg-type]
    found = watch.look()
    job = found.job("a")
    assert job is not None and job.last_seen == at and found.cores() == {} and not found.jobs["a"].runs


def test_a_file_that_cannot_be_written_is_told_once(watch: Watch, tmp_path: Path) -> None:
    (own_folder(watch.project) / STATISTICS).mkdir()
    for _ in range(3):
        watch.clock.sleep(5)
        assert not watch.gathering.look(watch.project, watch.fleet)
    assert len(watch.notes) == 1 and "not gathered any more" in watch.notes[0]


def test_what_another_headrace_has_gathered_is_left_out(watch: Watch) -> None:
    with Statistics(own_folder(watch.project) / STATISTICS) as file:
        file.keep({"gathered": '{"at": 1, "jobs": {}, "beliefs": 3, "down": []}'})
    assert gathered_of(watch.project) is None
    watch.look()
    assert "cannot be read" in watch.notes[0] and gathered_of(watch.project) is not None


def test_who_cannot_be_moved() -> None:
    found = sample.project(Path(), ("a", "m"), m=Sink(kind=SinkKind.MEMORY))
    facts = {job.id: facts_of(found, job) for job in sample.placed(found).jobs}
    assert facts["a"].bound == "" and "in memory" in facts["m"].bound
    assert facts["a"].streams == ("files",) and facts["a"].width > 0


# -- processes --------------------------------------------------------------------------------------


def test_the_cores_of_this_process_are_measured() -> None:
    """A tenth of a second of work in four seconds, by a clock of our own."""
    found, seconds = sample.project(Path(), ("a",)), iter((100.0, 104.0))
    probe = Processes(lambda: next(seconds))
    first = probe(found).uses["local"]
    assert first.cpu is None and first.memory is not None and first.memory > 1e6
    before = time.process_time()
    while time.process_time() - before < 0.1:
        pass
    second = probe(found).uses["local"]
    spent = time.process_time() - before
    assert second.cpu is not None and 0.08 / 4 <= second.cpu <= (spent + 0.15) / 4


def test_workers_below_are_counted_and_two_sparks_of_one_process_are_not() -> None:
    found = sample.project(Path(), ("a",))
    probe = Processes(time.monotonic)
    alone = probe(found).uses["local"].memory
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        together = probe(found).uses["local"].memory
        assert alone is not None and together is not None
        assert together >= alone + 0.5 * psutil.Process(child.pid).memory_info().rss
    finally:
        child.communicate(b"\n")
    two = found.model_copy(update={"sites": {**found.sites, "more": Site(name="more", endpoint="local[4]")}})
    assert probe(two).uses == {} and nothing(found).uses == {}


def test_sites_elsewhere_are_not_known(tmp_path: Path) -> None:
    assert Processes(time.monotonic)(project(tmp_path, "a")) == Seen({}, ())
