"""The cut of split queries into parts, and what travels between them.

A part makes the rows of its `root` on one engine from the rows of its `inputs`, which other parts give. A
part without inputs is a feed: Spark makes it natively, from the streams. Equal sub-plans have equal rows, so
a relation is known by its node, and whoever gives it gives it to all who read it; where it could be a feed,
it is one.

What is below a window is always an input: those rows are kept, in window tables, for all the windows they lie
in. So a part is either about rows of streams, done once for the new rows of a batch, or about windows, done
for the windows that have ended.

A windowed relation made by Spark alone is a feed only where Spark is known to give the rows of a window in
the very batch whose watermark closes it (`_is_timely`). Otherwise it is a part above the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.expr import ColumnRef, Expr, Literal, columns_of, walk
from headrace.plan.federated import Engine, FederatedMember
from headrace.plan.types import DataType, Schema

_CHOSEN = (lp.Filter, lp.Aggregate, lp.WindowJoin, lp.TableJoin)
Columns = dict[lp.LogicalPlan, frozenset[str]]
Parts = dict[lp.LogicalPlan, "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    engine: Engine
    root: lp.LogicalPlan
    inputs: tuple[lp.LogicalPlan, ...]

    @property
    def is_feed(self) -> bool:
        return not self.inputs

    def windows(self) -> tuple[lp.Window, ...]:
        """The windows over kept rows that the part reads; those of a feed are Spark's own."""
        return () if self.is_feed else tuple(dict.fromkeys(_windows(self.root, frozenset(self.inputs))))


