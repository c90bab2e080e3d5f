"""Adaptive planning (IV-B): what was estimated is compared with what is observed, and queries are re-planned.

Picked are queries (a) whose use of CPU or network differs from the estimate by more than a threshold, or (b)
that starve: they need a resource of which there is too little. Re-planning takes queries out of the running
plan and gives them to a planner again, with observed rates. There are two ways:

    least   only so many of the starving queries that all limits hold without them (demands.py)
    all     every picked query, as the paper says

A query that deviates and still fits gains nothing from a move, and moves have a price, so the first is the
default. Where both are asked for, the one that drops fewer queries is taken, then the one that moves fewer
bytes of state. A query that was running is dropped only if the planner finds no place for it, and the answer
says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from headrace.errors import InternalError, UserError
from headrace.planners.admission.bound import least_cpu
from headrace.planners.admission.changes import Change, Price, StateSize, changes_of, price_of
from headrace.planners.admission.check import violations
from headrace.planners.admission.demands import Demands, Ledger
from headrace.planners.admission.observed import Observed, observed_problem
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import AdmissionProblem, Decision, Options, Plan, Query, Stream
from headrace.planners.admission.reduction import trimmed
from headrace.planners.admission.state import State

Reason = Literal["deviates", "starves"]
Way = Literal["least", "all"]


NO_OPTIONS = Options()
USUAL_SIZE = StateSize()


@dataclass(frozen=True, slots=True)
class Picked:
    query: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Dropped:
    query: str
    why: str


@dataclass(frozen=True, slots=True)
class Adapted:
    """What to do now, in a form that can be written as JSON."""

    way: Way
    picked: tuple[Picked, ...]
    replanned: tuple[str, ...]
    """Taken out and added again."""
    kept: tuple[str, ...]
    """Admitted still, in the order they were given."""
    dropped: tuple[Dropped, ...]
    changes: tuple[Change, ...]
    price: Price
    seconds: float


@dataclass(frozen=True, slots=True)
class Policy:
    threshold: float = 0.1
    """By what part of the estimate a query's use may differ."""
    size: StateSize = USUAL_SIZE
    ways: tuple[Way, ...] = ("least",)
    """To be tried; the best is taken."""


class Planner(Protocol):
    state: State

    @property
    def plan(self) -> Plan: ...

    def submit(self, query: Query) -> Decision: ...


Make = Callable[[AdmissionProblem, Options, Callable[[], float]], Planner]
DEFAULT = Policy()


def adapt(
    problem: AdmissionProblem,
    plan: Plan,
    admitted: Collection[str],
    observed: Observed,
    clock: Callable[[], float],
    *,
    options: Options = NO_OPTIONS,
    policy: Policy = DEFAULT,
    make: Make = Ours,
) -> tuple[Plan, Adapted]:
    """`plan` runs and serves the queries in `admitted`; it was made with the estimates in `problem`. Returns
    the plan to run now, and what is to be said about it."""
    started = clock()
    queries = _running(problem, plan, admitted)
    now = observed_problem(problem, observed, plan)
    demands = Demands(now, plan)
    picked = pick(Demands(problem, plan), demands, queries, policy.threshold)
    # Whoever runs has been admitted: a policy that may refuse what fits has no say any more.
    readd = _Readd(now, demands.plan, queries, replace(options, choosy=False), clock, make)
    tried = [readd.without(way, _taken(way, demands, queries, picked)) for way in policy.ways]
    answers = [(one.plan, _answer(now, plan, queries, picked, one, policy.size)) for one in tried]
    best, answer = min(answers, key=lambda one: _rank(one[1]))
    return best, replace(answer, seconds=clock() - started)


def _taken(way: Way, demands: Demands, queries: Sequence[Query], picked: Sequence[Picked]) -> list[Stream]:
    if way == "least":
        return Ledger(demands).least_to_take()
    names = {one.query for one in picked}
    return list(dict.fromkeys(query.streams for query in queries if query.id in names))


def _rank(one: Adapted) -> tuple[int, float, int]:
    return len(one.dropped), one.price.bytes, len(one.changes)


