"""The part of a query that can be spread over sites: its inner joins of streams, taken apart.

Holds when: all streams of the query meet in one tree of interval joins, with filters, projections and static
tables only below each stream, and no condition is about more than two streams. Then

    query = rest(Project(items, Filter(parts, leaf0 x leaf1 x ...)))     within the bounds in time

and the joins may be done in any order at any site: inner joins do not care for order, expressions are total,
and bounds that follow from others hold in every row of the answer. Fails otherwise (joins of windows, a
condition over three streams): such a query stays whole, and its streams are brought to its site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.plan.bounds import Bounds, TimeBound, close, join_bounds
from headrace.plan.expr import Call, ColumnRef, Expr, columns_of, conjuncts, substitute
from headrace.plan.logical import (
    Aggregate,
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    StreamScan,
    TableJoin,
    TableScan,
    Window,
    WindowJoin,
    nodes,
)
from headrace.plan.text import format_expr

Items = tuple[tuple[str, Expr], ...]
Leaf = StreamScan | TableJoin
ONE_STREAM = "it reads one stream"
SPLIT = "it is split between engines on one site"
JOINS_WINDOWS = "it joins windows with each other, and only joins of streams are spread over sites"
TABLE_BETWEEN = "it joins a static table between two joins of streams"
THREE_STREAMS = "one of its conditions is about more than two streams"
CONSTANT = "one of its conditions is about no stream"


def name_of(leaf: int | str, column: str) -> str:
    """A column of a leaf, in what is above it."""
    return f"{leaf}/{column}"


def leaf_and_column(name: str) -> tuple[str, str]:
    """The inverse of `name_of`."""
    leaf, _, column = name.partition("/")
    return leaf, column


@dataclass(frozen=True, slots=True)
class JoinPart:
    """The joins of a query. Columns of leaf i are called `i/column`."""

    plan: LogicalPlan
    """The whole query."""
    node: IntervalJoin
    """The topmost join in it."""
    leaves: tuple[Leaf, ...]
    parts: tuple[Expr, ...]
    """Conditions, of the joins and of the filters below them."""
    bounds: Bounds
    """All that follows about the event times of the leaves."""
    stated: frozenset[frozenset[str]]
    """Pairs of event times that the query itself bounds."""
    items: Items
    """The columns of `node`."""

    def conditions(self, *leaves: int) -> tuple[Expr, ...]:
        """Those about exactly these leaves, in the order of their texts."""
        wanted = {str(leaf) for leaf in leaves}
        found = {part for part in self.parts if leaves_of(part) == wanted}
        return tuple(sorted(found, key=format_expr))

    def time(self, leaf: int) -> str:
        return name_of(leaf, self.leaves[leaf].times[0])


def leaves_of(expr: Expr) -> frozenset[str]:
    return frozenset(leaf_and_column(name)[0] for name in columns_of(expr))


class _Refused(Exception):
    """Why a query stays whole."""


def join_part(plan: LogicalPlan) -> JoinPart | str:
    """The joins of a query, or why it stays whole."""
    try:
        node = _topmost(plan)
        found = _peel(node, iter(range(1 << 30)))
    except _Refused as refused:
        return str(refused)
    for part in found.parts:
        if not 1 <= len(leaves_of(part)) <= 2:
            return THREE_STREAMS if leaves_of(part) else CONSTANT
    stated = frozenset(frozenset((bound.earlier, bound.later)) for bound in found.bounds)
    bounds = close(join_bounds({}, {}, found.bounds))
    return JoinPart(plan, node, found.leaves, found.parts, bounds, stated, found.items)


def _topmost(plan: LogicalPlan) -> IntervalJoin:
    while True:
        match plan:
            case IntervalJoin():
                return plan
            case WindowJoin():
                raise _Refused(JOINS_WINDOWS)
            case Filter() | Project() | Window() | Aggregate() | TableJoin():
                plan = plan.input
            case StreamScan() | TableScan():
                raise _Refused(ONE_STREAM)


@dataclass(frozen=True, slots=True)
class _Peeled:
    leaves: tuple[Leaf, ...]
    parts: tuple[Expr, ...]
    bounds: tuple[TimeBound, ...]
    items: Items

    def over(self, expr: Expr) -> Expr:
        """An expression over the columns of the plan, over those of the leaves."""
        return substitute(expr, dict(self.items))

    def time(self, name: str) -> str:
        found = dict(self.items)[name]
        # A bound is only ever about a column that was passed through: Node.times has no others.
        assert isinstance(found, ColumnRef)
        return found.name


def _peel(plan: LogicalPlan, numbers: Iterator[int]) -> _Peeled:
    match plan:
        case IntervalJoin():
            return _peel_join(plan, numbers)
        case Filter():
            below = _peel(plan.input, numbers)
            own = tuple(below.over(part) for part in conjuncts(plan.predicate))
            return _Peeled(below.leaves, (*below.parts, *own), below.bounds, below.items)
        case Project():
            below = _peel(plan.input, numbers)
            items = tuple((name, below.over(expr)) for name, expr in plan.items)
            return _Peeled(below.leaves, below.parts, below.bounds, items)
        case TableJoin() if sum(isinstance(node, StreamScan) for node in nodes(plan)) > 1:
            raise _Refused(TABLE_BETWEEN)
        case StreamScan() | TableJoin():
            number = next(numbers)
            items = tuple((c.name, ColumnRef(name_of(number, c.name), c.type)) for c in plan.schema)
            return _Peeled((plan,), (), (), items)
    raise _Refused(JOINS_WINDOWS)


def _peel_join(node: IntervalJoin, numbers: Iterator[int]) -> _Peeled:
    left, right = _peel(node.left, numbers), _peel(node.right, numbers)
    both = _Peeled(
        (*left.leaves, *right.leaves), (*left.parts, *right.parts), (), (*left.items, *right.items)
    )
    on = tuple(_equal(left.over(mine), right.over(theirs)) for mine, theirs in node.on)
    own = tuple(both.over(part) for part in conjuncts(node.residual))
    bounds = tuple(
        TimeBound(both.time(bound.earlier), both.time(bound.later), bound.at_most)
        for bound in node.time_bounds
    )
    return _Peeled(both.leaves, (*both.parts, *on, *own), (*left.bounds, *right.bounds, *bounds), both.items)


def _equal(one: Expr, other: Expr) -> Call:
    """`one = other`, written one way."""
    first, second = sorted((one, other), key=format_expr)
    return Call("=", (first, second))
