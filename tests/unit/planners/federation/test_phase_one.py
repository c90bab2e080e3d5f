"""Phase one against every logical plan of small queries, and what it does with aggregates and cross
products."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.errors import UserError
from headrace.plan.federated import Engine
from headrace.planners.federation import phase_one
from headrace.planners.federation.join_graph import JoinGraph, halves
from headrace.planners.federation.phase_one import NoPlan, best_logical_plan
from headrace.planners.federation.problem import (
    InDuckDB,
    JoinEdge,
    Kind,
    Movable,
    Operator,
    Plan,
    Query,
    Relation,
    Split,
    Stream,
    Table,
    UnitCost,
    Window,
)
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of
from tests.unit.planners.federation.orders import best_order
from tests.unit.planners.federation.plans import random_query

SPARK, DUCKDB = Engine.SPARK, Engine.DUCKDB


def on_spark(plan: Plan) -> Split:
    return Recount(plan, sizes_of(plan)).split((Engine.SPARK,) * len(plan.operators))


def check_best(query: Query, *, feasibility: bool) -> None:
    got = on_spark(best_logical_plan(query, feasibility=feasibility).plan)
    want = best_order(query, feasibility=feasibility)
    by_sum = want.feasible or not feasibility
    pair = (got.utilisation, want.utilisation) if by_sum else (got.bottleneck, want.bottleneck)
    assert pair[0] == pytest.approx(pair[1], rel=1e-7)


def has_operators(query: Query) -> bool:
    return len(query.relations) > 1 or bool(query.relations[0].chain or query.top or query.movable)


def test_equals_every_order() -> None:
    rng = Random(21)
    for _ in range(60):
        query = random_query(rng, 4)
        if has_operators(query):
            check_best(query, feasibility=True)
            check_best(query, feasibility=False)


def three(*joins: JoinEdge, movable: tuple[Movable, ...] = (), tables: tuple[Table, ...] = ()) -> Query:
    streams = (Stream("s", 10),)
    windows = tuple(Window(name, "s", size, 1) for name, size in (("a", 10), ("b", 10), ("c", 1)))
    relations = (*(Relation(name, name) for name in "abc"), *(Relation(t.name, t.name) for t in tables))
    return Query(streams, windows, relations, joins, movable=movable, tables=tables)


def inputs(plan: Plan) -> list[tuple[str, ...]]:
    return [operator.inputs for operator in plan.operators]


def test_the_small_relation_is_joined_first() -> None:
    query = three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1))
    ordered = best_logical_plan(query)
    assert inputs(ordered.plan) == [("b", "c"), ("a", "join1")]
    assert ordered.examined == 3 + 2 + 2  # the relations, a-b and b-c, and two ways to join all


def test_cross_products_only_where_nothing_connects() -> None:
    """c is not connected: it comes last, though a-c would be a small join."""
    query = three(JoinEdge("a", "b", 1.0))
    assert inputs(best_logical_plan(query).plan) == [("a", "b"), ("join1", "c")]


def test_conditions_of_one_key_count_once_and_follow_from_each_other() -> None:
    query = three(JoinEdge("a", "b", 0.1, "k"), JoinEdge("b", "c", 0.1, "k"))
    graph = JoinGraph(query)
    joined = graph.between(0b101, 0b010)
    assert joined is not None and joined.left == pytest.approx(0.1)
    implied = graph.between(0b001, 0b100)
    assert implied is not None and implied.left == 0.1
    unkeyed = JoinGraph(three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1)))
    apart = unkeyed.between(0b101, 0b010)
    assert apart is not None and apart.left == pytest.approx(0.01)
    assert unkeyed.between(0b001, 0b100) is None


def test_halves_are_each_given_once() -> None:
    assert sorted(halves(0b111)) == [(0b001, 0b110), (0b011, 0b100), (0b101, 0b010)]


AGGREGATE = Operator("agg", Kind.AGGREGATE, groups=5, spark=(0.001,))


def test_an_aggregate_goes_below_the_join_where_that_is_cheaper() -> None:
    houses = Table("houses", 50)
    query = Query(
        (Stream("s", 100),),
        (Window("w", "s", 60, 10),),
        (Relation("r", "w"), Relation("h", "houses")),
        (JoinEdge("r", "h", 1 / 50, spark=0.002),),
        movable=(Movable(AGGREGATE, frozenset({"r"}), frozenset({"h"})),),
        tables=(houses,),
    )
    plan = best_logical_plan(query).plan
    assert [operator.name for operator in plan.operators] == ["agg", "join1"]
    # With a join that finds hardly anything, it is cheaper to join first; groups without a match are gone.
    rare = replace(query, joins=(JoinEdge("r", "h", 1 / 50_000, spark=1e-6),))
    plan = best_logical_plan(rare).plan
    assert [operator.name for operator in plan.operators] == ["join1", "agg"]
    assert plan.operators[1].groups == pytest.approx(5 / 1000)
    # Where it is not valid above the join, it stays below.
    below = replace(rare, movable=(Movable(AGGREGATE, frozenset({"r"})),))
    assert [operator.name for operator in best_logical_plan(below).plan.operators] == ["agg", "join1"]


def test_an_aggregate_over_two_relations_waits_for_both() -> None:
    over = Movable(AGGREGATE, frozenset({"a", "b"}))
    query = three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1), movable=(over,))
    plan = best_logical_plan(query).plan
    assert [operator.name for operator in plan.operators] == ["join1", "agg", "join2"]


def test_a_query_whose_aggregate_can_stand_nowhere_is_none() -> None:
    over = Movable(AGGREGATE, frozenset({"a", "c"}))
    query = three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1), movable=(over,))
    with pytest.raises(NoPlan, match="the aggregate agg can stand nowhere") as caught:
        best_logical_plan(query)
    assert caught.value.at == ("movable", 0)


def test_the_aggregate_that_can_stand_nowhere_is_told_from_the_others() -> None:
    fine = Movable(replace(AGGREGATE, name="fine"), frozenset({"b"}))
    over = Movable(AGGREGATE, frozenset({"a", "c"}))
    query = three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1), movable=(fine, over))
    with pytest.raises(NoPlan, match="the aggregate agg can stand nowhere") as caught:
        best_logical_plan(query)
    assert caught.value.at == ("movable", 1)


@pytest.mark.parametrize("turned", [False, True])
def test_a_join_is_tested_where_its_own_conditions_say_and_not_those_it_follows_from(turned: bool) -> None:
    """a and b have one condition, on DuckDB. That they also agree in k follows from those with c."""
    joins = (
        JoinEdge("a", "c", 0.5, "k", engine=SPARK),
        JoinEdge("b", "c", 1.0, "k"),
        JoinEdge("a", "b", 0.0001, "m", engine=DUCKDB),
    )
    graph = JoinGraph(three(*(joins[::-1] if turned else joins)))
    a, b, c = (graph.bits([name]) for name in "abc")
    engines = [graph.between(*pair) for pair in ((a, b), (b, c), (a | b, c))]
    assert [one and one.engine for one in engines] == [DUCKDB, None, SPARK]
    alone = JoinGraph(three(*joins[:2])).between(a, b)
    assert alone is not None and alone.engine is SPARK


def test_conditions_for_different_engines_are_not_tested_in_one_join() -> None:
    """With a and b first, or b and c, the second join would need two engines."""
    ab, ac = JoinEdge("a", "b", 0.1, engine=SPARK), JoinEdge("a", "c", 0.01, engine=DUCKDB)
    bc = JoinEdge("b", "c", 0.01, engine=SPARK)
    plan = best_logical_plan(three(ab, ac, bc)).plan
    assert [one.engine for one in plan.operators] == [DUCKDB, SPARK]
    assert plan.operators[0].inputs == ("a", "c")


@pytest.mark.parametrize("key", [None, "k"])
def test_conditions_for_different_engines_that_always_meet_leave_no_plan(key: str | None) -> None:
    free = JoinEdge("b", "c", 0.1)
    first, second = (JoinEdge("a", "b", 0.1, key, engine=one) for one in (SPARK, DUCKDB))
    with pytest.raises(NoPlan, match=r"joins\[1\] and joins\[2\] must run on different engines") as caught:
        best_logical_plan(three(free, first, second))
    assert caught.value.at == ("joins", 2, "engine")


def test_joins_get_names_that_are_free() -> None:
    query = replace(
        three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1)), top=(Operator("join1", Kind.PROJECT),)
    )
    names = [operator.name for operator in best_logical_plan(query).plan.operators]
    assert names == ["join2", "join3", "join1"]


def test_an_aggregate_may_be_over_what_only_its_beyond_connects() -> None:
    """a and c meet through b alone. Of 1 x 100 pairs 0.1 x 0.1 x 100 are left, each a row."""
    over = Movable(AGGREGATE, frozenset({"a", "c"}), frozenset({"b"}))
    query = three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.001), movable=(over,))
    plan = best_logical_plan(query).plan
    assert [operator.name for operator in plan.operators] == ["join1", "join2", "agg"]
    assert plan.operators[2].groups == pytest.approx(5 * 0.1 * 0.001 * 100)


def test_an_empty_relation_leaves_the_groups_as_they_are_given() -> None:
    none = Operator("none", Kind.SELECT, selectivity=0.0)
    query = replace(
        three(movable=(Movable(AGGREGATE, frozenset({"a"})),)), relations=(Relation("a", "a", (none,)),)
    )
    assert best_logical_plan(query).plan.operators[1].groups == 5


def test_a_cross_product_costs_what_the_query_says() -> None:
    query = replace(three(), cross=UnitCost(0.25, InDuckDB(0.5, 0.75)))
    join = best_logical_plan(query).plan.operators[0]
    assert join.spark == (0.25, 0.25)
    assert join.duckdb == (InDuckDB(0.5, 0.75), InDuckDB(0.5, 0.75))


def test_too_many_join_orders_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase_one, "MOST_EXAMINED", 6)
    with pytest.raises(UserError, match="more than 6 join orders"):
        best_logical_plan(three(JoinEdge("a", "b", 0.1), JoinEdge("b", "c", 0.1)))
