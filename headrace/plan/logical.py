"""LogicalPlan: what one query computes. Nodes are frozen and refuse to exist in a wrong state.

A relation has one of three shapes:
- TABLE: static rows;
- STREAM: rows with event time; `times` names the event-time columns that are still there;
- WINDOWED: rows that belong to a window; `window` says which one and which columns hold it.

    StreamScan -> [Filter | Project | IntervalJoin | TableJoin]* -> Window -> Aggregate -> ...
    WindowJoin matches two windowed relations whose windows end at the same instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.errors import InternalError
from headrace.plan.bounds import Bounds, TimeBound, close, join_bounds, rename
from headrace.plan.expr import TRUE, AggregateCall, ColumnRef, Expr, walk
from headrace.plan.types import Column, DataType, Schema
from headrace.units import format_duration

WINDOW_START = "window_start"
WINDOW_END = "window_end"


class Shape(StrEnum):
    TABLE = "table"
    STREAM = "stream"
    WINDOWED = "windowed"


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows [k*slide, k*slide + range) for every whole k, in microseconds."""

    range: int
    slide: int

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.range or self.range % 1000 or self.slide % 1000:
            raise InternalError(f"no such window: range {self.range}us, slide {self.slide}us")

    def __str__(self) -> str:
        return f"range {format_duration(self.range)}, slide {format_duration(self.slide)}"

    def ends_align(self, other: WindowSpec) -> bool:
        """Whether every window of one ends where a window of the other does."""
        return self.slide == other.slide and (self.range - other.range) % self.slide == 0


