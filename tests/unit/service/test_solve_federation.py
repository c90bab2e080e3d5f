"""Federation problems in their public form: both forms are read as they are meant, and the answer adds up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.plan.federated import Engine
from headrace.planners.federation.cost import operator_costs
from headrace.planners.federation.problem import (
    DEFAULT_COSTS,
    InDuckDB,
    JoinEdge,
    Kind,
    Movable,
    Operator,
    Plan,
    Prices,
    Query,
    Relation,
    Stream,
    Table,
    Unit,
    UnitCost,
    Window,
)
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_federation import solve_federation
from headrace.service.solve_federation_data import problem_data
from headrace.service.solve_federation_file import read_federation
from headrace.service.solve_request import Request, check_request
from tests.unit.planners.federation.plans import random_plan, random_query
from tests.unit.planners.federation.test_phase_one import has_operators

LEAVES = {
    "streams": [{"id": "s", "rate": 100}, {"id": "t", "rate": 5}],
    "windows": [
        {"id": "w", "stream": "s", "range": 10, "slide": 2, "width": 4},
        {"id": "v", "stream": "t", "range": 50, "slide": 5, "unit": "rows"},
    ],
    "tables": [{"id": "houses", "rows": 40, "width": 3}],
}
STREAMS = (Stream("s", 100), Stream("t", 5))
WINDOWS = (Window("w", "s", 10, 2, Unit.TIME, 4), Window("v", "t", 50, 5, Unit.ROWS))
TABLES = (Table("houses", 40, 3),)


def file(**given: Any) -> ProblemFile:
    return ProblemFile("p.json", json.dumps({**LEAVES, **given}))


def test_a_plan_is_read_in_any_order() -> None:
    plan = read_federation(
        file(
            operators=[
                {
                    "id": "j",
                    "kind": "join",
                    "inputs": ["a", "v"],
                    "left": 0.1,
                    "right": 0.2,
                    "spark": [0.5, 0.25],
                    "duckdb": [{"held": 1}, {"arriving": 2}],
                    "rate": 7,
                    "size": 8,
                },
                {"id": "f", "kind": "select", "inputs": ["w"], "selectivity": 0.5, "engine": "spark"},
                {
                    "id": "a",
                    "kind": "aggregate",
                    "inputs": ["f"],
                    "groups": 9,
                    "width": 2,
                    "prices": {"statement": 3},
                },
            ],
            prices={"transfer_in": 1, "transfer_out": 2},
            costs={"select": {"spark": 4, "duckdb": {"arriving": 5, "held": 6}}},
            cores=2,
        )
    )
    default = DEFAULT_COSTS[Kind.AGGREGATE]
    select = Operator(
        "f",
        Kind.SELECT,
        ("w",),
        selectivity=0.5,
        spark=(4,),
        duckdb=(InDuckDB(5, 6),),
        engine=Engine.SPARK,
    )
    aggregate = Operator(
        "a",
        Kind.AGGREGATE,
        ("f",),
        groups=9,
        width=2,
        spark=(default.spark,),
        duckdb=(default.duckdb,),
        prices=Prices(1, 2, 3),
    )
    join = Operator(
        "j",
        Kind.JOIN,
        ("a", "v"),
        left=0.1,
        right=0.2,
        spark=(0.5, 0.25),
        duckdb=(InDuckDB(0, 1), InDuckDB(2, 0)),
        rate=7,
        size=8,
    )
    prices = Prices(1, 2, Prices().statement)
    assert plan == Plan(STREAMS, WINDOWS, (select, aggregate, join), TABLES, prices, 2)


def test_a_query_is_read() -> None:
    query = read_federation(
        file(
            relations=[
                {"id": "r", "reads": "w", "chain": [{"id": "f", "kind": "select", "selectivity": 0.5}]},
                {"id": "h", "reads": "houses"},
            ],
            joins=[
                {
                    "left": "r",
                    "right": "h",
                    "selectivity": 0.1,
                    "key": "house",
                    "spark": 3,
                    "duckdb": {"held": 4},
                    "engine": "duckdb",
                }
            ],
            movable=[
                {"operator": {"id": "a", "kind": "aggregate", "groups": 9}, "over": ["r"], "beyond": ["h"]}
            ],
            top=[{"id": "p", "kind": "project", "width": 1}],
        )
    )
    chain = (Operator("f", Kind.SELECT, selectivity=0.5),)
    edge = JoinEdge("r", "h", 0.1, "house", 3, InDuckDB(0, 4), Engine.DUCKDB)
    aggregate = Operator("a", Kind.AGGREGATE, groups=9)
    assert query == Query(
        STREAMS,
        WINDOWS,
        (Relation("r", "w", chain), Relation("h", "houses")),
        (edge,),
        (Operator("p", Kind.PROJECT, width=1),),
        (Movable(aggregate, frozenset({"r"}), frozenset({"h"})),),
        TABLES,
    )


CHAIN = [
    {
        "id": "f",
        "kind": "select",
        "inputs": ["w"],
        "selectivity": 0.2,
        "spark": 0.009,
        "duckdb": {"held": 5e-4},
    },
    {
        "id": "a",
        "kind": "aggregate",
        "inputs": ["f"],
        "groups": 10,
        "spark": 0.045,
        "duckdb": {"held": 2.5e-3},
    },
]
PRICES = {"transfer_in": 2.5e-4, "transfer_out": 0, "statement": 0}
"""u on Spark 0.9 each; in DuckDB the first takes 0.1 + 0.25, both 0.1 + 0.5."""


def test_the_answer_adds_up() -> None:
    answer = solve_federation(file(operators=CHAIN, prices=PRICES), Request())
    assert [operator["engine"] for operator in answer["operators"]] == ["duckdb", "duckdb"]
    (part,) = answer["parts"]
    assert part["u"] == pytest.approx(0.6)
    assert part["u"] == part["transfer_in"] + part["work"] + part["statement"] + part["transfer_out"]
    assert (answer["bottleneck"], answer["utilisation"]) == (part["u"], part["u"])
    assert answer["feasible"] is True
    assert answer["plans_examined"] <= 3 and answer["plans_examined_again"] == 0
    assert answer["seconds"] == answer["phase_one_seconds"] + answer["phase_two_seconds"]
    assert len(answer["losers"]) == 3
    assert json.loads(json.dumps(answer)) == answer


def test_options_reach_the_planner() -> None:
    problem = file(operators=CHAIN, prices=PRICES)
    on_spark = solve_federation(problem, Request(engine="spark", runners=1))
    assert [operator["engine"] for operator in on_spark["operators"]] == ["spark", "spark"]
    assert [loser["why"] for loser in on_spark["losers"]] == ["ruled out: only spark was asked for"]
    assert solve_federation(problem, Request(runners=0))["losers"] == []
    every = solve_federation(problem, Request(optimiser="Exhaustive"))
    assert every["planner"] == "exhaustive" and every["plans_examined"] == 4
    pieces = solve_federation(problem, Request(optimiser="paper", decompose=1))
    assert pieces["plans_examined"] == 2 + 2
    # 0.6 in DuckDB is over a limit of one core where everything is ten times as much.
    more = file(operators=CHAIN, prices=PRICES, streams=[{"id": "s", "rate": 200}, {"id": "t", "rate": 5}])
    assert solve_federation(more, Request())["plans_examined_again"] > 0
    dear = solve_federation(more, Request(ignore_feasibility=True))
    assert not dear["feasible"] and dear["plans_examined_again"] == 0


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request(decompose=0), "decompose must be at least 1, not 0"),
        (Request(runners=-1), "runners must be from 0 to 1000, not -1"),
        (Request(seed=3), "--seed is not an option of the planner federation"),
    ],
)
def test_wrong_options(request_: Request, says: str) -> None:
    from headrace.service.solve import PLANNERS

    with pytest.raises(UserError, match=says):
        check_request(request_, "federation", PLANNERS["federation"].options)


def test_numbers_beyond_all_measure_are_told() -> None:
    joins = [{"id": "j0", "kind": "join", "inputs": ["w", "w"], "selectivity": 1}]
    joins += [
        {"id": f"j{i}", "kind": "join", "inputs": [f"j{i - 1}", "w"], "selectivity": 1} for i in range(1, 40)
    ]
    with pytest.raises(UserError, match=r"operator j\d+ has more rows than can be counted"):
        solve_federation(file(operators=joins), Request())


def test_problems_are_written_as_they_are_read() -> None:
    rng = Random(41)
    for _ in range(40):
        plan = random_plan(rng, 8)
        again = read_federation(ProblemFile("p.json", json.dumps(problem_data(plan))))
        assert isinstance(again, Plan)
        first, second = dict(_costs(plan)), dict(_costs(again))
        assert first == second and again.operators[-1].name == plan.operators[-1].name
        query = random_query(rng, 5)
        if has_operators(query):
            assert read_federation(ProblemFile("p.json", json.dumps(problem_data(query)))) == query


def _costs(plan: Plan) -> Iterator[tuple[str, object]]:
    """What can be told of an operator without its place in the list."""
    for operator, cost in zip(plan.operators, operator_costs(plan), strict=True):
        entering = tuple(enter for _, enter in cost.inputs)
        yield operator.name, (operator.inputs, operator.engine, entering, replace(cost, inputs=()))


def test_a_cross_product_has_the_unit_costs_of_joins() -> None:
    relations = [{"id": "r", "reads": "w"}, {"id": "h", "reads": "v"}]
    costs = {"join": {"spark": 0.25, "duckdb": {"held": 0.5}}}
    query = read_federation(file(relations=relations, costs=costs))
    assert isinstance(query, Query) and query.cross == UnitCost(0.25, InDuckDB(0, 0.5))
    assert read_federation(ProblemFile("p.json", json.dumps(problem_data(query)))) == query
    answer = solve_federation(file(relations=relations, costs=costs), Request(engine="spark"))
    assert answer["utilisation"] == pytest.approx((100 + 5) * 0.25)
