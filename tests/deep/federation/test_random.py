"""Random windowed queries, split at random, against the reference; tests/federated_random.py does it by the
hundred. And windows on two event times of the same joined rows."""

from __future__ import annotations

import random

import pytest

from headrace.catalog.model import Query
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, operators
from headrace.rewrite.driver import rewrite
from headrace.service.federating_problem import TWO_TIMES, not_federated
from headrace.sql.bind import bind_query
from tests.federated_queries import NEW, World, random_world
from tests.federated_random import _fed, run_case, run_split

JOINED = (
    "bids AS a JOIN asks AS b "
    "ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 5 SECONDS"
)


@pytest.mark.parametrize("kind", NEW)
def test_a_split_gives_the_answer(kind: str) -> None:
    outcome = run_case(list(NEW).index(kind), 1, kind)
    assert outcome.problems == (), outcome.sql
    assert outcome.splits or outcome.refused


def _bound(world: World, sql: str) -> lp.LogicalPlan:
    return rewrite(bind_query(Query(name="q", sql=sql), world.streams, world.tables))


def _by(time: str, shown: str = "count(*) AS n") -> str:
    window = f"window({time}, '7 seconds', '2 seconds')"
    return f"SELECT window_start, window_end, b.k AS k, {shown} FROM {JOINED} GROUP BY {window}, b.k"


def test_queries_with_windows_on_two_times_of_the_same_rows_are_one_job() -> None:
    rng = random.Random(5)
    world = random_world(rng, "joined_streams")
    plans = {name: _bound(world, _by(f"{name}.ts")) for name in ("a", "b")}
    fed = _fed(world, plans.values())
    wanted = {query: fed.answer(plan, len(fed.batches)) for query, plan in plans.items()}
    assert all(one.num_rows for one in wanted.values()) and not any(map(not_federated, plans.values()))
    windows = [node for plan in plans.values() for node in lp.nodes(plan) if isinstance(node, lp.Window)]
    assert windows[0].input == windows[1].input and windows[0].time != windows[1].time
    split = {query: (Engine.DUCKDB,) * len(operators(plan)) for query, plan in plans.items()}
    assert run_split(plans, split, fed, wanted, rng) == ""


def test_a_query_with_windows_on_two_times_is_not_split() -> None:
    world = random_world(random.Random(5), "joined_streams")
    one, other = _by("a.ts"), _by("b.ts", "count(*) AS s")
    on = "x.k = y.k AND x.window_end = y.window_end"
    plan = _bound(world, f"SELECT x.k, x.n, y.s FROM ({one}) AS x JOIN ({other}) AS y ON {on}")
    assert not_federated(plan) == TWO_TIMES
