"""A service on the fake engine: other sites are kept warm, once all is calm, and only those."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headrace.catalog.model import Site
from headrace.errors import EngineError
from headrace.runtime.sites import GivenUp, Unit, Ways
from tests.unit.service.test_sitekeeping import World, world  # noqa: F401 - a fixture


class Warmed(World):
    """With rehearsals that are written down; `fails` says of a site whether they fail there."""

    def __init__(self, other: World) -> None:
        self.__dict__.update(other.__dict__)
        self.rehearsed: list[tuple[str, str]] = []
        self.fails: Callable[[str], bool] = lambda site: False
        self.lasts: Callable[[], bool] = lambda: False
        """Whether rehearsals do not come to an end by themselves."""
        self.given_up: list[str] = []

    @property
    def ways(self) -> Ways:
        return replace(super().ways, rehearse=self._rehearse)

    def _rehearse(self, unit: Unit, site: str, wanted: Callable[[], bool]) -> None:
        self.rehearsed.append((unit.job.id, site))
        if self.fails(site):
            raise EngineError(f"{unit.job.id} cannot run at {site}")
        while self.lasts():
            if not wanted():
                self.given_up.append(site)
                raise GivenUp(f"{unit.job.id} at {site} is not wanted")
            time.sleep(0.001)


@pytest.fixture
def warmed(world: World) -> Iterator[Warmed]:  # noqa: F811
    yield Warmed(world)


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
    warmed.fails = lambda site: True
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


@pytest.mark.parametrize("drain", [True, False], ids=["drain", "run"])
def test_only_a_service_keeps_sites_warm(warmed: Warmed, drain: bool) -> None:
    if not drain:
        warmed.plot = [(warmed.after(60), warmed.stop)]
    warmed.run(drain=drain)
    assert warmed.rehearsed == []
