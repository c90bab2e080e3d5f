"""What became of a change, in words: the same for the command that asked for it and for the run."""

from __future__ import annotations

from headrace.service.federated_records import how_split, job_of
from headrace.state.records import Change, Deployment
from headrace.units import counted as counted  # Also for the command line, which sees no units.
from headrace.units import first_of as first_of
from headrace.units import format_instant

_NAMED = 5


def tell(change: Change, deployment: Deployment) -> str:
    if change.state == "refused":
        return f"{change.query} was not {_DONE[change.kind]}: {change.message}"
    if change.settled is None:
        return f"{change.query} is not {_DONE[change.kind]} yet"
    if change.kind == "drop":
        return f"{change.query} was dropped; its results stay where they are{_pause(change)}"
    if change.message:
        return f"{change.query} was added {_where(change, deployment)}, and {change.message}"
    return f"{change.query} runs {_where(change, deployment)}, {_valid(change)}{_pause(change)}"


_DONE = {"add": "added", "drop": "dropped"}


def sharers(query: str, deployment: Deployment) -> list[str]:
    """The other members of the query's tree."""
    place = deployment.place(query)
    if place is None or place.tree is None:
        return []
    return [row.query for row in deployment.members(place.tree) if row.query != query]


def _where(change: Change, deployment: Deployment) -> str:
    if change.tree is None:
        return "as a job of its own"
    for record in deployment.federated:
        if record.id == change.tree:
            return f"in {record.id}, {how_split(job_of(record))}"
    others = sharers(change.query, deployment)
    if not others:
        return f"in {change.tree}, a tree of its own"
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return f"in {change.tree} with {', '.join(others[:_NAMED])}{more}"


def _valid(change: Change) -> str:
    if change.valid_from is None:
        return "from the beginning"
    return f"valid from {format_instant(change.valid_from)} (windows that start then or later are complete)"


def _pause(change: Change) -> str:
    return "" if change.pause is None else f"; the others of its tree paused for {change.pause:.1f} s"
