"""Which partial columns a set of aggregate calls needs, each once.

A variance is kept as (count, mean, M2), never as a sum of squares: of large numbers with a small spread the
squares would leave nothing after the subtraction. An avg of INT shares the exact BIGINT sum, which 2^31 rows
of INT cannot overflow; an avg of BIGINT takes a sum of doubles, because its BIGINT sum may overflow where the
average does not.

approx_count_distinct is a sketch of our own (sketch.py): Spark has no aggregate whose partial result is a
small sketch that numpy can merge (hll_sketch_agg gives a format of its own; bitmap_construct_agg takes 4 KiB
a fragment and key).

The SQL text of a partial column is there for its name only, which says what it computes: opening.py makes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.errors import NotSupported
from headrace.plan.expr import AggregateCall, Cast, Expr
from headrace.plan.functions import MERGEABLE
from headrace.plan.types import DataType
from headrace.runtime.sqltext import SparkWriter
from headrace.runtime.windows.spec import Output, Partial, PartialKind

T = DataType
K = PartialKind
_SQL = SparkWriter()
SUPPORTED = MERGEABLE


@dataclass(frozen=True, slots=True)
class Needs:
    """The partial columns of a tree, and the outputs of each query."""

    partials: tuple[Partial, ...]
    outputs: tuple[tuple[Output, ...], ...]


def unsupported(call: AggregateCall) -> str:
    """Why a call cannot be answered from fragments here; empty where it can."""
    return "" if call.function in SUPPORTED else f"not supported: {call.function}"


def needs_of(queries: Iterable[Iterable[tuple[str, AggregateCall]]]) -> Needs:
    """What the named calls of each query need. Raises NotSupported."""
    found: dict[Partial, int] = {}
    outputs = [tuple(_output(name, call, found) for name, call in calls) for calls in queries]
    return Needs(tuple(found), tuple(outputs))


def _output(name: str, call: AggregateCall, found: dict[Partial, int]) -> Output:
    reason = unsupported(call)
    if reason:
        raise NotSupported(reason)
    positions = []
    for kind, kept, sql in _parts(call):
        digest = hashlib.sha1(sql.encode(), usedforsecurity=False).hexdigest()[:12]
        partial = Partial(f"{kind}_{digest}", kind, kept)
        positions.append(found.setdefault(partial, len(found)))
    return Output(name, call.function, tuple(positions), call.type)


def _parts(call: AggregateCall) -> list[tuple[PartialKind, DataType, str]]:
    """(kind, type, Spark SQL) of the partial columns of one call."""
    arg, function = call.arg, call.function
    if function == "count" or arg is None:
        return [(K.COUNT, T.BIGINT, _SQL.aggregate(call))]
    if function == "approx_count_distinct":
        return [(K.SKETCH, T.STRING, _SQL.aggregate(call))]
    if function in ("min", "max"):
        return [(K(function), call.type, _SQL.aggregate(call))]
    if function == "sum":
        return [_sum(arg)]
    if function == "avg":
        return [_sum(Cast(arg, T.DOUBLE) if arg.type is T.BIGINT else arg), _count(arg)]
    mean = _SQL.aggregate(AggregateCall("avg", arg))
    spread = _SQL.aggregate(AggregateCall("var_pop", arg))
    return [
        _count(arg),
        (K.MEAN, T.DOUBLE, mean),
        (K.M2, T.DOUBLE, f"({spread} * {_count(arg)[2]})"),
    ]


def _sum(arg: Expr) -> tuple[PartialKind, DataType, str]:
    call = AggregateCall("sum", arg)
    return (K.SUM, call.type, _SQL.aggregate(call))


def _count(arg: Expr) -> tuple[PartialKind, DataType, str]:
    return (K.COUNT, T.BIGINT, _SQL.aggregate(AggregateCall("count", arg)))
