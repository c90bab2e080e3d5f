"""A service on the fake engine: other sites are kept warm, and jobs of a lost one go to warm ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headrace.catalog.model import Site
from headrace.errors import EngineError
from headrace.runtime.executor import Progress
from headrace.runtime.fake import FakeExecutor, Script
from headrace.runtime.sites import GivenUp, Unit, Ways
from headrace.service import warming
from tests.unit.service.at_once import AtOnce
from tests.unit.service.test_sitekeeping import World, world  # noqa: F401 - a fixture


class Warmed(World):
    """With rehearsals that are written down; `fails` says of a job whether its own do."""

    def __init__(self, other: World) -> None:
        self.__dict__.update(other.__dict__)
        self.rehearsed: list[tuple[str, str]] = []
        self.fails: Callable[[str], bool] = lambda job: False
        self.lasts: Callable[[], bool] = lambda: False
        """Whether rehearsals do not come to an end by themselves."""
        self.given_up: list[str] = []

    @property
    def ways(self) -> Ways:
        return replace(super().ways, rehearse=self._rehearse)

    def _rehearse(self, unit: Unit, site: str, wanted: Callable[[], bool]) -> None:
        self.rehearsed.append((unit.job.id, site))
        if self.fails(unit.job.id):
            raise EngineError(f"{unit.job.id} cannot run at {site}")
        while self.lasts():
            if not wanted():
                self.given_up.append(site)
                raise GivenUp(f"{unit.job.id} at {site} is not wanted")
            time.sleep(0.001)


@pytest.fixture
def warmed(world: World) -> Iterator[Warmed]:  # noqa: F811
    yield Warmed(world)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals take no time, so that rounds can be counted."""
    monkeypatch.setattr(warming, "Beside", AtOnce)


def test_one_job_of_a_kind_is_rehearsed_where_none_has_run(warmed: Warmed) -> None:
    """Both jobs have the same operators, and both are in the east."""
    warmed.plot = [(warmed.after(60), warmed.stop)]
    warmed.run(serve=True)
    assert warmed.rehearsed == [("a", "west")] and not warmed.notes and not warmed.cleared


def test_a_site_that_was_lost_is_cold(warmed: Warmed) -> None:
    """The west takes the jobs over; the east, back again, has run nothing."""
    warmed.plot = [
        (lambda: bool(warmed.rehearsed), lambda: warmed.down.add("east")),
        (warmed.at("west", "a", "b"), warmed.down.clear),
        (lambda: len(warmed.rehearsed) > 1, lambda: None),
        (warmed.after(30), warmed.stop),
    ]
    warmed.run(serve=True)
    assert warmed.rehearsed == [("a", "west"), ("a", "east")]


def test_a_rehearsal_that_fails_concerns_no_job(warmed: Warmed) -> None:
    warmed.fails = lambda job: True
    warmed.plot = [(warmed.after(60), warmed.stop)]
    outcome = warmed.run(serve=True)
    assert warmed.rehearsed == [("a", "west")], "and is not tried again at once"
    assert outcome.failures == () and not warmed.notes


def test_a_site_that_does_not_answer_is_not_rehearsed_at(warmed: Warmed) -> None:
    warmed.down.add("west")
    warmed.plot = [(warmed.after(60), warmed.stop)]
    outcome = warmed.run(serve=True)
    assert warmed.rehearsed == [] and outcome.failures == () and not warmed.notes


def test_jobs_of_a_lost_site_do_not_wait_for_a_rehearsal(warmed: Warmed) -> None:
    """It is given up, and made again later: the site where it was still has not run that."""
    warmed.lasts = lambda: not warmed.given_up
    warmed.plot = [
        (lambda: bool(warmed.rehearsed), lambda: warmed.down.add("east")),
        (warmed.at("west", "a", "b"), warmed.down.clear),
        (lambda: ("a", "east") in warmed.rehearsed, warmed.stop),
    ]
    outcome = warmed.run(serve=True)
    assert warmed.given_up == ["west"] and outcome.failures == ()


def test_a_rehearsal_that_was_given_up_is_made_again(warmed: Warmed) -> None:
    """At a site of another region, which takes no job: it would stay cold."""
    regions = {"north": "there", "east": "here", "west": "here"}
    sites = {
        name: Site(name=name, endpoint=f"sc://{name}:1", region=where) for name, where in regions.items()
    }
    warmed.project = warmed.project.model_copy(update={"sites": sites})
    warmed.lasts = lambda: not warmed.given_up
    warmed.plot = [
        (lambda: bool(warmed.rehearsed), lambda: warmed.down.add("east")),
        (lambda: len(warmed.rehearsed) > 1, warmed.stop),
    ]
    warmed.run(serve=True)
    assert warmed.given_up == ["north"] and warmed.rehearsed == [("a", "north"), ("a", "north")]


