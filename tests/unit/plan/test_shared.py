"""Trees refuse members that cannot share, figures agree with a walk along time, and the text is stable."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from headrace.errors import InternalError
from headrace.plan.logical import Aggregate, Filter, LogicalPlan, TableJoin, Window, WindowSpec
from headrace.plan.placed import TreeMember
from headrace.plan.shared import (
    NotShared,
    SharedPlan,
    Tree,
    format_rows,
    format_shared,
    format_tree,
    own_edge_rate,
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


def member(query: str, aggregate: Aggregate | None = None) -> TreeMember:
    found = aggregate or counted()
    return TreeMember(query, found, found)


def tree(*members: TreeMember, **changes: object) -> Tree:
    rate = Fraction(1, 10)
    made = Tree("local", (member("a"), member("b", counted(ODD))), rate, rate, 7.0, 9.0, 11.0)
    return replace(made, **({"members": members} if members else {}), **changes)  # type: ignore[arg-type]


def test_a_tree_knows_what_its_members_share() -> None:
    made = tree()
    assert made.queries == ("a", "b")
    assert (made.stream, made.shape.time, made.shape.rows) == ("readings", "ts", HOT)
    assert not any(made.rolled_up(one) for one in made.members)


def test_names_and_order_of_keys_do_not_matter() -> None:
    first = counted(keys=("k", "s"))
    opened = window(HOT)
    other = Aggregate(opened, columns(opened, "s", kay="k"), first.aggregates)
    assert (
        tree(member("a", first), member("b", other)).shape
        == tree(member("a", first), member("c", first)).shape
    )


def test_filters_and_keys_may_differ() -> None:
    """What all have in common stays with the tree, the rest with the member."""
    made = tree(member("a"), member("b", counted(rows=READINGS, keys=("k", "s"))))
    first, second = made.members
    assert made.shape.rows == READINGS
    assert (made.shape.where(first), made.shape.where(second)) == ((HOT.predicate,), ())
    assert (made.rolled_up(first), made.rolled_up(second)) == (True, False)
    assert made.shape.spread == (col(READINGS, "k"),)


WATERMARK = replace(READINGS, watermark=9 * SECOND)


def test_other_rows_are_refused() -> None:
    with pytest.raises(InternalError, match="a, b do not read the same rows"):
        tree(member("a"), member("b", counted(rows=Filter(WATERMARK, HOT.predicate))))


_LOW = {"edge_rate": Fraction(1, 20), "edge_rate_low": Fraction(1, 20)}
_HIGH = {"edge_rate": Fraction(21, 100), "edge_rate_low": Fraction(21, 100)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"members": ()}, "wrong members"),
        ({"members": (member("a"),) * 2}, "wrong members"),
        ({"alone": "because"}, "a reason is given exactly"),
        ({"members": (member("a"),)}, "a reason is given exactly"),
        (_LOW, "too few"),
        (_HIGH, "too many"),
        ({"edge_rate_low": Fraction(1, 5)}, "too few"),
        ({"cost": 0.0}, "costs of .0.0"),
        ({"cost": float("nan")}, "costs of .nan"),
        ({"unshared_cost": float("inf")}, "costs of .7.0, inf"),
        ({"plain_cost": -1.0}, "costs of .7.0, 9.0, -1.0"),
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
    if isinstance(aggregate.input, Window):
        with pytest.raises(InternalError, match="cannot be in a tree"):
            tree(member("q", aggregate), alone="x")


def test_every_query_stands_in_one_place() -> None:
    with pytest.raises(InternalError, match="stands in two places"):
        SharedPlan((tree(),), (NotShared("b", "x"),))
    with pytest.raises(InternalError, match="without a reason"):
        SharedPlan((), (NotShared("b", ""),))
    plan = SharedPlan((tree(),), (NotShared("c", "x"),))
    assert (plan.cost, plan.unshared_cost, plan.plain_cost) == (7.0, 9.0, 11.0)
    assert plan.tree_of("b") == tree() and plan.tree_of("c") is None


@pytest.mark.parametrize(("length", "slide"), [(60, 10), (50, 20), (7, 3), (5, 5), (11, 4), (100, 30)])
def test_figures_of_one_query_by_walking_along_time(length: int, slide: int) -> None:
    horizon = 1000 * slide
    opened = range(0, horizon, slide)
    edges = sorted({t for start in opened for t in (start, start + length) if t < horizon})
    spec = WindowSpec(length * SECOND, slide * SECOND)
    middle = [e for e in edges if 400 * slide <= e < 500 * slide]
    assert own_edge_rate(spec) == Fraction(len(middle), 100 * slide)


def test_rows_in_short() -> None:
    assert format_rows(HOT) == "readings where v > 2.5"
    joined = TableJoin(HOT, PLUGS, ((col(READINGS, "k"), col(PLUGS, "pk")),), outer=True)
    assert format_rows(joined) == "readings where v > 2.5 left join plugs"
    assert isinstance(joined.schema, Schema)


TEXT = """\
t0 := Tree on local: readings where v > 2.5 by (k)  edges 0.1/s, 7 cores instead of 9
  a: range 60s, slide 10s give (sum(v))
  b: range 50s, slide 20s give (sum(v))
t1 := Tree on edge: readings by ()  edges at most 0.1/s, 3 cores, alone: no partner
  c: range 60s, slide 10s give (max(v))
d not shared: it has no window aggregate"""


def test_the_text_is_stable() -> None:
    alone = Tree(
        "edge",
        (member("c", counted(rows=READINGS, keys=(), function="max")),),
        Fraction(1, 10),
        Fraction(1, 11),
        3.0,
        3.0,
        4.0,
        "no partner",
    )
    plan = SharedPlan((tree(), alone), (NotShared("d", "it has no window aggregate"),))
    assert format_shared(plan) == TEXT


MIXED = """\
x := Tree on local: readings by (k, s), spread by (k)  edges 0.1/s, 7 cores instead of 9
  a: range 60s, slide 10s give (sum(v)) where v > 2.5 rolled up to (k)
  b: range 60s, slide 10s give (sum(v))"""


def test_the_text_tells_filters_and_keys_of_members() -> None:
    made = tree(member("a"), member("b", counted(rows=READINGS, keys=("k", "s"))))
    assert format_tree("x", made) == MIXED
    total = counted(rows=READINGS, keys=())
    assert ", all in one bucket  edges" in format_tree("x", tree(member("a"), member("b", total)))
