"""The binder of one clause, and the table of what binds which node of the parser's tree.

`operators` and `calls` fill the table; `scalars` is where both are known to have done so. A node that nothing
binds is refused by its name, so a new construct of the parser can never slip through with another meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.plan.expr import Call, Cast, ColumnRef, Expr, Literal
from headrace.plan.functions import SCALARS, unify
from headrace.plan.types import DataType
from headrace.sql import literals
from headrace.sql.hints import mismatch_hint
from headrace.sql.place import Source
from headrace.sql.scope import Scope

AggregateHook = Callable[[exp.Expr], Expr]
"""Takes an aggregate call (or its FILTER) and gives the column that will hold it."""


@dataclass(frozen=True, slots=True)
class ScalarBinder:
    """Binds expressions of one clause. Without `aggregate`, aggregates are an error in this clause."""

    source: Source
    scope: Scope
    clause: str
    aggregate: AggregateHook | None = None
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    """Select aliases this clause may use where no column has that name (lower case)."""
    subqueries: Mapping[int, ColumnRef] = field(default_factory=dict)
    """Columns that hold the values of scalar subqueries, by id of their node."""

    def bind(self, node: exp.Expr) -> Expr:
        for kind in type(node).__mro__:
            if kind in _TABLE:
                bind, parts = _TABLE[kind]
                self._check_parts(node, parts)
                return bind(self, node)
        name, hint = _REFUSED.get(type(node), (node.key.upper(), ""))
        raise self.source.refusal(node, f"{name} is not supported", hint)

    def _check_parts(self, node: exp.Expr, parts: frozenset[str]) -> None:
        """A part that its binding does not know (NOT, SYMMETRIC) would be lost without a word."""
        for part, value in node.args.items():
            if value and part not in parts:
                name = f"{node.key.upper()} ... {part.strip('_').upper()}"
                raise self.source.refusal(node, f"{name} is not supported", "Write it without.")

    def boolean(self, node: exp.Expr, what: str) -> Expr:
        """A condition."""
        if isinstance(node, exp.Null):
            return Literal(None, DataType.BOOLEAN)
        bound = self.bind(node)
        if bound.type != DataType.BOOLEAN:
            message = f"{what} must be a condition, this is of type {bound.type}"
            raise self.source.error(node, message, "Compare it with something, as in x > 0.")
        return bound

    def together(self, nodes: Sequence[exp.Expr]) -> list[Expr]:
        """Expressions that meet in one type: texts and dates follow timestamps, NULLs follow the rest."""
        bound = [None if isinstance(n.unnest(), exp.Null) else self.bind(n) for n in nodes]
        types = [b.type for b in bound if b is not None]
        if not types:
            hint = "Give it one: CAST(NULL AS double), or AS string."
            raise self.source.error(nodes[0], "NULL has no type here", hint)
        target = next((t for t in (DataType.TIMESTAMP, DataType.DATE) if t in types), None)
        if target is not None:
            bound = [
                None if b is None else self._as_time(n, b, target) for n, b in zip(nodes, bound, strict=True)
            ]
        known = tuple(b.type for b in bound if b is not None)
        return [Literal(None, unify(known) or known[0]) if b is None else b for b in bound]

    def _as_time(self, node: exp.Expr, bound: Expr, target: DataType) -> Expr:
        if literals.is_text(node):
            read = literals.timestamp if target is DataType.TIMESTAMP else literals.day
            return read(str(node.unnest().this), node, self.source)
        if bound.type is DataType.DATE and target is DataType.TIMESTAMP:
            return Cast(bound, DataType.TIMESTAMP)
        return bound

    def call(self, function: str, args: Sequence[Expr], node: exp.Expr, said: str = "") -> Expr:
        """A call, if the arguments fit; otherwise what the function takes and what it got."""
        known = SCALARS[function]
        if known.rule(tuple(a.type for a in args)) is not None:
            return Call(function, tuple(args))
        got = ", ".join(a.type for a in args) or "nothing"
        hint = mismatch_hint(function, [a.type for a in args])
        raise self.source.error(node, f"{said or function} takes {known.takes}; it got {got}", hint)


Binding = Callable[[ScalarBinder, exp.Expr], Expr]
_TABLE: dict[type[object], tuple[Binding, frozenset[str]]] = {}


def binds(*kinds: type[exp.Expr], parts: str = "") -> Callable[[Binding], Binding]:
    """Marks the function that binds nodes of these kinds, and the parts of the nodes it knows."""
    known = frozenset({"this", "expression", "expressions", *parts.split()})

    def register(function: Binding) -> Binding:
        _TABLE.update(dict.fromkeys(kinds, (function, known)))
        return function

    return register


_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.ILike: ("ILIKE", "Write lower(x) LIKE 'a%'."),
    exp.RegexpLike: ("RLIKE", "Use LIKE."),
    exp.NullSafeEQ: ("<=>", "Write a = b OR (a IS NULL AND b IS NULL)."),
    exp.NullSafeNEQ: ("IS DISTINCT FROM", "Write a <> b, and say what NULL means."),
    exp.Escape: ("LIKE ... ESCAPE", "LIKE has no escape character: use =, or substring(s, 1, 3) = 'a_b'."),
    exp.IntDiv: ("DIV", "Write CAST(a / b AS bigint), which is exact up to 2^53, or (a - a % b) / b."),
    exp.Bracket: ("access to an array or map, x[i],", "A column holds one value."),
    exp.Dot: ("access to a field, f(x).y,", "The ends of a window are window.start and window.end."),
    exp.Exists: ("EXISTS (subquery)", "Join with the subquery instead."),
    exp.Tuple: ("a row value (a, b)", "Compare the columns one by one."),
    exp.IgnoreNulls: ("IGNORE NULLS", "Remove it: aggregates skip NULLs."),
    exp.RespectNulls: ("RESPECT NULLS", "Remove it: aggregates skip NULLs."),
    exp.WithinGroup: ("WITHIN GROUP", "For the middle value there is median(x)."),
    exp.AtTimeZone: ("AT TIME ZONE", "Times are UTC."),
    exp.Concat: ("a text made of two literals", "Join them with ||."),
}
"""What is refused under another name than the parser's, and what to write instead."""
