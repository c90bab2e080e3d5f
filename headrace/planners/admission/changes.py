"""From one plan to another: the steps, in an order in which they can be done, and their price.

Everything new starts before anything old stops, and only once its inputs are there; what stops does so after
all that read it. In between both run, so a host near its limits is over them for the time of the change. An
operator that moves takes its state along, the rows of its inputs within a window (rate x window x bytes), and
stops at its old host with the rest. One that has not run before fills its window by waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.planners.admission.problem import AdmissionProblem, Host, Operator, Plan, Stream

Kind = Literal[
    "move operator", "start operator", "stop operator", "start flow", "stop flow", "deliver", "end"
]
Item = tuple[Host, Operator] | tuple[Host, Host, Stream]


@dataclass(frozen=True, slots=True)
class StateSize:
    """What an operator keeps."""

    window: float = 60.0
    """Seconds."""
    bytes_of_rate: float = 125_000.0
    """In a second, of a unit of rate; as given for rates in Mbps."""

    def of(self, problem: AdmissionProblem, one: Operator) -> float:
        return (problem.rate(one.left) + problem.rate(one.right)) * self.window * self.bytes_of_rate


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    stream: tuple[str, ...]
    """That is made, sent or delivered."""
    inputs: tuple[tuple[str, ...], ...] = ()
    """Of an operator."""
    source: str | int | None = None
    """Host that ran, sent or delivered it."""
    target: str | int | None = None
    """Host that runs, receives or delivers it now."""
    bytes: float = 0.0
    """Of state that moves."""


@dataclass(frozen=True, slots=True)
class Price:
    moved: int
    """Operators that run elsewhere now."""
    started: int
    """Without state."""
    stopped: int
    """For good; the old places of those that moved are not counted."""
    flows: int
    """Started and stopped."""
    bytes: float
    """Of state that moves."""
    seconds_to_fill: float
    """Until operators that start without state have seen a whole window."""


def changes_of(problem: AdmissionProblem, before: Plan, after: Plan, size: StateSize) -> list[Change]:
    origin = _moves(before, after)
    starts = [
        _start(problem, item, None if len(item) == 3 else origin.get(item), size)
        for item in _in_order(problem, after)
        if item not in before.placements and item not in before.flows
    ]
    stops = [
        _stop(problem, item)
        for item in reversed(_in_order(problem, before))
        if item not in after.placements and item not in after.flows
    ]
    return [*starts, *_deliveries(problem, before, after), *stops]


def price_of(changes: Sequence[Change], size: StateSize) -> Price:
    kinds = [change.kind for change in changes]
    moved, started = kinds.count("move operator"), kinds.count("start operator")
    return Price(
        moved=moved,
        started=started,
        stopped=kinds.count("stop operator") - moved,
        flows=kinds.count("start flow") + kinds.count("stop flow"),
        bytes=sum(change.bytes for change in changes),
        seconds_to_fill=size.window if started else 0.0,
    )


def _moves(before: Plan, after: Plan) -> dict[tuple[Host, Operator], Host]:
    """Where an operator that is new at a host ran before: each that left a host is followed once."""
    left: defaultdict[Operator, list[Host]] = defaultdict(list)
    for host, one in sorted(before.placements - after.placements, key=lambda p: -p[0]):
        left[one].append(host)
    came = sorted(after.placements - before.placements, key=lambda p: p[0])
    return {(host, one): left[one].pop() for host, one in came if left[one]}


def _start(problem: AdmissionProblem, item: Item, origin: Host | None, size: StateSize) -> Change:
    ids = [host.id for host in problem.hosts]
    if len(item) == 3:
        return Change("start flow", _names(item[2]), source=ids[item[0]], target=ids[item[1]])
    host, one = item
    inputs = (_names(one.left), _names(one.right))
    if origin is None:
        return Change("start operator", _names(one.output), inputs, target=ids[host])
    state = size.of(problem, one)
    return Change("move operator", _names(one.output), inputs, ids[origin], ids[host], state)


def _stop(problem: AdmissionProblem, item: Item) -> Change:
    ids = [host.id for host in problem.hosts]
    if len(item) == 3:
        return Change("stop flow", _names(item[2]), source=ids[item[0]], target=ids[item[1]])
    host, one = item
    return Change("stop operator", _names(one.output), (_names(one.left), _names(one.right)), ids[host])


def _deliveries(problem: AdmissionProblem, before: Plan, after: Plan) -> list[Change]:
    ids: dict[Host | None, str | int | None] = {i: host.id for i, host in enumerate(problem.hosts)}
    found = []
    for stream in sorted(before.deliveries.keys() | after.deliveries.keys(), key=_names):
        old, new = before.deliveries.get(stream), after.deliveries.get(stream)
        if old != new:
            kind: Kind = "end" if new is None else "deliver"
            found.append(Change(kind, _names(stream), source=ids.get(old), target=ids.get(new)))
    return found


def _in_order(problem: AdmissionProblem, plan: Plan) -> list[Item]:
    """Operators and flows, each after those that it needs; equals by name."""
    have: set[Hashable] = {(base.host, frozenset({base.id})) for base in problem.streams.values()}
    items: list[Item] = sorted([*plan.placements, *plan.flows], key=_sort_key)
    found: list[Item] = []
    while items:
        ready = [item for item in items if all(need in have for need in _needs(item))]
        if not ready:
            return [*found, *items]
        found += ready
        have |= {(item[0], item[1].output) if len(item) == 2 else (item[1], item[2]) for item in ready}
        done = set(ready)
        items = [item for item in items if item not in done]
    return found


def _needs(item: Item) -> list[tuple[Host, Stream]]:
    if len(item) == 3:
        return [(item[0], item[2])]
    host, one = item
    return [(host, one.left), (host, one.right)]


def _sort_key(item: Item) -> tuple[int, tuple[str, ...], tuple[str, ...], Host, Host]:
    if len(item) == 3:
        return len(item[2]), _names(item[2]), (), item[0], item[1]
    host, one = item
    return len(one.output), _names(one.output), _names(one.left), host, host


def _names(stream: Stream) -> tuple[str, ...]:
    return tuple(sorted(stream))
