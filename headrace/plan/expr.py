"""Scalar and aggregate expressions. Every node knows its type and refuses arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from headrace.errors import InternalError
from headrace.plan.functions import AGGREGATES, SCALARS, unify
from headrace.plan.types import INTEGERS, NUMBERS, DataType

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the input, by its unique name."""

    name: str
    type: DataType

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Timestamps and intervals are microseconds (since the epoch), dates are days."""

    value: Value
    type: DataType

    def __post_init__(self) -> None:
        python = {
            DataType.BOOLEAN: bool,
            DataType.STRING: str,
            DataType.DOUBLE: float,
            DataType.FLOAT: float,
        }.get(self.type, int)
        if self.value is not None and type(self.value) is not python:
            raise InternalError(f"literal {self.value!r} is not a {self.type}")

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function or operator of `functions.SCALARS`."""

    function: str
    args: tuple[Expr, ...]
    type: DataType = field(init=False)

    def __post_init__(self) -> None:
        known = SCALARS.get(self.function)
        result = known.rule(tuple(a.type for a in self.args)) if known else None
        if result is None:
            takes = ", ".join(a.type for a in self.args)
            raise InternalError(f"{self.function}({takes}) does not type-check")
        object.__setattr__(self, "type", result)

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


CASTS: frozenset[tuple[DataType, DataType]] = frozenset(
    [(a, b) for a in NUMBERS for b in NUMBERS]
    + [(i, DataType.STRING) for i in INTEGERS]
    + [(DataType.BOOLEAN, i) for i in INTEGERS]
    + [(DataType.TIMESTAMP, DataType.DATE), (DataType.DATE, DataType.TIMESTAMP)]
    + [(t, t) for t in DataType]
)
"""Casts with one meaning in every engine. A fraction is cut off towards zero; NaN, infinities and
numbers that do not fit the target give NULL."""


@dataclass(frozen=True, slots=True)
class Cast:
    arg: Expr
    type: DataType

    def __post_init__(self) -> None:
        if (self.arg.type, self.type) not in CASTS:
            raise InternalError(f"no cast from {self.arg.type} to {self.type}")

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Case:
    """CASE WHEN condition THEN value ... ELSE otherwise END; `otherwise` None means ELSE NULL."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    type: DataType = field(init=False)

    def __post_init__(self) -> None:
        values = [v for _, v in self.branches] + ([self.otherwise] if self.otherwise else [])
        result = unify(tuple(v.type for v in values)) if self.branches else None
        if result is None or any(c.type != DataType.BOOLEAN for c, _ in self.branches):
            raise InternalError("CASE does not type-check")
        object.__setattr__(self, "type", result)

    @property
    def children(self) -> tuple[Expr, ...]:
        flat = tuple(e for pair in self.branches for e in pair)
        return flat + ((self.otherwise,) if self.otherwise is not None else ())


Expr = ColumnRef | Literal | Call | Cast | Case


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of `functions.AGGREGATES` over one argument; None is count(*)."""

    function: str
    arg: Expr | None
    type: DataType = field(init=False)

    def __post_init__(self) -> None:
        known = AGGREGATES.get(self.function)
        types = () if self.arg is None else (self.arg.type,)
        result = known.rule(types) if known else None
        if result is None:
            raise InternalError(f"{self.function}({', '.join(types)}) does not type-check")
        object.__setattr__(self, "type", result)


TRUE = Literal(True, DataType.BOOLEAN)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, outermost first."""
    yield expr
    for child in expr.children:
        yield from walk(child)


def columns_of(expr: Expr) -> frozenset[str]:
    """Names of all columns the expression reads."""
    return frozenset(e.name for e in walk(expr) if isinstance(e, ColumnRef))


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression rebuilt bottom-up, `change` applied to every node."""
    match expr:
        case Call():
            expr = Call(expr.function, tuple(transform(a, change) for a in expr.args))
        case Cast():
            expr = replace(expr, arg=transform(expr.arg, change))
        case Case():
            branches = tuple((transform(c, change), transform(v, change)) for c, v in expr.branches)
            otherwise = None if expr.otherwise is None else transform(expr.otherwise, change)
            expr = Case(branches, otherwise)
    return change(expr)


def substitute(expr: Expr, by_name: dict[str, Expr]) -> Expr:
    """The expression with columns replaced; a name that is not in the map stays."""
    return transform(expr, lambda e: by_name.get(e.name, e) if isinstance(e, ColumnRef) else e)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction, flattened."""
    if isinstance(expr, Call) and expr.function == "and":
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return () if expr == TRUE else (expr,)


def conjunction(parts: tuple[Expr, ...]) -> Expr:
    """The inverse of `conjuncts`: TRUE, the one part, or a flat AND."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Call("and", parts)
