"""Every node: what it derives from its inputs, and the states it refuses to exist in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.errors import InternalError
from headrace.plan.bounds import TimeBound
from headrace.plan.expr import ColumnRef, Literal
from headrace.plan.logical import (
    Aggregate,
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    Shape,
    StreamScan,
    TableJoin,
    Window,
    WindowInfo,
    WindowJoin,
    WindowSpec,
    nodes,
    streams_of,
    tables_of,
)
from tests.unit.plan.building import (
    MINUTE,
    PLUGS,
    READINGS,
    SECOND,
    SLIDING,
    SWITCHES,
    T,
    agg,
    call,
    col,
    columns,
    interval_join,
    project,
    schema,
    window,
    within,
)

WINDOWED = window(READINGS)
COUNTED = Aggregate(WINDOWED, columns(WINDOWED, "k"), (("n", agg("count")),))
OTHER = project(COUNTED, k2="k", n2="n", s2="window_start", e2="window_end")


def test_a_scan_is_a_stream_with_its_event_time() -> None:
    assert (READINGS.shape, READINGS.times, READINGS.window) == (Shape.STREAM, ("ts",), None)
    assert PLUGS.shape is Shape.TABLE


def test_a_window_puts_its_ends_in_front_and_keeps_the_event_time() -> None:
    assert WINDOWED.schema.names == ("window_start", "window_end", "ts", "k", "v", "s")
    assert WINDOWED.window == WindowInfo(MINUTE, "window_start", "window_end")
    assert (WINDOWED.shape, WINDOWED.times) == (Shape.WINDOWED, ("ts",))


def test_an_aggregate_gives_the_window_the_keys_and_the_calls() -> None:
    assert [str(c) for c in COUNTED.schema] == [
        "window_start timestamp",
        "window_end timestamp",
        "k int",
        "n bigint",
    ]
    assert (COUNTED.window, COUNTED.times) == (WINDOWED.window, ())


def test_a_projection_passes_event_times_and_windows_on_under_their_new_names() -> None:
    assert project(READINGS, "k", at="ts").times == ("at",)
    assert project(READINGS, "k").times == ()
    assert OTHER.window == WindowInfo(MINUTE, "s2", "e2")
    assert project(COUNTED, "window_end", "n").window is None
    later = Project(READINGS, (("ts", call("+", col(READINGS, "ts"), Literal(1, T.INTERVAL))),))
    assert later.times == ()


def test_an_interval_join_closes_its_bounds_over_three_streams() -> None:
    third = StreamScan("third", schema(ts3=T.TIMESTAMP, k3=T.INT), "ts3", 0)
    two = interval_join()
    three = IntervalJoin(two, third, (), within(5, "ts2", "ts3"))
    assert three.times == ("ts", "ts2", "ts3")
    assert three.bounds["ts", "ts3"] == 15 * SECOND
    assert three.bounds["ts3", "ts"] == 15 * SECOND


def test_a_table_join_is_what_its_stream_is() -> None:
    on = ((col(WINDOWED, "k"), col(PLUGS, "pk")),)
    joined = TableJoin(WINDOWED, PLUGS, on)
    assert (joined.shape, joined.window, joined.times) == (Shape.WINDOWED, WINDOWED.window, ("ts",))
    assert joined.schema.names[-3:] == ("pk", "name", "watts")


def test_a_window_join_has_the_left_window() -> None:
    joined = WindowJoin(COUNTED, OTHER, ((col(COUNTED, "k"), col(OTHER, "k2")),))
    assert joined.window == COUNTED.window
    assert joined.schema.names == (*COUNTED.schema.names, *OTHER.schema.names)


V = col(READINGS, "v")
WRONG: dict[str, Callable[[], object]] = {
    "scan: no such time": lambda: StreamScan("x", schema(a=T.INT), "ts", 0),
    "scan: time is a number": lambda: StreamScan("x", schema(ts=T.BIGINT), "ts", 0),
    "filter: unknown column": lambda: Filter(READINGS, ColumnRef("nope", T.BOOLEAN)),
    "filter: column of another type": lambda: Filter(READINGS, ColumnRef("v", T.BOOLEAN)),
    "filter: not a condition": lambda: Filter(READINGS, V),
    "project: nothing": lambda: Project(READINGS, ()),
    "project: a name twice": lambda: Project(READINGS, (("a", V), ("a", V))),
    "project: unknown column": lambda: Project(PLUGS, (("a", V),)),
    "window: over a table": lambda: Window(PLUGS, "name", MINUTE),
    "window: not an event time": lambda: window(READINGS, time="k"),
    "window: the event time is gone": lambda: window(project(READINGS, "k", "v")),
    "window: of a window": lambda: window(WINDOWED),
    "window: its names are taken": lambda: window(project(READINGS, "ts", window_end="k")),
    "aggregate: no window": lambda: Aggregate(READINGS, (), (("n", agg("count")),)),
    "aggregate: the window is gone": lambda: Aggregate(project(COUNTED, "n"), (), (("n", agg("count")),)),
    "aggregate: unknown key": lambda: Aggregate(WINDOWED, (("z", ColumnRef("z", T.INT)),), ()),
    "aggregate: unknown argument": lambda: Aggregate(
        WINDOWED, (), (("z", agg("max", ColumnRef("z", T.INT))),)
    ),
    "aggregate: a name twice": lambda: Aggregate(WINDOWED, columns(WINDOWED, "k"), (("k", agg("count")),)),
    "interval join: one way only": lambda: IntervalJoin(READINGS, SWITCHES, (), within(1)[:1]),
    "interval join: no bound": lambda: IntervalJoin(READINGS, SWITCHES, (), ()),
    "interval join: bound on no time": lambda: IntervalJoin(
        READINGS, SWITCHES, (), (TimeBound("ts", "k2", 1),)
    ),
    "interval join: a name on both sides": lambda: IntervalJoin(
        READINGS, READINGS, (), within(1, "ts", "ts")
    ),
    "interval join: with a table": lambda: IntervalJoin(READINGS, PLUGS, (), within(1)),
    "interval join: keys swapped": lambda: IntervalJoin(
        READINGS, SWITCHES, ((col(SWITCHES, "k2"), col(READINGS, "k")),), within(1)
    ),
    "interval join: not a condition": lambda: IntervalJoin(READINGS, SWITCHES, (), within(1), V),
    "table join: two streams": lambda: TableJoin(READINGS, SWITCHES, ()),
    "table join: two tables": lambda: TableJoin(PLUGS, PLUGS, ()),
    "window join: no window": lambda: WindowJoin(READINGS, OTHER, ()),
    "window join: windows apart": lambda: WindowJoin(
        COUNTED, project(window(SWITCHES, SLIDING, "ts2"), "k2", a="window_start", b="window_end"), ()
    ),
}


@pytest.mark.parametrize("build", WRONG.values(), ids=WRONG.keys())
def test_wrong_states_cannot_exist(build: Callable[[], object]) -> None:
    with pytest.raises(InternalError):
        build()


@pytest.mark.parametrize(
    ("size", "slide"), [(0, 0), (10, 20), (1_000_500, 1_000), (5_000, 0), (-1_000, -1_000)]
)
def test_windows_that_make_no_sense_cannot_exist(size: int, slide: int) -> None:
    with pytest.raises(InternalError, match="no such window"):
        WindowSpec(size, slide)


def ends(spec: WindowSpec) -> set[int]:
    """Ends of the windows near zero, one by one."""
    return {k * spec.slide + spec.range for k in range(-500, 500)}


@pytest.mark.parametrize("mine", [(6, 2), (5, 2), (4, 2), (6, 3), (4, 4)])
@pytest.mark.parametrize("theirs", [(6, 2), (5, 2), (2, 2), (5, 3), (8, 4)])
def test_ends_align_exactly_when_the_ends_are_the_same_instants(
    mine: tuple[int, int], theirs: tuple[int, int]
) -> None:
    a, b = (WindowSpec(r * 1000, s * 1000) for r, s in (mine, theirs))
    near = range(-100_000, 100_000)
    same = {e for e in ends(a) if e in near} == {e for e in ends(b) if e in near}
    assert a.ends_align(b) is same


def test_nodes_come_inputs_first_and_names_come_once() -> None:
    joined: LogicalPlan = TableJoin(interval_join(), PLUGS, ())
    assert [type(n).__name__ for n in nodes(joined)] == [
        "StreamScan",
        "StreamScan",
        "IntervalJoin",
        "TableScan",
        "TableJoin",
    ]
    assert streams_of(joined) == ("readings", "switches")
    assert tables_of(joined) == ("plugs",)
    assert streams_of(WindowJoin(COUNTED, OTHER, ())) == ("readings",)
