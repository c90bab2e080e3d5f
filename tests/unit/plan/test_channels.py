"""Derived streams: what refuses to exist, and how far behind the watermark rows can be."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from headrace.errors import InternalError
from headrace.plan.bounds import TimeBound
from headrace.plan.channels import (
    ChannelJob,
    ChannelPlan,
    ChannelSteps,
    DerivedScan,
    DerivedStream,
    behind,
    channel_steps,
    joined,
    moved,
    pruned,
)
from headrace.plan.data import from_data, to_data
from headrace.plan.expr import TRUE, ColumnRef
from headrace.plan.logical import Filter, IntervalJoin, LogicalPlan, Project, StreamScan
from headrace.plan.types import Column, DataType, Schema

UNIT = 10_000
"""Of time in these tests, in microseconds: more than an engine's rounding."""
Bound = tuple[str, str, int]
Kept = list[tuple[int, int]]
"""Times, each with the batch it came in."""


def scan(name: str) -> StreamScan:
    return StreamScan(name, Schema([Column(name, DataType.TIMESTAMP)]), name, 5)


def join(left: LogicalPlan, right: LogicalPlan, *bounds: Bound) -> IntervalJoin:
    return IntervalJoin(left, right, (), tuple(TimeBound(*bound) for bound in bounds))


def within(x: str, y: str, low: int, high: int) -> tuple[Bound, Bound]:
    """y between x + low and x + high."""
    return (x, y, high * UNIT), (y, x, -low * UNIT)


PAIR = join(scan("a"), scan("b"), *within("a", "b", -3, 7))
NESTED = join(PAIR, scan("c"), *within("b", "c", 1, 4))
BUSHY = join(PAIR, join(scan("c"), scan("d"), *within("c", "d", -2, 2)), *within("a", "d", 0, 9))


def test_by_hand() -> None:
    assert behind(scan("a")) == {"a": 0}
    assert behind(Filter(scan("a"), TRUE)) == {"a": 0}
    # When b comes last, a can be 7 before it; when a comes last, b can be 3 before it.
    assert behind(PAIR) == {"a": 7 * UNIT, "b": 3 * UNIT}
    renamed = Project(PAIR, (("later", ColumnRef("b", DataType.TIMESTAMP)),))
    assert behind(renamed) == {"later": 3 * UNIT}
    # c meets its join when the watermark is held back by what the first join waits for: 7, and rounding.
    held = 7 * UNIT + 2000
    assert behind(NESTED) == {"a": 11 * UNIT + held, "b": 4 * UNIT + held, "c": held}


def test_of_a_derived_stream() -> None:
    """The engine goes by one of the times; the others are as far from it as the bounds say."""
    stream = DerivedStream("via", "west", PAIR)
    assert behind(stream.scan()) == {"a": 7 * UNIT, "b": 3 * UNIT}
    third = join(stream.scan(), scan("c"), *within("b", "c", 1, 4))
    assert behind(third) == {"a": 11 * UNIT, "b": 4 * UNIT, "c": 2 * UNIT}


@pytest.mark.parametrize(("plan", "seeds"), [(PAIR, 40), (NESTED, 6), (BUSHY, 3)])
def test_rows_keep_what_is_promised(plan: IntervalJoin, seeds: int) -> None:
    """Batches of rows, some of them late, joined by the letter: no eviction, so more than an engine gives."""
    promise = behind(plan)
    nearest: dict[str, int] = {}
    for watermark, row in (given for seed in range(seeds) for given in _run(plan, random.Random(seed))):
        for time, value in row.items():
            room = value - (watermark - promise[time])
            assert room > 0, f"{time} of {row} is not later than {watermark} - {promise[time]}"
            nearest[time] = min(nearest.get(time, room), room)
    if plan is PAIR:
        assert set(nearest.values()) == {UNIT}, "and no more could be promised"


def _run(plan: IntervalJoin, rng: random.Random) -> list[tuple[int, dict[str, int]]]:
    """Every row that the plan gives, with the watermark by which its batch found rows late."""
    names = sorted({node.stream for node in _scans(plan)})
    held = {name: _held(plan, name) for name in names}
    kept: dict[str, Kept] = {name: [] for name in names}
    newest = dict.fromkeys(names, 0)
    watermark, given = [0, 0], []
    for batch in range(25):
        late = watermark[-2]
        for name in names:
            times = [newest[name] + rng.randint(-25, 12) * UNIT for _ in range(rng.randint(0, 3))]
            kept[name] += [(t, batch) for t in times if t > late - held[name]]
            newest[name] = max([newest[name], *times])
        watermark.append(max(watermark[-1], min(newest.values()) - 5 * UNIT))
        given += [(late, row) for row in _joined(plan, kept, batch)]
        oldest = watermark[-1] - 40 * UNIT
        kept = {name: [one for one in rows if one[0] > oldest] for name, rows in kept.items()}
    return given


def _joined(plan: IntervalJoin, kept: Mapping[str, Kept], batch: int) -> list[dict[str, int]]:
    """The rows that have come with this batch, all bounds kept: they follow for every two times."""
    found: list[tuple[dict[str, int], bool]] = [({}, False)]
    for name, rows in kept.items():
        found = [
            ({**row, name: time}, new or came == batch)
            for row, new in found
            for time, came in rows
            if all(
                time - known <= plan.bounds[x, name] and known - time <= plan.bounds[name, x]
                for x, known in row.items()
            )
        ]
    return [row for row, new in found if new]