def at(warmed: Warmed, **places: str) -> None:
    """The jobs of the project at these sites; `north` is one more, and the first."""
    project = warmed.project
    names = ("north", "east", "west")
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1") for name in names}
    queries = {name: q.model_copy(update={"site": places[name]}) for name, q in project.queries.items()}
    warmed.project = project.model_copy(update={"sites": sites, "queries": queries})


@pytest.mark.parametrize("lasts", [False, True], ids=["after a rehearsal", "in a rehearsal"])
def test_jobs_of_a_lost_site_go_where_such_a_job_runs(warmed: Warmed, lasts: bool) -> None:
    """The north has no jobs, and has run nothing: its rehearsal fails, or is given up."""
    at(warmed, a="east", b="west")
    warmed.lasts = lambda: lasts and not warmed.given_up
    warmed.fails = lambda job: not lasts
    warmed.plot = [
        (lambda: bool(warmed.rehearsed), lambda: None),
        (warmed.after(200), lambda: warmed.down.add("east")),
        (lambda: any(note.startswith("a moved") for note in warmed.notes), warmed.stop),
    ]
    warmed.run(serve=True)
    assert warmed.rehearsed[0] == ("a", "north") and warmed.endpoint("a") == "sc://west:1"
    assert warmed.given_up == (["north"] if lasts else [])


def test_a_site_where_a_job_was_rehearsed_takes_it(warmed: Warmed, at_once: None) -> None:
    """As warm as the west, and has no jobs."""
    at(warmed, a="east", b="west")
    warmed.plot = [
        (lambda: bool(warmed.rehearsed), lambda: None),
        (warmed.after(200), lambda: warmed.down.add("east")),
        (lambda: any(note.startswith("a moved") for note in warmed.notes), warmed.stop),
    ]
    warmed.run(serve=True)
    assert warmed.endpoint("a") == "sc://north:1"


def test_a_kind_that_fails_does_not_keep_others_from_a_site(
    warmed: Warmed, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "kind_of", lambda unit: (unit.id,))
    warmed.fails = lambda job: job == "a"
    warmed.plot = [(lambda: ("b", "west") in warmed.rehearsed, warmed.stop)]
    warmed.run(serve=True)
    assert warmed.rehearsed == [("a", "west"), ("b", "west")]


class QuietA(FakeExecutor):
    """One of its jobs runs, and has no batch."""

    def progress(self, job_id: str) -> Progress:
        seen = super().progress(job_id)
        return replace(seen, batch=None) if job_id == "a" else seen


def test_a_job_without_input_does_not_keep_its_site_cold(
    warmed: Warmed, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that has failed and waits to be started again."""
    at(warmed, a="east", b="west")
    monkeypatch.setattr(warming, "kind_of", lambda unit: (unit.id,))
    warmed.executor = QuietA({"b": Script(fail_at=0)})
    warmed.plot = [(lambda: {("b", "east"), ("a", "west")} <= set(warmed.rehearsed), warmed.stop)]
    warmed.run(serve=True)


@pytest.mark.parametrize("ends", [True, False], ids=["in a rehearsal", "before"])
def test_a_site_that_is_back_is_rehearsed_at_soon(warmed: Warmed, at_once: None, ends: bool) -> None:
    """One without jobs is nobody's loss; what has failed there says nothing of it as it is now."""
    at(warmed, a="east", b="east")
    if not ends:
        warmed.down.add("west")

    def fails(job: str) -> bool:
        dies = ends and warmed.rehearsed == [("a", "north"), ("a", "west")]
        if dies:
            warmed.down.add("west")
        return dies

    def back() -> None:
        warmed.down.clear()
        rounds.append(warmed.round)

    rounds: list[int] = []
    warmed.fails = fails
    warmed.plot = [
        (lambda: "west" in warmed.down and ("a", "north") in warmed.rehearsed, lambda: None),
        (warmed.after(100), back),
        (lambda: warmed.rehearsed.count(("a", "west")) == 1 + ends, warmed.stop),
    ]
    warmed.run(serve=True)
    assert warmed.round - rounds[0] < 60


@pytest.mark.parametrize("drain", [True, False], ids=["drain", "run"])
def test_only_a_service_keeps_sites_warm(warmed: Warmed, drain: bool) -> None:
    if not drain:
        warmed.plot = [(warmed.after(60), warmed.stop)]
    warmed.run(drain=drain)
    assert warmed.rehearsed == []
