"""Oracle for tiny problems: every plan there is, tried one by one. Shares nothing with the models it checks.

It works backwards from what must be delivered. A stream that is needed at a host is there already, or is at
home there, or is made there by one of the operators (whose inputs are then needed there), or is sent by one
of the other hosts (where it is then needed). Every plan without useless parts comes up in this way; others
use more and are worth less. A branch ends when a limit is broken, when a stream would be its own origin, or
when it already costs more than the best plan found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, product

from headrace.errors import UserError
from headrace.planners.admission.check import usage
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Host,
    Operator,
    Plan,
    Query,
    Stream,
    operator,
)

LARGEST_PROBLEM = 3
"""Hosts, and streams of a query."""

Need = tuple[Host, Stream]


@dataclass(frozen=True, slots=True)
class Prices:
    """What network, CPU and the busiest host's CPU cost in (III.3)."""

    network: float
    cpu: float
    balance: float


NOTHING = Prices(0.0, 0.0, 0.0)
"""Any plan will do."""


@dataclass
class _Best:
    cost: float = float("inf")
    plan: Plan | None = None


@dataclass
class _Search:
    problem: AdmissionProblem
    prices: Prices
    best: _Best = field(default_factory=_Best)

    def cost(self, plan: Plan) -> float:
        cpu = usage(self.problem, plan)["cpu"]
        flows = sum(self.problem.rate(stream) for _, _, stream in plan.flows)
        return self.prices.network * flows + self.prices.cpu * sum(cpu) + self.prices.balance * max(cpu)

    def extend(self, plan: Plan, origins: dict[Need, Need | None], open_: tuple[Need, ...]) -> None:
        """Try every way to meet the open needs. `origins` holds what is met, and where it is sent from."""
        if self.prices == NOTHING and self.best.plan is not None:
            return
        if _breaks_a_limit(self.problem, plan) or self.cost(plan) >= self.best.cost:
            return
        if not open_:
            self.best.cost, self.best.plan = self.cost(plan), plan
            return
        need, rest = open_[0], open_[1:]
        if need in origins or self._at_home(need):
            self.extend(plan, origins, rest)
        else:
            self._meet(plan, origins, need, rest)

    def _meet(self, plan: Plan, origins: dict[Need, Need | None], need: Need, rest: tuple[Need, ...]) -> None:
        """One need, by every operator and from every sender."""
        host, stream = need
        for one in _makers(self.problem, stream):
            made = Plan(plan.placements | {(host, one)}, plan.flows, plan.deliveries)
            self.extend(made, {**origins, need: None}, (*rest, (host, one.left), (host, one.right)))
        for sender in range(len(self.problem.hosts)):
            source = (sender, stream)
            if sender != host and not _leads_to(origins, source, need):
                sent = Plan(plan.placements, plan.flows | {(sender, host, stream)}, plan.deliveries)
                self.extend(sent, {**origins, need: source}, (*rest, source))

    def _at_home(self, need: Need) -> bool:
        host, stream = need
        return len(stream) == 1 and self.problem.streams[next(iter(stream))].host == host


def best_plan(
    problem: AdmissionProblem, running: Plan, query: Query, prices: Prices = NOTHING
) -> Plan | None:
    """The cheapest plan with one more query, when only its streams S(q) may be planned anew; None: none."""
    _refuse_large(problem, [query])
    loose = {o for _, o in running.placements if o.output <= query.streams}
    fixed = Plan(
        frozenset((h, o) for h, o in running.placements if o not in loose),
        frozenset(flow for flow in running.flows if not flow[2] <= query.streams),
        {s: h for s, h in running.deliveries.items() if not s <= query.streams},
    )
    read = [(h, s) for h, o in sorted(fixed.placements, key=str) for s in (o.left, o.right)]
    needs = [need for need in read if need[1] <= query.streams]
    again = {s for s in running.deliveries if s <= query.streams} | {query.streams}
    return _best(problem, fixed, needs, again, prices)


def most_admitted(problem: AdmissionProblem) -> int:
    """The most queries that can run together, all planned at once."""
    _refuse_large(problem, problem.queries)
    wanted = [query.streams for query in problem.queries]
    for count in range(len(wanted), 0, -1):
        for some in combinations(wanted, count):
            if _best(problem, Plan(), [], set(some), NOTHING) is not None:
                return count
    return 0


def _best(
    problem: AdmissionProblem, fixed: Plan, needs: list[Need], wanted: set[Stream], prices: Prices
) -> Plan | None:
    search = _Search(problem, prices)
    streams = sorted(wanted, key=sorted)
    for hosts in product(range(len(problem.hosts)), repeat=len(streams)):
        deliveries = dict(zip(streams, hosts, strict=True))
        plan = Plan(fixed.placements, fixed.flows, {**fixed.deliveries, **deliveries})
        open_ = [*needs, *((host, stream) for stream, host in deliveries.items())]
        search.extend(plan, {}, tuple(open_))
    return search.best.plan


def _makers(problem: AdmissionProblem, stream: Stream) -> list[Operator]:
    """Every way to cut a stream in two of which both can be had, if the stream itself has a rate."""
    if len(stream) == 1 or stream not in problem.rates:
        return []
    names = sorted(stream)
    cuts = [frozenset(part) for size in range(1, len(names)) for part in combinations(names, size)]
    return [
        operator(part, stream - part)
        for part in cuts
        if names[0] in part and all(len(s) == 1 or s in problem.rates for s in (part, stream - part))
    ]


def _leads_to(origins: dict[Need, Need | None], start: Need, end: Need) -> bool:
    """Does a stream come from `end` when its senders are followed back from `start`?"""
    at: Need | None = start
    while at is not None and at != end:
        at = origins.get(at)
    return at == end


def _breaks_a_limit(problem: AdmissionProblem, plan: Plan) -> bool:
    """Whether what runs so far takes too much somewhere."""
    used = usage(problem, plan)
    pairs = [
        (used[kind][number], limit)
        for number, host in enumerate(problem.hosts)
        for kind, limit in (
            ("cpu", host.cpu),
            ("memory", host.memory),
            ("in", host.incoming),
            ("out", host.outgoing),
        )
    ]
    links: dict[tuple[Host, Host], float] = {}
    for sender, receiver, stream in plan.flows:
        links[sender, receiver] = links.get((sender, receiver), 0.0) + problem.rate(stream)
    pairs += [(rate, problem.link(*link)) for link, rate in links.items()]
    return any(rate > limit * (1 + 1e-9) for rate, limit in pairs)


def _refuse_large(problem: AdmissionProblem, queries: Iterable[Query]) -> None:
    largest = max([len(problem.hosts), *(len(query.streams) for query in queries)])
    if largest > LARGEST_PROBLEM:
        raise UserError(
            f"{largest} hosts or streams of a query are too many to try all plans of",
            hint=f"At most {LARGEST_PROBLEM}.",
        )
