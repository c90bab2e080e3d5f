"""`shape: columns`: every column drawn on its own; the event time advances by 1/rate.

| kind     | fields                    | gives                                                              |
|----------|---------------------------|--------------------------------------------------------------------|
| uniform  | low, high                 | numbers in [low, high); whole ones, high included, for INT, BIGINT |
| normal   | mean, stddev              | numbers; rounded for INT and BIGINT                                |
| choice   | values                    | each of the values as often                                        |
| zipf     | skew, values or low, high | the n-th of the values, or of low .. high, with weight n^-skew     |
| sequence | low (first value, or 0)   | low, low + 1, ... in order of event time                           |
| constant | value                     | the value                                                          |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.catalog.model import Distribution, Stream
from headrace.errors import UserError
from headrace.plan.types import INTEGERS, NUMBERS, DataType
from headrace.runtime.generate.block import ARROW, BLOCK_ROWS, Block, Micros, draws, generator_of
from headrace.units import parse_instant

_LIMITS = {DataType.INT: (-(2**31), 2**31 - 1), DataType.BIGINT: (-(2**63), 2**63 - 1)}
_MOST_RANKS = 1_000_000
_READ: dict[DataType, Callable[[Any], Any]] = {
    DataType.TIMESTAMP: lambda value: parse_instant(str(value)),
    DataType.DATE: lambda value: date.fromisoformat(str(value)),
}
Numbers = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def column_blocks(stream: Stream) -> Iterator[Block]:
    source = generator_of(stream)
    _check(stream)
    for number, first in enumerate(range(0, source.rows, BLOCK_ROWS)):
        index = np.arange(first, min(first + BLOCK_ROWS, source.rows), dtype=np.int64)
        times = _times(index, source.start, stream.rate)
        columns = [_column(stream, name, number, index, times) for name in stream.columns]
        yield Block(times, pa.Table.from_arrays(columns, names=list(stream.columns)))


def _times(index: Micros, start: int, rate: float) -> Micros:
    """start + i / rate, rounded down to microseconds; exact for a rate that is a whole number."""
    if rate == int(rate):
        whole, rest = np.divmod(index, int(rate))
        exact: Micros = start + whole * 1_000_000 + rest * 1_000_000 // int(rate)
        return exact
    rounded: Micros = np.floor(index * (1_000_000 / rate)).astype(np.int64)
    return start + rounded


def _check(stream: Stream) -> None:
    given, wanted = generator_of(stream).columns, set(stream.columns) - {stream.time}
    for name in sorted(wanted ^ set(given)):
        what = "has no distribution" if name in wanted else "is not a column to draw"
        raise UserError(
            f'stream "{stream.name}": {name} {what}',
            hint=f"The generator draws every column but the event time: {', '.join(sorted(wanted))}.",
        )


def _column(stream: Stream, name: str, block: int, index: Micros, times: Micros) -> pa.Array:
    if name == stream.time:
        return pa.array(times, type=ARROW[DataType.TIMESTAMP])
    kind, how = stream.columns[name], generator_of(stream).columns[name]
    random = draws(stream, f"column {name}", block)
    nulls = None
    if how.null_share > 0:
        nulls = random.random(len(index)) < how.null_share
    where = f'stream "{stream.name}", column {name}'
    return _values(how, kind, index, random, where, nulls)


def _values(
    how: Distribution,
    kind: DataType,
    index: Micros,
    random: np.random.Generator,
    where: str,
    nulls: npt.NDArray[np.bool_] | None,
) -> pa.Array:
    match how.kind:
        case "choice" | "zipf" | "constant":
            values, ranks = _ranked(how, len(index), random, where)
            return _picked(values, ranks, kind, where, nulls)
        case _:
            if kind not in NUMBERS:
                raise UserError(
                    f"{where}: {how.kind} draws numbers, not {kind}",
                    hint="Use choice, zipf with values, or constant.",
                )
            return _numeric(_drawn(how, kind, index, random, where), kind, nulls)


def _need(value: float | None, field: str, how: Distribution, where: str) -> float:
    if value is None:
        raise UserError(f"{where}: {how.kind} needs {field}", hint=f"Add `{field}:` to the distribution.")
    return value


def _drawn(
    how: Distribution, kind: DataType, index: Micros, random: np.random.Generator, where: str
) -> Numbers:
    match how.kind:
        case "sequence":
            return index + int(how.low or 0)
        case "normal":
            mean, stddev = _need(how.mean, "mean", how, where), _need(how.stddev, "stddev", how, where)
            return mean + stddev * random.standard_normal(len(index))
    low, high = _need(how.low, "low", how, where), _need(how.high, "high", how, where)
    if low > high:
        raise UserError(f"{where}: low {low:g} is above high {high:g}", hint="Swap them.")
    if kind in INTEGERS:
        return random.integers(int(low), int(high), size=len(index), dtype=np.int64, endpoint=True)
    return low + (high - low) * random.random(len(index))


def _numeric(drawn: Numbers, kind: DataType, nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    if kind not in INTEGERS:
        return pa.array(drawn, mask=nulls).cast(ARROW[kind])
    # 2^63 - 1024 is the largest double below 2^63: a cast of 2^63 itself would wrap.
    whole: Micros = (
        drawn.astype(np.int64)
        if drawn.dtype == np.int64
        else np.clip(np.rint(drawn), -(2.0**63), 2.0**63 - 1024).astype(np.int64)
    )
    return pa.array(np.clip(whole, *_LIMITS[kind]), mask=nulls).cast(ARROW[kind])


def _ranked(
    how: Distribution, rows: int, random: np.random.Generator, where: str
) -> tuple[Sequence[Any], Micros]:
    """Values to pick from, and for each row which one."""
    if how.kind == "constant":
        return (how.value,), np.zeros(rows, dtype=np.int64)
    if how.kind == "choice":
        if not how.values:
            raise UserError(f"{where}: choice needs values", hint="For example values: [on, off].")
        return how.values, random.integers(0, len(how.values), size=rows, dtype=np.int64)
    skew = _need(how.skew, "skew", how, where)
    values = how.values or _whole_numbers(how, where)
    weights = np.cumsum(np.arange(1, len(values) + 1, dtype=np.float64) ** -skew)
    ranks = np.searchsorted(weights, random.random(rows) * weights[-1], side="right")
    return values, np.minimum(ranks, len(values) - 1).astype(np.int64)


def _whole_numbers(how: Distribution, where: str) -> range:
    low, high = _need(how.low, "values, or low", how, where), _need(how.high, "high", how, where)
    found = range(int(low), int(high) + 1)
    if not 0 < len(found) <= _MOST_RANKS:
        raise UserError(f"{where}: zipf over {len(found)} numbers", hint=f"Take 1 to {_MOST_RANKS}.")
    return found


def _picked(
    values: Sequence[Any], ranks: Micros, kind: DataType, where: str, nulls: npt.NDArray[np.bool_] | None
) -> pa.Array:
    try:
        read = _READ.get(kind, lambda value: value)
        choices = pa.array([None if v is None else read(v) for v in values], type=ARROW[kind])
    except (pa.ArrowException, ValueError, OverflowError) as wrong:
        raise UserError(f"{where}: a value is not a {kind}", detail=str(wrong)) from wrong
    return choices.take(pa.array(ranks, mask=nulls))
