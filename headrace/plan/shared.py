"""SharedPlan: which window aggregates are computed together, and which alone, with the reason.

A tree answers several sliding windows from one pass over a stream and one set of fragments. That holds when
all its members read the same rows (same stream and watermark, same filters, projections and joins below the
window), group them by the same keys, and every aggregate can be merged from partial results. Otherwise it
fails: a fragment of other rows, or of other groups, is of no use to the query, and a median cannot be put
together from medians. A Tree that breaks this cannot be made.

Rates and costs are per second: an edge closes one fragment, a cost is a number of operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from headrace.errors import InternalError
from headrace.plan.expr import AggregateCall, Expr, columns_of
from headrace.plan.functions import MERGEABLE
from headrace.plan.logical import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    LogicalPlan,
    Project,
    StreamScan,
    TableJoin,
    Window,
    WindowSpec,
    nodes,
    streams_of,
    tables_of,
)
from headrace.plan.text import format_aggregate, format_expr

MICROS = 1_000_000
_ENDS = frozenset({WINDOW_START, WINDOW_END})


@dataclass(frozen=True, slots=True)
class Rows:
    """What the members of a tree have in common: the rows below the window, and how they are grouped. The
    order and the names of the keys do not matter to a fragment, so they are left out."""

    input: LogicalPlan
    time: str
    keys: tuple[Expr, ...]

    @property
    def stream(self) -> str:
        return streams_of(self.input)[0]


@dataclass(frozen=True, slots=True)
class Member:
    """A query's window aggregate. What the query does above it stays with the query."""

    query: str
    aggregate: Aggregate

    def __post_init__(self) -> None:
        reason = unmergeable(self.aggregate)
        if reason:
            raise InternalError(f"query {self.query} cannot be in a tree: {reason}")

    @property
    def spec(self) -> WindowSpec:
        return _window(self.aggregate).spec

    @property
    def calls(self) -> tuple[tuple[str, AggregateCall], ...]:
        return self.aggregate.aggregates

    @property
    def rows(self) -> Rows:
        window = _window(self.aggregate)
        keys = sorted({key for _, key in self.aggregate.keys}, key=format_expr)
        return Rows(window.input, window.time, tuple(keys))


@dataclass(frozen=True, slots=True)
class Tree:
    site: str
    members: tuple[Member, ...]
    edge_rate: Fraction
    """Fragments per second; where the exact rate is out of reach, at most this and at least the low one."""
    edge_rate_low: Fraction
    cost: float
    unshared_cost: float
    """What its members cost with a tree each."""
    alone: str = ""
    """Why a tree has one member only; empty for a tree of several."""

    def __post_init__(self) -> None:
        queries = [member.query for member in self.members]
        if not queries or len(set(queries)) != len(queries):
            raise InternalError(f"Tree: wrong members {queries}")
        if len({member.rows for member in self.members}) != 1:
            raise InternalError(f"Tree: {', '.join(queries)} do not read the same rows by the same keys")
        if (len(queries) == 1) != bool(self.alone):
            raise InternalError("Tree: a reason is given exactly where there is one member")
        self._check_figures()

    def _check_figures(self) -> None:
        """A tree has an edge wherever one of its members has, and no others."""
        rates = [own_edge_rate(member.spec) for member in self.members]
        if not max(rates) <= self.edge_rate or not self.edge_rate_low <= self.edge_rate:
            raise InternalError(f"Tree: {self.edge_rate} edges a second are too few")
        if self.edge_rate_low > sum(rates):
            raise InternalError(f"Tree: {self.edge_rate_low} edges a second are too many")
        if not (0 < self.cost < float("inf") and 0 < self.unshared_cost < float("inf")):
            raise InternalError(f"Tree: a cost of {self.cost}, {self.unshared_cost} unshared")

    @property
    def rows(self) -> Rows:
        return self.members[0].rows

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(member.query for member in self.members)


@dataclass(frozen=True, slots=True)
class NotShared:
    """A query outside all trees. It runs as it is."""

    query: str
    reason: str


