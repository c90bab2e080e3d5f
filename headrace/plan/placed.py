"""PlacedPlan: which job runs where. A job is one query on its sink site, a tree of window queries, or
queries that are split between Spark and DuckDB (`federated`).

`placed_network` says where the joins of streams are best done, and `channels` has the jobs that go by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.errors import InternalError
from headrace.ids import fingerprint
from headrace.plan.expr import Expr, conjunction, conjuncts
from headrace.plan.federated import FederatedJob, FederatedMember
from headrace.plan.logical import Aggregate, Filter, LogicalPlan, Window, nodes
from headrace.plan.placed_network import PlacedNetwork
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

    @property
    def keys(self) -> frozenset[Expr]:
        return frozenset(key for _, key in self.aggregate.keys)

    @property
    def fingerprint(self) -> str:
        """Of the whole query: a result folder belongs to one fingerprint."""
        return fingerprint(format_plan(self.plan))


@dataclass(frozen=True, slots=True)
class TreeShape:
    """What a tree keeps its state by, whoever its members are: the rows it reads, the finest keys it groups
    them by, and those of them that say in which bucket a row is. Fixed when the tree is made; members may
    come and go."""

    rows: LogicalPlan
    time: str
    keys: tuple[Expr, ...]
    """In the order of their texts."""
    spread: tuple[Expr, ...]
    """Keys that every member groups by; empty: one bucket has all."""

    def __post_init__(self) -> None:
        for keys in (self.keys, self.spread):
            if list(keys) != sorted(set(keys), key=format_expr):
                raise InternalError("TreeShape: keys stand twice or in the wrong order")
        if not set(self.spread) <= set(self.keys):
            raise InternalError("TreeShape: rows are spread by something that is no key")

    @property
    def fingerprint(self) -> str:
        """What a checkpoint of the tree belongs to."""
        texts = (format_plan(self.rows), self.time, *map(_texts, (self.keys, self.spread)))
        return fingerprint("\n".join(texts))

    def takes(self, member: TreeMember) -> bool:
        """Whether the tree can answer this query."""
        fits = self.where(member) is not None and member.window.time == self.time
        return fits and set(self.spread) <= member.keys <= set(self.keys)

    def where(self, member: TreeMember) -> tuple[Expr, ...] | None:
        """Which of the tree's rows the member wants: all conditions that the tree's rows do not meet
        anyway; None: it reads other rows."""
        source, common = split_filter(self.rows)
        theirs, wanted = split_filter(member.window.input)
        if theirs != source or not set(common) <= set(wanted):
            return None
        return tuple(sorted(set(wanted) - set(common), key=format_expr))


@dataclass(frozen=True, slots=True)
class TreeJob:
    """Window aggregates that run as one Spark streaming query: one read of the stream, one set of fragments,
    a result for every member."""

    id: str
    site: str
    shape: TreeShape
    members: tuple[TreeMember, ...]

    def __post_init__(self) -> None:
        if not self.members or len({m.query for m in self.members}) != len(self.members):
            raise InternalError(f"TreeJob {self.id}: wrong members")
        for member in self.members:
            if not self.shape.takes(member):
                raise InternalError(f"TreeJob {self.id}: {member.query} does not fit its rows and keys")

    @property
    def fingerprint(self) -> str:
        return self.shape.fingerprint

    def member(self, query: str) -> TreeMember:
        return next(member for member in self.members if member.query == query)


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    jobs: tuple[Job, ...]
    trees: tuple[TreeJob, ...] = ()
    network: PlacedNetwork | None = None
    """Where joins of streams are best done; None: nothing was placed. Jobs do not go by it: `ChannelPlan`
    has those that do."""
    federated: tuple[FederatedJob, ...] = ()

    def __post_init__(self) -> None:
        ids = [job.id for job in self.jobs] + [tree.id for tree in self.trees]
        ids += [job.id for job in self.federated]
        queries = [job.query for job in self.jobs] + [m.query for tree in self.trees for m in tree.members]
        split: dict[str, list[FederatedMember]] = {}
        for job in self.federated:
            for member in job.members:
                split.setdefault(member.query, []).append(member)
        queries += split
        if len(set(ids)) != len(ids) or len(set(queries)) != len(queries):
            raise InternalError("PlacedPlan: two jobs have the same id, or a query stands in two")
        for query, members in split.items():
            if not take_turns(members):
                raise InternalError(f"PlacedPlan: two jobs give the same windows of {query}")

    def job(self, job_id: str) -> Job:
        return next(job for job in self.jobs if job.id == job_id)

    def plan_of(self, query: str) -> LogicalPlan:
        """The plan of a query, wherever it runs."""
        plans = {job.query: job.plan for job in self.jobs}
        plans |= {member.query: member.plan for tree in self.trees for member in tree.members}
        plans |= {member.query: member.plan for job in self.federated for member in job.members}
        return plans[query]


GONE = -(10**15)
"""`until` of a query that has left a split job: before all data. The members of such a job never change."""


def take_turns(members: Sequence[FederatedMember]) -> bool:
    """Whether each window of a query is given by at most one of these: one way to run it follows another."""
    giving = [member for member in members if member.until != GONE]
    spans = sorted((m.after if m.after is not None else -math.inf, _latest(m)) for m in giving)
    return all(until <= after for (_, until), (after, _) in pairwise(spans))


def _latest(member: FederatedMember) -> float:
    return math.inf if member.until is None else member.until


def shape_of(members: tuple[TreeMember, ...]) -> TreeShape:
    """The shape of a tree made for these members: the conditions and the keys that all have in common stay
    below, the rest is done for each. Raises InternalError where they read different rows."""
    source, common = split_filter(members[0].window.input)
    for member in members[1:]:
        _, wanted = split_filter(member.window.input)
        common = tuple(c for c in common if c in wanted)
    rows = Filter(source, conjunction(common)) if common else source
    keys = frozenset[Expr]().union(*(m.keys for m in members))
    spread = members[0].keys.intersection(*(m.keys for m in members))
    by_text = (tuple(sorted(found, key=format_expr)) for found in (keys, spread))
    return TreeShape(rows, members[0].window.time, *by_text)


def split_filter(plan: LogicalPlan) -> tuple[LogicalPlan, tuple[Expr, ...]]:
    """The rows below the filters on top of a plan, and the conditions of those filters."""
    found: list[Expr] = []
    while isinstance(plan, Filter):
        found = [*conjuncts(plan.predicate), *found]
        plan = plan.input
    return plan, tuple(dict.fromkeys(found))


def _texts(keys: tuple[Expr, ...]) -> str:
    return ", ".join(map(format_expr, keys))
