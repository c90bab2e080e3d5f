"""The rate at which redistribution is looked at: one that a good placement can take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.experiments.distribution.real import TRIES, kept_up
from headrace.experiments.distribution.results import Recovered
from tests.unit.experiments.distribution.made_up import recovered


def at_most(most: float, asked: list[float], rate: float) -> Recovered:
    """A machine that does so many rows a second."""
    asked.append(rate)
    given = round(1000 * min(1.0, most / rate))
    return replace(recovered("good", "off", given), rate=rate)


@pytest.mark.parametrize(("first", "most"), [(100.0, 100.0), (109.0, 100.0), (1108.0, 630.0), (900.0, 200.0)])
def test_the_rate_is_lowered_until_it_keeps_up(first: float, most: float) -> None:
    asked: list[float] = []
    found = kept_up(lambda rate: at_most(most, asked, rate), first)
    assert found.keeps_up and found.rate == asked[-1] <= most / 0.9
    assert found.tried == tuple(asked[:-1]) and all(rate > most / 0.9 for rate in found.tried)
    assert found.rate > most / 2, "not further than needed"


def test_the_rate_is_lowered_until_there_is_room_to_catch_up() -> None:
    asked: list[float] = []

    def full(rate: float) -> Recovered:
        """A tenth of both cores for every ten rows a second; it always keeps up."""
        return replace(at_most(1e9, asked, rate), cpu=(rate / 10, rate / 10))

    found = kept_up(full, 120.0)
    assert found.has_room and found.rate <= 80.0 and found.keeps_up
    assert all(rate > 80.0 for rate in found.tried) and len(found.tried) == len(asked) - 1 > 0


def test_one_that_never_keeps_up_is_told_as_it_is() -> None:
    asked: list[float] = []
    found = kept_up(lambda rate: at_most(0.3 * rate, asked, rate), 1e6)
    assert not found.keeps_up and len(asked) == TRIES and len(found.tried) == TRIES - 1


def test_rates_do_not_go_below_the_papers() -> None:
    asked: list[float] = []
    assert not kept_up(lambda rate: at_most(1.0, asked, rate), 41.0).keeps_up
    assert asked == [41.0, 40.0]


def test_a_run_that_fails_is_not_tried_again() -> None:
    asked: list[float] = []

    def fail(rate: float) -> Recovered:
        asked.append(rate)
        return replace(recovered("good", "off", 0), seconds=0.0, problem="gone")

    assert kept_up(fail, 500.0).problem == "gone" and asked == [500.0]
