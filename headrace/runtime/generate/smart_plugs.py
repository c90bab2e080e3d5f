"""`shape: smart-plugs`: readings like those of the DEBS 2014 Grand Challenge.

Every plug reports, each `interval`, its load (W) and its work (kWh since the first reading), as two rows:

    event time, property 'load' | 'work', value, plug, household, house

`plug` counts within a household and `household` within a house, as in the challenge. A plug has a standby
power and a power when on, and switches at random, more often on in the evening than at night. Work is the
sum of the reported loads. Loads are whole milliwatts, so the last bit of a sine cannot change a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.catalog.model import GeneratorSource, Stream
from headrace.errors import UserError
from headrace.plan.types import DataType
from headrace.runtime.generate.block import ARROW, BLOCK_ROWS, Block, arrow_schema, draws, generator_of
from headrace.units import MICROS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
COLUMNS = ("property", "value", "plug", "household", "house")
_TYPES = {
    "property": {DataType.STRING},
    "value": {DataType.DOUBLE, DataType.FLOAT},
    **{name: {DataType.INT, DataType.BIGINT} for name in ("plug", "household", "house")},
}
_SWITCHES_PER_HOUR = 12.0
_EVENING = 19.0
"""The hour of most use."""


@dataclass(frozen=True, slots=True)
class Plugs:
    """What does not change about the plugs: one entry each, ordered by house, household, plug."""

    house: Ints
    household: Ints
    plug: Ints
    standby: Floats
    power: Floats
    eagerness: Floats


@dataclass(slots=True)
class _Meter:
    """What a plug carries from one block to the next."""

    on: npt.NDArray[np.bool_]
    milliwatts: Ints
    """The sum of all loads so far."""


def smart_plug_blocks(stream: Stream) -> Iterator[Block]:
    _check(stream)
    source = generator_of(stream)
    plugs = _plugs(stream, source)
    many = len(plugs.plug)
    meter = _Meter(draws(stream, "first state", 0).random(many) < 0.5, np.zeros(many, dtype=np.int64))
    steps_a_block = max(1, BLOCK_ROWS // (2 * many))
    done = 0
    for number in range(-(-source.rows // (steps_a_block * 2 * many))):
        first = number * steps_a_block
        steps = np.arange(first, first + steps_a_block, dtype=np.int64)
        block = _block(stream, plugs, meter, number, source.start + steps * source.interval)
        rows = min(len(block.times), source.rows - done)
        done += rows
        yield Block(block.times[:rows], block.table.slice(0, rows))


def _check(stream: Stream) -> None:
    for name, kind in stream.columns.items():
        if name != stream.time and name not in COLUMNS:
            raise UserError(
                f'stream "{stream.name}": smart plugs have no column {name}',
                hint=f"The columns are an event time and {', '.join(COLUMNS)}.",
            )
        if name != stream.time and kind not in _TYPES[name]:
            fits = " or ".join(sorted(_TYPES[name]))
            raise UserError(f'stream "{stream.name}": {name} is {fits}, not {kind}', hint=f"Write {fits}.")
    if generator_of(stream).interval <= 0:
        raise UserError(
            f'stream "{stream.name}": the interval must be above zero', hint="For example 1 second."
        )


def _plugs(stream: Stream, source: GeneratorSource) -> Plugs:
    per_house = source.households * source.plugs
    index = np.arange(source.houses * per_house, dtype=np.int64)
    random = draws(stream, "plugs", 0)
    return Plugs(
        house=index // per_house,
        household=index // source.plugs % source.households,
        plug=index % source.plugs,
        standby=random.random(len(index)) * 3.0,
        # From a lamp to a kettle; most are small.
        power=15.0 + 2200.0 * random.random(len(index)) ** 3,
        eagerness=0.5 + random.random(len(index)),
    )


def _block(stream: Stream, plugs: Plugs, meter: _Meter, number: int, instants: Ints) -> Block:
    random = draws(stream, "readings", number)
    on = _switch(plugs, meter, instants, generator_of(stream).interval, random)
    load = _load(plugs, on, random)
    total = meter.milliwatts + np.cumsum(load, axis=0)
    meter.milliwatts = total[-1]
    hours = generator_of(stream).interval / MICROS["hour"]
    work = np.round(total * (hours / 1e6), 6)
    # Row order: instant, then plug, then load before work.
    values = np.stack([load / 1000.0, work], axis=2).reshape(-1)
    steps, many = load.shape
    times = np.repeat(instants, 2 * many)
    return Block(times, _table(stream, plugs, times, values, steps))


def _switch(
    plugs: Plugs, meter: _Meter, instants: Ints, interval: int, random: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """For every instant and plug, whether it is on: what the last switch said, or the state carried in."""
    chance = min(0.25, _SWITCHES_PER_HOUR * interval / MICROS["hour"])
    use = 0.5 + 0.4 * np.cos(2 * np.pi * (instants / MICROS["hour"] - _EVENING) / 24.0)
    drawn = random.random((len(instants), len(plugs.plug)))
    turns_on = drawn < chance * np.outer(use, plugs.eagerness)
    turns_off = drawn > 1.0 - chance * (1.0 - use)[:, None]
    step = np.arange(len(instants))[:, None]
    last = np.maximum.accumulate(np.where(turns_on | turns_off, step, -1), axis=0)
    switched = np.take_along_axis(turns_on, np.maximum(last, 0), axis=0)
    on = np.where(last >= 0, switched, meter.on)
    meter.on = on[-1]
    return on


def _load(plugs: Plugs, on: npt.NDArray[np.bool_], random: np.random.Generator) -> Ints:
    """Whole milliwatts: standby, the power when on within a few percent, and the meter's own noise."""
    wobble = 1.0 + 0.04 * (random.random(on.shape) - 0.5)
    noise = 0.4 * random.random(on.shape)
    watts = plugs.standby + np.where(on, plugs.power * wobble, 0.0) + noise
    return np.rint(watts * 1000.0).astype(np.int64)


def _table(stream: Stream, plugs: Plugs, times: Ints, values: Floats, steps: int) -> pa.Table:
    many = len(plugs.plug)
    parts = {
        stream.time: pa.array(times, type=ARROW[DataType.TIMESTAMP]),
        "property": pa.array(["load", "work"]).take(pa.array(np.tile([0, 1], steps * many))),
        "value": pa.array(values),
        "plug": pa.array(np.tile(np.repeat(plugs.plug, 2), steps)),
        "household": pa.array(np.tile(np.repeat(plugs.household, 2), steps)),
        "house": pa.array(np.tile(np.repeat(plugs.house, 2), steps)),
    }
    schema = arrow_schema(stream)
    return pa.Table.from_arrays([parts[f.name].cast(f.type) for f in schema], schema=schema)
