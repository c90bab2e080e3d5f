"""How many groups there are and how many rows pass a condition: what the planner believes before it has seen
a row. The project file says it, or the generator's settings, or a guess does (docs/project-file.md has the
list). A wrong estimate makes a plan dearer, never an answer wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

from headrace.catalog.model import Distribution, GeneratorSource, Project, RateSource, Stream, Table
from headrace.plan.expr import Call, Case, Expr, Literal, columns_of
from headrace.plan.types import INTEGERS, DataType

GUESS = 100
"""Different values of a column of which nothing is known."""
_MOST = 1e15
_MICROS = 1_000_000
_RANGE, _LIKE, _NULL, _OTHER = 1 / 3, 1 / 10, 1 / 20, 1 / 3
_PLUGS = ("houses", "households", "plugs")

Distinct = Callable[[str], float]
"""How many different values the column of that name has."""


def expected_rate(stream: Stream) -> float:
    """Rows per second: what the project says, and for the rate source what the source will do."""
    if isinstance(stream.source, RateSource) and "rate" not in stream.model_fields_set:
        return float(stream.source.rows_per_second)
    return stream.rate


def batches_per_second(project: Project) -> float:
    """Where there is no trigger, batches follow each other as fast as they go; one a second is assumed."""
    trigger = project.planner.trigger
    return _MICROS / trigger if trigger else 1.0


def distinct_of(project: Project, stream: str) -> Distinct:
    """The numbers for the rows of a stream, also where they are joined with tables: the columns of a table
    are then called `table.column`."""
    known: dict[str, float] = {}
    for table in project.tables.values():
        for column, kind in table.columns.items():
            known[f"{table.name}.{column}"] = _of_table(table, column, kind)
    found = project.streams[stream]
    for column, kind in found.columns.items():
        known[column] = _of_stream(found, column, kind)
    return lambda column: known.get(column, GUESS)


def _default(kind: DataType) -> float:
    return 2 if kind is DataType.BOOLEAN else GUESS


def _of_table(table: Table, column: str, kind: DataType) -> float:
    if table.rows is None:
        return _default(kind)
    place = list(table.columns).index(column)
    return max(1, len({row[place] for row in table.rows}))


def _of_stream(stream: Stream, column: str, kind: DataType) -> float:
    if column in stream.distinct:
        return stream.distinct[column]
    if isinstance(stream.source, GeneratorSource):
        return _generated(stream.source, column, kind) or _default(kind)
    return _default(kind)


def _generated(source: GeneratorSource, column: str, kind: DataType) -> float | None:
    """What a generator will draw; None: not known."""
    if source.shape == "smart-plugs":
        numbers: Mapping[str, float] = {name[:-1]: getattr(source, name) for name in _PLUGS}
        return {**numbers, "property": 2}.get(column)
    drawn = source.columns.get(column)
    return None if drawn is None else _drawn(drawn, kind)


def _drawn(drawn: Distribution, kind: DataType) -> float | None:
    match drawn.kind:
        case "choice" | "zipf" if drawn.values:
            return len(set(drawn.values))
        case "constant":
            return 1
        case "uniform" if kind in INTEGERS and drawn.low is not None and drawn.high is not None:
            return max(1.0, drawn.high - drawn.low + 1)
    return None


def groups(keys: Iterable[Expr], distinct: Distinct) -> float:
    """How many different groups the keys make at most; 1 without keys."""
    return min(_MOST, prod(values(key, distinct) for key in keys))


def values(expr: Expr, distinct: Distinct) -> float:
    """How many different values an expression has."""
    by_columns = min(_MOST, prod(distinct(column) for column in columns_of(expr)))
    return max(1.0, min(by_columns, _by_form(expr)))


def _by_form(expr: Expr) -> float:
    match expr:
        case Case():
            results = [value for _, value in expr.branches] + ([expr.otherwise] if expr.otherwise else [])
            constant = all(isinstance(value, Literal) for value in results)
            return len(set(results)) + (expr.otherwise is None) if constant else _MOST
        case Call(function="%", args=(_, Literal(value=int() as divisor))) if divisor:
            return abs(divisor)
    return 2 if expr.type is DataType.BOOLEAN else _MOST


def share(conditions: Iterable[Expr], distinct: Distinct) -> float:
    """Which part of the rows meets all conditions, as if they had nothing to do with each other."""
    return prod(_share(condition, distinct) for condition in conditions)


def any_share(shares: Iterable[float]) -> float:
    """Which part of the rows meets at least one of several conditions."""
    return 1 - prod(1 - one for one in shares)


def _share(expr: Expr, distinct: Distinct) -> float:
    match expr:
        case Literal():
            return 1.0 if expr.value is True else 0.0
        case Call(function="and"):
            return share(expr.args, distinct)
        case Call(function="or"):
            return any_share(_share(arg, distinct) for arg in expr.args)
        case Call(function="not"):
            return 1 - _share(expr.args[0], distinct)
        case Call():
            return _call(expr, distinct)
    return _OTHER


def _call(call: Call, distinct: Distinct) -> float:
    match call.function:
        case "=":
            return 1 / max(values(arg, distinct) for arg in call.args)
        case "<>":
            return 1 - 1 / max(values(arg, distinct) for arg in call.args)
        case "in":
            return min(1.0, len(set(call.args[1:])) / values(call.args[0], distinct))
        case "<" | "<=" | ">" | ">=":
            return _RANGE
        case "like":
            return _LIKE
        case "is_null":
            return _NULL
        case "is_not_null":
            return 1 - _NULL
    return _OTHER
