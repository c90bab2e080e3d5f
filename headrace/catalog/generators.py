"""Whether a generator source can draw the columns of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.catalog.document import Trail
from headrace.catalog.model import Distribution, GeneratorSource, Stream
from headrace.catalog.problems import Problem, shown
from headrace.catalog.translate import missing_key
from headrace.catalog.values import misfit
from headrace.ids import did_you_mean
from headrace.plan.types import INTEGERS, NUMBERS, DataType

PLUG_COLUMNS: dict[str, DataType] = {
    "ts": DataType.TIMESTAMP,
    "property": DataType.STRING,
    "value": DataType.DOUBLE,
    "plug": DataType.INT,
    "household": DataType.INT,
    "house": DataType.INT,
}
"""What the smart-plugs shape makes, in the names of the DEBS 2014 data."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The fields one kind of distribution takes, and the columns it can fill."""

    needs: tuple[str, ...]
    may: tuple[str, ...]
    types: frozenset[DataType]


_ANY = frozenset(DataType)
PARAMETERS: dict[str, Parameters] = {
    "uniform": Parameters(("low", "high"), (), NUMBERS),
    "normal": Parameters(("mean", "stddev"), (), NUMBERS),
    "choice": Parameters(("values",), (), _ANY),
    "zipf": Parameters(("skew",), ("values", "low", "high"), _ANY),
    "sequence": Parameters((), ("low",), NUMBERS),
    "constant": Parameters(("value",), (), _ANY),
}
MOST_RANKS = 1_000_000
FIELDS = ("low", "high", "mean", "stddev", "values", "skew", "value")


def check_generator(stream: Stream, source: GeneratorSource) -> Iterator[Problem]:
    place: Trail = ("streams", stream.name, "source")
    yield from _check_numbers(source, place)
    if source.shape == "smart-plugs":
        yield from _check_plugs(stream, source, place)
    else:
        yield from _check_columns(stream, source, place)


def _check_numbers(source: GeneratorSource, place: Trail) -> Iterator[Problem]:
    if source.seed < 0:
        yield Problem((*place, "seed"), f"{shown(place)}.seed must be at least 0, not {source.seed}")
    if source.disorder < 0:
        yield Problem((*place, "disorder"), f"{shown(place)}.disorder cannot be negative")
    if source.interval <= 0:
        yield Problem((*place, "interval"), f"{shown(place)}.interval must be more than 0")


def _check_plugs(stream: Stream, source: GeneratorSource, place: Trail) -> Iterator[Problem]:
    columns = ("streams", stream.name, "columns")
    wanted = ", ".join(f"{name} {kind}" for name, kind in PLUG_COLUMNS.items())
    hint = f"The smart-plugs shape makes exactly: {wanted}."
    for name, kind in PLUG_COLUMNS.items():
        found = stream.columns.get(name)
        if found is None:
            yield Problem(columns, f'the smart-plugs shape needs the column "{name}"', hint, at_key=True)
        elif found != kind:
            yield Problem((*columns, name), f'column "{name}" must be {kind}, not {found}', hint)
    for name in [name for name in stream.columns if name not in PLUG_COLUMNS]:
        message = f'the smart-plugs shape makes no column "{name}"'
        yield Problem((*columns, name), message, hint, at_key=True)
    if stream.time != "ts" and stream.time in PLUG_COLUMNS:
        yield Problem(("streams", stream.name, "time"), "the smart-plugs shape has its time in ts")
    if source.columns:
        hint = "Remove it: the shape draws every column."
        yield Problem((*place, "columns"), "smart-plugs takes no distributions", hint, at_key=True)


def _check_columns(stream: Stream, source: GeneratorSource, place: Trail) -> Iterator[Problem]:
    drawn = [name for name in stream.columns if name != stream.time]
    for name in drawn:
        if name not in source.columns:
            hint = f"Add to source.columns, for example: {name}: {_example(stream.columns[name])}"
            message = f'{shown(place)} says nothing of the column "{name}"'
            where = (*place, "columns") if source.columns else place
            yield Problem(where, message, hint, at_key=True)
    for name, distribution in source.columns.items():
        where = (*place, "columns", name)
        if name == stream.time:
            hint = 'Remove it: the event time advances by 1/"rate" from row to row.'
            yield Problem(where, f'"{name}" is the event time and is not drawn', hint, at_key=True)
        elif name not in stream.columns:
            hint = did_you_mean(name, drawn, "columns")
            yield Problem(where, f'the stream has no column "{name}"', hint, at_key=True)
        else:
            yield from _check_distribution(distribution, stream.columns[name], where)


