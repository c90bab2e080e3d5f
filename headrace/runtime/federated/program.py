"""What a federated job does with each micro-batch, made once from its members.

feeds     relations that Spark gives, each once, with all the columns that any member reads
steps     parts about rows of streams, done for the new rows of a batch, in order
kept      relations of which rows are kept for windows that are still to be given
members   for each query the parts over windows, in order; the last one gives its answer
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headrace.errors import NotSupported
from headrace.plan import logical as lp
from headrace.plan.federated import FederatedJob, FederatedMember
from headrace.plan.federated_parts import (
    Part,
    Parts,
    columns_read,
    cut_freely,
    delay,
    held_back,
    in_order,
    widened,
)
from headrace.plan.types import Schema


@dataclass(frozen=True, slots=True)
class Feed:
    number: int
    node: lp.LogicalPlan
    schema: Schema


@dataclass(frozen=True, slots=True)
class Kept:
    """A relation of which rows are kept. `time` is the event time that `windows` open on; of a relation that
    has windows already, the column with their ends. Joined rows that have windows on two of their times are
    kept twice: a row is not needed for as long by the one as by the other."""

    name: str
    node: lp.LogicalPlan
    schema: Schema
    time: str
    windows: tuple[lp.Window, ...]

    @property
    def span(self) -> int:
        """The longest time that a row may be needed for."""
        if self.node.window is not None:
            return self.node.window.spec.slide
        return max(window.spec.range for window in self.windows)

    def is_read_by(self, part: Part) -> bool:
        return self.node in part.inputs and _time(part, self.node) == self.time


@dataclass(frozen=True, slots=True)
class Member:
    query: str
    plan: lp.LogicalPlan
    after: int | None
    parts: tuple[Part, ...]
    """Over windows, inputs first. Empty: the answer is given by a feed or a step as it is."""
    kept: tuple[Kept, ...]
    """What the parts read of what is kept."""
    delay: int
    """Windows are given so much after the watermark has passed their end; where Spark gives them alone, by
    then at the latest."""

    @property
    def spec(self) -> lp.WindowSpec:
        """All windows of a query end together, so any of them tells when."""
        return next(node.window.spec for node in lp.nodes(self.plan) if node.window is not None)


@dataclass(frozen=True, slots=True)
class Program:
    feeds: tuple[Feed, ...]
    steps: tuple[Part, ...]
    kept: tuple[Kept, ...]
    members: tuple[Member, ...]
    columns: dict[lp.LogicalPlan, tuple[str, ...]]
    """What is read of every relation that travels."""

    def feed(self, node: lp.LogicalPlan) -> Feed | None:
        return next((feed for feed in self.feeds if feed.node == node), None)


def program_of(job: FederatedJob) -> Program:
    """Raises NotSupported for a query that opens windows on two event times of the same joined rows, in one
    part."""
    plans = widened(tuple(member.plan for member in job.members))
    members = [replace(m, plan=plan) for m, plan in zip(job.members, plans, strict=True)]
    parts = _together([cut_freely(member) for member in members])
    ordered = in_order(parts, plans)
    columns = columns_read(ordered, plans)
    feeds = tuple(
        Feed(number, part.root, _picked(part.root.schema, columns[part.root]))
        for number, part in enumerate(p for p in ordered if p.is_feed)
    )
    steps = tuple(p for p in ordered if not p.is_feed and p.root.shape is lp.Shape.STREAM)
    kept = _kept([p for p in ordered if p not in steps], columns)
    return Program(feeds, steps, kept, tuple(_member(m, parts, kept) for m in members), columns)


def _together(cuts: list[Parts]) -> Parts:
    """The parts of all members. Where two give the same relation, a feed is taken: it is there anyway."""
    found: Parts = {}
    for parts in cuts:
        for node, part in parts.items():
            if node not in found or part.is_feed:
                found[node] = part
    return found


def _picked(schema: Schema, names: tuple[str, ...]) -> Schema:
    return Schema(column for column in schema if column.name in names)


def _kept(parts: list[Part], columns: dict[lp.LogicalPlan, tuple[str, ...]]) -> tuple[Kept, ...]:
    windows: dict[tuple[lp.LogicalPlan, str], dict[lp.Window, None]] = {}
    given = {part.root for part in parts if not part.is_feed}
    for part in parts:
        for node in part.inputs:
            if node.shape is lp.Shape.STREAM or node not in given:
                opened = {window: None for window in part.windows() if window.input == node}
                windows.setdefault((node, _time(part, node)), {}).update(opened)
    return tuple(
        Kept(str(number), node, _picked(node.schema, columns[node]), time, tuple(opened))
        for number, ((node, time), opened) in enumerate(windows.items())
    )


def _time(part: Part, node: lp.LogicalPlan) -> str:
    """By which a part reads the rows of an input that are kept."""
    if node.window is not None:
        return node.window.end
    times = {window.time for window in part.windows() if window.input == node}
    if len(times) != 1:
        raise NotSupported(
            "windows on two event times of the same joined rows, in queries split between two engines",
            detail=f"Both {' and '.join(sorted(times))} are used.",
            hint="Run the query on Spark alone.",
        )
    return times.pop()


def _member(member: FederatedMember, parts: Parts, kept: tuple[Kept, ...]) -> Member:
    mine = in_order(parts, [member.plan])
    over = tuple(p for p in mine if not p.is_feed and p.root.shape is lp.Shape.WINDOWED)
    opened = [window for part in over for window in part.windows()]
    held = max((delay(w.input, w.time) for w in opened), default=0) if over else held_back(member.plan)
    found = tuple(k for k in kept if any(k.is_read_by(part) for part in over))
    return Member(member.query, member.plan, member.after, over, found, held)


def counted(program: Program) -> dict[str, dict[int, str]]:
    """Of each query the nodes whose rows are counted, by their number in the order of `logical.nodes`, and
    the name that they are counted under. Queries that share rows share the name."""
    shared, found = row_names(program), {}
    for member in program.members:
        own = shared | {part.root: part_name(member, k) for k, part in enumerate(member.parts)}
        found[member.query] = {
            number: own[node] for number, node in enumerate(lp.nodes(member.plan)) if node in own
        }
    return found


def row_names(program: Program) -> dict[lp.LogicalPlan, str]:
    """What is there of a batch before any window is given."""
    known = [*(feed.node for feed in program.feeds), *(step.root for step in program.steps)]
    return {relation: f"r{number}" for number, relation in enumerate(known)}


def part_name(member: Member, number: int) -> str:
    return f"{number} {member.query}"


def late_windows(member: Member) -> Iterator[lp.Window]:
    """The windows at whose door rows of a member can be found late; above a join of streams nothing is."""
    seen = dict.fromkeys(window for part in member.parts for window in part.windows())
    for window in seen:
        if not any(isinstance(node, lp.IntervalJoin) for node in lp.nodes(window.input)):
            yield window
