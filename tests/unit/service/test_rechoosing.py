"""When another split is clearly better, and when not; where one takes over from another."""

from __future__ import annotations

import pytest

from headrace.plan.federated import Engine
from headrace.planners.federation.problem import Split
from headrace.service.rechoosing import (
    Looks,
    Observing,
    Rules,
    Seen,
    Standing,
    handover_at,
    judge,
    scaled,
    wins,
)

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


def test_the_same_split_must_win_several_times_in_a_row() -> None:
    looks = Looks(RULES)
    far, other, same = split(D, D, c_u=0.1), split(S, D, c_u=0.2), split(S, S, c_u=1.0)
    said = [looks.judge("q", split(S, S, c_u=1.0), best).switch for best in (far, far, other, far, far, far)]
    assert said == [False, False, False, False, False, True]
    assert judge(Standing((D, D), 2), same, same, RULES).standing == Standing(), "a tie starts anew"


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