def _scans(plan: LogicalPlan) -> list[StreamScan]:
    if isinstance(plan, StreamScan):
        return [plan]
    return [scan for child in plan.inputs for scan in _scans(child)]


def _held(plan: IntervalJoin, name: str) -> int:
    """How far the watermark is held back where rows of a stream meet their first join: as far as the join
    beside it can be apart."""
    first = next(side for side in (plan, *plan.inputs) if any(i == scan(name) for i in side.inputs))
    assert isinstance(first, IntervalJoin)
    below = [side for side in first.inputs if isinstance(side, IntervalJoin)]
    return max((abs(most) for side in below for most in side.bounds.values()), default=0)


STREAM = DerivedStream("via", "west", PAIR)
MAKER = ChannelJob("make", "west", PAIR, writes="via")
READER = ChannelJob("q", "south", STREAM.scan(), query="q")


def test_a_plan_and_its_parts() -> None:
    plan = ChannelPlan((STREAM,), (MAKER, READER))
    assert plan.readers("via") == (READER,)
    assert plan.maker("via") == MAKER
    assert plan.downstream("make") == (READER,) and plan.downstream("q") == ()
    assert plan.base_streams() == ("a", "b")
    assert MAKER.joins and not READER.joins
    assert MAKER.fingerprint != READER.fingerprint


def test_steps_stop_readers_first_and_start_makers_first() -> None:
    running = ChannelPlan((STREAM,), (MAKER, READER))
    moved = replace(READER, site="east")
    assert channel_steps(running, running) == ChannelSteps((), (), ())
    assert channel_steps(running, ChannelPlan((), ())) == ChannelSteps((READER, MAKER), (), ("via",))
    assert channel_steps(ChannelPlan((), ()), running).start == (MAKER, READER)
    found = channel_steps(running, ChannelPlan((STREAM,), (MAKER, moved)))
    assert found == ChannelSteps((READER,), (moved,), ())
    assert moved.fingerprint == READER.fingerprint


RELAY = ChannelJob("relay", "east", STREAM.scan(), writes="via_east")
COPY = DerivedStream("via_east", "east", PAIR)
FAR = ChannelJob("far", "south", COPY.scan(), query="far")
CHAIN = ChannelPlan((STREAM, COPY), (MAKER, RELAY, READER, FAR))


def test_who_is_left_needs_all_that_makes_what_it_reads() -> None:
    assert CHAIN.makers == (MAKER, RELAY) and CHAIN.ends == {"q", "far"}
    assert pruned(CHAIN, ["q", "far", "unknown"]) == CHAIN
    assert pruned(CHAIN, ["far"]) == ChannelPlan((STREAM, COPY), (MAKER, RELAY, FAR))
    assert pruned(CHAIN, ["q"]) == ChannelPlan((STREAM,), (MAKER, READER))
    assert pruned(CHAIN, ["make", "relay"]) == ChannelPlan((), ()), "what makes a stream is no end in itself"


def test_joined_plans_may_read_from_each_other() -> None:
    first, second = ChannelPlan((STREAM,), (MAKER, READER)), ChannelPlan((), ())
    assert joined(first, second) == joined(second, first) == first
    with pytest.raises(InternalError):
        joined(first, first)


def test_a_stream_is_made_where_its_job_is() -> None:
    found = moved(CHAIN, {"relay": "north", "q": "west", "gone": "x"})
    assert [job.site for job in found.jobs] == ["west", "north", "west", "south"]
    assert [stream.site for stream in found.streams] == ["west", "north"]
    assert [job.fingerprint for job in found.jobs] == [job.fingerprint for job in CHAIN.jobs]


def test_a_plan_outlives_the_process() -> None:
    assert from_data(json.loads(json.dumps(to_data(CHAIN)))) == CHAIN


def test_a_scan_keeps_any_of_the_times() -> None:
    found = STREAM.scan()
    assert found.times == ("a", "b") and found.bounds == PAIR.bounds
    assert found.keeping("b").times == ("b", "a")
    assert found.keeping("b").keeping("a") == found


def test_wrong_ones_are_refused() -> None:
    text = Schema([Column("a", DataType.TIMESTAMP), Column("t", DataType.STRING)])
    other = replace(STREAM, plan=NESTED)
    wrong: dict[str, Callable[[], object]] = {
        "is not a timestamp column": lambda: DerivedScan("via", text, "a", 0, ("t",)),
        "not all bounded": lambda: replace(STREAM.scan(), apart=()),
        "not over base streams": lambda: DerivedStream("other", "west", STREAM.scan()),
        "a wrong name": lambda: DerivedStream("no name", "west", PAIR),
        "either a stream or an answer": lambda: replace(MAKER, query="q"),
        "which no job before it makes": lambda: ChannelPlan((STREAM,), (READER, MAKER)),
        "that nobody makes": lambda: ChannelPlan((STREAM,), ()),
        "stands twice": lambda: ChannelPlan((STREAM,), (MAKER, READER, READER)),
        "does not make via as it is": lambda: ChannelPlan((STREAM,), (replace(MAKER, site="east"), READER)),
        "does not read via as it is": lambda: ChannelPlan((other,), (replace(MAKER, plan=NESTED), READER)),
        "no windows, no aggregates": lambda: behind(_windowed()),
    }
    for message, make in wrong.items():
        with pytest.raises(InternalError, match=message):
            make()


def _windowed() -> LogicalPlan:
    from headrace.plan.logical import Window, WindowSpec

    return Window(scan("a"), "a", WindowSpec(1000, 1000))
