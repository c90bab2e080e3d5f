"""SQPR (Algorithm 1): one optimisation problem for every query that arrives.

A query whose stream is delivered already is admitted for nothing. For any other, all streams and operators
that can be in a plan for it are planned anew, together with the queries that share them (IV.9), while the
rest stays (IV-A). The query is admitted if a plan with it is found before the deadline. The paper's lambda 1
is so large that a query which fits is always worth it; where it is given, one that costs more is refused.

Solvers here take no first solution, so the warm start is a first solve in which only the hosts that matter
most may change and all others keep what runs: a small model, and a plan to fall back on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.errors import UserError
from headrace.planners.admission.milp import Found, Search, best_hosts, makeable
from headrace.planners.admission.milp_model import Excess, Wish
from headrace.planners.admission.objective import in_scale, lambdas_of, objective
from headrace.planners.admission.problem import AdmissionProblem, Decision, Options, Plan, Query, Weights
from headrace.planners.admission.reduction import Scope, reduce, trimmed

DEADLINE = 30.0
"""The paper's, in seconds."""
FIRST_HOSTS = 12
"""Hosts that may change in the first, small model."""
NOT_WORTH_IT = "it fits, and costs more than it is worth by the weights that are given"
SPOKEN_FOR = 0.1
"""Share of the time that is kept for saying why a query does not fit."""


class Sqpr:
    name = "milp"

    def __init__(
        self,
        problem: AdmissionProblem,
        options: Options,
        clock: Callable[[], float],
        *,
        printed: bool = False,
        hosts: int | None = None,
        reasons: bool = True,
    ) -> None:
        """`printed`: solve the model as printed, slowly. `hosts`: stop after the first, small model.
        `reasons`: say of a refusal that is proven what would have to be freed. It changes no decision, and
        often takes longer than the decision itself."""
        self.problem = problem
        self._clock = clock
        self._deadline = DEADLINE if options.deadline is None else options.deadline
        chosen = options.weights != Weights()
        self._lambdas = (in_scale if chosen else lambdas_of)(problem, options.weights)
        self._worth_all = options.weights.admitted is None
        self._search = Search(clock, printed)
        self._hosts = hosts
        self._reasons = reasons
        self._plan = Plan()
        self._admitted: dict[str, Query] = {}

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def admitted(self) -> tuple[str, ...]:
        return tuple(self._admitted)

    def submit(self, query: Query) -> Decision:
        (decision,) = self.submit_all([query])
        return decision

    def submit_all(self, queries: Sequence[Query]) -> list[Decision]:
        """Queries that arrive together: as many of them as fit, in one model, in as many deadlines."""
        started = self._clock()
        before = self._plan
        unmet = [query for query in queries if query.streams not in before.deliveries]
        fresh = [query for query in unmet if makeable(self.problem, query.streams)]
        found, scope = Found(before, True), None
        if fresh:
            scope = reduce(self.problem, before, fresh)
            seconds = self._deadline * len(fresh)
            must = len(fresh) == 1 and self._worth_all
            found = self._searched(scope, started + seconds * (1 - SPOKEN_FOR), must)
            self._plan = found.plan or before
        moved = _moved(before, self._plan)
        decisions = [self._decided(query, found.proven, before, started) for query in queries]
        share = (self._clock() - started) / len(queries)
        return [
            Decision(q.id, why is None, share, why or "", proven, moved if i == 0 else 0)
            for i, (q, (why, proven)) in enumerate(zip(queries, decisions, strict=True))
        ]

    def remove(self, query_id: str) -> None:
        """The query leaves, and with it whatever served nobody else."""
        gone = self._admitted.pop(query_id, None)
        if gone is None:
            raise UserError(
                f'query "{query_id}" is not admitted', hint="Only admitted queries can be removed."
            )
        wanted = {query.streams for query in self._admitted.values()}
        left = [stream for stream in self._plan.deliveries if stream in wanted]
        self._plan = trimmed(self.problem, self._plan, left)

    def _searched(self, scope: Scope, until: float, must: bool) -> Found:
        """The small model, then all hosts; the better of the two plans."""
        wish = Wish(self._lambdas, must)
        if self._search.printed:
            return self._search.best(scope, wish, until)
        few = best_hosts(scope, self._hosts or FIRST_HOSTS)
        if len(few) == len(self.problem.hosts):
            return self._search.best(scope, wish, until)
        first = self._search.best(scope, Wish(self._lambdas, must, hosts=few), until)
        if self._hosts is not None:
            return first
        found = self._search.best(scope, wish, until)
        return first if self._value(first) > self._value(found) and not found.proven else found

    def _value(self, found: Found) -> float:
        return float("-inf") if found.plan is None else objective(self.problem, found.plan, self._lambdas)

    def _decided(self, query: Query, proven: bool, before: Plan, started: float) -> tuple[str | None, bool]:
        """Why a query is refused (None: it is not), and whether that is proven."""
        if query.streams in self._plan.deliveries:
            self._admitted[query.id] = query
            return None, proven or query.streams in before.deliveries
        if not makeable(self.problem, query.streams):
            return "no chain of joins with known rates makes its stream", True
        scope = reduce(self.problem, self._plan, [query])
        if proven and not self._reasons:
            return self._reason([], proven, scope.fixed != Plan()), proven
        until = max(started + self._deadline, self._clock() + self._deadline * SPOKEN_FOR)
        few = best_hosts(scope, self._hosts or FIRST_HOSTS)
        short, plan = self._search.shortage(scope, Wish(self._lambdas, hosts=few), until)
        if plan is not None and not self._worth(plan):
            return NOT_WORTH_IT, proven
        if plan is not None:
            self._plan, self._admitted[query.id] = plan, query
            return None, False
        return self._reason(short, proven, scope.fixed != Plan()), proven

    def _worth(self, plan: Plan) -> bool:
        """Whether a plan with one query more is better by the weights."""
        if self._worth_all:
            return True
        with_it, without = (objective(self.problem, one, self._lambdas) for one in (plan, self._plan))
        return with_it > without

    def _reason(self, short: list[Excess], proven: bool, beside: bool) -> str:
        """`beside`: part of what runs was not to be changed."""
        within = (
            f"in {self._deadline:g} s" if self._hosts is None else f"that changes only {self._hosts} hosts"
        )
        fits = "no plan fits beside what stays fixed" if beside else "no plan fits"
        found = fits if proven else f"no plan was found {within}"
        if not short:
            return found
        lacks = " and ".join(self._lack(one) for one in sorted(short, key=lambda one: -one.amount))
        return f"{found}; it would with {lacks}"

    def _lack(self, one: Excess) -> str:
        names = [str(self.problem.hosts[host].id) for host in one.where]
        if one.resource == "link":
            return f"{one.amount:.6g} more bandwidth from host {names[0]} to host {names[1]}"
        what = {"in": "incoming bandwidth", "out": "outgoing bandwidth"}.get(one.resource, one.resource)
        return f"{one.amount:.6g} more {what} at host {names[0]}"


def _moved(before: Plan, after: Plan) -> int:
    """Operators that left a host and still run somewhere."""
    running = {one for _, one in after.placements}
    return sum(one in running for _, one in before.placements - after.placements)
