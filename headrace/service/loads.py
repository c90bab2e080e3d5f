"""What trees of given members would have to do, and what that costs on their site.

The counts come from the project (rates, numbers of groups, shares of rows: estimates.py), the exact rate of
fragments, and the members; the prices from cost/windows.py, calibrated where the site was. Added to its are
rows that are read and filtered away natively. Trees are chosen by more than their CPU: memory (fragments of
the finest keys are kept for the longest range, which is what speaks against rolling up), and cores that stand
idle where all keys of a tree are in one bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from headrace.catalog.model import Project
from headrace.cost.windows import QueryLoad, TreeLoad, WindowCosts, plain_spark, predict
from headrace.plan.expr import Expr
from headrace.plan.logical import streams_of
from headrace.plan.placed import TreeMember, split_filter
from headrace.plan.shared import MICROS
from headrace.planners.sharing.edges import EdgeCounter, EdgeRate
from headrace.service.estimates import any_share, distinct_of, expected_rate, groups, share

SCANNED = 0.5
"""What a row costs that is read and dropped by a native filter, as a part of one that goes on to Arrow."""
_LEAST_SHARE = 1e-9
_IN_BUCKETS = ("fragment", "fragment_slide", "cell", "cell_output")
_SEARCH = 5_000
"""Cells that a search may spend on one edge rate; beyond, the middle of the bounds is good enough."""


@dataclass(frozen=True)
class _Facts:
    """What matters of a member, whatever tree it is in."""

    conditions: frozenset[Expr]
    share: float
    groups: float
    arguments: frozenset[Expr | None]
    outputs: int


@dataclass(frozen=True, slots=True)
class Price:
    """What a tree takes, in cores."""

    cpu: float
    idle: float
    """Cores that have nothing to do while the one bucket of the tree works."""
    memory: int
    """Bytes."""
    held: float
    """What the memory is worth: a site whose memory is used up is used up, as one whose cores are."""

    @property
    def total(self) -> float:
        return self.cpu + self.idle + self.held


class Loads:
    """Members that read the same rows below their filters, on one site."""

    def __init__(
        self, project: Project, site: str, members: Sequence[TreeMember], costs: WindowCosts
    ) -> None:
        planner = project.planner
        stream = streams_of(members[0].plan)[0]
        self._costs = costs
        self._rate = expected_rate(project.streams[stream])
        self._distinct = distinct_of(project, stream)
        self._buckets = planner.shuffle_partitions
        self._idle = max(0.0, min(float(planner.shuffle_partitions), project.sites[site].cpu) - 1)
        self._per_byte = project.sites[site].cpu / project.sites[site].memory
        self._batches = MICROS / planner.trigger if planner.trigger else 1.0
        specs = [member.window.spec for member in members]
        self._unit = gcd(*(part for spec in specs for part in (spec.range, spec.slide)))
        self._counter = EdgeCounter(budget=_SEARCH)
        self._facts = {member.query: self._found(member) for member in members}

    def _found(self, member: TreeMember) -> _Facts:
        _, conditions = split_filter(member.window.input)
        calls = [call for _, call in member.aggregate.aggregates]
        return _Facts(
            frozenset(conditions),
            max(_LEAST_SHARE, share(conditions, self._distinct)),
            groups(member.keys, self._distinct),
            frozenset(call.arg for call in calls),
            max(1, len(calls)),
        )

    @cached_property
    def _exact(self) -> EdgeCounter:
        return EdgeCounter()

    def edges(self, members: Sequence[TreeMember]) -> EdgeRate:
        """Fragments per second of a tree, as exactly as can be."""
        rate = self._exact.rate(self._windows(members))
        return EdgeRate(rate.low * MICROS / self._unit, rate.high * MICROS / self._unit)

    def _windows(self, members: Sequence[TreeMember]) -> set[tuple[int, int]]:
        unit = self._unit
        return {(m.window.spec.range // unit, m.window.spec.slide // unit) for m in members}

    def price(self, members: Sequence[TreeMember]) -> Price:
        load = self.load(members)
        predicted = predict(load, self._costs)
        dropped = (self._rate - load.rate) * SCANNED * self._costs.row
        idle = 0.0
        if not members[0].keys.intersection(*(member.keys for member in members)):
            idle = self._idle * sum(predicted.parts[part] for part in _IN_BUCKETS)
        return Price(predicted.cpu + dropped, idle, predicted.memory, predicted.memory * self._per_byte)

    def cores(self, members: Sequence[TreeMember]) -> float:
        """CPU of a tree."""
        return self.price(members).cpu

    def rate(self, members: Sequence[TreeMember]) -> float:
        """Rows per second that some of them want."""
        return self._rate * self._passed([self._facts[member.query] for member in members])

    def plain(self, member: TreeMember) -> float:
        """CPU of the query as Spark's own window."""
        alone = self._query(member, 1.0)
        load = TreeLoad(self._rate, 0, 1.0, alone.groups, (alone,), self._batches, self._buckets)
        return plain_spark(load, self._costs)

    def load(self, members: Sequence[TreeMember]) -> TreeLoad:
        facts = [self._facts[member.query] for member in members]
        common = facts[0].conditions.intersection(*(fact.conditions for fact in facts))
        passed = self._passed(facts)
        own = {
            (fact.conditions - common, arg)
            for fact in facts
            for arg in fact.arguments | {None}
            if arg is not None or fact.conditions != common
        }
        rate = self._counter.rate(self._windows(members))
        keys = frozenset[Expr]().union(*(member.keys for member in members))
        return TreeLoad(
            rate=self._rate * passed,
            arguments=len(own),
            edge_rate=float((rate.low + rate.high) / 2) * MICROS / self._unit,
            groups=groups(keys, self._distinct),
            queries=tuple(self._query(member, passed) for member in members),
            batches_per_second=self._batches,
            buckets=self._buckets,
        )

    @staticmethod
    def _passed(facts: Sequence[_Facts]) -> float:
        """The part of the rows that some member wants: the others never leave the JVM."""
        wanted = {fact.conditions: fact.share for fact in facts}
        return min(1.0, max(max(wanted.values()), any_share(wanted.values())))

    def _query(self, member: TreeMember, of: float) -> QueryLoad:
        fact, spec = self._facts[member.query], member.window.spec
        return QueryLoad(spec.range, spec.slide, fact.groups, fact.outputs, min(1.0, fact.share / of))
