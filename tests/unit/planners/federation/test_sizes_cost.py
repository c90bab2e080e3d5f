"""Eq. 1-6 on a plan worked out by hand.

readings 100 a second, window 10 s sliding by 2 s      W = 1000, l = 1/2
-> select f = 0.2                                      lambda = 20, W = 200
-> aggregate g = 10                                    lambda = 10 / 2 = 5, W = 10
prices 20 a second, window 50 rows sliding by 5        W = 50, l = 4
join f_L = 0.1, f_R = 0.3                              lambda = 5 * 0.3 * 50 + 20 * 0.1 * 10 = 95, W =
0.2 * 10 * 50
"""

from __future__ import annotations

import pytest

from headrace.errors import InternalError
from headrace.plan.federated import Engine
from headrace.planners.federation.cost import bottleneck, operator_costs
from headrace.planners.federation.problem import (
    DEFAULT_COSTS,
    InDuckDB,
    Kind,
    Operator,
    Plan,
    Prices,
    Sizes,
    Stream,
    Table,
    Unit,
    Window,
)
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of

S, D = Engine.SPARK, Engine.DUCKDB

SELECT = Operator(
    "select", Kind.SELECT, ("w",), selectivity=0.2, spark=(0.001,), duckdb=(InDuckDB(0.0002, 0.00001),)
)
AGGREGATE = Operator(
    "agg", Kind.AGGREGATE, ("select",), groups=10, width=2, spark=(0.01,), duckdb=(InDuckDB(0.001, 0.0001),)
)
JOIN = Operator(
    "join",
    Kind.JOIN,
    ("agg", "v"),
    left=0.1,
    right=0.3,
    spark=(0.02, 0.03),
    duckdb=(InDuckDB(0.0, 0.001), InDuckDB(0.002, 0.0005)),
)
PLAN = Plan(
    (Stream("readings", 100), Stream("prices", 20)),
    (Window("w", "readings", 10, 2, width=4), Window("v", "prices", 50, 5, Unit.ROWS, width=3)),
    (SELECT, AGGREGATE, JOIN),
    prices=Prices(0.0001, 0.0002, 0.01),
)


def test_sizes_follow_the_equations() -> None:
    select, aggregate, join = sizes_of(PLAN)
    assert select == Sizes(20, 200, 0.5, 4)
    assert aggregate == Sizes(5, 10, 0.5, 2)
    assert (join.rate, join.rows, join.slides, join.width) == pytest.approx((95, 100, 4, 5))


def test_a_table_brings_no_rows_and_a_project_keeps_them() -> None:
    project = Operator("p", Kind.PROJECT, ("j",), width=1)
    join = Operator("j", Kind.JOIN, ("w", "t"), left=0.05, right=0.05)
    plan = Plan(PLAN.streams, PLAN.windows, (join, project), (Table("t", 20, 2),))
    assert sizes_of(plan) == (Sizes(100, 1000, 0.5, 6), Sizes(100, 1000, 0.5, 1))


def test_what_was_observed_takes_the_place_of_the_equations() -> None:
    observed = Operator("select", Kind.SELECT, ("w",), selectivity=0.2, rate=7, size=9)
    assert sizes_of(Plan(PLAN.streams, PLAN.windows, (observed,))) == (Sizes(7, 9, 0.5, 4),)


def test_each_operator_on_spark_is_a_part() -> None:
    found = Recount(PLAN, sizes_of(PLAN)).split((S, S, S))
    assert [part.u for part in found.parts] == pytest.approx([0.1, 0.2, 5 * 0.02 + 20 * 0.03])
    assert found.bottleneck == pytest.approx(0.7)
    assert found.utilisation == pytest.approx(1.0)
    assert found.feasible


