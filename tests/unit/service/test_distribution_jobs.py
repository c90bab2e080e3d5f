"""The paper's plans as jobs: pieces, channels, and joins that give twice what they read."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from headrace.experiments.distribution.cases import JOINS, plan_named
from headrace.planners.distribution.plans import joins_in_a_row
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.usage import usage
from headrace.runtime.duckdb.reference import evaluate
from headrace.service.distribution_feed import Feeder, rows_between
from headrace.service.distribution_jobs import (
    Pace,
    as_operators,
    channel_plan,
    job_id,
    pieces_by_join,
    pieces_by_site,
    whole_plans,
)

PACE = Pace(40.0)


def random_table(problem: Problem, seed: int) -> dict[str, str]:
    rng = Random(seed)
    return {name: rng.choice(problem.sites).id for name in problem.operator}


@pytest.mark.parametrize("plan", ["5", "20", "40", "80", JOINS])
def test_a_channel_is_what_the_planner_counts_as_a_connection_between_sites(plan: str) -> None:
    problem = plan_named(plan, 3, 0)
    table = random_table(problem, 1)
    pieces = pieces_by_site(problem, table)
    made = channel_plan(problem, pieces, table, PACE)
    assert len(made.streams) == usage(problem, table).connections.between
    assert {job.query for job in made.jobs if job.query} == {query.id for query in problem.queries}
    assert set(made.base_streams()) == {stream.id for stream in problem.streams}
    assert all(table[name] == table[top] for name, top in pieces.items())


def test_at_one_site_a_query_is_one_job() -> None:
    problem = plan_named("80", 2, 0)
    table = dict.fromkeys(problem.operator, "s1")
    assert len(channel_plan(problem, pieces_by_site(problem, table), table, PACE).jobs) == 2


@pytest.mark.parametrize("plan", ["20", "40", JOINS])
def test_pieces_by_join_have_a_join_each(plan: str) -> None:
    problem = plan_named(plan, 2, 2)
    pieces = pieces_by_join(problem)
    joins = [pieces[one.id] for one in problem.operators if one.kind == "join"]
    assert len(set(joins)) == len(joins) == len(set(pieces.values()))
    jobs = as_operators(problem, pieces)
    assert sum(one.cpu for one in jobs.operators) == pytest.approx(sum(o.cpu for o in problem.operators))
    assert {stream.id for stream in jobs.streams} == {n for one in jobs.operators for n in one.inputs} & {
        stream.id for stream in problem.streams
    }
    made = channel_plan(problem, pieces, dict.fromkeys(jobs.operator, "s1"), PACE)
    assert {job.id for job in made.jobs} == {job_id(one.id) for one in jobs.operators}


@pytest.mark.parametrize(("rate", "window"), [(20.0, 2.0), (20.0, 5.0), (50.0, 2.0)])
def test_joins_give_twice_what_they_read(rate: float, window: float) -> None:
    problem = joins_in_a_row(3, 1)
    plan = whole_plans(problem, Pace(rate, window))["q1"]
    seconds = 80.0
    rows = {stream.id: rows_between(k, rate, 0.0, seconds) for k, stream in enumerate(problem.streams)}
    # 4 r, 2 * (4 r + r), 2 * (10 r + r) rows a second; at the ends partners are missing.
    given = evaluate(plan, rows).num_rows / (22 * rate * seconds)
    assert 1 - 2 * window / seconds < given < 1.1


def test_rows_are_the_same_whichever_file_they_are_in() -> None:
    whole = rows_between(1, 30.0, 0.0, 7.0)
    parts = [rows_between(1, 30.0, a, b) for a, b in ((0.0, 1.4), (1.4, 1.41), (1.41, 7.0))]
    assert sum(part.num_rows for part in parts) == whole.num_rows == 210
    assert whole["u"].to_pylist() == [u for part in parts for u in part["u"].to_pylist()]


def test_a_feeder_gives_what_is_due(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path, ["a", "b"], 100.0, 0.02, 2.0)
    feeder.start()
    while feeder.until < 2.1:
        pass
    feeder.stop()
    assert {name: table.num_rows for name, table in feeder.tables().items()} == dict.fromkeys(
        ("a", "b"), pytest.approx(100 * feeder.until, abs=1)
    )
