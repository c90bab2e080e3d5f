"""The distribution that runs, with its costs, while a policy thinks about changing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum, isfinite
from typing import NamedTuple

from headrace.planners.distribution.costs import Costing, CostModel, CostTable, Resource, SiteCost
from headrace.planners.distribution.limits import Limits, first_passed_further, share
from headrace.planners.distribution.pipelines import Pipelines
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.rules import History, Move, Rules, move_cost, move_seconds
from headrace.planners.distribution.usage import ROUNDING, is_remote

Change = tuple[Sequence[str], str]
"""Operators, and the site they go to."""


class After(NamedTuple):
    """What a change would lead to that is only thought of."""

    costs: dict[str, float]
    """Of the sites concerned."""
    held_up: float
    """Rows a second, by all pipelines."""


class Running:
    """Of a change that is tried, only what it touches is worked out: the operators that go, those they are
    connected with, and the two sites; a move changes no third one."""

    def __init__(
        self, problem: Problem, model: CostModel, rules: Rules, history: History, now: float
    ) -> None:
        self.problem, self.model, self.rules, self.history, self.now = problem, model, rules, history, now
        self._costing = Costing(problem, model)
        self.table = dict(problem.table)
        self.costs: dict[str, SiteCost] = dict(self._costing.table(self.table).sites)
        # No sets: sums, and so answers, would differ in their last bit from one process to the next.
        self.on: dict[str, dict[str, None]] = {site: {} for site in self.costs}
        for name, site in self.table.items():
            if site in self.on:
                self.on[site][name] = None
        self._pipelines = Pipelines(problem, self.table)
        self.moves: list[Move] = []
        self._moved: set[str] = set()
        self._limited = bool(problem.links) or any(
            isfinite(limit)
            for site in problem.alive
            for limit in (site.memory, site.network, site.connections)
        )
        self._limits: dict[bool, Limits] = {}
        """With and without connections to operators at sites that do not answer, once somebody has asked."""
        self._sums = {resource.name: self._summed(resource) for resource in self._costing.resources}

    def trial(self) -> Running:
        """The same once more, to be changed without consequences."""
        now = replace(self.problem, table=dict(self.table))
        return Running(now, self.model, self.rules, self.history, self.now)

    @property
    def held_up(self) -> float:
        """Rows a second."""
        return self._pipelines.held_up(self._levels(), self.rules.full)

    @property
    def slowest(self) -> list[str]:
        """The sites that hold pipelines up, the fullest first."""
        found = self._pipelines.slowest(self._levels(), self.rules.full * (1 + ROUNDING))
        return sorted(found, key=lambda site: (-self.costs[site].cost, site))

    @property
    def rows_slowed(self) -> float:
        """Rows a second of the pipelines that are held up."""
        return self._pipelines.rows_slowed(self._levels(), self.rules.full)

    def pipeline(self, name: str) -> int:
        return self._pipelines.of[name]

    def standstill(self, changes: Sequence[Change]) -> float:
        """Rows that wait while these are moved, all at once."""
        seconds = {
            name: move_seconds(self.problem, self.rules, tuple(names))
            for names, _ in changes
            for name in names
        }
        return self._pipelines.standstill(seconds)

    @property
    def top(self) -> float:
        return max(one.cost for one in self.costs.values())

    def _levels(self) -> dict[str, float]:
        return {site: one.cost for site, one in self.costs.items()}

    @property
    def targets(self) -> list[str]:
        """Sites that may get operators, in the order of the problem."""
        allowed = self.rules.sites
        return [site for site in self.costs if allowed is None or site in allowed]

    def snapshot(self) -> CostTable:
        return CostTable(self.model.name, dict(self.costs))

    def stays(self, name: str) -> str:
        """Why an operator may not be moved now; empty: it may."""
        operator = self.problem.operator[name]
        low, high = self.rules.state_bytes
        if not operator.movable:
            return "it is bound to its site"
        if self.rules.operators is not None and name not in self.rules.operators:
            return "it is not among the eligible operators"
        if not low <= operator.state_bytes <= high:
            return f"its state of {operator.state_bytes:.6g} bytes is not within {low:.6g} and {high:.6g}"
        rested = self.now - self.history.moved.get(name, -float("inf"))
        if rested < self.rules.rest:
            return f"it was moved {rested:.3g} s ago and rests {self.rules.rest:.3g} s"
        return "it was moved in this round" if name in self._moved else ""

    def eligible(self, site: str) -> list[str]:
        """In the order of the problem."""
        return [o.id for o in self.problem.operators if o.id in self.on[site] and not self.stays(o.id)]

    def parts(self, site: str) -> Iterator[tuple[str, ...]]:
        """Every eligible operator, and what hangs on it at its site when one neighbour is taken off, or
        none."""
        allowed = set(self.eligible(site))
        seen: set[frozenset[str]] = set()
        for name in self.eligible(site):
            near = [other for other in self._neighbours(name) if other in allowed]
            for part in (
                {name},
                self.piece(name, allowed),
                *(self.piece(name, allowed - {o}) for o in near),
            ):
                if frozenset(part) not in seen:
                    seen.add(frozenset(part))
                    yield tuple(one for one in self.problem.operator if one in part)

    def tried(self, changes: Sequence[Change]) -> After:
        back = {name: self.table[name] for names, _ in changes for name in names}
        sites = [s for s in dict.fromkeys((*back.values(), *(t for _, t in changes))) if s in self.on]
        touched = dict.fromkeys((*back, *(n for name in back for n in self._neighbours(name))))
        before = self._adds(touched, sites)
        self._shift(changes)
        after = self._adds(touched, sites)
        costs = {site: self._cost_after(site, before[site], after[site]) for site in sites}
        held = self._pipelines.held_up({**self._levels(), **costs}, self.rules.full)
        self._shift([((name,), site) for name, site in back.items()])
        return After(costs, held)

    def _adds(self, names: Iterable[str], sites: Sequence[str]) -> dict[str, list[float]]:
        """What these operators, and the sites themselves, take at the sites, by resource."""
        found = {
            site: [self._costing.other(r, site, self.table) for r in self._costing.resources]
            for site in sites
        }
        for name in names:
            at = found.get(self.table[name])
            if at is not None:
                for i, resource in enumerate(self._costing.resources):
                    at[i] += self._costing.adds(resource, name, self.table)
        return found

    def _cost_after(self, site: str, before: Sequence[float], after: Sequence[float]) -> float:
        costing = self._costing
        return max(
            (self._sums[r.name][site] - before[i] + after[i]) / costing.scale(r, site)
            for i, r in enumerate(costing.resources)
        )

    def _summed(self, resource: Resource) -> dict[str, float]:
        return {site: self._sum(resource, site) for site in self.on}

    def _sum(self, resource: Resource, site: str) -> float:
        adds = sum(self._costing.adds(resource, name, self.table) for name in self.on[site])
        return self._costing.other(resource, site, self.table) + adds

    def breaks(self, changes: Sequence[Change], *, without_lost: bool = False) -> str:
        """A limit that the changes pass, or pass further than now; empty: none (line 5 of Algorithm 5).
        `without_lost`: connections to operators at sites that do not answer are left out."""
        if not self._limited:
            return ""
        limits = self._limits_of(without_lost)
        before = dict(limits.passed())
        back = self._put(changes)
        found = first_passed_further(before, limits.passed())
        self._put(back)
        return found

    def beyond(self, changes: Sequence[Change]) -> float:
        """By how much limits are passed after the changes, in all; without connections to lost sites."""
        limits = self._limits_of(True)
        back = self._put(changes)
        found = fsum(share(limit, value) for limit, value in limits.passed().items())
        self._put(back)
        return found

    def _limits_of(self, without_lost: bool) -> Limits:
        lost = frozenset(self.problem.site) - self.on.keys() if without_lost else frozenset()
        if bool(lost) not in self._limits:
            self._limits[bool(lost)] = Limits(self.problem, self.table, lost)
        return self._limits[bool(lost)]

    def apply(self, names: Sequence[str], target: str, gain: float, why: str) -> None:
        source = self.table[names[0]]
        cost = move_cost(self.problem, self.rules, tuple(names))
        self.put([(names, target)])
        self._moved.update(names)
        self.moves.append(Move(tuple(names), source, target, gain, cost, why))

    def put(self, changes: Sequence[Change]) -> None:
        """Change it, without a word about why."""
        sites = {self.table[name] for names, _ in changes for name in names} | {t for _, t in changes}
        self._put(changes)
        for site in sites & self.on.keys():
            self.costs[site] = self._costing.site(site, self.on[site], self.table)
            for resource in self._costing.resources:
                self._sums[resource.name][site] = self._sum(resource, site)

    def connections_removed(self, names: Sequence[str], target: str) -> int:
        """By how many the connections get fewer."""
        edges = [edge for name in names for edge in self.problem.edges_of[name]]
        edges = list({id(edge): edge for edge in edges}.values())
        before = sum(is_remote(edge, self.table) for edge in edges)
        back = self._shift([(names, target)])
        after = sum(is_remote(edge, self.table) for edge in edges)
        self._shift(back)
        return before - after

    def _put(self, changes: Sequence[Change]) -> list[Change]:
        """What leads back."""
        names = [name for part, _ in changes for name in part]
        for limits in self._limits.values():
            limits.take(names)
        back = self._shift(changes)
        for limits in self._limits.values():
            limits.put(names)
        return back

    def _shift(self, changes: Sequence[Change]) -> list[Change]:
        """Only for a look, as limits do not learn of it: what leads back must follow."""
        back: list[Change] = [((name,), self.table[name]) for names, _ in changes for name in names]
        for names, target in changes:
            for name in names:
                self._pipelines.move(name, self.table[name], target)
                self.on.get(self.table[name], {}).pop(name, None)
                self.table[name] = target
                if target in self.on:
                    self.on[target][name] = None
        return back

    def _neighbours(self, name: str) -> list[str]:
        """At any site."""
        below = (other for other in self.problem.operator[name].inputs if other in self.problem.operator)
        return list(dict.fromkeys((*below, *self.problem.readers[name])))

    def piece(self, start: str, allowed: set[str]) -> set[str]:
        found, left = {start}, [start]
        while left:
            for other in self._neighbours(left.pop()):
                if other in allowed and other not in found:
                    found.add(other)
                    left.append(other)
        return found


def highest(costs: Mapping[str, SiteCost]) -> str:
    """The fullest site; of equals, the first."""
    return max(costs, key=lambda site: costs[site].cost)
