"""Throughputs, maxima and what a choice misses, on results that follow a formula."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.experiments.federation.board import Board
from headrace.experiments.federation.claims import judge
from headrace.experiments.federation.results import Results, Run
from headrace.experiments.federation.runs import is_hopeless
from headrace.experiments.federation.tables import make_tables
from headrace.service.throughput_stream import Load
from tests.unit.experiments.federation.made_up import RATES, choice, results, run


def test_a_split_that_keeps_up_gives_what_comes_in_and_one_that_does_not_what_it_can() -> None:
    board = Board(results())
    assert board.throughput("cq1", "ssddd", 20000) == 20000
    # 1 + 0.001 * 20000 = 21 s for 200,000 rows.
    assert board.throughput("cq1", "ddddd", 20000) == pytest.approx(200_000 / 21)
    assert board.throughput("cq1", "sssss", 1000) == pytest.approx(10_000 / 11)


def test_what_was_not_run_does_what_it_did_at_a_lower_rate_and_what_failed_does_nothing() -> None:
    board = Board(results(left_out=((20000, "sssss"), (5000, "sssss"))))
    assert board.throughput("cq1", "sssss", 20000) == board.throughput("cq1", "sssss", 1000) > 0
    more = Board(results(left_out=((20000, "ddddd"),)))
    assert more.throughput("cq1", "ddddd", 20000) == pytest.approx(9000)
    failed = Results((*results().rows, run("cq9", 1000, "sssss", problem="no full window after 9 s")))
    assert Board(failed).throughput("cq9", "sssss", 1000) == 0


def test_what_is_hopeless_is_not_run() -> None:
    load = Load(20000)
    assert not is_hopeless([], load)
    assert not is_hopeless([(1000, 9.0)], load)
    assert is_hopeless([(1000, float("inf"))], load)
    assert is_hopeless([(1000, 16.0)], load)
    # 2 s, and 1 s more for each thousand: 21 s; for each two thousand: 11.5 s.
    assert is_hopeless([(1000, 2.0), (2000, 3.0)], load)
    assert not is_hopeless([(2000, 2.5), (1000, 2.0)], load)


def test_the_highest_throughput_is_marked_where_there_may_be_more() -> None:
    board = Board(results())
    assert board.maximum("cq1", "ssddd") == (20000, True)
    most, more = board.maximum("cq1", "ddddd")
    assert most == pytest.approx(200_000 / 21)
    assert not more


def test_the_foretold_rate_is_where_the_line_meets_the_length_of_a_batch() -> None:
    board = Board(results())
    assert [board.foretold("cq1", split) for split in ("sssss", "ddddd", "ssddd")] == [
        pytest.approx(900),
        pytest.approx(9000),
        pytest.approx(45000),
    ]


def test_with_the_cpu_clock_work_is_spread_over_the_cores() -> None:
    quiet, busy = results(), results(clock="cpu")
    slow = tuple(
        replace(row, seconds=tuple(9 * s for s in row.seconds)) if isinstance(row, Run) else row
        for row in busy.rows
    )
    for rate in RATES:
        found = Board(Results(slow, busy.made)).throughput("cq1", "ddddd", rate)
        assert found == Board(quiet).throughput("cq1", "ddddd", rate)


def test_a_choice_misses_what_the_best_does_more() -> None:
    board = Board(results(chosen="ddddd"))
    assert board.short("cq1", 1000) == 0
    assert board.short("cq1", 20000) == pytest.approx(100 * (1 - 10 / 21))
    # Both keep up with 1,000 rows/s: 2 and 1.2 s.
    assert board.best("cq1", 1000) == "ssddd"
    assert board.dearer("cq1", 1000) == pytest.approx(100 * (2 / 1.2 - 1))


def test_a_choice_that_was_not_run_says_nothing() -> None:
    board = Board(results(chosen="ddddd", left_out=((20000, "ddddd"),)))
    assert board.short("cq1", 20000) is None


def test_a_rate_that_only_one_query_was_run_at_says_nothing_of_the_others() -> None:
    made = results()
    low = (choice("cq1", 100, "ssddd"), choice("cq1", 100, "ssddd", check=False), run("cq1", 100, "sssss"))
    tables = make_tables(Board(Results((*made.rows, *low), made.made)))
    assert {one.rate for one in tables.of("cq2")} == {one.rate for one in tables.of("cq1")} == set(RATES)
    assert [p.throughput for p in tables.points if p.rate == 100] == [100]
    assert len(judge(tables)) == len(judge(make_tables(Board(made))))


def test_one_that_kept_up_and_was_not_measured_at_the_next_rate_may_do_up_to_that() -> None:
    board = Board(results(left_out=((20000, "ddddd"),)))
    assert board.ceiling("cq1", "ddddd") == 20000
    assert board.ceiling("cq1", "sssss") is None
    assert board.ceiling("cq1", "ssddd") is None
