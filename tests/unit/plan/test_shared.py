"""Trees refuse members that cannot share, figures agree with a walk along time, and the text is stable."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from headrace.errors import InternalError
from headrace.plan.logical import Aggregate, Filter, LogicalPlan, TableJoin, WindowSpec
from headrace.plan.shared import (
    Member,
    NotShared,
    SharedPlan,
    Tree,
    format_rows,
    format_shared,
    own_edge_rate,
    own_operations,
    unmergeable,
)
from headrace.plan.types import Schema
from tests.unit.plan.building import (
    PLUGS,
    READINGS,
    SECOND,
    agg,
    call,
    col,
    columns,
    interval_join,
    lit,
    window,
)

HOT = Filter(READINGS, call(">", col(READINGS, "v"), lit(2.5)))
TEN = WindowSpec(60 * SECOND, 10 * SECOND)
ODD = WindowSpec(50 * SECOND, 20 * SECOND)


def counted(
    spec: WindowSpec = TEN, rows: LogicalPlan = HOT, keys: tuple[str, ...] = ("k",), function: str = "sum"
) -> Aggregate:
    opened = window(rows, spec)
    return Aggregate(opened, columns(opened, *keys), (("x", agg(function, col(opened, "v"))),))


def tree(*members: Member, **changes: object) -> Tree:
    rate = Fraction(1, 10)
    made = Tree("local", (Member("a", counted()), Member("b", counted(ODD))), rate, rate, 7.0, 9.0)
    return replace(made, **({"members": members} if members else {}), **changes)  # type: ignore[arg-type]


def test_a_tree_knows_what_its_members_share() -> None:
    made = tree()
    assert made.queries == ("a", "b")
    assert (made.rows.stream, made.rows.time, made.rows.input) == ("readings", "ts", HOT)
    assert [member.spec for member in made.members] == [TEN, ODD]


def test_names_and_order_of_keys_do_not_matter() -> None:
    first = counted(keys=("k", "s"))
    opened = window(HOT)
    other = Aggregate(opened, columns(opened, "s", kay="k"), first.aggregates)
    assert Member("a", first).rows == Member("b", other).rows


WATERMARK = replace(READINGS, watermark=9 * SECOND)


@pytest.mark.parametrize(
    "other",
    [
        counted(rows=READINGS),
        counted(rows=Filter(READINGS, call(">", col(READINGS, "v"), lit(3.5)))),
        counted(rows=Filter(WATERMARK, HOT.predicate)),
        counted(keys=()),
        counted(keys=("k", "s")),
    ],
    ids=["no filter", "another filter", "another watermark", "no keys", "more keys"],
)
def test_members_that_differ_are_refused(other: Aggregate) -> None:
    with pytest.raises(InternalError, match="a, b do not read the same rows by the same keys"):
        tree(Member("a", counted()), Member("b", other))


_LOW = {"edge_rate": Fraction(1, 20), "edge_rate_low": Fraction(1, 20)}
_HIGH = {"edge_rate": Fraction(21, 100), "edge_rate_low": Fraction(21, 100)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"members": ()}, "wrong members"),
        ({"members": (Member("a", counted()),) * 2}, "wrong members"),
        ({"alone": "because"}, "a reason is given exactly"),
        ({"members": (Member("a", counted()),)}, "a reason is given exactly"),
        (_LOW, "too few"),
        (_HIGH, "too many"),
        ({"edge_rate_low": Fraction(1, 5)}, "too few"),
        ({"cost": 0.0}, "a cost of 0"),
        ({"cost": float("nan")}, "a cost of nan"),
        ({"unshared_cost": float("inf")}, "inf unshared"),
    ],
)
def test_wrong_trees_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(InternalError, match=says):
        replace(tree(), **changes)  # type: ignore[arg-type]


def _joined_rows() -> Aggregate:
    joined = window(interval_join())
    return Aggregate(joined, columns(joined, "k"), (("n", agg("count")),))


def _late_filter() -> Aggregate:
    opened = window(READINGS)
    kept = Filter(opened, call(">", col(opened, "window_end"), col(opened, "ts")))
    return Aggregate(kept, columns(kept, "k"), (("n", agg("count")),))


def _ends() -> Aggregate:
    opened = window(READINGS)
    return Aggregate(opened, columns(opened, "k"), (("e", agg("max", col(opened, "window_end"))),))


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (counted(function="median"), "median(v) cannot be put together from partial results"),
        (_joined_rows(), "its window is over a join of streams, whose rate is not known"),
        (_late_filter(), "a Filter stands between its window and its aggregate"),
        (_ends(), "window_end needs the ends of the window, which a fragment does not have"),
    ],
)
def test_aggregates_that_can_be_in_no_tree(aggregate: Aggregate, says: str) -> None:
    assert unmergeable(aggregate) == says
    with pytest.raises(InternalError, match="cannot be in a tree"):
        Member("q", aggregate)


def test_every_query_stands_in_one_place() -> None:
    with pytest.raises(InternalError, match="stands in two places"):
        SharedPlan((tree(),), (NotShared("b", "x"),))
    with pytest.raises(InternalError, match="without a reason"):
        SharedPlan((), (NotShared("b", ""),))
    plan = SharedPlan((tree(),), (NotShared("c", "x"),))
    assert (plan.cost, plan.unshared_cost) == (7.0, 9.0)
    assert plan.tree_of("b") == tree() and plan.tree_of("c") is None


@pytest.mark.parametrize(("length", "slide"), [(60, 10), (50, 20), (7, 3), (5, 5), (11, 4), (100, 30)])
def test_figures_of_one_query_by_walking_along_time(length: int, slide: int) -> None:
    horizon = 1000 * slide
    opened = range(0, horizon, slide)
    edges = sorted({t for start in opened for t in (start, start + length) if t < horizon})
    spec = WindowSpec(length * SECOND, slide * SECOND)
    inside = [sum(1 for e in edges if start <= e < start + length) for start in (slide * 400, slide * 401)]
    assert inside[0] == inside[1]
    assert own_operations(spec) == Fraction(inside[0], slide)
    middle = [e for e in edges if 400 * slide <= e < 500 * slide]
    assert own_edge_rate(spec) == Fraction(len(middle), 100 * slide)


def test_rows_in_short() -> None:
    assert format_rows(HOT) == "readings where v > 2.5"
    joined = TableJoin(HOT, PLUGS, ((col(READINGS, "k"), col(PLUGS, "pk")),), outer=True)
    assert format_rows(joined) == "readings where v > 2.5 left join plugs"
    assert isinstance(joined.schema, Schema)


TEXT = """\
t0 := Tree on local: readings where v > 2.5 by (k)  edges 0.1/s, cost 7/s instead of 9/s
  a: range 60s, slide 10s give (sum(v))
  b: range 50s, slide 20s give (sum(v))
t1 := Tree on edge: readings by ()  edges at most 0.1/s, cost 3/s, alone: no partner
  c: range 60s, slide 10s give (max(v))
d not shared: it has no window aggregate"""


def test_the_text_is_stable() -> None:
    alone = Tree(
        "edge",
        (Member("c", counted(rows=READINGS, keys=(), function="max")),),
        Fraction(1, 10),
        Fraction(1, 11),
        3.0,
        3.0,
        "no partner",
    )
    plan = SharedPlan((tree(), alone), (NotShared("d", "it has no window aggregate"),))
    assert format_shared(plan) == TEXT