@dataclass(frozen=True, slots=True)
class SharedPlan:
    trees: tuple[Tree, ...]
    unshared: tuple[NotShared, ...]

    def __post_init__(self) -> None:
        found = [query for tree in self.trees for query in tree.queries] + [u.query for u in self.unshared]
        if len(set(found)) != len(found):
            raise InternalError("SharedPlan: a query stands in two places")
        if not all(u.reason for u in self.unshared):
            raise InternalError("SharedPlan: a query is left out without a reason")

    @property
    def cost(self) -> float:
        return sum(tree.cost for tree in self.trees)

    @property
    def unshared_cost(self) -> float:
        return sum(tree.unshared_cost for tree in self.trees)

    def tree_of(self, query: str) -> Tree | None:
        return next((tree for tree in self.trees if query in tree.queries), None)


def _window(aggregate: Aggregate) -> Window:
    assert isinstance(aggregate.input, Window)
    return aggregate.input


def unmergeable(aggregate: Aggregate) -> str:
    """Why an aggregate can be in no tree; empty where it can."""
    if not isinstance(aggregate.input, Window):
        between = type(aggregate.input).__name__
        return f"a {between} stands between its window and its aggregate"
    for _, call in aggregate.aggregates:
        if call.function not in MERGEABLE:
            return f"{format_aggregate(call)} cannot be put together from partial results"
    for expr in (*(key for _, key in aggregate.keys), *_args(aggregate)):
        if columns_of(expr) & _ENDS:
            return f"{format_expr(expr)} needs the ends of the window, which a fragment does not have"
    scans = [node for node in nodes(aggregate.input) if isinstance(node, StreamScan)]
    if len(scans) != 1:
        return "its window is over a join of streams, whose rate is not known"
    return ""


def _args(aggregate: Aggregate) -> Iterable[Expr]:
    return (call.arg for _, call in aggregate.aggregates if call.arg is not None)


def own_edge_rate(spec: WindowSpec) -> Fraction:
    """Edges per second of a query alone: windows open at multiples of the slide, and where the range is no
    multiple of it they close elsewhere."""
    return Fraction(MICROS * (2 if spec.range % spec.slide else 1), spec.slide)


def own_operations(spec: WindowSpec) -> Fraction:
    """Final operations per second of a query alone: the fragments in one window, once a slide."""
    whole, rest = divmod(spec.range, spec.slide)
    return Fraction(MICROS * (2 * whole + 1 if rest else whole), spec.slide)


def format_rows(plan: LogicalPlan) -> str:
    """The rows below a window, short: `readings where property = 'load'`."""
    match plan:
        case StreamScan():
            return plan.stream
        case Filter():
            return f"{format_rows(plan.input)} where {format_expr(plan.predicate)}"
        case Project():
            return format_rows(plan.input)
        case TableJoin():
            kind = "left join" if plan.outer else "join"
            return f"{format_rows(plan.input)} {kind} {', '.join(tables_of(plan.table))}"
    return ", ".join((*streams_of(plan), *tables_of(plan)))


def format_keys(keys: tuple[Expr, ...]) -> str:
    return f"({', '.join(map(format_expr, keys))})"


def format_tree(name: str, tree: Tree) -> str:
    """One line for the tree, one for each of its members."""
    rows = tree.rows
    exact = "" if tree.edge_rate == tree.edge_rate_low else "at most "
    lines = [
        f"{name} := Tree on {tree.site}: {format_rows(rows.input)} by {format_keys(rows.keys)}"
        f"  edges {exact}{float(tree.edge_rate):.6g}/s, cost {tree.cost:.6g}/s"
        + (f", alone: {tree.alone}" if tree.alone else f" instead of {tree.unshared_cost:.6g}/s")
    ]
    for member in tree.members:
        calls = ", ".join(dict.fromkeys(format_aggregate(call) for _, call in member.calls))
        lines.append(f"  {member.query}: {member.spec} give ({calls})")
    return "\n".join(lines)


def format_shared(plan: SharedPlan) -> str:
    """The stable text of a plan: its trees, then the queries outside them."""
    trees = [format_tree(f"t{number}", tree) for number, tree in enumerate(plan.trees)]
    return "\n".join([*trees, *(f"{u.query} not shared: {u.reason}" for u in plan.unshared)])
