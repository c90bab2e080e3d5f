"""The joins of windows of a query, taken apart, and put together in another order.

Holds when: what is joined are results of windows (an aggregate, with filters, projections and static tables
on it), at least three of them, with only filters and projections between the joins, and every condition is
about one or two of them. Then

    query = rest(Project(items, Filter(conditions, input0 x input1 x ...)))     for windows that end together

and the joins may be made in any order and shape: inner joins do not care for order, expressions are total,
and that windows end together is said of all of them. Two things keep the answer what it is:
- The window of a joined row is that of its left side, so the first input stays the leftmost one.
- Equalities are closed: of a.k = b.k and a.k = c.k follows b.k = c.k, for expressions of one type. So b and c
  can be joined first, by a key. Of all equalities between two sides that say the same, one is checked.

Fails otherwise, and the query keeps its order. Rows of windows that are joined before they are aggregated
stay where they are because of the planner: what it believes of such a join (Eq. 2) depends on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from headrace.plan.check import check_plan
from headrace.plan.expr import Call, ColumnRef, Expr, conjunction, transform
from headrace.plan.logical import (
    Aggregate,
    Filter,
    LogicalPlan,
    Project,
    TableJoin,
    WindowJoin,
)
from headrace.plan.text import format_expr
from headrace.service.placing_part import (
    CONSTANT,
    Items,
    Peeled,
    as_pair,
    leaf_and_column,
    leaves_of,
    name_of,
    peel,
    replaced,
)

FEWEST = 3
"""Inputs: two can be joined in one order only."""
MOST = 10
"""Some 30,000 partial orders, which take a second."""
TOO_FEW = "fewer than three results of windows are joined"
TOO_MANY = f"more than {MOST} inputs"
NOT_RESULTS = "an input of its joins is rows of windows, not results"
THREE_INPUTS = "one of its conditions is about more than two inputs"
HIDES_WINDOW = "the columns of its window are not those of its first input"

Order = int | tuple["Order", "Order"]
"""An input by its number, or what is joined with what."""
Values = Callable[[Expr], float]
"""How many different values an expression over the inputs has; smaller is checked first."""


@dataclass(frozen=True, slots=True)
class Joins:
    """Columns of input i are called `i/column` in conditions and items."""

    plan: LogicalPlan
    """The whole query."""
    node: WindowJoin
    """The topmost of its joins."""
    inputs: tuple[LogicalPlan, ...]
    same: tuple[tuple[Expr, ...], ...]
    """Expressions that are equal in every row of the answer, each over one input."""
    conditions: tuple[Expr, ...]
    """All others."""
    items: Items
    """The columns of `node`."""
    written: Order

    @property
    def names(self) -> tuple[str, ...]:
        """What to call the inputs: by the alias that their columns have."""
        return tuple(_alias(plan) or f"input {i + 1}" for i, plan in enumerate(self.inputs))


def joins_of(plan: LogicalPlan) -> Joins | str:
    """The joins of a query that can be made in another order, or why they cannot."""
    node = _topmost(plan)
    if node is None:
        return TOO_FEW
    found = peel(node, count(), _is_input)
    if len(found.leaves) < FEWEST:
        return TOO_FEW
    if len(found.leaves) > MOST:
        return TOO_MANY
    if not all(map(_is_result, found.leaves)):
        return NOT_RESULTS
    for part in found.parts:
        if not 1 <= len(leaves_of(part)) <= 2:
            return THREE_INPUTS if leaves_of(part) else CONSTANT
    same, conditions = _closed(found)
    joins = Joins(plan, node, found.leaves, same, conditions, found.items, _written(node, count()))
    return joins if _put_back(joins).window == node.window else HIDES_WINDOW


def in_order(joins: Joins, order: Order, values: Values) -> LogicalPlan:
    """The query with its joins in that order."""
    whole = replaced(joins.plan, joins.node, _put_back(joins, order, values))
    check_plan(whole, schema=joins.plan.schema, blame="the order of joins")
    return whole


def input_plan(joins: Joins, number: int) -> LogicalPlan:
    """What is joined, with the conditions that are about it alone."""
    return _Building(joins, lambda _: 1.0, _renaming(joins)).visit(number)


def order_text(order: Order, names: Sequence[str]) -> str:
    """For people: (a x b) x c."""

    def text(one: Order) -> str:
        return names[one] if isinstance(one, int) else f"({text(one[0])} x {text(one[1])})"

    return text(order) if isinstance(order, int) else text(order)[1:-1]


def numbers_in(order: Order) -> frozenset[int]:
    return frozenset({order}) if isinstance(order, int) else numbers_in(order[0]) | numbers_in(order[1])


# -- apart ------------------------------------------------------------------------------------------


def _topmost(plan: LogicalPlan) -> WindowJoin | None:
    while not isinstance(plan, WindowJoin):
        if not isinstance(plan, Filter | Project | Aggregate | TableJoin):
            return None
        plan = plan.input
    return plan


def _is_input(plan: LogicalPlan) -> bool:
    """A filter or a projection is between joins only where there is a join below it."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return not isinstance(plan, WindowJoin)


