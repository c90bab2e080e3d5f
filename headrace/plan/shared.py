"""SharedPlan: which window aggregates are computed together, and which alone, with the reason.

A tree answers several sliding windows from one pass over a stream and one set of fragments. That holds when
all its members read the same rows below their filters (same stream and watermark, same joins) and every
aggregate can be merged from partial results. What members may differ in:

- windows and aggregates: fragments end at the edges of all, and hold the partial columns of all;
- filters: conditions that all have stay below, the others become part of the member's own partial columns;
- keys: fragments are kept by all keys together, and rolled up for a member that groups by fewer.

Otherwise it fails: a fragment of other rows is of no use to the query, and a median cannot be put together
from medians. A Tree that breaks this cannot be made.

An edge closes one fragment; edge rates are per second. Costs are predicted CPU: cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from headrace.errors import InternalError
from headrace.plan.expr import Expr, columns_of
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
from headrace.plan.placed import TreeMember, TreeShape, shape_of
from headrace.plan.text import format_aggregate, format_expr

MICROS = 1_000_000
_ENDS = frozenset({WINDOW_START, WINDOW_END})


@dataclass(frozen=True, slots=True)
class Tree:
    site: str
    members: tuple[TreeMember, ...]
    edge_rate: Fraction
    """Fragments per second; where the exact rate is out of reach, at most this and at least the low one."""
    edge_rate_low: Fraction
    cost: float
    unshared_cost: float
    """What its members cost with a tree each."""
    plain_cost: float
    """What its members cost as Spark's own windows, a job each."""
    alone: str = ""
    """Why a tree has one member only; empty for a tree of several."""
    shape: TreeShape = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        queries = self.queries
        if not queries or len(set(queries)) != len(queries):
            raise InternalError(f"Tree: wrong members {queries}")
        for member in self.members:
            if reason := unmergeable(member.aggregate):
                raise InternalError(f"query {member.query} cannot be in a tree: {reason}")
        object.__setattr__(self, "shape", shape_of(self.members))
        if not all(self.shape.takes(member) for member in self.members):
            raise InternalError(f"Tree: {', '.join(queries)} do not read the same rows")
        if (len(queries) == 1) != bool(self.alone):
            raise InternalError("Tree: a reason is given exactly where there is one member")
        self._check_figures()

    def _check_figures(self) -> None:
        """A tree has an edge wherever one of its members has, and no others."""
        rates = [own_edge_rate(member.window.spec) for member in self.members]
        if not max(rates) <= self.edge_rate or not self.edge_rate_low <= self.edge_rate:
            raise InternalError(f"Tree: {self.edge_rate} edges a second are too few")
        if self.edge_rate_low > sum(rates):
            raise InternalError(f"Tree: {self.edge_rate_low} edges a second are too many")
        costs = (self.cost, self.unshared_cost, self.plain_cost)
        if not all(0 < cost < float("inf") for cost in costs):
            raise InternalError(f"Tree: costs of {costs}")

    @property
    def stream(self) -> str:
        return streams_of(self.shape.rows)[0]

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(member.query for member in self.members)

    def rolled_up(self, member: TreeMember) -> bool:
        """Whether the member groups by fewer keys than fragments are kept by."""
        return len(member.keys) < len(self.shape.keys)


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

    @property
    def plain_cost(self) -> float:
        return sum(tree.plain_cost for tree in self.trees)

    def tree_of(self, query: str) -> Tree | None:
        return next((tree for tree in self.trees if query in tree.queries), None)


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
    shape = tree.shape
    exact = "" if tree.edge_rate == tree.edge_rate_low else "at most "
    lines = [
        f"{name} := Tree on {tree.site}: {format_rows(shape.rows)} by {format_keys(shape.keys)}"
        f"{_spread(shape)}  edges {exact}{float(tree.edge_rate):.6g}/s, {tree.cost:.3g} cores"
        + (f", alone: {tree.alone}" if tree.alone else f" instead of {tree.unshared_cost:.3g}")
    ]
    return "\n".join([*lines, *(f"  {format_member(tree, member)}" for member in tree.members)])


def _spread(shape: TreeShape) -> str:
    if shape.spread == shape.keys:
        return ""
    return f", spread by {format_keys(shape.spread)}" if shape.spread else ", all in one bucket"


def format_member(tree: Tree, member: TreeMember) -> str:
    calls = ", ".join(dict.fromkeys(format_aggregate(call) for _, call in member.aggregate.aggregates))
    where = tree.shape.where(member) or ()
    only = f" where {' AND '.join(map(format_expr, where))}" if where else ""
    keys = f" rolled up to {own_keys(member)}" if tree.rolled_up(member) else ""
    return f"{member.query}: {member.window.spec} give ({calls}){only}{keys}"


def own_keys(member: TreeMember) -> str:
    return format_keys(tuple(sorted(member.keys, key=format_expr)))


def format_shared(plan: SharedPlan, names: Sequence[str] = ()) -> str:
    """The stable text of a plan: its trees, then the queries outside them. Trees are numbered where they are
    given no names."""
    numbered = names or [f"t{number}" for number in range(len(plan.trees))]
    trees = [format_tree(name, tree) for name, tree in zip(numbered, plan.trees, strict=True)]
    return "\n".join([*trees, *(f"{u.query} not shared: {u.reason}" for u in plan.unshared)])
