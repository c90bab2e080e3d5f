"""Our planner: the cheapest plan at prices that look ahead; where it does not fit, make it fit.

1. The programme of ours_search.py at the prices of ours_prices.py. Mostly that is all. With very many hosts
   it looks at those of a few clusters only (ours_clusters.py).
2. Where no such plan fits: the cheapest one without regard to limits is put into the state, related streams
   are made in ways that the new ones allow (ours_replan.py), and hosts that have too much to do are relieved
   of operators, copies and sending (ours_moves.py). If everything is within its limits then, the query is
   admitted; if not, all of it is taken back.
3. After an admission: related streams again, since what they save is room for others.

One round of this takes milliseconds. With a deadline, more rounds of step 2 are made until it is over, each
at prices with some noise. The answer is always a plan that fits; a longer search might still have found room
for a query that was refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from headrace.errors import UserError
from headrace.planners.admission.ours_choosy import Choosy
from headrace.planners.admission.ours_clusters import Clusters
from headrace.planners.admission.ours_moves import relieve
from headrace.planners.admission.ours_prices import Outlook, Tuning
from headrace.planners.admission.ours_replan import Replanner, parts_of
from headrace.planners.admission.ours_search import IMPOSSIBLE, Prices, Table, carry_out
from headrace.planners.admission.ours_why import explain
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Decision,
    Host,
    Operator,
    Options,
    Plan,
    Query,
    Stream,
)
from headrace.planners.admission.state import State, Step

TUNED = Tuning()
NOISE = 0.3
"""Of prices in the rounds after the first, as the spread of their logarithm."""


class Ours:
    name = "headrace"

    def __init__(
        self,
        problem: AdmissionProblem,
        options: Options,
        clock: Callable[[], float],
        tuning: Tuning = TUNED,
    ) -> None:
        self._problem, self._options, self._clock = problem, options, clock
        self._tuning = tuning
        self.state = State(problem)
        self._outlook = Outlook(self.state, tuning)
        self._replanner = Replanner(self.state, self._outlook.flow_price)
        self._choosy = Choosy(self.state, self._outlook.unit) if options.choosy else None
        self._clusters = Clusters(self.state) if len(problem.hosts) >= tuning.clustered else None
        self._rng = np.random.default_rng([options.seed, 6])
        self._all_cpu = float(self.state.cpu_limit.sum())
        self._wanted: defaultdict[Stream, set[str]] = defaultdict(set)
        self._streams: dict[str, Stream] = {}

    @property
    def plan(self) -> Plan:
        return self.state.plan()

    def submit(self, query: Query) -> Decision:
        started = self._clock()
        self._check(query)
        self._outlook.see(query.streams)
        self.state.forget()
        why = "" if query.streams in self.state.deliveries else self._admit(query, started)
        if not why:
            self._wanted[query.streams].add(query.id)
            self._streams[query.id] = query.streams
        moved = self._moved()
        return Decision(query.id, not why, self._clock() - started, why, moved=moved)

    def remove(self, query_id: str) -> None:
        """Take a query out, and all that only it needed."""
        stream = self._streams.pop(query_id, None)
        if stream is None:
            raise UserError(f'query "{query_id}" is not admitted')
        self._wanted[stream].discard(query_id)
        if not self._wanted[stream]:
            host = self.state.deliveries[stream]
            self.state.undeliver(stream)
            self.state.drop_unused(host, stream)
        self.state.forget()

    def _check(self, query: Query) -> None:
        if query.id in self._streams:
            raise UserError(f'query "{query.id}" is admitted already')
        unknown = [name for name in sorted(query.streams) if name not in self._problem.streams]
        if unknown or not query.streams:
            known = ", ".join(sorted(self._problem.streams)[:10])
            what = f'stream "{unknown[0]}" does not exist' if unknown else f'query "{query.id}" has no stream'
            raise UserError(what, hint=f"Streams of this problem: {known}.")

    def _admit(self, query: Query, started: float) -> str:
        """Why not; nothing has changed then."""
        mark, spent = self.state.mark(), self.state.total_cpu
        why = "" if self._try(query.streams) else self._make_fit(query.streams, started)
        if not why and self._choosy:
            why = self._choosy.refusal(query, self.state.total_cpu - spent)
        if why:
            self.state.undo_to(mark)
        return why

    def _try(self, stream: Stream) -> bool:
        """The plan that looks ahead, if it fits as it is."""
        mark = self.state.mark()
        some = self._clusters.candidates(stream) if self._clusters else None
        table = Table(self.state, self._outlook.prices(ahead=True), stream, hosts=some)
        best, price = table.delivery()
        host = int(table.hosts[best])
        if price < IMPOSSIBLE and carry_out(table, best) and self.state.can_deliver(host, stream):
            self.state.deliver(stream, host)
            self._replan(stream, self._outlook.prices(ahead=False))
            return True
        self.state.undo_to(mark)
        return False

    def _make_fit(self, stream: Stream, started: float) -> str:
        why = self._round(stream, self._outlook.prices(ahead=False))
        deadline = self._options.deadline
        while why and deadline is not None and self._clock() - started < deadline:
            noise = np.exp(NOISE * self._rng.standard_normal(len(self._problem.hosts)))
            if not self._round(stream, self._outlook.prices(ahead=False, noise=noise)):
                return ""
        return why

    def _round(self, stream: Stream, prices: Prices) -> str:
        """Put the cheapest plan in, then make room for it. Why not, if nothing has changed."""
        state, mark = self.state, self.state.mark()
        table = Table(state, prices, stream, self._tuning.soft)
        best, price = table.delivery()
        if price >= IMPOSSIBLE:
            return explain(state, stream, set())
        carry_out(table, best)
        state.deliver(stream, int(table.hosts[best]))
        self._replan(stream, prices)
        touched = {host for _, a, b, _ in state.since(mark) for host in (a, b)}
        why = explain(state, stream, touched)
        if why and (
            state.total_cpu > self._all_cpu or not relieve(state, prices, touched, self._tuning.relieved)
        ):
            state.undo_to(mark)
            return why
        return self._narrow_link(mark)

    def _narrow_link(self, mark: int) -> str:
        """Hosts can be relieved; of links only single streams were checked so far, not their sum."""
        for step, sender, receiver, _ in self.state.since(mark):
            if step is Step.SEND and self.state.link_room(sender, receiver) < 0.0:
                names = (self._problem.hosts[host].id for host in (sender, receiver))
                self.state.undo_to(mark)
                return "binding: the link from host {} to host {}".format(*names)
        return ""

    def _replan(self, stream: Stream, prices: Prices) -> None:
        """Streams that run first: they cost nothing to use."""
        if not self._tuning.replanned:
            return
        for part in sorted(parts_of(stream), key=lambda part: part not in self.state.made):
            self._replanner.improve(part, prices)

    def _moved(self) -> int:
        """Streams that were made before and are made elsewhere or otherwise now."""
        change: Counter[tuple[Host, Operator]] = Counter()
        for step, host, _, what in self.state.since(0):
            if isinstance(what, Operator):
                change[host, what] += 1 if step is Step.PLACE else -1
        begun, ended = ({one.output for (_, one), n in change.items() if n == sign} for sign in (1, -1))
        return len(begun & ended)
