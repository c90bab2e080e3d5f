"""Uneven sites are evened out by asking for moves, and then stay as they are; nothing is lost by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Site
from headrace.errors import UserError
from headrace.service.gathered import Gathered, JobFacts, gathered_of, job_key, site_key
from headrace.service.rebalancing import (
    Remembered,
    decide,
    how_of,
    measured_rules,
    not_yet,
    problem_of,
    read_remembered,
    remembered_text,
)
from headrace.state.moves import MoveRecord
from headrace.stats.beliefs import Beliefs
from headrace.stats.samples import Sample
from tests.unit.service.served import SITES, Killed, World, project

ALIKE = dict.fromkeys("abcdef", 0.3)


def test_a_skewed_placement_is_evened_out_and_stays(tmp_path: Path) -> None:
    world = World(project(tmp_path, ALIKE), ALIKE, noise=0.05)
    world.run(160)
    assert world.loads() == pytest.approx(dict.fromkeys(SITES, 0.6))
    moved = world.moves()
    assert [one.state for one in moved] == ["moved"] * 4 and {one.source for one in moved} == {"east"}
    assert world.ran == world.homes()
    world.run(100)
    assert world.moves() == moved


def test_dry_tells_and_moves_nothing(tmp_path: Path) -> None:
    world = World(project(tmp_path, ALIKE), ALIKE, mode="dry")
    world.run(70)
    told = [note for note in world.notes if "would be moved from east to" in note]
    assert not world.moves() and len(told) == len(set(told)) == 4


def test_off_moves_nothing_and_still_remembers(tmp_path: Path) -> None:
    world = World(project(tmp_path, ALIKE), ALIKE, mode="off")
    world.run(50)
    assert not world.moves() and not world.notes
    found = gathered_of(world.project)
    assert found is not None and found.cores() == pytest.approx(dict.fromkeys(ALIKE, 1 / 6), rel=0.05)


def test_a_service_that_is_killed_in_a_move_goes_on(tmp_path: Path) -> None:
    """At every step: tests/deep/service/test_service_kills.py."""
    world = World(project(tmp_path, "abc"), dict.fromkeys("abc", 0.3), kill_at_step=4)
    with pytest.raises(Killed):
        world.run(200)
    world.run(20)
    assert sorted(world.ran) == list("abc") and world.ran == world.homes()
    assert all(one.ended for one in world.moves())


# -- what a decision goes by ------------------------------------------------------------------------


def gathered(at: float = 1000.0, **sites: str) -> Gathered:
    """Jobs of half a core each at these sites, seen twice."""
    beliefs = Beliefs()
    for moment in (at - 5, at):
        for job in sites:
            totals = {"rows_in": 100 * moment, "rows_out": moment, "batches": moment}
            beliefs.take(Sample(job_key(job), moment, {"batch_seconds": 0.5, "state_rows": 10}, totals))
        for site in SITES:
            beliefs.take(Sample(site_key(site), moment, {"cpu": 0.5 * list(sites.values()).count(site)}))
    facts = {job: JobFacts("job", site, (job,), ("files",), 24.0, "running") for job, site in sites.items()}
    return Gathered(at, facts, beliefs)


def moved(job: str, target: str, pause: float | None, ended: str | None, state: str = "moved") -> MoveRecord:
    return MoveRecord(1, job, "east", target, state, target, pause, "", "", ended)  # type: ignore[arg-type]


def test_the_problem_is_what_was_seen(tmp_path: Path) -> None:
    found = problem_of(project(tmp_path, "ab", cpu=2.0), gathered(a="east", b="east"), {"b": "west"})
    assert found.table == {"a": "east", "b": "west"}
    job = found.operator["a"]
    assert (job.rate, job.state_bytes, job.movable) == (1.0, 1000.0, True) and job.cpu == pytest.approx(0.5)
    assert found.rows_in["a"] == pytest.approx(100.0) and found.stream["stream files"].site == "east"
    assert found.site["south"].cpu == 2.0


def test_what_cannot_be_moved_or_is_unknown_stays(tmp_path: Path) -> None:
    found = gathered(a="east", b="east", c="gone")
    bound = JobFacts("split", "east", ("a",), (), 1.0, "running", bound="it is split")
    new = JobFacts("job", "east", ("n",), (), 1.0, "starting")
    ended = JobFacts("job", "east", ("e",), (), 1.0, "failed")
    found = Gathered(found.at, {**found.jobs, "a": bound, "n": new, "e": ended}, found.beliefs)
    problem = problem_of(project(tmp_path, "ab"), found)
    assert {one.id: one.movable for one in problem.operators} == {"a": False, "b": True, "n": False}


def test_who_names_a_site_stays_there_where_others_are_distributed(tmp_path: Path) -> None:
    made = project(tmp_path, "ab")
    queries = {**made.queries, "b": made.queries["b"].model_copy(update={"free": True})}
    planner = made.planner.model_copy(update={"distribution": "ours"})
    found, off = gathered(a="east", b="east"), made
    on = made.model_copy(update={"queries": queries, "planner": planner})
    assert [one.movable for one in problem_of(off, found).operators] == [True, True]
    assert [one.movable for one in problem_of(on, found).operators] == [False, True]


def test_pauses_are_those_of_the_latest_moves(tmp_path: Path) -> None:
    made, rules = project(tmp_path, "ab"), how_of("ours", "cpu").rules
    records = [
        moved("a", "west", 4.0, "2024-01-01T00:00:09+00:00"),
        moved("a", "east", 9.0, "2024-01-01T00:00:00+00:00"),
    ]
    records += [moved("b", "west", 2.0, "2024-01-01T00:00:00+00:00"), moved("c", "west", None, None)]
    found = measured_rules(rules, made, gathered(a="east"), records, 1e9)
    assert dict(found.pauses) == {"a": 4.0, "b": 2.0} and found.pause == 3.0
    assert found.sites == frozenset(SITES)
    assert measured_rules(rules, made, gathered(a="east"), [], 1e9).pause == rules.pause


def test_sites_that_fail_or_are_the_same_spark_get_nothing(tmp_path: Path) -> None:
    made = project(tmp_path, "ab")
    more = {name: Site(name=name, endpoint="local[2]") for name in ("here", "there")}
    made = made.model_copy(update={"sites": {**made.sites, **more}})
    found = gathered(a="east")
    found = Gathered(found.at, found.jobs, found.beliefs, down=("south",))
    failed = moved("a", "west", None, "2024-01-01T00:00:00+00:00", "stayed")
    rules = how_of("ours", "cpu").rules
    soon, late = 1_704_067_300.0, 1_704_167_200.0
    assert measured_rules(rules, made, found, [failed], soon).sites == frozenset({"east", "here"})
    assert measured_rules(rules, made, found, [failed], late).sites == frozenset({"east", "west", "here"})


def test_the_local_site_that_nobody_asked_for_gets_nothing(tmp_path: Path) -> None:
    made = project(tmp_path, "ab")
    made = made.model_copy(update={"sites": {**made.sites, "local": Site(name="local")}})
    rules = measured_rules(how_of("ours", "cpu").rules, made, gathered(a="east"), [], 1e9)
    assert rules.sites == frozenset(SITES) and "local" not in problem_of(made, gathered(a="east")).site
    assert "local" in problem_of(made, gathered(a="local")).site


def test_nothing_is_decided_while_figures_are_those_of_before() -> None:
    found = gathered(a="east")
    ended = moved("a", "west", 1.0, "2024-01-01T00:00:00+00:00")
    assert "is being moved to west" in not_yet(found, [moved("a", "west", None, None, "asked")], 0.0)
    assert "ended 5 s ago" in not_yet(found, [ended], 1_704_067_205.0)
    assert not_yet(found, [ended], 1_704_067_225.0) == ""
    assert not_yet(Gathered(0.0), [], 0.0) == "no job runs"


def test_what_was_remembered_of_other_jobs_is_not_compared_with(tmp_path: Path) -> None:
    made, found = project(tmp_path, "ab", cpu=1.0), gathered(a="east", c="east", b="west")
    then = Remembered({"east": 0.1, "west": 0.2}, None, {"east": ["a", "c"], "west": ["x"]})
    assert read_remembered(remembered_text(then)) == then
    assert read_remembered("[]") == read_remembered(None) == read_remembered("{nonsense") == Remembered()
    decided = decide(made, found, [], then, how_of("degradation", "cpu"), 1000.0)
    assert decided.history.baseline == {"east": 0.1}
    assert {move.source for move in decided.decision.moves} == {"east"}


@pytest.mark.parametrize(("policy", "model"), [("pays", "cpu"), ("ours", "weight")])
def test_names_that_do_not_exist_are_told(policy: str, model: str) -> None:
    with pytest.raises(UserError, match="there is no") as caught:
        how_of(policy, model)
    assert "ours" in caught.value.hint or "cpu" in caught.value.hint
