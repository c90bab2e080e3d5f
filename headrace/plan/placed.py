"""PlacedPlan: which job runs where. A job is one query on its sink site, or a tree of window queries."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import InternalError
from headrace.ids import fingerprint
from headrace.plan.expr import Expr
from headrace.plan.logical import Aggregate, LogicalPlan, Window, nodes
from headrace.plan.text import format_expr, format_plan


@dataclass(frozen=True, slots=True)
class Job:
    """The operators that run as one Spark streaming query on one site, with one checkpoint."""

    id: str
    query: str
    site: str
    plan: LogicalPlan

    @property
    def fingerprint(self) -> str:
        """Changes exactly when the plan text does: a checkpoint belongs to one fingerprint."""
        return fingerprint(format_plan(self.plan))


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    jobs: tuple[Job, ...]

    def __post_init__(self) -> None:
        ids = [job.id for job in self.jobs]
        if len(set(ids)) != len(ids):
            raise InternalError("PlacedPlan: two jobs have the same id")

    def job(self, job_id: str) -> Job:
        return next(job for job in self.jobs if job.id == job_id)


@dataclass(frozen=True, slots=True)
class TreeMember:
    """One query of a tree: its whole plan, and the window aggregate in it that the tree computes."""

    query: str
    plan: LogicalPlan
    aggregate: Aggregate

    def __post_init__(self) -> None:
        if self.aggregate not in set(nodes(self.plan)):
            raise InternalError(f"TreeMember: the aggregate of {self.query} is not in its plan")
        if not isinstance(self.aggregate.input, Window):
            raise InternalError(f"TreeMember: the aggregate of {self.query} is not right above a window")

    @property
    def window(self) -> Window:
        if not isinstance(self.aggregate.input, Window):
            raise InternalError("TreeMember: no window")
        return self.aggregate.input


@dataclass(frozen=True, slots=True)
class TreeJob:
    """Window aggregates that run as one Spark streaming query: one read of the stream, one set of fragments,
    a result for every member. What it keeps depends on the rows and the keys only, so members may come and
    go."""

    id: str
    site: str
    members: tuple[TreeMember, ...]

    def __post_init__(self) -> None:
        if not self.members or len({m.query for m in self.members}) != len(self.members):
            raise InternalError(f"TreeJob {self.id}: wrong members")
        if len({(m.window.input, m.window.time, self._keys(m)) for m in self.members}) != 1:
            raise InternalError(f"TreeJob {self.id}: the members do not read the same rows by the same keys")

    @staticmethod
    def _keys(member: TreeMember) -> frozenset[Expr]:
        return frozenset(key for _, key in member.aggregate.keys)

    @property
    def rows(self) -> LogicalPlan:
        return self.members[0].window.input

    @property
    def time(self) -> str:
        return self.members[0].window.time

    @property
    def keys(self) -> tuple[Expr, ...]:
        """The key expressions of every member, each once, in an order that does not depend on the members."""
        return tuple(sorted(self._keys(self.members[0]), key=format_expr))

    @property
    def fingerprint(self) -> str:
        """Of what the checkpoint belongs to: the rows and the keys, whoever asks for them."""
        return fingerprint(format_plan(self.rows) + "\n" + ", ".join(map(format_expr, self.keys)))
