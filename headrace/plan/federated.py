"""A query split between Spark and DuckDB: which engine does which of its operators.

The operators that have a choice are those that make rows of a relation from rows of relations: filters,
joins with tables, joins of windows, aggregates. Scans and windows have none (the window tables belong to
whoever reads them), joins of streams run on Spark, and a projection goes with the operator below it, so that
columns are dropped before rows travel. Operators next to each other on the same engine are one part: one SQL
statement in DuckDB (`federated_parts`).

Words of the paper: SPE = Spark, IMDB = DuckDB, migration candidate / DB-op = a part on DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.errors import InternalError
from headrace.ids import fingerprint
from headrace.plan import logical as lp
from headrace.plan.text import format_plan

_FREE = (lp.Filter, lp.Aggregate, lp.WindowJoin, lp.TableJoin)


class Engine(StrEnum):
    SPARK = "spark"
    DUCKDB = "duckdb"


def operators(plan: lp.LogicalPlan) -> tuple[lp.LogicalPlan, ...]:
    """The operators that have a choice of engine, inputs before the operators that read them, left before
    right. One that stands twice in the plan is there twice. Below a join of streams nothing has a choice."""
    if isinstance(plan, lp.IntervalJoin):
        return ()
    below = tuple(node for child in plan.inputs for node in operators(child))
    free = isinstance(plan, _FREE) and plan.shape is not lp.Shape.TABLE
    return (*below, plan) if free else below


@dataclass(frozen=True, slots=True)
class FederatedMember:
    """One query and its split: `engines` has an engine for each of `operators(plan)`, in that order.

    `after` and `until` bound the ends of the windows that it gives, in microseconds of event time: later than
    the one, not later than the other. They let one way to run a query take over from another, window by
    window."""

    query: str
    plan: lp.LogicalPlan
    engines: tuple[Engine, ...]
    after: int | None = None
    until: int | None = None
    written: lp.LogicalPlan | None = None
    """What the query says where `plan` makes its joins in another order."""

    def __post_init__(self) -> None:
        if len(self.engines) != len(operators(self.plan)):
            raise InternalError(f"FederatedMember: {self.query} has other operators than engines")
        if (self.after is not None or self.until is not None) and self.plan.window is None:
            raise InternalError(f"FederatedMember: the results of {self.query} do not show their windows")

    @property
    def fingerprint(self) -> str:
        """Of the whole query: a result folder belongs to one fingerprint, whatever the split and the order
        of joins."""
        return fingerprint(format_plan(self.written or self.plan))

    @property
    def plan_fingerprint(self) -> str:
        """Of its plan: what was seen of relations is known by their numbers in that."""
        return fingerprint(format_plan(self.plan))


@dataclass(frozen=True, slots=True)
class FederatedJob:
    """Queries that run as one Spark streaming query with a database beside it: rows that several of them want
    travel there once."""

    id: str
    site: str
    members: tuple[FederatedMember, ...]

    def __post_init__(self) -> None:
        if not self.members or len({m.query for m in self.members}) != len(self.members):
            raise InternalError(f"FederatedJob {self.id}: wrong members")

    @property
    def on_spark(self) -> bool:
        """Whether DuckDB does nothing for it: it is watched, and may be split when rates change."""
        return not any(Engine.DUCKDB in member.engines for member in self.members)

    @property
    def fingerprint(self) -> str:
        """What a checkpoint and the window tables belong to: every query with its split."""
        texts = (f"{format_plan(m.plan)}\n{' '.join(m.engines)} {m.after}" for m in self.members)
        return fingerprint("\n".join(texts))
