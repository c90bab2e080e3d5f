"""When another split is clearly better, and when not; where one takes over from another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.plan import logical as lp
from headrace.plan.expr import ColumnRef
from headrace.plan.federated import Engine, FederatedMember
from headrace.planners.federation.problem import Split
from headrace.planners.federation.sizes import sizes_of
from headrace.rewrite.driver import rewrite
from headrace.service.federating_problem import problem_of
from headrace.service.federating_seen import load_seen, save_seen
from headrace.service.layout import own_folder
from headrace.service.rechoosing import (
    Looks,
    Observing,
    Rules,
    Seen,
    Standing,
    handover_at,
    judge,
    scaled,
    seen_at,
    wins,
)
from headrace.sql.bind import bind_query
from tests.unit.service.federated_sample import PRICES, TOP, calibrated, write

S, D = Engine.SPARK, Engine.DUCKDB
RULES = Rules(margin=0.25, least=0.05, looks=3, span=10.0, stale=60.0)


def split(*engines: Engine, c_b: float = 0.5, c_u: float = 1.0) -> Split:
    return Split(engines, (), c_b, c_u)


@pytest.mark.parametrize(
    ("current", "best", "better"),
    [
        (split(S, c_u=1.0), split(S, c_u=0.1), False),  # the same one
        (split(S, c_u=1.0), split(D, c_u=0.8), False),  # not by the margin
        (split(S, c_u=1.0), split(D, c_u=0.75), True),
        (split(S, c_u=0.06), split(D, c_u=0.02), False),  # not by enough cores
        (split(S, c_b=1.2, c_u=0.1), split(D, c_b=0.9, c_u=5.0), True),  # situation 1, whatever it costs
        (split(S, c_b=0.9), split(D, c_b=1.1, c_u=0.1), False),
        (split(S, c_b=4.0, c_u=1.0), split(D, c_b=2.0, c_u=9.0), True),  # situation 3: only C_b counts
        (split(S, c_b=4.0), split(D, c_b=3.5), False),
    ],
)
def test_wins(current: Split, best: Split, better: bool) -> None:
    assert bool(wins(current, best, RULES)) is better


def test_a_split_that_does_not_fit_is_left_whatever_the_other_one_costs() -> None:
    cheap, dear = split(D, c_u=0.1), split(S, c_b=1.2, c_u=1.2)
    assert not wins(cheap, dear, RULES)
    assert "memory" in wins(cheap, dear, RULES, fits=False)
    assert not wins(cheap, cheap, RULES, fits=False), "there is no other"


def test_the_same_split_must_win_several_times_in_a_row() -> None:
    looks, said = Looks(RULES), []
    far, other, same = split(D, D, c_u=0.1), split(S, D, c_u=0.2), split(S, S, c_u=1.0)
    for number, best in enumerate((far, far, other, far, far, far)):
        looks.observing["fed"] = Observing(RULES, 100.0, taken=float(number))
        said.append(looks.judge("fed", "q", same, best).switch)
    assert said == [False, False, False, False, False, True]
    tie = judge(Standing((D, D), 2), same, same, RULES, taken=9.0)
    assert tie.standing == Standing(), "a tie starts anew"


def test_a_burst_that_is_looked_at_several_times_counts_once() -> None:
    """A rate is taken over 10 s and looked at every 5 s."""
    looks, rows, switched = Looks(RULES), 0, []
    few, many = split(S, c_u=1.0), split(D, c_u=0.1)
    for second in range(0, 100, 5):
        rows += 5 * (50_000 if 40 < second <= 50 or second > 60 else 100)
        looks.see("fed", Seen(rows, second * 1_000_000, float(second)))
        rate = looks.rate("fed", second)
        if rate is not None and looks.judge("fed", "q", few, many if rate > 1000 else few).switch:
            switched.append(second)
    assert switched[0] == 90, "rates of 70, 80 and 90 s; not of the burst at 50 s"


def test_a_rate_is_taken_in_event_time_and_grows_old() -> None:
    seen = Observing(RULES)
    for rows, second, at in ((0, 100, 0.0), (500, 105, 1.0)):
        seen.see(Seen(rows, second * 1_000_000, at))
    assert seen.current(1.0) is None, "5 s are not enough"
    seen.see(Seen(1200, 112_000_000, 2.0))
    assert seen.current(2.0) == 100.0
    seen.see(Seen(13_200, 124_000_000, 3.0))
    assert seen.current(63.0) == 1000.0 and seen.current(63.1) is None
    seen.see(Seen(10, 10_000_000, 4.0))  # the job was started again
    seen.see(Seen(2010, 20_000_000, 5.0))
    assert seen.current(5.0) == 200.0


def test_relations_are_seen_beside_the_rows_that_come() -> None:
    seen = Observing(RULES)
    seen.see(Seen(0, 0, 0.0, {("q", 1): 100}))
    seen.see(Seen(1000, 10_000_000, 1.0, {("q", 1): 150, ("q", 3): 7}))
    assert seen.made == {("q", 1): 5.0}, "of the other one it is not known since when"


def _plan(tmp_path: Path) -> tuple[Project, FederatedMember]:
    project = write(tmp_path, top=f"{TOP}#engine: auto")
    calibrated(project)
    query = project.queries["top"]
    plan = rewrite(bind_query(query, project.streams, project.tables))
    return project, FederatedMember("top", plan, (S, D, D))


def test_what_is_known_holds_at_other_rates(tmp_path: Path) -> None:
    project, member = _plan(tmp_path)
    _, passed, _, sums, _ = lp.nodes(member.plan)
    looks = Looks(RULES)
    for rows, second, made in ((0, 100, (0, 0)), (1000, 110, (200, 30))):
        counts = {("top", 1): made[0], ("top", 3): made[1], ("other", 1): 999}
        looks.see("fed", Seen(rows, second * 1_000_000, 0.0, counts))
    known = looks.learn("fed", member, 0.0)
    assert known == {1: 0.2, 3: 3.0}, "a fifth passes; the windows slide by a second and have 3 sums each"
    rates, seen = seen_at(member.plan, known, {"readings": 50.0}, 700.0)
    assert rates == {"readings": 700.0} and seen == {passed: 140.0, sums: 3.0}
    problem = problem_of(project, "local", member.plan, PRICES, rates, seen=seen)
    sizes = sizes_of(problem)
    assert sizes[0].rate == pytest.approx(140.0) and sizes[0].rows == pytest.approx(1400.0)
    assert sizes[1].rows == 3.0 and sizes[1].rate == 3.0
    assert looks.learn("none", replace(member, plan=passed, engines=(S,)), 0.0) == {}, "another query"


def test_a_stream_that_is_silent_is_not_taken_for_one_of_which_nothing_is_known(tmp_path: Path) -> None:
    project, member = _plan(tmp_path)
    scan = next(lp.nodes(member.plan))
    assert isinstance(scan, lp.StreamScan)

    def rate(rates: dict[str, float], seen: dict[lp.LogicalPlan, float]) -> float:
        problem = problem_of(project, "local", member.plan, PRICES, rates, seen=seen)
        assert all(size.rate >= 0 for size in sizes_of(problem))
        return problem.streams[0].rate

    assert rate({}, {}) == 100.0
    assert 0 < rate({"readings": 0.0}, {}) < 1e-3
    assert 0 < rate({}, {scan: 0.0}) < 1e-3


def test_what_a_projection_gives_is_known_of_what_is_below_it(tmp_path: Path) -> None:
    """All that a job on Spark alone counts are its results, and those often come from a projection."""
    _, member = _plan(tmp_path)
    top = member.plan
    plan = lp.Project(top, tuple((c.name, ColumnRef(c.name, c.type)) for c in top.schema))
    _, seen = seen_at(plan, {5: 3.0}, {"readings": 100.0}, 500.0)
    assert seen == {top: 3.0}


def test_streams_that_are_seen_are_not_scaled(tmp_path: Path) -> None:
    _, member = _plan(tmp_path)
    rates, _ = seen_at(member.plan, {0: 0.25}, {"readings": 1.0, "a": 30.0, "b": 10.0}, 400.0)
    assert rates == {"readings": 100.0, "a": 225.0, "b": 75.0}


def test_what_was_seen_is_kept_for_the_next_run(tmp_path: Path) -> None:
    project, _ = _plan(tmp_path)
    assert load_seen(project) == {}
    save_seen(project, {"f": {1: 0.5}})
    assert load_seen(project) == {"f": {1: 0.5}}
    for bad in ("", "[1]", '{"f": 3}', '{"f": {"x": 1}}'):
        (own_folder(project) / "seen.json").write_text(bad)
        assert load_seen(project) == {}


def test_streams_rise_and_fall_together() -> None:
    assert scaled({"a": 30.0, "b": 10.0}, 400.0) == {"a": 300.0, "b": 100.0}


@pytest.mark.parametrize(
    ("seen", "longest", "slide", "at"),
    [(100, 30, 10, 130), (101, 30, 10, 140), (-5, 3, 10, 0), (7, 3, 1, 10)],
)
def test_the_instant_is_beyond_all_windows_with_rows_that_were_seen(
    seen: int, longest: int, slide: int, at: int
) -> None:
    assert handover_at(seen, longest, slide) == at
    assert at - longest >= seen and at % slide == 0 and at - slide - longest < seen
