"""Two regions of two sites run: jobs are distributed, a site is lost, queries come, sites are evened out, the
process is killed; and every query answers once, at a site of its region."""

from __future__ import annotations

import pytest

from headrace.catalog.model import Query
from headrace.service.moving import moves_of
from tests.unit.service.change_kills import scratch
from tests.unit.service.region_world import JSON, SITES, Plot, Regions, free

QUERIES = {name: free(name, sql) for name, sql in zip("abcdefghi", "123123", strict=False)}
QUERIES |= {name: free(name, "alone") for name in "ghi"}
PINNED = Query(name="pinned", sql="alone", sink=JSON, site="s2")


def story(it: Regions, first: dict[str, str]) -> Plot:
    """n1 is lost and comes back, a member and a job are added meanwhile; then n2 is too full."""

    def begin() -> None:
        first.update(it.regions())
        it.down.add("n1")

    def add() -> None:
        it.add("x", "4")
        it.add("y", "alone")

    def back() -> None:
        first.update(it.regions())
        it.down.discard("n1")
        # Whatever is at n2 now is more than one site can do, and less than two can.
        there = [job for job, site in (it.here.at if it.here else {}).items() if site == "n2"]
        it.cores |= dict.fromkeys(there, 1.4 / len(there))

    return [
        (it.all_run(), begin),
        (it.all_run(without="n1"), add),
        (it.all_run("x", "y", without="n1"), back),
        (lambda: it.all_run("x", "y")() and "n1" in it.running().values(), lambda: None),
        # Time for a manager of all sites to go on: the south is all but idle.
        (it.after(90.0), lambda: None),
        (it.all_run("x", "y"), lambda: None),
    ]


def lived(it: Regions, kill_at: int | None = None) -> int:
    first: dict[str, str] = {}
    steps = it.live(story(it, first), kill_at)
    with moves_of(it.project) as moves:
        assert not moves.open_moves() and not moves.any_asked()
    # Once more: the last sites are those that a restart finds.
    now = dict(it.running())
    it.live([(it.all_run("x", "y"), lambda: now.update(it.running()))])
    assert {query: SITES[site] for query, site in now.items()} == first
    assert first["pinned"] == "south" and now["pinned"] == "s2"
    assert set(first.values()) == {"north", "south"}
    it.check_answers()
    return steps


def checked_day(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch() as folder:
        it = Regions(folder, monkeypatch, {**QUERIES, "pinned": PINNED}, pattern=pattern)
        lived(it)
        assert not it.silent, "a lost site is given nothing"
        assert any("site n1 does not answer" in note for note in it.told)
        assert any("is moved from n2 to n1" in note for note in it.told)
        assert not any("moved" in note and ("to s1" in note or "to s2" in note) for note in it.told)


def killed_day(kill_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch() as folder:
        lived(Regions(folder, monkeypatch, {**QUERIES, "pinned": PINNED}), kill_at)


def test_a_day_of_two_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_day("round_robin", monkeypatch)


def test_a_kill_on_that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    killed_day(350, monkeypatch)


def test_a_query_that_is_given_to_a_site_that_is_gone_goes_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows yet that the site does not answer: the command is told that it runs, and it does."""
    with scratch() as folder:
        it = Regions(folder, monkeypatch, {"g": free("g", "alone"), "pinned": PINNED}, pattern="round_robin")

        def add() -> None:
            it.down.add("n2")
            it.add("y", "alone")

        it.live([(it.all_run(), add), (it.all_run("y"), lambda: None), (it.after(30.0), lambda: None)])
        assert it.silent == [("y", "n2")]
        [told] = [note for note in it.told if note.startswith("y runs")]
        assert told == "y runs as a job of its own, from the beginning"
        with moves_of(it.project) as moves:
            assert moves.homes()["y"] == "n1", "the other site of its region"
        it.check_answers()
