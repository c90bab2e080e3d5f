"""Joins of windows in another order: which are free, and that every order has one answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import Project
from headrace.plan.expr import TRUE
from headrace.plan.federated import Engine, FederatedMember, operators
from headrace.plan.logical import LogicalPlan, WindowJoin, nodes
from headrace.plan.text import format_plan
from headrace.planners.federation.compare import rank
from headrace.runtime.duckdb.reference import evaluate
from headrace.service import federating_joins as fj
from headrace.service.binding import plan_query
from headrace.service.calibration_file import federation_costs_of
from headrace.service.explain import explain_query
from headrace.service.federated_records import job_of, record_of
from headrace.service.federating import Choice, choose
from headrace.service.federating_load import split_cost
from headrace.service.federating_order import best_order, distinct_of_inputs, ordered, same_order
from headrace.service.fingerprints import query_fingerprint
from headrace.service.layout import state_file
from headrace.service.planning import plan_project
from headrace.service.run import Options, Runner
from headrace.state.store import Store
from tests.unit.service.disk_engine import Death
from tests.unit.service.federated_sample import PRICES, SplitEngine, calibrated, write
from tests.unit.service.sample import Clock
from tests.unit.service.window_joins import every_order, random_query, readings


def results(name: str, keys: str, call: str = "max(v)", seconds: int = 3) -> str:
    window = f"[RANGE {seconds} SECONDS SLIDE 1 SECOND]"
    return f"(SELECT {keys}, {call} AS x FROM readings {window} GROUP BY {keys}) AS {name}"


A, B, C = results("a", "k, p", "count(*)", 6), results("b", "k, p"), results("c", "p", "sum(v)", 2)
SHOWN = "SELECT a.window_start, a.window_end, a.k, a.p, a.x AS ax, b.p AS bp, b.x AS bx, c.x AS cx"
DEAR_JOINS = replace(PRICES, spark_batch=1e-4, spark_join=1e-3, duck_join=1e-3, statement=1e-4)
# Written, a and b meet first, in every pair of their ps; c leaves few of b.
WORSE = f"{SHOWN} FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON b.p = c.p AND b.x > 0.5 * c.x"


def plan_of(root: Path, sql: str) -> tuple[Project, LogicalPlan]:
    project = write(root, q=f"{sql}#engine: auto")
    return project, plan_query(project, project.queries["q"]).plan


def joins_in(root: Path, sql: str) -> fj.Joins | str:
    return fj.joins_of(plan_of(root, sql)[1])


def rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def ones(_: object) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT a.window_start, a.x FROM {A} JOIN {B} ON a.k = b.k", fj.TOO_FEW),
        ("SELECT window_start, count(*) AS n FROM readings [RANGE 3 SECONDS SLIDE 1 SECOND]", fj.TOO_FEW),
        (
            f"{SHOWN} FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON a.x + b.x > c.x",
            fj.THREE_INPUTS,
        ),
        (
            "SELECT a.window_start, a.window_end, count(*) AS n"
            " FROM readings [RANGE 6 SECONDS SLIDE 1 SECOND] AS a"
            f" JOIN {B} ON a.k = b.k JOIN {C} ON b.p = c.p GROUP BY a.k",
            fj.NOT_RESULTS,
        ),
    ],
    ids=["two", "none", "three in one condition", "rows"],
)
def test_what_keeps_its_order(tmp_path: Path, sql: str, reason: str) -> None:
    assert joins_in(tmp_path, sql) == reason


def test_taken_apart(tmp_path: Path) -> None:
    found = joins_in(tmp_path, f"{SHOWN} FROM {A} JOIN {B} ON a.k = b.k AND a.p = b.p JOIN {C} ON a.p = c.p")
    assert isinstance(found, fj.Joins)
    assert found.names == ("a", "b", "c") and found.written == ((0, 1), 2)
    assert fj.order_text((0, (1, 2)), found.names) == "a x (b x c)"
    assert sorted(len(group) for group in found.same) == [2, 3], "p is the same in all three"
    other = fj.in_order(found, (0, (1, 2)), ones)
    joins = [node for node in nodes(other) if isinstance(node, WindowJoin)]
    assert all(len(join.on) >= 1 for join in joins), "b and c are joined by what follows from a"
    assert other.window == found.plan.window


def test_same_order() -> None:
    assert same_order(((0, 1), 2), (2, (1, 0))) and not same_order(((0, 1), 2), (0, (1, 2)))
    assert len(list(every_order(range(3)))) == 3 and len(list(every_order(range(4)))) == 15


@pytest.mark.parametrize(
    "sql",
    [
        WORSE,
        # Two columns of one input that are equal to the same: both are checked, in every order.
        f"SELECT a.window_start, a.window_end, a.k, b.x AS bx, c.x AS cx "
        f"FROM {A} JOIN (SELECT k, k * 2 AS m, max(v) AS x FROM readings [RANGE 3 SECONDS SLIDE 1 SECOND]"
        f" GROUP BY k) AS b ON a.k = b.k AND a.k = b.m JOIN {results('c', 'k')} ON c.k = a.k",
        # A join in the FROM of another: names clash, and its window is not called as it was.
        f"SELECT s.began, s.window_end, s.k, s.bx, a.x AS y"
        f" FROM (SELECT a.window_start AS began, a.window_end, a.k, b.p, b.x AS bx"
        f" FROM {A} JOIN {B} ON a.k = b.k WHERE a.x + b.x > 20) AS s"
        f" JOIN {results('a', 'p', 'sum(v)', 2)} ON s.p = a.p AND s.k < a.x",
        *(random_query(seed) for seed in range(12)),
    ],
)
def test_every_order_has_the_answer_of_what_is_written(tmp_path: Path, sql: str) -> None:
    _, plan = plan_of(tmp_path, sql)
    joins = fj.joins_of(plan)
    assert isinstance(joins, fj.Joins), joins
    for seed in (1, 2):
        data = {"readings": readings(seed)}
        right = rows(evaluate(plan, data))
        for order in list(every_order(range(len(joins.inputs))))[:20]:
            found = fj.in_order(joins, order, ones)
            assert found.schema == plan.schema and found.window == plan.window
            assert rows(evaluate(found, data)) == right, (order, format_plan(found))


def crosses(plan: LogicalPlan) -> bool:
    return any(isinstance(n, WindowJoin) and not n.on and n.residual == TRUE for n in nodes(plan))


def on_spark(project: Project, plan: LogicalPlan) -> tuple[float, float]:
    """C_u and C_b of a plan, all of it on Spark, as the product prices it."""
    engines = (Engine.SPARK,) * len(operators(plan))
    split, _, _ = split_cost(project, "local", FederatedMember("q", plan, engines))
    return split.utilisation, split.bottleneck


@pytest.mark.parametrize("sql", [WORSE, *(random_query(seed, connected=True) for seed in range(40))])
def test_phase_one_finds_the_cheapest_of_all_orders_on_spark(tmp_path: Path, sql: str) -> None:
    """By the prices of the product, which know nothing of phase one: orders one by one, those left out that
    join what no condition connects, as phase one does."""
    project, plan = plan_of(tmp_path, sql)
    calibrated(project, replace(PRICES, spark_batch=0.001))
    joins = fj.joins_of(plan)
    assert isinstance(joins, fj.Joins)
    costs, _ = federation_costs_of(project, "local")
    found = best_order(project, "local", joins, costs, None)
    distinct = distinct_of_inputs(project, joins, costs)
    every = [ordered(project, joins, o, distinct) for o in every_order(range(len(joins.inputs)))]
    priced = [on_spark(project, one) for one in every if not crosses(one)]
    assert len(priced) > 1
    mine = on_spark(project, found.plan)
    assert rank(mine[1], mine[0])[:2] == pytest.approx(min(rank(b, u) for u, b in priced)[:2])
    assert mine[0] == pytest.approx(found.utilisation), "phase one prices an order as the product does"


def test_the_better_order_is_chosen_and_told(tmp_path: Path) -> None:
    project, plan = plan_of(tmp_path, WORSE)
    calibrated(project, DEAR_JOINS)
    choice = choose(project, project.queries["q"], plan)
    assert isinstance(choice, Choice) and choice.order is not None
    assert choice.plan != plan == choice.order.written
    assert choice.order.chosen_split.utilisation < 0.99 * choice.order.written_split.utilisation
    kept = choose(project, project.queries["q"], plan, reorder=False)
    assert isinstance(kept, Choice) and kept.plan == plan and kept.order is None
    assert kept.answer.split == choice.order.written_split
    data = explain_query(project, "q")
    order = data["federation"]["order"]
    assert order is not None and order["changed"]
    assert (order["written"], order["chosen"]) == ("(a x b) x c", "a x (b x c)")
    line = data["federation"]["text"][2]
    assert line.startswith("joins as a x (b x c): C_b ") and "; as written, (a x b) x c: C_b " in line
    assert data["text"] == format_plan(choice.plan), "operators have the names of the plan that runs"


def test_an_order_that_is_no_better_stays_as_it_is_written(tmp_path: Path) -> None:
    other = f"{SHOWN} FROM {A} JOIN {B} ON a.k = b.k AND a.p = b.p JOIN {C} ON a.p = c.p"
    project, plan = plan_of(tmp_path, other)
    choice = choose(project, project.queries["q"], plan)
    assert isinstance(choice, Choice) and choice.plan is plan
    text = explain_query(project, "q")["federation"]["text"][2]
    assert text.startswith("joins as they are written, (a x b) x c: no order is cheaper")


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_who_names_an_engine_has_the_order_that_is_written(tmp_path: Path, engine: str) -> None:
    project = write(tmp_path, q=f"{WORSE}#engine: {engine}")
    plan = plan_query(project, project.queries["q"]).plan
    calibrated(project, DEAR_JOINS)
    choice = choose(project, project.queries["q"], plan)
    assert isinstance(choice, Choice) and choice.plan is plan and choice.order is None


def test_a_deployed_query_keeps_its_plan_and_its_name(tmp_path: Path) -> None:
    """Also when the other order would be better by now, and its fingerprint is that of what is written."""
    project, plan = plan_of(tmp_path, WORSE)
    calibrated(project, DEAR_JOINS)
    (job,) = plan_project(project).federated
    (member,) = job.members
    assert member.written == plan != member.plan and job_of(record_of(job)) == job
    written = plan_query(project, project.queries["q"])
    assert query_fingerprint(project, member) == query_fingerprint(project, written)
    assert member.plan_fingerprint != member.fingerprint
    run(project)
    calibrated(project, replace(DEAR_JOINS, spark_join=0.0, duck_join=0.0))
    assert plan_project(project).federated[0].members[0].plan == plan
    assert run(project).started == [job]


def run(project: Project) -> SplitEngine:
    clock, engine = Clock(), SplitEngine(Death(), end=5)
    with Store(state_file(project)) as store:
        runner = Runner(project, store, clock, clock.sleep, Options(drain=True))
        runner.prepare()
        assert runner.run(engine).exit_code == 0
    return engine
