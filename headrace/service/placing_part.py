"""The part of a query that can be spread over sites: its inner joins of streams, taken apart.

Holds when: all streams of the query meet in one tree of interval joins, with filters, projections and static
tables only below each stream, and no condition is about more than two streams. Then

    query = rest(Project(items, Filter(parts, leaf0 x leaf1 x ...)))     within the bounds in time

and the joins may be done in any order at any site: inner joins do not care for order, expressions are total,
and bounds that follow from others hold in every row of the answer. Fails otherwise (joins of windows, a
condition over three streams): such a query stays whole, and its streams are brought to its site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.plan.bounds import Bounds, TimeBound, close, join_bounds
from headrace.plan.expr import Call, ColumnRef, Expr, columns_of, conjuncts, substitute
from headrace.plan.federated import FederatedJob
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
from headrace.rewrite.tree import with_inputs

Items = tuple[tuple[str, Expr], ...]
Leaf = StreamScan | TableJoin
ONE_STREAM = "it reads one stream"
SPLIT = "it is split between engines on one site"
WATCHED = "it may be split between engines on one site while it runs"
JOINS_WINDOWS = "it joins windows with each other, and only joins of streams are spread over sites"
TABLE_BETWEEN = "it joins a static table between two joins of streams"
THREE_STREAMS = "one of its conditions is about more than two streams"
CONSTANT = "one of its conditions is about no stream"


def staying_together(job: FederatedJob) -> str:
    """Why the queries of a split job are not spread over sites."""
    return WATCHED if job.on_spark else SPLIT


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


class Refused(Exception):
    """Why joins are not taken apart."""


def join_part(plan: LogicalPlan) -> JoinPart | str:
    """The joins of a query, or why it stays whole."""
    try:
        node = _topmost(plan)
        found = peel(node, iter(range(1 << 30)), _is_leaf)
    except Refused as refused:
        return str(refused)
    for part in found.parts:
        if not 1 <= len(leaves_of(part)) <= 2:
            return THREE_STREAMS if leaves_of(part) else CONSTANT
    stated = frozenset(frozenset((bound.earlier, bound.later)) for bound in found.bounds)
    bounds = close(join_bounds({}, {}, found.bounds))
    leaves = tuple(leaf for leaf in found.leaves if isinstance(leaf, Leaf))
    return JoinPart(plan, node, leaves, found.parts, bounds, stated, found.items)


def _topmost(plan: LogicalPlan) -> IntervalJoin:
    while True:
        match plan:
            case IntervalJoin():
                return plan
            case WindowJoin():
                raise Refused(JOINS_WINDOWS)
            case Filter() | Project() | Window() | Aggregate() | TableJoin():
                plan = plan.input
            case StreamScan() | TableScan():
                raise Refused(ONE_STREAM)


def _is_leaf(plan: LogicalPlan) -> bool:
    """Raises Refused for a table that is joined with several streams."""
    if isinstance(plan, TableJoin) and sum(isinstance(node, StreamScan) for node in nodes(plan)) > 1:
        raise Refused(TABLE_BETWEEN)
    return isinstance(plan, StreamScan | TableJoin)


@dataclass(frozen=True, slots=True)
class Peeled:
    """Joins taken apart: what is joined, on which conditions, within which bounds, and what comes out."""

    leaves: tuple[LogicalPlan, ...]
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


def peel(plan: LogicalPlan, numbers: Iterator[int], is_leaf: Callable[[LogicalPlan], bool]) -> Peeled:
    """Joins, and the filters and projections between them, down to what `is_leaf` says is joined. Raises
    Refused where something else is in between."""
    if is_leaf(plan):
        number = next(numbers)
        own = tuple((c.name, ColumnRef(name_of(number, c.name), c.type)) for c in plan.schema)
        return Peeled((plan,), (), (), own)
    match plan:
        case IntervalJoin() | WindowJoin():
            left, right = (peel(side, numbers, is_leaf) for side in plan.inputs)
            return _peel_join(plan, left, right)
        case Filter():
            below = peel(plan.input, numbers, is_leaf)
            parts = tuple(below.over(part) for part in conjuncts(plan.predicate))
            return Peeled(below.leaves, (*below.parts, *parts), below.bounds, below.items)
        case Project():
            below = peel(plan.input, numbers, is_leaf)
            items = tuple((name, below.over(expr)) for name, expr in plan.items)
            return Peeled(below.leaves, below.parts, below.bounds, items)
    raise Refused(JOINS_WINDOWS)


def _peel_join(node: IntervalJoin | WindowJoin, left: Peeled, right: Peeled) -> Peeled:
    both = Peeled((*left.leaves, *right.leaves), (*left.parts, *right.parts), (), (*left.items, *right.items))
    on = tuple(_equal(left.over(mine), right.over(theirs)) for mine, theirs in node.on)
    own = tuple(both.over(part) for part in conjuncts(node.residual))
    bounds = tuple(
        TimeBound(both.time(bound.earlier), both.time(bound.later), bound.at_most)
        for bound in (node.time_bounds if isinstance(node, IntervalJoin) else ())
    )
    return Peeled(both.leaves, (*both.parts, *on, *own), (*left.bounds, *right.bounds, *bounds), both.items)


def as_pair(part: Expr, left: frozenset[str]) -> tuple[Expr, Expr] | None:
    """An equality of something on the left with something on the right, that way round."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    first, second = part.args
    sides = [leaves_of(first), leaves_of(second)]
    if not all(sides) or sides[0] & sides[1] or any(len(side) > 1 for side in sides):
        return None
    return (first, second) if sides[0] <= left else (second, first)


def replaced(plan: LogicalPlan, node: LogicalPlan, new: LogicalPlan) -> LogicalPlan:
    """The plan with another node in place of this one."""
    if plan is node:
        return new
    return with_inputs(plan, tuple(replaced(i, node, new) for i in plan.inputs))


def _equal(one: Expr, other: Expr) -> Call:
    """`one = other`, written one way."""
    first, second = sorted((one, other), key=format_expr)
    return Call("=", (first, second))
