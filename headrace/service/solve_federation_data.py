"""A federation problem in its public form: what `headrace solve federation` reads, written out in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.planners.federation.problem import (
        InDuckDB,
        JoinEdge,
        Movable,
        Operator,
        Plan,
        Prices,
        Query,
        Relation,
    )

Data = dict[str, Any]


def problem_data(problem: Plan | Query) -> Data:
    """Read again, it is the same problem."""
    from headrace.planners.federation.problem import Plan

    data: Data = {
        "streams": [{"id": stream.name, "rate": stream.rate} for stream in problem.streams],
        "windows": [
            {
                "id": window.name,
                "stream": window.stream,
                "range": window.range,
                "slide": window.slide,
                "unit": window.unit.value,
                "width": window.width,
            }
            for window in problem.windows
        ],
        "tables": [{"id": table.name, "rows": table.rows, "width": table.width} for table in problem.tables],
        "prices": _prices(problem.prices),
    }
    if problem.cores is not None:
        data["cores"] = problem.cores
    if isinstance(problem, Plan):
        return data | {"operators": [_operator(operator) for operator in problem.operators]}
    cross = {"spark": problem.cross.spark, "duckdb": _in_duckdb(problem.cross.duckdb)}
    return data | {
        "costs": {"join": cross},
        "relations": [_relation(relation) for relation in problem.relations],
        "joins": [_join(edge) for edge in problem.joins],
        "movable": [_movable(movable) for movable in problem.movable],
        "top": [_operator(operator) for operator in problem.top],
    }


def _operator(operator: Operator) -> Data:
    from headrace.planners.federation.problem import Kind

    data: Data = {"id": operator.name, "kind": operator.kind.value}
    if operator.inputs:
        data["inputs"] = list(operator.inputs)
    if operator.kind is Kind.SELECT:
        data["selectivity"] = operator.selectivity
    if operator.kind is Kind.JOIN:
        data |= {"left": operator.left, "right": operator.right}
    if operator.kind is Kind.AGGREGATE:
        data["groups"] = operator.groups
    data |= {"spark": list(operator.spark), "duckdb": [_in_duckdb(cost) for cost in operator.duckdb]}
    if operator.engine is not None:
        data["engine"] = operator.engine.value
    if operator.prices is not None:
        data["prices"] = _prices(operator.prices)
    maybe = {"width": operator.width, "rate": operator.rate, "size": operator.size}
    return data | {key: value for key, value in maybe.items() if value is not None}


def _relation(relation: Relation) -> Data:
    chain = [_operator(operator) for operator in relation.chain]
    return {"id": relation.name, "reads": relation.reads, "chain": chain}


def _join(edge: JoinEdge) -> Data:
    data: Data = {"left": edge.left, "right": edge.right, "selectivity": edge.selectivity}
    data |= {"spark": edge.spark, "duckdb": _in_duckdb(edge.duckdb)}
    maybe = {"key": edge.key, "engine": None if edge.engine is None else edge.engine.value}
    return data | {key: value for key, value in maybe.items() if value is not None}


def _movable(movable: Movable) -> Data:
    where = {"over": sorted(movable.over), "beyond": sorted(movable.beyond)}
    return {"operator": _operator(movable.operator), **where}


def _in_duckdb(cost: InDuckDB) -> Data:
    return {"arriving": cost.arriving, "held": cost.held}


def _prices(prices: Prices) -> Data:
    return {
        "transfer_in": prices.transfer_in,
        "transfer_out": prices.transfer_out,
        "statement": prices.statement,
    }