def _is_result(plan: LogicalPlan) -> bool:
    while isinstance(plan, Filter | Project | TableJoin):
        plan = plan.input
    return isinstance(plan, Aggregate)


def _written(plan: LogicalPlan, numbers: Iterator[int]) -> Order:
    if _is_input(plan):
        return next(numbers)
    if isinstance(plan, WindowJoin):
        left = _written(plan.left, numbers)
        return left, _written(plan.right, numbers)
    return _written(plan.inputs[0], numbers)


def _closed(found: Peeled) -> tuple[tuple[tuple[Expr, ...], ...], tuple[Expr, ...]]:
    """What is equal to what, and the conditions that say something else."""
    groups: list[dict[Expr, None]] = []
    rest: list[Expr] = []
    for part in dict.fromkeys(found.parts):
        pair = _equality(part)
        if pair is None:
            rest.append(part)
            continue
        touched = [group for group in groups if group.keys() & set(pair)]
        merged = dict.fromkeys((*(e for group in touched for e in group), *pair))
        groups = [group for group in groups if group not in touched] + [merged]
    return tuple(tuple(group) for group in groups), tuple(rest)


def _equality(part: Expr) -> tuple[Expr, Expr] | None:
    """Two expressions of one type, over one input each, that are equal."""
    first = leaves_of(part.args[0]) if isinstance(part, Call) and part.args else frozenset[str]()
    pair = as_pair(part, first)
    return pair if pair is not None and pair[0].type == pair[1].type else None


def _alias(plan: LogicalPlan) -> str:
    found = {name.partition(".")[0] for name in plan.schema.names if "." in name}
    whole = len(found) == 1 and all("." in name for name in plan.schema.names)
    return found.pop() if whole else ""


# -- together ---------------------------------------------------------------------------------------


def _put_back(joins: Joins, order: Order | None = None, values: Values = lambda _: 1.0) -> LogicalPlan:
    building = _Building(joins, values, _renaming(joins))
    joined = building.visit(joins.written if order is None else order)
    return Project(joined, tuple((name, building.renamed(expr)) for name, expr in joins.items))


def _renaming(joins: Joins) -> bool:
    """Whether columns of two inputs have one name."""
    names = [name for plan in joins.inputs for name in plan.schema.names]
    return len(set(names)) < len(names)


@dataclass(frozen=True, slots=True)
class _Building:
    joins: Joins
    values: Values
    renames: bool

    def visit(self, order: Order) -> LogicalPlan:
        if isinstance(order, int):
            return self._input(order)
        left, right = sorted(order, key=lambda side: min(numbers_in(side)))
        return self._joined(left, right)

    def renamed(self, expr: Expr) -> Expr:
        """An expression over the columns of the inputs as they are called below the joins."""
        if self.renames:
            return expr

        def own(one: Expr) -> Expr:
            return ColumnRef(leaf_and_column(one.name)[1], one.type) if isinstance(one, ColumnRef) else one

        return transform(expr, own)

    def _input(self, number: int) -> LogicalPlan:
        plan = self.joins.inputs[number]
        if self.renames:
            items = ((name_of(number, c.name), ColumnRef(c.name, c.type)) for c in plan.schema)
            plan = Project(plan, tuple(items))
        own = [part for part in self.joins.conditions if leaves_of(part) == {str(number)}]
        for group in self.joins.same:
            # A join checks one of them.
            mine = [e for e in group if leaves_of(e) == {str(number)}]
            own += [Call("=", (mine[0], other)) for other in mine[1:]]
        return Filter(plan, conjunction(tuple(map(self.renamed, own)))) if own else plan

    def _joined(self, left: Order, right: Order) -> WindowJoin:
        mine, theirs = ({str(n) for n in numbers_in(side)} for side in (left, right))
        on: list[tuple[Expr, Expr]] = []
        rest: list[Expr] = []
        for group in self.joins.same:
            sides = [[e for e in group if leaves_of(e) <= side] for side in (mine, theirs)]
            if all(sides):
                on.append((self._first(sides[0]), self._first(sides[1])))
        for part in self.joins.conditions:
            about = leaves_of(part)
            if about <= mine | theirs and about & mine and about & theirs:
                pair = as_pair(part, frozenset(mine))
                on, rest = (on, [*rest, part]) if pair is None else ([*on, pair], rest)
        return WindowJoin(
            self.visit(left),
            self.visit(right),
            tuple((self.renamed(a), self.renamed(b)) for a, b in on),
            conjunction(tuple(map(self.renamed, rest))),
        )

    def _first(self, same: Sequence[Expr]) -> Expr:
        """Of what is equal on one side, the one with the fewest values: a row has one of those."""
        return min(same, key=lambda expr: (self.values(expr), format_expr(expr)))