def _example(kind: DataType) -> str:
    if kind in NUMBERS:
        return "{kind: uniform, low: 0, high: 100}"
    values = {DataType.BOOLEAN: "true, false", DataType.STRING: "a, b"}.get(kind, '"2024-05-01"')
    return f"{{kind: choice, values: [{values}]}}"


def _check_distribution(drawn: Distribution, kind: DataType, place: Trail) -> Iterator[Problem]:
    """Exactly the fields of its kind, in an order that makes sense, for a column that can hold them."""
    rules = PARAMETERS[drawn.kind]
    given = [field for field in FIELDS if getattr(drawn, field) is not None]
    for field in rules.needs:
        if field not in given:
            yield missing_key(field, place)
    for field in given:
        if field not in rules.needs + rules.may:
            hint = f"{drawn.kind} takes: {', '.join(rules.needs + rules.may) or 'nothing'}."
            yield Problem((*place, field), f'{drawn.kind} takes no "{field}"', hint, at_key=True)
    if kind not in rules.types:
        hint = "Use choice or constant."
        yield Problem((*place, "kind"), f"{drawn.kind} cannot fill a column of type {kind}", hint)
        return
    yield from _check_range(drawn, kind, place)
    yield from _check_values(drawn, kind, place)
    if drawn.kind == "zipf":
        yield from _check_ranks(drawn, kind, place)


def _check_range(drawn: Distribution, kind: DataType, place: Trail) -> Iterator[Problem]:
    if drawn.low is not None and drawn.high is not None and drawn.low > drawn.high:
        message = f"{shown(place)}: low is above high"
        yield Problem((*place, "low"), message, f"low is {drawn.low:g}, high is {drawn.high:g}.")
    if drawn.stddev is not None and drawn.stddev < 0:
        yield Problem((*place, "stddev"), f"{shown(place)}.stddev cannot be negative")
    if drawn.skew is not None and drawn.skew <= 0:
        yield Problem((*place, "skew"), f"{shown(place)}.skew must be more than 0")
    for field in ("low", "high"):
        bound = getattr(drawn, field)
        if bound is not None and kind in INTEGERS:
            wanted = misfit(int(bound) if float(bound).is_integer() else bound, kind)
            if wanted is not None:
                yield Problem((*place, field), f"{shown(place)}.{field} must be {wanted}, not {bound:g}")


def _check_values(drawn: Distribution, kind: DataType, place: Trail) -> Iterator[Problem]:
    if drawn.values is not None and not drawn.values:
        yield Problem((*place, "values"), f"{shown(place)}.values is an empty list")
    listed = [((*place, "values", i), value) for i, value in enumerate(drawn.values or ())]
    single = [] if drawn.value is None else [((*place, "value"), drawn.value)]
    for where, value in listed + single:
        wanted = misfit(value, kind)
        if wanted is not None:
            yield Problem(where, f"{shown(where)} must be {wanted}, not {value!r}")


def _check_ranks(drawn: Distribution, kind: DataType, place: Trail) -> Iterator[Problem]:
    """zipf draws from its values, or else whole numbers from low (the most frequent) to high."""
    ends = [field for field in ("low", "high") if getattr(drawn, field) is not None]
    if drawn.values is not None:
        for field in ends:
            message = f"{shown(place)}: zipf takes values, or low and high, not both"
            yield Problem((*place, field), message, f'Remove "{field}".', at_key=True)
    elif drawn.low is None or drawn.high is None or kind not in INTEGERS:
        hint = "Give values, or low and high for a column of whole numbers."
        yield Problem(place, f"{shown(place)}: zipf does not say what to draw", hint, at_key=True)
    elif drawn.high - drawn.low >= MOST_RANKS:
        message = f"{shown(place)}: zipf over more than {MOST_RANKS:,} numbers"
        yield Problem((*place, "high"), message, "Bring low and high closer together.")
