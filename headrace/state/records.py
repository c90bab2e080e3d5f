"""What the state file holds, as plain data.

A change goes its way once, and every step is one transaction:

    pending -> applied (the deployment has it) -> settled (its tree or job was seen running)
       |          |
       +----------+--> refused (the reason is its message)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Desired = Literal["running", "drained", "stopped"]
ChangeKind = Literal["add", "drop"]
ChangeState = Literal["pending", "applied", "refused"]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One query, whether it is a job or a member of a tree. None: never observed. 0: observed and silent."""

    id: str
    query: str
    site: str
    fingerprint: str
    desired: Desired
    observed: str | None
    """A `JobState` as text."""
    batch: int | None
    input_rows: int
    output_rows: int
    late_rows: int
    watermark: int | None
    """Event time in microseconds."""
    error: str
    started: str | None
    """When it was last wanted running or drained (ISO, UTC); None: never."""
    updated: str
    valid_from: int | None = None
    """Event time in microseconds: it gives the windows that start here or later. None: all of them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one query at one moment; see JobRecord."""

    id: str
    observed: str
    batch: int | None
    input_rows: int
    output_rows: int
    late_rows: int
    watermark: int | None
    error: str
    valid_from: int | None = None
    """None: what is known already stays."""


@dataclass(frozen=True, slots=True)
class TreeRecord:
    id: str
    site: str
    shape: str
    """A `TreeShape`, as the JSON of plan/data.py."""


@dataclass(frozen=True, slots=True)
class FederatedRecord:
    """Queries that run together, split between two engines. A query is in two of them while one way to run it
    takes over from another."""

    id: str
    site: str
    members: str
    """`FederatedMember`s as JSON (service/federated_records.py)."""


@dataclass(frozen=True, slots=True)
class DeployedQuery:
    """A query that has a place: in a tree, in a job that is split between engines, or as a job of its own
    (neither)."""

    query: str
    tree: str | None
    fingerprint: str
    federated: str | None = None
    """The job that gives its newest windows."""
    site: str | None = None
    """Where `planner.distribution` has put a job of its own; None: where its query wants it."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A folder of .headrace/jobs that belongs to nothing any more and has to be removed."""

    name: str
    results: bool = False
    """The results of the query of that name too: it is started over."""
    tree: str | None = None
    """The tree that it was a member of. The folder stays until that tree has been started without it."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What has a place, whatever a planner would choose today. Trees and members are in their order."""

    trees: tuple[TreeRecord, ...] = ()
    queries: tuple[DeployedQuery, ...] = ()
    doomed: tuple[Doomed, ...] = ()
    federated: tuple[FederatedRecord, ...] = ()
    channels: str = ""
    """The jobs and channels of queries that are spread over sites: a `ChannelPlan`, as the JSON of
    plan/data.py; empty: there are none."""

    def members(self, tree: str) -> tuple[DeployedQuery, ...]:
        return tuple(one for one in self.queries if one.tree == tree)

    @property
    def ids(self) -> frozenset[str]:
        """Of trees and of jobs that are split."""
        return frozenset(tree.id for tree in self.trees) | {job.id for job in self.federated}

    def place(self, query: str) -> DeployedQuery | None:
        return next((one for one in self.queries if one.query == query), None)


@dataclass(frozen=True, slots=True)
class AddedQuery:
    """A query that was added by command."""

    name: str
    sql: str
    sink: str
    path: str | None
    site: str


@dataclass(frozen=True, slots=True)
class Change:
    id: int
    kind: ChangeKind
    query: str
    from_start: bool
    """Add: never join a tree that runs already."""
    state: ChangeState
    message: str
    tree: str | None
    """Add: the tree that took it, or the split job; None: a job of its own, or not applied."""
    valid_from: int | None
    pause: float | None
    """Seconds for which the others of its tree stood still. None: nobody had to, or it was not seen."""
    asked: str
    settled: str | None


@dataclass(frozen=True, slots=True)
class Edits:
    """What commands have made of the project file, and what of it is not applied yet."""

    added: tuple[AddedQuery, ...] = ()
    dropped: frozenset[str] = frozenset()
    pending: tuple[Change, ...] = ()
