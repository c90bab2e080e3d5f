"""Run a planner by its name: the queries in order of arrival, each against all that runs before it.

No planner is believed: its last plan goes through the checker, and a plan that cannot run is our bug. The
bound is no exception but no planner either: what it admits runs at no host, so it has no plan to check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headrace.errors import InternalError, UserError
from headrace.planners.admission.check import violations
from headrace.planners.admission.problem import (
    AdmissionAnswer,
    AdmissionProblem,
    Decision,
    Options,
    Plan,
    Query,
    Removal,
    Removed,
    Weights,
)

if TYPE_CHECKING:
    from headrace.planners.admission.adaptive import Adapted
    from headrace.planners.admission.observed import Running

Clock = Callable[[], float]
Progress = Callable[[int, int], None]
"""Told after each submission: how many queries are decided, of how many."""

DEFAULT_PLANNER = "headrace"
BOUND = "bound"
PLANNERS: Mapping[str, str] = {
    DEFAULT_PLANNER: "ours: the cheapest plan at prices that look ahead; where none fits, room is made",
    "milp": "the paper's SQPR: an optimisation problem for each query and those it shares streams with",
    "heuristic": "the paper's: all that a query still needs at one host, nothing is ever moved",
    "soda": "the paper's comparison: admission by totals, fixed templates, local swaps",
    BOUND: "the paper's optimistic bound: all hosts as one, without a network; gives no plan",
}
"""Names and what they do, in one line; the default comes first."""

_WHERE: Mapping[str, tuple[str, str]] = {
    DEFAULT_PLANNER: ("ours", "Ours"),
    "milp": ("sqpr", "Sqpr"),
    "heuristic": ("heuristic", "Heuristic"),
    "soda": ("soda", "Soda"),
    BOUND: ("bound", "Bound"),
}
"""Module and class of each. They are loaded when asked for: some need a solver."""


WEIGHING = ("milp", "heuristic")
"""Those that choose by the objective of the paper, (III.3)."""
ADAPTING = (DEFAULT_PLANNER, "heuristic")
"""Those that can take a plan over that runs: they plan on a state, and any plan is one."""
NOT_ADMITTED = "it was not admitted, so there was nothing to remove"
DID_NOT_RUN = "it did not run; only queries that run are adapted"


class Planner(Protocol):
    """Made once for a problem; keeps what runs."""

    @property
    def plan(self) -> Plan: ...

    def submit(self, query: Query) -> Decision: ...


@runtime_checkable
class Batched(Protocol):
    """A planner that can also look at several queries together."""

    def submit_all(self, queries: Sequence[Query]) -> list[Decision]: ...


@runtime_checkable
class Removing(Protocol):
    """A planner that lets queries go again."""

    def remove(self, query_id: str) -> None: ...


def solve(
    problem: AdmissionProblem,
    name: str,
    options: Options,
    clock: Clock,
    on_progress: Progress | None = None,
) -> AdmissionAnswer:
    """What becomes of all queries. Raises UserError for options that the planner does not have, and
    InternalError where its plan cannot run."""
    make: Callable[[AdmissionProblem, Options, Clock], Planner] = _loaded(name)
    _check_options(name, options)
    if problem.removals:
        check_removing(name)
    started = clock()
    planner = make(problem, options, clock)
    decisions: list[Decision] = []
    removals: list[Removed] = []
    admitted: set[str] = set()
    for event in _events(problem, options.batch):
        if isinstance(event, Removal):
            removals.append(_removed(planner, event, admitted, clock))
            continue
        some = _submitted(planner, name, event, options.batch)
        decisions += some
        admitted |= {one.query for one in some if one.admitted}
        if on_progress is not None:
            on_progress(len(decisions), len(problem.queries))
    seconds = clock() - started
    answer = AdmissionAnswer(name, tuple(decisions), planner.plan, seconds, removals=tuple(removals))
    if name == BOUND:
        return replace(
            answer, notes={"plan": "none: the bound puts all hosts together, so nothing is placed"}
        )
    return checked(problem, answer)


def checked(problem: AdmissionProblem, answer: AdmissionAnswer) -> AdmissionAnswer:
    """The same answer. Raises InternalError where it leaves out a query or its plan cannot run."""
    if [decision.query for decision in answer.decisions] != [query.id for query in problem.queries]:
        raise InternalError(f"admission: {answer.planner} does not decide every query once, in order")
    gone = {one.query for one in answer.removals if one.removed}
    admitted = [decision.query for decision in answer.decisions if decision.admitted]
    # Whoever has left wants nothing any more: a stream that is delivered for nobody else is wrong.
    left = replace(problem, queries=tuple(query for query in problem.queries if query.id not in gone))
    wrong = violations(left, answer.plan, [name for name in admitted if name not in gone])
    if wrong:
        message = f"admission: the plan of {answer.planner} cannot run: {wrong[0]}"
        raise InternalError(message, detail="\n".join(wrong[1:]))
    return answer


def solve_running(
    problem: AdmissionProblem, running: Running, name: str, options: Options, clock: Clock
) -> tuple[AdmissionProblem, AdmissionAnswer, Adapted]:
    """A plan that runs, adapted to what was observed: the problem as it is now, what becomes of all queries,
    and the steps. Those that did not run are not asked about. Raises UserError for planners and options that
    cannot adapt, and InternalError where the plan cannot run."""
    from headrace.planners.admission.adaptive import adapt
    from headrace.planners.admission.observed import observed_problem

    check_adapting(name, options)
    _check_options(name, options)
    plan, done = adapt(
        problem,
        running.plan,
        running.admitted,
        running.observed,
        clock,
        options=options,
        make=_loaded(name),
    )
    now = observed_problem(problem, running.observed, running.plan)
    decisions = _decided(now.queries, done)
    return now, checked(now, AdmissionAnswer(name, decisions, plan, done.seconds)), done


def _decided(queries: Sequence[Query], done: Adapted) -> tuple[Decision, ...]:
    """Of each query, as if it had been submitted. Time is that of all that run, in equal parts."""
    kept, lost = set(done.kept), {one.query: one.why for one in done.dropped}
    part = done.seconds / max(len(kept) + len(lost), 1)
    return tuple(
        Decision(query.id, query.id in kept, part, lost.get(query.id, ""))
        if query.id in kept or query.id in lost
        else Decision(query.id, False, 0.0, DID_NOT_RUN)
        for query in queries
    )


def check_adapting(name: str, options: Options) -> None:
    """Raises UserError for a planner or options that have nothing to do with a plan that runs."""
    if name not in ADAPTING:
        raise UserError(f"{name} cannot adapt a plan that runs", hint=f"{' and '.join(ADAPTING)} can.")
    if options.choosy:
        hint = "They have been admitted; a policy that may refuse what fits has no say any more."
        raise UserError("queries that run cannot be refused by choosy", hint=hint)
    if options.batch != 1:
        raise UserError("queries that run are not submitted, so there are no batches of them")


def check_weights(name: str, weights: Weights) -> None:
    """Raises UserError for a planner that does not weigh O1-O4, or not all that are given."""
    if weights == Weights():
        return
    if name not in WEIGHING:
        raise UserError(f"{name} does not weigh by O1-O4", hint=f"{' and '.join(WEIGHING)} do.")
    if name != "milp" and weights.admitted is not None:
        hint = "It admits whatever it finds a plan for. milp weighs it."
        raise UserError(f"{name} does not weigh admitted", hint=hint)


def ceiling(problem: AdmissionProblem) -> float:
    """No plan, of a planner that knows all queries either, admits more. Takes seconds for 1,000 queries."""
    from headrace.planners.admission.bound import offline

    joins = tuple(query for query in problem.queries if len(query.streams) > 1)
    # The linear programme is about joins; a base stream alone may always be delivered, as far as it knows.
    alone = len(problem.queries) - len(joins)
    return alone + (offline(replace(problem, queries=joins)) if joins else 0.0)


def _events(problem: AdmissionProblem, batch: int) -> Iterator[Sequence[Query] | Removal]:
    """What arrives together, and what leaves, in order. A removal comes between two batches, never within
    one."""
    at = 0
    for removal in (*problem.removals, None):
        end = len(problem.queries) if removal is None else removal.after
        yield from (problem.queries[i : min(i + batch, end)] for i in range(at, end, batch))
        if removal is not None:
            yield removal
        at = end


def _submitted(planner: Planner, name: str, queries: Sequence[Query], batch: int) -> Sequence[Decision]:
    if batch == 1:
        return [planner.submit(query) for query in queries]
    if not isinstance(planner, Batched):
        raise UserError(f"{name} takes queries one by one, not {batch} together", hint="milp and soda do.")
    return planner.submit_all(queries)


def _removed(planner: Planner, removal: Removal, admitted: Collection[str], clock: Clock) -> Removed:
    started = clock()
    if removal.query not in admitted or not isinstance(planner, Removing):
        return Removed(removal.query, False, 0.0, NOT_ADMITTED)
    planner.remove(removal.query)
    return Removed(removal.query, True, clock() - started)


def check_removing(name: str) -> None:
    """Raises UserError for a planner that keeps all that it admits."""
    if not hasattr(_loaded(name), "remove"):
        hint = f"All but {BOUND} can."
        raise UserError(f"{name} cannot remove queries", hint=hint)


def _check_options(name: str, options: Options) -> None:
    if options.choosy and name != DEFAULT_PLANNER:
        hint = f"Only {DEFAULT_PLANNER} may refuse a query that fits."
        raise UserError(f"{name} cannot be choosy", hint=hint)
    check_weights(name, options.weights)


def _loaded(name: str) -> Any:
    """The class of a planner."""
    module, kind = _WHERE[name]
    return getattr(import_module(f"headrace.planners.admission.{module}"), kind)