def _windows(node: lp.LogicalPlan, inputs: frozenset[lp.LogicalPlan]) -> Iterator[lp.Window]:
    if node in inputs:
        return
    if isinstance(node, lp.Window):
        yield node
    for child in node.inputs:
        yield from _windows(child, inputs)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A node where it stands in the plan, with the engine that does it; None: whoever reads it."""

    node: lp.LogicalPlan
    engine: Engine | None
    inputs: tuple[_Placed, ...]

    @property
    def on_spark(self) -> bool:
        """Whether Spark does this and all below it."""
        return self.engine is Engine.SPARK and all(child.on_spark for child in self.inputs)


def cut(member: FederatedMember) -> tuple[Part, ...]:
    """The parts of a split query, inputs before those that read them; the last one gives the answer."""
    parts = cut_freely(member)
    return in_order(parts, [member.plan])


def cut_freely(member: FederatedMember) -> Parts:
    """Every part that the split asks for, by what it gives; some may be needless (`in_order` leaves them
    out)."""
    engines = iter(member.engines)
    placed = _placed(member.plan, engines)
    # A window that nothing stands above is done where its rows are made.
    top = next((p.engine for p in _all(placed) if p.engine is not None), Engine.SPARK)
    whole = _decided(placed, top)
    parts: Parts = {}
    if whole.on_spark:
        return {member.plan: Part(Engine.SPARK, member.plan, ())}
    _give(whole, parts)
    return parts


def in_order(parts: Mapping[lp.LogicalPlan, Part], wanted: Iterable[lp.LogicalPlan]) -> tuple[Part, ...]:
    """The parts that are needed for the wanted relations, inputs first."""
    found: dict[lp.LogicalPlan, Part] = {}

    def visit(node: lp.LogicalPlan) -> None:
        if node not in found:
            for below in parts[node].inputs:
                visit(below)
            found[node] = parts[node]

    for node in wanted:
        visit(node)
    return tuple(found.values())


def _all(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for child in placed.inputs:
        yield from _all(child)


def _placed(node: lp.LogicalPlan, engines: Iterator[Engine]) -> _Placed:
    if isinstance(node, lp.IntervalJoin):
        return _Placed(node, Engine.SPARK, ())
    inputs = tuple(_placed(child, engines) for child in node.inputs)
    match node:
        case lp.StreamScan():
            engine: Engine | None = Engine.SPARK
        case lp.Project() if node.shape is not lp.Shape.TABLE:
            engine = inputs[0].engine
        case _ if isinstance(node, _CHOSEN) and node.shape is not lp.Shape.TABLE:
            engine = next(engines)
        case _:
            engine = None
    return _Placed(node, engine, inputs)


def _decided(placed: _Placed, reader: Engine) -> _Placed:
    engine = placed.engine or reader
    return replace(placed, engine=engine, inputs=tuple(_decided(child, engine) for child in placed.inputs))


def _give(placed: _Placed, parts: Parts) -> None:
    """See to it that some part gives this relation."""
    node = placed.node
    if _is_feed(placed):
        parts[node] = Part(Engine.SPARK, node, ())
        return
    inputs = tuple(dict.fromkeys(_inputs(placed, parts)))
    if placed.engine is None or not inputs:
        raise InternalError("a part of a split query has no engine, or nothing to read")
    parts.setdefault(node, Part(placed.engine, node, inputs))


def _is_feed(placed: _Placed) -> bool:
    node = placed.node
    windowed = node.window is not None and _is_timely(node)
    return placed.on_spark and (node.shape is lp.Shape.STREAM or windowed)


def _inputs(placed: _Placed, parts: Parts) -> Iterator[lp.LogicalPlan]:
    for child in placed.inputs:
        if child.node.shape is lp.Shape.TABLE:
            continue
        kept = isinstance(placed.node, lp.Window)
        if kept or child.engine is not placed.engine or _is_feed(child):
            _give(child, parts)
            yield child.node
        else:
            yield from _inputs(child, parts)


# -- what Spark gives, and when ---------------------------------------------------------------------


def _is_timely(node: lp.LogicalPlan) -> bool:
    """Whether Spark's own plan gives all rows of a window in the batch whose watermark is the first beyond
    its end. Not so where the watermark is held back on its way up: above joins of streams, and above joins of
    windows."""
    match node:
        case lp.Aggregate():
            below = node.input
            return _is_plain_window(below) or (_is_timely(below) and not _has(below, lp.WindowJoin))
        case lp.Filter() | lp.Project() | lp.TableJoin():
            return _is_timely(node.input)
        case lp.WindowJoin():
            sides = [_is_timely(side) for side in node.inputs]
            return any(sides) and all(
                done or _is_plain_window(side) for done, side in zip(sides, node.inputs, strict=True)
            )
    return False


def _is_plain_window(node: lp.LogicalPlan) -> bool:
    """Rows of a window as they came, from a single stream."""
    while isinstance(node, lp.Filter | lp.Project | lp.TableJoin):
        node = node.input
    return isinstance(node, lp.Window) and not _has(node, lp.IntervalJoin)


def _has(plan: lp.LogicalPlan, kind: type[lp.LogicalPlan]) -> bool:
    return any(isinstance(node, kind) for node in lp.nodes(plan))


def delay(node: lp.LogicalPlan, time: str) -> int:
    """How far behind the watermark a row of a stream may still appear, in microseconds: a joined row is made
    when the later of the two comes, and its other time may be older than that."""
    match node:
        case lp.Filter() | lp.TableJoin():
            return delay(node.input, time)
        case lp.Project():
            source = dict(node.items)[time]
            if isinstance(source, ColumnRef):
                return delay(node.input, source.name)
        case lp.IntervalJoin():
            mine, other = node.inputs if time in node.left.times else (node.right, node.left)
            through = [
                node.bounds[time, later] + delay(other, later)
                for later in other.times
                if (time, later) in node.bounds
            ]
            if through:
                return max(0, delay(mine, time), min(through))
        case lp.StreamScan():
            return 0
    raise InternalError(f"{time} is no event time that can be followed down")


_CUT = 2_000
"""What rounding to Spark's milliseconds may add to what a join of streams holds back, in microseconds."""


def held_back(plan: lp.LogicalPlan) -> int:
    """How far behind the watermark Spark may be, at most, with the windows of a plan that it does alone, in
    microseconds.

    Above a join of streams its watermark is the least that either side may still need, whichever of the two
    times is used above: the wider of the join's bounds behind what comes from below. It solves every
    comparison that it finds in the join's condition and goes by the widest, with filters that it has pushed
    down into the condition: so the intervals of all expressions count. Joins may stand on each other, so they
    add up. Joins of windows hold back no more than a window is long.

    Too much makes a job that hands over run on for a while; too little loses windows."""
    held = max((node.spec.range for node in lp.nodes(plan) if isinstance(node, lp.Window)), default=0)
    joins = [node for node in lp.nodes(plan) if isinstance(node, lp.IntervalJoin)]
    if not joins:
        return held
    return held + sum(map(_widest, joins)) + sum(_intervals(plan))


def _widest(join: lp.IntervalJoin) -> int:
    """Any time of one side may be the one that Spark bounds by one of the other."""
    mine = frozenset(join.left.times)
    stated = (bound.at_most for bound in join.time_bounds)
    across = (most for (one, other), most in join.bounds.items() if (one in mine) != (other in mine))
    return max(0, *stated, *across) + _CUT


