"""Who can be given something: not a site that is lost, nor one that is the same Spark by another name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.catalog.model import Project, Site
from headrace.errors import EngineError
from headrace.runtime.sites import Unit, Ways
from headrace.service import moving_run, sitekeeping, warming
from headrace.service.gathered import Gathered, JobFacts, gathered_of, job_key
from headrace.service.rebalancing import Decided, Remembered, decide, how_of, measured_rules, problem_of
from headrace.state.moves import MoveRecord
from headrace.stats.beliefs import Beliefs
from headrace.stats.samples import Sample
from tests.unit.service import served
from tests.unit.service.at_once import AtOnce

POLICIES = ("ours", "balance")
NOW = 1100.0
Moved = list[tuple[tuple[str, ...], str, str]]


def sites_of(regions: Mapping[str, str]) -> dict[str, Site]:
    """Of one core each."""
    return {
        name: Site(name=name, endpoint=f"sc://{name}:1", cpu=1.0, region=region)
        for name, region in regions.items()
    }


def project(root: Path, jobs: Collection[str], sites: Mapping[str, Site]) -> Project:
    made, first = served.project(root, tuple(jobs)), next(iter(sites))
    queries = {name: query.model_copy(update={"site": first}) for name, query in made.queries.items()}
    streams = {name: one.model_copy(update={"site": first}) for name, one in made.streams.items()}
    return made.model_copy(update={"sites": dict(sites), "queries": queries, "streams": streams})


def gathered(at: Mapping[str, str], cores: float, down: Sequence[str] = ()) -> Gathered:
    """Jobs that each take so many cores, at these sites, of which nothing else is seen."""
    beliefs = Beliefs()
    for second in range(0, 100, 5):
        totals = {"rows_in": 1000 * second, "rows_out": 10 * second, "late_rows": 0, "batches": second}
        for job in at:
            gauges = {"batch_seconds": cores, "state_rows": 10.0}
            beliefs.take(Sample(job_key(job), 1000.0 + second, gauges, totals))
    facts = {job: JobFacts("job", site, (job,), ("files",), 8.0, "running") for job, site in at.items()}
    return Gathered(NOW, facts, beliefs, tuple(down))


def decided(made: Project, found: Gathered, policy: str, homes: Mapping[str, str] | None = None) -> Decided:
    return decide(made, found, (), Remembered(), how_of(policy, "cpu"), NOW, homes)


def moves(found: Decided) -> Moved:
    return [(move.operators, move.source, move.target) for move in found.decision.moves]


# -- sites that are lost ----------------------------------------------------------------------------


@dataclass(slots=True)
class Lossy(served.World):
    """Some sites do not answer, and nothing can be started there."""

    down: set[str] = field(default_factory=set)

    @property
    def ways(self) -> Ways:
        def prepare(unit: Unit, site: str) -> None:
            if site in self.down:
                raise EngineError(f"no server answers at {site}")

        return Ways(
            lambda site: site not in self.down, lambda job, site: None, prepare, lambda job: served.SITES
        )


def test_a_lost_site_is_given_nothing_and_is_known_to_be_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sitekeeping, moving_run, warming):
        monkeypatch.setattr(module, "Beside", AtOnce)
    cores = {"a": 0.5, "b": 0.5, "c": 0.4, "d": 0.4}
    world = Lossy(served.project(tmp_path, cores, at="south"), cores, down={"south"})
    before: list[MoveRecord] = []

    def back() -> None:
        known = gathered_of(world.project)
        assert known is not None and known.down == ("south",)
        before.extend(world.moves())
        world.down.clear()

    world.plot = {250: back}
    world.run(300)
    # Where they went is evened out afterwards.
    assert sorted(one.job for one in before if one.source == "south") == ["a", "b", "c", "d"]
    assert all(one.state == "moved" and one.target != "south" for one in before)
    known = gathered_of(world.project)
    assert known is not None and known.down == ()


def stayed(seconds: float, target: str = "west", state: str = "stayed") -> MoveRecord:
    """A move that ended so many seconds after the epoch."""
    ended = f"1970-01-01T{int(seconds) // 3600:02}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}+00:00"
    return MoveRecord(1, "a", "east", target, state, "east", None, "", "", ended)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ended", "pause"),
    [
        ([100], 300),
        ([100, 101, 102], 300),
        ([100, 500], 600),
        ([100, 500, 1200], 1200),
        ([100, 500, 1200, 1201, 2600, 6000, 10000], 3600),
    ],
)
def test_a_site_to_which_moves_fail_is_tried_ever_more_rarely(
    tmp_path: Path, ended: list[int], pause: int
) -> None:
    made, rules = served.project(tmp_path, "a"), how_of("ours", "cpu").rules
    found = gathered({"a": "east"}, 0.5)
    records = [stayed(one) for one in reversed(ended)]

    def targets(at: float, records: Sequence[MoveRecord]) -> frozenset[str]:
        given = measured_rules(rules, made, found, records, at).sites
        assert given is not None
        return given

    last = ended[-1] + pause
    assert targets(last - 1, records) == {"east", "south"}
    assert targets(last, records) == frozenset(served.SITES)
    again = [stayed(ended[-1] + 10, state="moved"), *records]
    assert targets(ended[-1] + 11, again) == frozenset(served.SITES)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_region_is_as_full_as_the_sites_that_it_has_left(tmp_path: Path, policy: str) -> None:
    regions = {"n1": "north", "n2": "north", "s1": "south", "s2": "south"}
    found = gathered(dict.fromkeys("abc", "n1"), 0.5, down=("n2",))
    lost = decided(project(tmp_path, "abc", sites_of(regions)), found, policy)
    del regions["n2"]
    without = decided(project(tmp_path, "abc", sites_of(regions)), found, policy)
    assert moves(lost) == moves(without) and {target for _, _, target in moves(lost)} == {"s1", "s2"}
    assert set(lost.decision.before.sites) == {"n1", "s1", "s2"}


def test_a_lost_site_with_jobs_is_not_evacuated_by_a_policy(tmp_path: Path) -> None:
    """They are rescued, or wait for it."""
    made = project(tmp_path, "ab", sites_of({"x": "main", "y": "main"}))
    problem = problem_of(made, gathered({"a": "x"}, 0.3, down=("x", "y")))
    assert (problem.site["x"].alive, problem.site["y"].alive) == (True, False)


def test_a_job_whose_home_is_no_more_is_where_it_was_seen(tmp_path: Path) -> None:
    made = project(tmp_path, "ab", sites_of({"x": "main", "y": "main"}))
    found = decided(made, gathered({"a": "x", "b": "x"}, 0.9), "ours", homes={"a": "gone", "b": "x"})
    assert dict(found.problem.table) == {"a": "x", "b": "x"}
    assert len(moves(found)) == 1


# -- sites of one Spark -----------------------------------------------------------------------------


def without_address(*names: str) -> dict[str, Site]:
    return {name: Site(name=name, endpoint="local[2]", cpu=1.0) for name in names}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("at", [{"a": "l2", "b": "l2"}, {"a": "l2", "b": "l1"}, {"a": "l1", "b": "l1"}])
def test_nothing_is_moved_between_sites_of_one_spark(tmp_path: Path, policy: str, at: dict[str, str]) -> None:
    made = project(tmp_path, "ab", without_address("l1", "l2"))
    found = decided(made, gathered(at, 0.9), policy)
    assert moves(found) == []
    assert {name: one.cost for name, one in found.decision.before.sites.items()} == pytest.approx({"l1": 1.8})


@pytest.mark.parametrize("policy", POLICIES)
def test_sites_of_one_spark_are_filled_together(tmp_path: Path, policy: str) -> None:
    """What is at the second of them goes away from there, and what comes goes to the first."""
    made = project(tmp_path, "ab", {**without_address("l1", "l2"), **sites_of({"x": "main"})})
    away = decided(made, gathered({"a": "l2", "b": "l2"}, 0.9), policy)
    assert [move[1:] for move in moves(away)] == [("l2", "x")]
    apart = decided(made, gathered({"a": "l1", "b": "l2"}, 0.9), policy)
    assert [move[2] for move in moves(apart)] == ["x"]
    back = decided(made, gathered({"a": "x", "b": "x"}, 0.9), policy)
    assert [move[1:] for move in moves(back)] == [("x", "l1")]
    assert moves(decided(made, gathered({"a": "x", "b": "l2"}, 0.9), policy)) == []
