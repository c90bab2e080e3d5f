"""What is done about what was observed, in its public form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NotRequired, TypedDict

from headrace.service.solve_admission_names import Name

if TYPE_CHECKING:
    from headrace.planners.admission.adaptive import Adapted
    from headrace.planners.admission.changes import Change

Listed = Callable[[Collection[str]], list[Name]]
"""Streams as they are written in the problem, and in its order."""


class PickedData(TypedDict):
    query: Name
    reason: str
    """`starves` or `deviates`."""
    detail: str


class DroppedData(TypedDict):
    query: Name
    why: str


StepData = TypedDict(
    "StepData",
    {
        "step": str,
        "stream": list[Name],
        "inputs": NotRequired[list[list[Name]]],
        "from": NotRequired[Name],
        "to": NotRequired[Name],
        "bytes": NotRequired[float],
    },
)


class PriceData(TypedDict):
    moved: int
    started: int
    stopped: int
    flows: int
    bytes: float
    seconds_to_fill: float


class AdaptedData(TypedDict):
    picked: list[PickedData]
    replanned: list[Name]
    dropped: list[DroppedData]
    steps: list[StepData]
    price: PriceData
    milliseconds: float


def adapted_data(done: Adapted, queries: Mapping[str, Name], listed: Listed) -> AdaptedData:
    price = done.price
    return AdaptedData(
        picked=[
            PickedData(query=queries[one.query], reason=one.reason, detail=one.detail) for one in done.picked
        ],
        replanned=[queries[name] for name in done.replanned],
        dropped=[DroppedData(query=queries[one.query], why=one.why) for one in done.dropped],
        steps=[_step(change, listed) for change in done.changes],
        price=PriceData(
            moved=price.moved,
            started=price.started,
            stopped=price.stopped,
            flows=price.flows,
            bytes=float(price.bytes),
            seconds_to_fill=float(price.seconds_to_fill),
        ),
        milliseconds=done.seconds * 1000,
    )


def _step(change: Change, listed: Listed) -> StepData:
    """With what a step of its kind has, and nothing else."""
    data: StepData = {"step": change.kind, "stream": listed(change.stream)}
    if change.inputs:
        data["inputs"] = [listed(one) for one in change.inputs]
    if change.source is not None:
        data["from"] = change.source
    if change.target is not None:
        data["to"] = change.target
    if change.kind == "move operator":
        data["bytes"] = float(change.bytes)
    return data
