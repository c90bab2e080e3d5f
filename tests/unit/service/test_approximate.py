from __future__ import annotations

from headrace.plan.expr import AggregateCall, Call, ColumnRef, Literal
from headrace.plan.logical import Aggregate, Project, Window, WindowSpec
from headrace.plan.types import DataType
from headrace.service.approximate import approximate_columns
from tests.unit.service.sample import scan

K = ColumnRef("k", DataType.INT)


def _inner() -> Aggregate:
    window = Window(scan(), "ts", WindowSpec(60_000_000, 60_000_000))
    calls = (("d", AggregateCall("approx_count_distinct", K)), ("n", AggregateCall("count", None)))
    return Aggregate(window, (("k", K),), calls)


def test_the_count_itself() -> None:
    assert approximate_columns(_inner()) == {"d"}


def test_through_renaming_and_arithmetic() -> None:
    inner = _inner()
    d = ColumnRef("d", inner.schema["d"].type)
    items = (
        ("other", d),
        ("more", Call("+", (d, Literal(1, DataType.BIGINT)))),
        ("d", ColumnRef("n", inner.schema["n"].type)),
    )
    assert approximate_columns(Project(inner, items)) == {"other", "more"}


def test_an_aggregate_of_it() -> None:
    inner = _inner()
    d = ColumnRef("d", inner.schema["d"].type)
    n = ColumnRef("n", inner.schema["n"].type)
    outer = Aggregate(inner, (), (("top", AggregateCall("max", d)), ("sum", AggregateCall("sum", n))))
    assert approximate_columns(outer) == {"top"}
