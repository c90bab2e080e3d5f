"""A service on the fake engine: other sites are kept warm, once all is calm, and only those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headrace.errors import EngineError
from headrace.runtime.sites import Unit, Ways
from tests.unit.service.test_sitekeeping import World, world  # noqa: F401 - a fixture


class Warmed(World):
    """With rehearsals that are written down; `fails` says of a site whether they fail there."""

    def __init__(self, other: World) -> None:
        self.__dict__.update(other.__dict__)
        self.rehearsed: list[tuple[str, str]] = []
        self.fails: Callable[[str], bool] = lambda site: False

    @property
    def ways(self) -> Ways:
        return replace(super().ways, prepare=self._prepare)

    def _prepare(self, unit: Unit, site: str) -> None:
        self.rehearsed.append((unit.job.id, site))
        if self.fails(site):
            raise EngineError(f"{unit.job.id} cannot run at {site}")


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


@pytest.mark.parametrize("drain", [True, False], ids=["drain", "run"])
def test_only_a_service_keeps_sites_warm(warmed: Warmed, drain: bool) -> None:
    if not drain:
        warmed.plot = [(warmed.after(60), warmed.stop)]
    warmed.run(drain=drain)
    assert warmed.rehearsed == []