def _intervals(plan: lp.LogicalPlan) -> Iterator[int]:
    for node in lp.nodes(plan):
        for expr in _conditions(node):
            for part in walk(expr):
                if isinstance(part, Literal) and part.type is DataType.INTERVAL and part.value is not None:
                    yield abs(int(part.value))


def _conditions(node: lp.LogicalPlan) -> Iterator[Expr]:
    match node:
        case lp.Filter():
            yield node.predicate
        case lp.Project():
            yield from (expr for _, expr in node.items)
        case lp.IntervalJoin():
            yield node.residual


# -- which columns travel ---------------------------------------------------------------------------


def columns_read(
    parts: Iterable[Part], roots: Iterable[lp.LogicalPlan]
) -> dict[lp.LogicalPlan, tuple[str, ...]]:
    """For each relation that a part gives, the columns that anyone reads, in the order of its schema. All of
    an answer's; the ends of a window always; `parts` come inputs first."""
    found: Columns = {root: frozenset(root.schema.names) for root in roots}
    ordered = list(parts)
    for part in reversed(ordered):
        node = part.root
        found[node] = found.get(node, frozenset()) | _ends(node)
        if not part.is_feed:
            _read(node, found[node], frozenset(part.inputs) - {node}, found)
    return {p.root: tuple(name for name in p.root.schema.names if name in found[p.root]) for p in ordered}


def _read(
    node: lp.LogicalPlan, needed: frozenset[str], inputs: frozenset[lp.LogicalPlan], found: Columns
) -> None:
    if node in inputs:
        found[node] = found.get(node, frozenset()) | (needed & frozenset(node.schema.names))
        return
    more = needed | _own_reads(node, needed)
    for child in node.inputs:
        _read(child, more & frozenset(child.schema.names), inputs, found)


def _own_reads(node: lp.LogicalPlan, needed: frozenset[str]) -> frozenset[str]:
    """What a node reads of its inputs, besides what is passed through."""
    match node:
        case lp.Filter():
            return columns_of(node.predicate)
        case lp.Project():
            return _of(e for name, e in node.items if name in needed)
        case lp.Window():
            return frozenset({node.time})
        case lp.Aggregate():
            calls = (c.arg for _, c in node.aggregates if c.arg is not None)
            return _of((*(key for _, key in node.keys), *calls)) | _ends(node.input)
        case lp.WindowJoin() | lp.TableJoin():
            on = _of(e for pair in node.on for e in pair) | columns_of(node.residual)
            return on | frozenset[str]().union(*map(_ends, node.inputs))
    return frozenset()


def _of(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset[str]().union(*map(columns_of, exprs))


def _ends(node: lp.LogicalPlan) -> frozenset[str]:
    return frozenset() if node.window is None else frozenset({node.window.start, node.window.end})


# -- one feed for queries that read other columns of the same rows ----------------------------------


def widened(plans: tuple[lp.LogicalPlan, ...]) -> tuple[lp.LogicalPlan, ...]:
    """The plans with every stream read with the columns that any of them reads, so that what reads the same
    rows is the same node. A plan stays as it is where that would change its answer's columns or bring two of
    one name together."""
    read: dict[tuple[str, str, int], dict[str, None]] = {}
    schemas: dict[str, dict[str, lp.StreamScan]] = {}
    for plan in plans:
        for node in lp.nodes(plan):
            if isinstance(node, lp.StreamScan):
                read.setdefault(_source(node), {}).update(dict.fromkeys(node.columns.names))
                schemas.setdefault(node.stream, {}).update(dict.fromkeys(node.columns.names, node))
    wide = {
        key: Schema(schemas[key[0]][name].columns[name] for name in sorted(names))
        for key, names in read.items()
    }
    return tuple(_widened(plan, wide) for plan in plans)


def _source(scan: lp.StreamScan) -> tuple[str, str, int]:
    return scan.stream, scan.time, scan.watermark


def _widened(plan: lp.LogicalPlan, wide: Mapping[tuple[str, str, int], Schema]) -> lp.LogicalPlan:
    def rebuilt(node: lp.LogicalPlan) -> lp.LogicalPlan:
        if isinstance(node, lp.StreamScan):
            return replace(node, columns=wide[_source(node)])
        changed: dict[str, Any] = {
            name: rebuilt(getattr(node, name))
            for name in ("input", "table", "left", "right")
            if isinstance(getattr(node, name, None), lp.Node)
        }
        return replace(node, **changed) if changed else node

    try:
        made = rebuilt(plan)
    except InternalError:
        return plan
    return made if made.schema == plan.schema else plan
