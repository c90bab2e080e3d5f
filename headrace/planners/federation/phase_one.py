"""Phase one: the best logical plan of a query, by dynamic programming over the sets of its relations
(section 6).

Plans are compared by <C_b, C_u> of Definition 1 with the unit costs of Spark, the engine that every
operator can run on. Trees of any shape are looked at; cross products only between pieces that no condition
connects. A movable aggregate may stand on each set it is valid on, so the state is (relations joined,
aggregates done).

The principle of optimality holds between plans that give the same lambda and W: what is put above them
costs the same. A set of joins gives the same in any order, but an aggregate below a join gives another
lambda than one above it, so the best plan of each outcome is kept. Where cores are shared C_b is no
maximum, and a front of <largest u, sum> is kept.

Takes 3^K joins for K relations where all are connected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from headrace.errors import UserError
from headrace.planners.federation.compare import rank
from headrace.planners.federation.cost import bottleneck
from headrace.planners.federation.join_graph import JoinGraph, Relations, halves
from headrace.planners.federation.problem import FEASIBLE, Kind, Operator, Plan, Query, Relation, Sizes
from headrace.planners.federation.sizes import given_by, leaf_sizes

MOST_EXAMINED = 1_000_000
"""Partial plans that are compared before the search gives up: 12 relations without movable aggregates have
a quarter of that."""
_Done = int
"""Movable aggregates that are applied, as bits."""
_Outcome = tuple[str, str]
_Table = dict[Relations, dict[_Done, list["_Partial"]]]


class NoPlan(UserError):
    def __init__(self, message: str, at: tuple[str | int, ...], hint: str) -> None:
        super().__init__(message, hint=hint)
        self.at = at
        """The part of the query that is at fault: an attribute, and the place in it."""


@dataclass(frozen=True, slots=True)
class _Partial:
    """A logical plan of some relations."""

    gives: Sizes
    outcome: _Outcome
    """lambda and W without the rounding of the order they were multiplied in."""
    largest: float
    total: float
    root: str | tuple[Operator, tuple[_Partial, ...]]
    """A window or a table by name, or an operator and what it reads."""


@dataclass(frozen=True, slots=True)
class Ordered:
    plan: Plan
    examined: int
    """Partial plans that were compared."""
    utilisation: float
    """C_u of the plan, all of it on Spark."""


def best_logical_plan(query: Query, *, feasibility: bool = True) -> Ordered:
    """Raises NoPlan where a movable aggregate can stand nowhere, or conditions that must run on different
    engines meet in every order."""
    search = _Search(query, FEASIBLE if feasibility else float("inf"))
    partial = search.run()
    plan = Plan(
        query.streams,
        query.windows,
        tuple(_Written(query).operators(partial)),
        query.tables,
        query.prices,
        query.cores,
    )
    return Ordered(plan, search.examined, partial.total)


class _Search:
    def __init__(self, query: Query, limit: float) -> None:
        self._query, self._limit = query, limit
        self._graph = JoinGraph(query)
        self._leaves = leaf_sizes(query)
        self._over = [self._graph.bits(one.over) for one in query.movable]
        self._valid = [
            over | self._graph.bits(one.beyond) for over, one in zip(self._over, query.movable, strict=True)
        ]
        self._rows: dict[Relations, float] = {}
        self._table: _Table = {}
        self._clash: tuple[int, int] | None = None
        """The first conditions that were met which no join can test together."""
        self.examined = 0

    def run(self) -> _Partial:
        plans = self.plans()
        if not plans:
            raise self._nothing()
        for operator in self._query.top:
            plans = [self._on(operator, (plan,)) for plan in plans]
        return min(plans, key=self._rank)

    def plans(self) -> list[_Partial]:
        """Those of all relations and aggregates that are worth keeping."""
        whole = self._graph.all
        for i, relation in enumerate(self._query.relations):
            start = self._relation(relation)
            self._rows[1 << i] = start.gives.rows
            self._add(1 << i, 0, [start])
        for joined in sorted(range(1, whole + 1), key=int.bit_count):
            if joined.bit_count() > 1:
                self._join(joined)
        return self._table.get(whole, {}).get((1 << len(self._over)) - 1, [])

    def _nothing(self) -> NoPlan:
        """Why there is no plan. Aggregates are at fault where there is none for them alone, engines where
        there is one without them."""
        if self._clash is not None and _Search(_unbound(self._query), self._limit).plans():
            first, second = (f"joins[{i}]" for i in self._clash)
            message = (
                f"{first} and {second} must run on different engines, and every order tests them in one join"
            )
            return NoPlan(message, ("joins", self._clash[1], "engine"), "Leave one of them free.")
        hint = "What it is over must be connected without relations that are neither in over nor in beyond."
        for i, one in enumerate(self._query.movable):
            if not _Search(replace(_unbound(self._query), movable=(one,)), self._limit).plans():
                message = f"the aggregate {one.operator.name} can stand nowhere"
                return NoPlan(message, ("movable", i), hint)
        names = ", ".join(one.operator.name for one in self._query.movable)
        return NoPlan(f"the aggregates {names} can stand nowhere together", ("movable",), hint)

    def _relation(self, relation: Relation) -> _Partial:
        start = _partial(self._leaves[relation.reads], 0.0, 0.0, relation.reads)
        for operator in relation.chain:
            start = self._on(operator, (start,))
        return start

    def _join(self, joined: Relations) -> None:
        for left, right in halves(joined):
            if left not in self._table or right not in self._table:
                continue
            join = self._graph.between(left, right)
            if join is None and self._graph.may_cross(left, right):
                join = self._graph.cross
            if join is None or self._clashes(left, right):
                continue
            for a in self._table[left]:
                for b in self._table[right]:
                    if self._may_stand(joined, a | b):
                        pairs = product(self._table[left][a], self._table[right][b])
                        self._keep(joined, a | b, (self._on(join, pair) for pair in pairs))
        for done in sorted(self._table.get(joined, ())):
            self._move(joined, done)

    def _clashes(self, left: Relations, right: Relations) -> bool:
        found = self._graph.clash(left, right)
        self._clash = self._clash or found
        return found is not None

    def _may_stand(self, joined: Relations, done: _Done) -> bool:
        """Whether every aggregate that is still to come can stand on what contains these relations."""
        return all(
            done >> i & 1 or not joined & over or not joined & ~valid
            for i, (over, valid) in enumerate(zip(self._over, self._valid, strict=True))
        )

    def _add(self, joined: Relations, done: _Done, plans: list[_Partial]) -> None:
        self._keep(joined, done, plans)
        self._move(joined, done)

    def _move(self, joined: Relations, done: _Done) -> None:
        """Put aggregates on top that are not applied yet and may stand here."""
        for i, movable in enumerate(self._query.movable):
            if done >> i & 1 or self._over[i] & ~joined or joined & ~self._valid[i]:
                continue
            share = self._share_left(self._over[i], joined)
            operator = replace(movable.operator, groups=movable.operator.groups * share)
            made = [self._on(operator, (plan,)) for plan in self._table[joined][done]]
            self._add(joined, done | 1 << i, made)

    def _share_left(self, over: Relations, joined: Relations) -> float:
        """How many of the groups are left after the joins with the rest."""
        before = self._rows_of(over)
        return min(1.0, self._rows_of(joined) / before) if before and joined != over else 1.0

    def _rows_of(self, relations: Relations) -> float:
        """W of their join. No plan need join just these: what an aggregate is over may be connected by
        what it is moved beyond."""
        if relations not in self._rows:
            last = 1 << relations.bit_length() - 1
            rest = relations ^ last
            join = self._graph.between(rest, last) or self._graph.cross
            self._rows[relations] = self._rows_of(rest) * self._rows[last] * join.left
        return self._rows[relations]

    def _keep(self, joined: Relations, done: _Done, made: Iterable[_Partial]) -> None:
        plans = self._table.setdefault(joined, {}).setdefault(done, [])
        for plan in made:
            self.examined += 1
            if self.examined > MOST_EXAMINED:
                hint = "Give fewer relations or movable aggregates, or the plan as operators."
                raise UserError(f"the query has more than {MOST_EXAMINED:,} join orders", hint=hint)
            same = [other for other in plans if other.outcome == plan.outcome]
            if any(self._replaces(other, plan) for other in same):
                continue
            plans[:] = [p for p in plans if p.outcome != plan.outcome or not self._replaces(plan, p)]
            plans.append(plan)

    def _replaces(self, one: _Partial, other: _Partial) -> bool:
        if self._query.cores is None:
            return self._rank(one) <= self._rank(other)
        above, below = max(one.largest, self._limit), max(other.largest, self._limit)
        return above <= below and one.total <= other.total

    def _rank(self, plan: _Partial) -> tuple[int, float, float]:
        c_b = bottleneck(plan.largest, plan.total, self._query.cores)
        return rank(c_b, plan.total, self._limit)

    def _on(self, operator: Operator, below: tuple[_Partial, ...]) -> _Partial:
        u = sum(one.gives.rate * c for one, c in zip(below, operator.spark, strict=True))
        gives = given_by(operator, [one.gives for one in below])
        if operator.kind is Kind.JOIN:
            u += self._query.each_join
            if self._query.together:
                gives = replace(gives, rate=gives.slides * gives.rows)
                operator = replace(operator, rate=gives.rate)
        largest = max(u, *(one.largest for one in below))
        return _partial(gives, largest, u + sum(one.total for one in below), (operator, below))


def _unbound(query: Query) -> Query:
    """The same with conditions that may be tested anywhere."""
    return replace(query, joins=tuple(replace(edge, engine=None) for edge in query.joins))


def _partial(
    gives: Sizes, largest: float, total: float, root: str | tuple[Operator, tuple[_Partial, ...]]
) -> _Partial:
    return _Partial(gives, (f"{gives.rate:.9g}", f"{gives.rows:.9g}"), largest, total, root)


class _Written:
    """A plan of phase one as operators with names and inputs, inputs first."""

    def __init__(self, query: Query) -> None:
        chains = [operator for relation in query.relations for operator in relation.chain]
        named = [*chains, *query.top, *(one.operator for one in query.movable)]
        leaves = [*(one.name for one in query.windows), *(one.name for one in query.tables)]
        self._taken = {operator.name for operator in named} | set(leaves)
        self._joins = 0

    def operators(self, plan: _Partial) -> Iterator[Operator]:
        if isinstance(plan.root, str):
            return
        operator, below = plan.root
        names = []
        for one in below:
            inner = list(self.operators(one))
            yield from inner
            names.append(inner[-1].name if inner else str(one.root))
        yield replace(operator, name=operator.name or self._join_name(), inputs=tuple(names))

    def _join_name(self) -> str:
        while True:
            self._joins += 1
            if (name := f"join{self._joins}") not in self._taken:
                return name