def test_a_part_on_duckdb_pays_the_ways_and_is_evaluated_as_often_as_its_fastest_window() -> None:
    (part,) = Recount(PLAN, sizes_of(PLAN)).split((D, D, D)).parts
    assert part.transfer_in == pytest.approx(100 * 4 * 0.0001 + 20 * 3 * 0.0001)
    arriving = 100 * 0.0002 + 20 * 0.001 + 20 * 0.002
    held = 1000 * 0.00001 + 200 * 0.0001 + 10 * 0.001 + 50 * 0.0005
    assert part.work == pytest.approx(arriving + 4 * held)
    assert part.statement == pytest.approx(4 * 0.01)
    assert part.transfer_out == pytest.approx(95 * 5 * 0.0002)
    assert part.u == pytest.approx(0.046 + 0.08 + 0.26 + 0.04 + 0.095)


def test_costs_of_parts_do_not_add_up() -> None:
    """One part for two operators: no statement of the first, no way out and in between."""
    recount = Recount(PLAN, sizes_of(PLAN))
    two = recount.split((D, D, S)).parts[0]
    alone = recount.split((D, S, S)).parts[0]
    assert alone.u == pytest.approx(0.04 + 0.02 + 0.5 * 0.01 + 0.5 * 0.01 + 20 * 4 * 0.0002)
    assert two.u == pytest.approx(0.04 + 0.02 + 0.02 + 0.5 * (0.01 + 0.02) + 0.5 * 0.01 + 5 * 2 * 0.0002)
    assert [part.operators for part in recount.split((D, S, D)).parts] == [("select",), ("agg",), ("join",)]


def test_incremental_costs_say_the_same() -> None:
    select, aggregate, join = operator_costs(PLAN)
    assert select.closed(select.inputs[0][1] + select.arriving, select.held) == pytest.approx(0.086)
    a = select.inputs[0][1] + select.arriving + aggregate.arriving + join.inputs[1][1] + join.arriving
    assert join.closed(a, select.held + aggregate.held + join.held) == pytest.approx(0.521)


def test_an_operator_may_have_prices_of_its_own() -> None:
    dear = Operator("select", Kind.SELECT, ("w",), selectivity=0.2, width=1, prices=Prices(1, 2, 3))
    (part,) = Recount(plan := Plan(PLAN.streams, PLAN.windows, (dear,)), sizes_of(plan)).split((D,)).parts
    assert (part.transfer_in, part.statement, part.transfer_out) == pytest.approx((400, 1.5, 40))


def test_shared_cores_are_a_bottleneck_too() -> None:
    assert bottleneck(0.7, 3.0, None) == 0.7
    assert bottleneck(0.7, 3.0, 2.0) == 1.5
    assert bottleneck(0.7, 1.2, 2.0) == 0.7


def test_short_operators_get_unit_costs_of_their_kind() -> None:
    join = Operator("j", Kind.JOIN, ("w", "v"))
    assert join.spark == (DEFAULT_COSTS[Kind.JOIN].spark,) * 2
    assert join.duckdb == (DEFAULT_COSTS[Kind.JOIN].duckdb,) * 2


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ((Operator("a", Kind.SELECT, ("nothing",)),), "cannot read"),
        ((SELECT, Operator("b", Kind.SELECT, ("w",))), "no tree"),
        ((SELECT, AGGREGATE, Operator("c", Kind.SELECT, ("select",))), "cannot read"),
        ((SELECT, Operator("select", Kind.SELECT, ("select",))), "taken"),
        ((Operator("a", Kind.SELECT),), "no inputs"),
        ((), "no tree"),
    ],
)
def test_what_is_no_tree_is_no_plan(operators: tuple[Operator, ...], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        Plan(PLAN.streams, PLAN.windows, operators)


def test_operators_have_a_cost_for_each_input() -> None:
    with pytest.raises(InternalError, match="inputs"):
        Operator("j", Kind.JOIN, ("w",))
    with pytest.raises(InternalError, match="unit costs"):
        Operator("j", Kind.JOIN, ("w", "v"), spark=(1.0,))
