"""Binding helpers of these tests, over the catalog of the golden cases."""

from __future__ import annotations

from headrace.catalog.model import Query
from headrace.plan.expr import Expr
from headrace.plan.logical import Filter, LogicalPlan, Project, nodes
from headrace.plan.text import format_plan
from headrace.sql.bind import bind_query
from tests.cases.catalog import STREAMS, TABLES


def bind(sql: str) -> LogicalPlan:
    return bind_query(Query(name="q", sql=sql), STREAMS, TABLES)


def plan_text(sql: str) -> str:
    return format_plan(bind(sql))


def value(sql: str, stream: str = "clicks") -> Expr:
    """The expression of `SELECT <sql> AS x FROM <stream>`."""
    plan = bind(f"SELECT {sql} AS x FROM {stream}")
    assert isinstance(plan, Project)
    return plan.items[0][1]


def condition(sql: str, stream: str = "clicks") -> Expr:
    """The predicate of `... WHERE <sql>`."""
    found = [n for n in nodes(bind(f"SELECT 1 AS x FROM {stream} WHERE {sql}")) if isinstance(n, Filter)]
    assert len(found) == 1
    return found[0].predicate
