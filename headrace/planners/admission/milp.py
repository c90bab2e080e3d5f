"""One reduced problem through a solver: which model, which hosts, what came of it, and why nothing did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from headrace.errors import InternalError
from headrace.planners.admission.check import violations
from headrace.planners.admission.linear import Floats, OutOfTime
from headrace.planners.admission.milp_fast import Fast
from headrace.planners.admission.milp_model import NEGLIGIBLE, Excess, Printed, Wish
from headrace.planners.admission.problem import AdmissionProblem, Host, Plan, Stream, cpu_of, operators_of
from headrace.planners.admission.reduction import Scope, trimmed
from headrace.planners.admission.solvers import GAP, Solved, Status, solve

Clock = Callable[[], float]
Model = TypeVar("Model", Fast, Printed)
CLEAR = 1e-5
"""Share of every limit to stay clear of, once a solver's tolerance has been too wide."""


@dataclass(frozen=True)
class Found:
    """What came of a search."""

    plan: Plan | None
    """The whole plan, with what no longer serves anybody left out; None when there is none."""
    proven: bool
    """No plan is better (or: there is none), in the model that was solved."""


@dataclass(frozen=True)
class Search:
    """How to solve reduced problems."""

    clock: Clock
    printed: bool = False
    """The model as printed, and not its faster equal."""
    gap: float = GAP

    def best(self, scope: Scope, wish: Wish, until: float) -> Found:
        """The best plan in the model, or the best found until then."""
        found = self._tried(scope, wish, until)
        if found.plan is None or not violations(scope.problem, found.plan):
            return found
        # Rounded to whole numbers a solution may break a limit by a bit more than the checker allows.
        found = self._tried(scope, replace(wish, margin=CLEAR), until)
        wrong = violations(scope.problem, found.plan) if found.plan else []
        if wrong:
            raise InternalError("the solver's plan breaks the model", detail="\n".join(wrong))
        return replace(found, proven=False)

    def _tried(self, scope: Scope, wish: Wish, until: float) -> Found:
        if self.printed:
            return self._as_printed(scope, wish, until)
        fast = self._built(Fast, scope, wish, until)
        solved = self._solve(fast, until)
        if fast is None or solved.values is None:
            return Found(None, solved.status is Status.INFEASIBLE and wish.hosts is None)
        part = fast.plan(solved.values)
        if part is None:
            return self._as_printed(scope, replace(wish, hosts=None), until)
        return Found(_whole(scope, part), solved.proven and wish.hosts is None)

    def _as_printed(self, scope: Scope, wish: Wish, until: float) -> Found:
        printed = self._built(Printed, scope, wish, until)
        solved = self._solve(printed, until)
        plan = (
            None if printed is None or solved.values is None else _whole(scope, printed.plan(solved.values))
        )
        return Found(plan, solved.proven)

    def shortage(self, scope: Scope, wish: Wish, until: float) -> tuple[list[Excess], Plan | None]:
        """What would have to be freed, and where, for all wanted streams to fit: the least, as shares of the
        limits, that was found in time. Nothing and a plan: they do fit. Nothing and none: no answer."""
        relaxed = replace(wish, must=True, relaxed=True)
        model, solved = self._relaxed(scope, relaxed, until)
        if model is None or solved.values is None:
            return [], None
        short = model.excesses(solved.values)
        part = None if short else model.plan(solved.values)
        plan = None if part is None else _whole(scope, part)
        return short, plan if plan and not violations(scope.problem, plan) else None

    def _relaxed(self, scope: Scope, wish: Wish, until: float) -> tuple[Fast | Printed | None, Solved]:
        """Where hosts may use more than they have, a link as wide as its ends can bind, which the fast model
        does not see: its answer stands only if its flows fit all links."""
        if not self.printed:
            fast = self._built(Fast, scope, wish, until)
            solved = self._solve(fast, until)
            if fast is None or solved.values is None or _links_hold(scope, fast.plan(solved.values)):
                return fast, solved
        printed = self._built(Printed, scope, replace(wish, hosts=None), until)
        return printed, self._solve(printed, until)

    def _built(self, kind: type[Model], scope: Scope, wish: Wish, until: float) -> Model | None:
        """A model, if there is time to write it down."""
        try:
            return kind(scope, wish, lambda: self.clock() >= until)
        except OutOfTime:
            return None

    def _solve(self, model: Fast | Printed | None, until: float) -> Solved:
        if model is None:
            return Solved(Status.NOTHING, None)
        return solve(model.model, until, self.clock, self.gap)


def best_hosts(scope: Scope, count: int) -> frozenset[Host]:
    """The hosts most likely to matter: homes of the query's streams, then hosts that have much of S(q)
    already and room left for an operator."""
    homes = set(scope.homes.values())
    score = _presence(scope) + _roominess(scope)
    ranked = sorted(range(len(score)), key=lambda host: (host not in homes, -score[host], host))
    return frozenset(ranked[: max(count, len(homes))])


def makeable(problem: AdmissionProblem, stream: Stream) -> bool:
    """Whether any chain of operators leads from base streams to a stream, given the rates that are known."""
    return len(stream) == 1 or any(one.output == stream for one in operators_of(problem, stream))


def _presence(scope: Scope) -> Floats:
    """The part of S(q), by rate, that each host has."""
    problem = scope.problem
    at = {(receiver, stream) for _, receiver, stream in scope.loose.flows}
    at |= {(host, one.output) for host, one in scope.loose.placements}
    at |= {(host, stream) for stream, host in scope.homes.items()}
    score = np.zeros(len(problem.hosts))
    for host, stream in at:
        # A composite stream is worth what would have to be brought together to make it again.
        score[host] += sum(problem.streams[name].rate for name in stream)
    most = float(score.max(initial=0.0))
    return score / most if most else score


def _roominess(scope: Scope) -> Floats:
    """The scarcest of a host's resources, as a share of what there is; nothing where no operator fits."""
    shares = [_share(scope.room[name], limits) for name, limits in scope.limits.items()]
    least = min((cpu_of(scope.problem, one) for one in scope.operators), default=0.0)
    scarcest: Floats = np.min(shares, axis=0)
    return np.where(scope.room["cpu"] >= least, scarcest, 0.0)


def _share(room: Floats, limits: Floats) -> Floats:
    """All of it, where there is no limit."""
    share: Floats = np.ones(len(room))
    return np.divide(room, np.where(limits > 0, limits, 1.0), out=share, where=np.isfinite(limits))


def _links_hold(scope: Scope, part: Plan | None) -> bool:
    if part is None or not scope.narrow_links.any():
        return part is not None
    used = np.zeros_like(scope.link_room)
    for sender, receiver, stream in part.flows:
        used[sender, receiver] += scope.problem.rate(stream)
    over = used > scope.link_room * (1 + NEGLIGIBLE)
    return not bool((over & scope.narrow_links).any())


def _whole(scope: Scope, part: Plan) -> Plan:
    plan = scope.joined(part)
    return trimmed(scope.problem, plan, plan.deliveries)