def pick(estimated: Demands, now: Demands, queries: Sequence[Query], threshold: float) -> list[Picked]:
    """Queries to re-plan, in the order they were given. One that starves and deviates is said to starve."""
    ledger = Ledger(now)
    hungry = ledger.starving()
    found: list[Picked] = []
    for query in queries:
        short = hungry.get(query.streams)
        deviation = _deviation(estimated.of_query(query.streams), now.of_query(query.streams), threshold)
        if short is not None:
            detail = f"{now.named(short)}: {ledger.used[short]:.4g} needed of {now.limits[short]:.4g}"
            found.append(Picked(query.id, "starves", detail))
        elif deviation:
            found.append(Picked(query.id, "deviates", deviation))
    return found


def _deviation(estimated: tuple[float, float], now: tuple[float, float], threshold: float) -> str:
    """What differs too much; nothing if nothing does."""
    for name, before, after in zip(("cpu", "network"), estimated, now, strict=True):
        if abs(after - before) > threshold * before:
            return f"{name}: {after:.4g} where {before:.4g} was estimated"
    return ""


@dataclass(frozen=True, slots=True)
class _Tried:
    way: Way
    replanned: tuple[str, ...]
    plan: Plan
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True)
class _Readd:
    problem: AdmissionProblem
    plan: Plan
    queries: Sequence[Query]
    options: Options
    clock: Callable[[], float]
    make: Make

    def without(self, way: Way, streams: Iterable[Stream]) -> _Tried:
        """Take streams out and submit the queries that want them again, those first that are worth most for
        the CPU they take at least, so that few are lost. Those that found no place are tried once more, since
        others may have made room by moving."""
        gone = set(streams)
        planner = self.make(self.problem, self.options, self.clock)
        _load(planner.state, self._rest(gone))
        for query in self.queries:
            if query.streams not in gone:
                planner.submit(query)
        made = set(planner.state.made)
        waiting = sorted((q for q in self.queries if q.streams in gone), key=lambda q: self._dear(q, made))
        replanned = tuple(query.id for query in waiting)
        decisions: dict[str, Decision] = {}
        for _ in range(2):
            for query in waiting:
                decisions[query.id] = planner.submit(query)
            waiting = [query for query in waiting if not decisions[query.id].admitted]
        dropped = tuple(Dropped(query.id, decisions[query.id].why) for query in waiting)
        return _Tried(way, replanned, planner.plan, dropped)

    def _dear(self, query: Query, made: set[Stream]) -> float:
        cpu, _ = least_cpu(self.problem, query.streams, made)
        return cpu / query.priority if query.priority > 0.0 else float("inf")

    def _rest(self, gone: set[Stream]) -> Plan:
        return trimmed(self.problem, self.plan, [s for s in self.plan.deliveries if s not in gone])


def _load(state: State, plan: Plan) -> None:
    for host, one in sorted(plan.placements, key=lambda p: (len(p[1].output), p[0], sorted(p[1].output))):
        state.place(host, one)
    for sender, receiver, stream in sorted(plan.flows, key=lambda f: (f[0], f[1], sorted(f[2]))):
        state.send(sender, receiver, stream)
    for stream, host in plan.deliveries.items():
        state.deliver(stream, host)


def _answer(
    problem: AdmissionProblem,
    before: Plan,
    queries: Sequence[Query],
    picked: Sequence[Picked],
    tried: _Tried,
    size: StateSize,
) -> Adapted:
    lost = {one.query for one in tried.dropped}
    kept = tuple(query.id for query in queries if query.id not in lost)
    wrong = violations(problem, tried.plan, kept)
    if wrong:
        raise InternalError("the adapted plan breaks limits", detail="\n".join(wrong))
    changes = tuple(changes_of(problem, before, tried.plan, size))
    price = price_of(changes, size)
    return Adapted(
        tried.way, tuple(picked), tried.replanned, kept, tried.dropped, changes, price, seconds=0.0
    )


def _running(problem: AdmissionProblem, plan: Plan, admitted: Collection[str]) -> list[Query]:
    known = {query.id: query for query in problem.queries}
    for name in admitted:
        if name not in known or known[name].streams not in plan.deliveries:
            raise UserError(f'query "{name}" does not run', hint="Only queries that run can be adapted.")
    queries = [known[name] for name in admitted]
    unasked = plan.deliveries.keys() - {query.streams for query in queries}
    if unasked:
        names = "*".join(min(sorted(stream) for stream in unasked))
        raise UserError(f'the plan delivers "{names}", which none of the given queries wants')
    return queries