@dataclass(frozen=True, slots=True)
class WindowInfo:
    """The window a row belongs to, and the columns that hold its ends."""

    spec: WindowSpec
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes. What follows from the inputs is computed once, in the constructor."""

    schema: Schema = field(init=False, repr=False, compare=False)
    shape: Shape = field(init=False, repr=False, compare=False)
    times: tuple[str, ...] = field(init=False, repr=False, compare=False)
    window: WindowInfo | None = field(init=False, repr=False, compare=False)
    bounds: Bounds = field(init=False, repr=False, compare=False)
    """Longest known distance between event-time columns of one row, where it is bounded."""

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return ()

    def _is(
        self,
        shape: Shape,
        schema: Schema,
        times: tuple[str, ...] = (),
        window: WindowInfo | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "bounds", bounds or {})

    def _as(self, other: Node, schema: Schema | None = None) -> None:
        """This node is like `other`, but for its schema."""
        kept = schema or other.schema
        self._is(other.shape, kept, other.times, other.window, other.bounds)


def _check(expr: Expr, schema: Schema, where: str) -> None:
    for part in walk(expr):
        if isinstance(part, ColumnRef) and (part.name not in schema or schema[part.name].type != part.type):
            raise InternalError(f"{where}: no column {part.name} {part.type} in {schema}")


def _check_on(on: tuple[tuple[Expr, Expr], ...], left: Node, right: Node, where: str) -> None:
    for mine, theirs in on:
        _check(mine, left.schema, where)
        _check(theirs, right.schema, where)


def _joined(left: Node, right: Node, residual: Expr, where: str) -> Schema:
    schema = Schema((*left.schema, *right.schema))
    _check(residual, schema, where)
    if residual.type != DataType.BOOLEAN:
        raise InternalError(f"{where}: the condition is a {residual.type}")
    return schema


@dataclass(frozen=True, slots=True)
class StreamScan(Node):
    """All rows of a stream. `watermark` is the delay in microseconds."""

    stream: str
    columns: Schema
    time: str
    watermark: int

    def __post_init__(self) -> None:
        if self.time not in self.columns or self.columns[self.time].type != DataType.TIMESTAMP:
            raise InternalError(f"stream {self.stream}: {self.time} is not a timestamp column")
        self._is(Shape.STREAM, self.columns, (self.time,))


@dataclass(frozen=True, slots=True)
class TableScan(Node):
    """All rows of a static table."""

    table: str
    columns: Schema

    def __post_init__(self) -> None:
        self._is(Shape.TABLE, self.columns)


@dataclass(frozen=True, slots=True)
class Filter(Node):
    input: LogicalPlan
    predicate: Expr

    def __post_init__(self) -> None:
        _check(self.predicate, self.input.schema, "Filter")
        if self.predicate.type != DataType.BOOLEAN:
            raise InternalError(f"Filter: the condition is a {self.predicate.type}")
        self._as(self.input)

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Project(Node):
    """New columns from old ones. Event times and the window live on where they are passed through."""

    input: LogicalPlan
    items: tuple[tuple[str, Expr], ...]

    def __post_init__(self) -> None:
        if not self.items:
            raise InternalError("Project: no columns")
        for _, expr in self.items:
            _check(expr, self.input.schema, "Project")
        passed: dict[str, str] = {}
        for name, expr in self.items:
            if isinstance(expr, ColumnRef):
                passed.setdefault(expr.name, name)
        window = self.input.window
        if window is not None:
            whole = window.start in passed and window.end in passed
            window = WindowInfo(window.spec, passed[window.start], passed[window.end]) if whole else None
        self._is(
            self.input.shape,
            Schema(Column(name, expr.type) for name, expr in self.items),
            tuple(passed[t] for t in self.input.times if t in passed),
            window,
            rename(self.input.bounds, passed),
        )

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Window(Node):
    """Each row once per window it lies in, with `window_start` and `window_end` in front."""

    input: LogicalPlan
    time: str
    spec: WindowSpec

    def __post_init__(self) -> None:
        if self.input.shape is not Shape.STREAM or self.time not in self.input.times:
            raise InternalError(f"Window: {self.time} is not an event-time column of the input")
        ends = (Column(WINDOW_START, DataType.TIMESTAMP), Column(WINDOW_END, DataType.TIMESTAMP))
        info = WindowInfo(self.spec, WINDOW_START, WINDOW_END)
        self._is(Shape.WINDOWED, Schema((*ends, *self.input.schema)), self.input.times, info)

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """One row per window and key. Gives `window_start`, `window_end`, the keys, the aggregates."""

    input: LogicalPlan
    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    def __post_init__(self) -> None:
        if self.input.window is None:
            raise InternalError("Aggregate: the input has no window")
        for _, key in self.keys:
            _check(key, self.input.schema, "Aggregate")
        for _, call in self.aggregates:
            if call.arg is not None:
                _check(call.arg, self.input.schema, "Aggregate")
        ends = (Column(WINDOW_START, DataType.TIMESTAMP), Column(WINDOW_END, DataType.TIMESTAMP))
        keys = (Column(n, e.type) for n, e in self.keys)
        calls = (Column(n, c.type) for n, c in self.aggregates)
        info = WindowInfo(self.input.window.spec, WINDOW_START, WINDOW_END)
        self._is(Shape.WINDOWED, Schema((*ends, *keys, *calls)), (), info)

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class IntervalJoin(Node):
    """Pairs of rows of two streams that agree on `on`, keep the time bounds and pass `residual`.

    At least one pair of event times, one from each side, must be bounded both ways: else a row would
    have to be kept for ever."""

    left: LogicalPlan
    right: LogicalPlan
    on: tuple[tuple[Expr, Expr], ...]
    time_bounds: tuple[TimeBound, ...]
    residual: Expr = TRUE

    def __post_init__(self) -> None:
        if self.left.shape is not Shape.STREAM or self.right.shape is not Shape.STREAM:
            raise InternalError("IntervalJoin: both inputs must be streams")
        _check_on(self.on, self.left, self.right, "IntervalJoin")
        schema = _joined(self.left, self.right, self.residual, "IntervalJoin")
        times = self.left.times + self.right.times
        for bound in self.time_bounds:
            if bound.earlier not in times or bound.later not in times:
                raise InternalError(f"IntervalJoin: {bound} is not about event times")
        bounds = close(join_bounds(self.left.bounds, self.right.bounds, self.time_bounds))
        if not any((x, y) in bounds and (y, x) in bounds for x in self.left.times for y in self.right.times):
            raise InternalError("IntervalJoin: no bound in time between the two sides")
        self._is(Shape.STREAM, schema, times, None, bounds)

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class TableJoin(Node):
    """Rows of a stream (or windowed relation) with the rows of a static table that match them.

    `outer` keeps a row without a match, with NULLs (LEFT JOIN)."""

    input: LogicalPlan
    table: LogicalPlan
    on: tuple[tuple[Expr, Expr], ...]
    residual: Expr = TRUE
    outer: bool = False

    def __post_init__(self) -> None:
        if self.table.shape is not Shape.TABLE or self.input.shape is Shape.TABLE:
            raise InternalError("TableJoin: takes a stream on the left and a table on the right")
        _check_on(self.on, self.input, self.table, "TableJoin")
        self._as(self.input, _joined(self.input, self.table, self.residual, "TableJoin"))

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input, self.table)


@dataclass(frozen=True, slots=True)
class WindowJoin(Node):
    """Pairs of rows whose windows end at the same instant, that agree on `on` and pass `residual`.

    The window of the result is the left one."""

    left: LogicalPlan
    right: LogicalPlan
    on: tuple[tuple[Expr, Expr], ...]
    residual: Expr = TRUE

    def __post_init__(self) -> None:
        mine, theirs = self.left.window, self.right.window
        if mine is None or theirs is None or not mine.spec.ends_align(theirs.spec):
            raise InternalError("WindowJoin: the windows of the two sides do not end together")
        _check_on(self.on, self.left, self.right, "WindowJoin")
        schema = _joined(self.left, self.right, self.residual, "WindowJoin")
        self._is(Shape.WINDOWED, schema, (), mine)

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.left, self.right)


LogicalPlan = (
    StreamScan | TableScan | Filter | Project | Window | Aggregate | IntervalJoin | TableJoin | WindowJoin
)


def nodes(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """All nodes, inputs before the nodes that read them, left before right."""
    for child in plan.inputs:
        yield from nodes(child)
    yield plan


def streams_of(plan: LogicalPlan) -> tuple[str, ...]:
    """Names of the streams a plan reads, each once, in the order of first use."""
    return tuple(dict.fromkeys(n.stream for n in nodes(plan) if isinstance(n, StreamScan)))


def tables_of(plan: LogicalPlan) -> tuple[str, ...]:
    """Names of the static tables a plan reads, each once."""
    return tuple(dict.fromkeys(n.table for n in nodes(plan) if isinstance(n, TableScan)))
