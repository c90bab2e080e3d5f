"""Our planner: the cheapest plan at prices that look ahead; where it does not fit, make it fit.

1. The programme of ours_search.py at the prices of ours_prices.py. Mostly that is all. With very many hosts
   it looks at those of a few clusters only (ours_clusters.py).
2. Where no such plan fits: the cheapest one without regard to limits is put into the state, related streams
   are made in ways that the new ones allow (ours_replan.py), and hosts that have too much to do are relieved
   of operators, copies and sending (ours_moves.py). If everything is within its limits then, the query is
   admitted; if not, all of it is taken back. Where links can bind, and where nothing runs yet, it is done
   again without the copy, or the operator at a host, that was too much; and last all that is left to do is
   tried at one host (ours_one_host.py).
3. After an admission: related streams again, since what they save is room for others.

One round of this takes milliseconds. With a deadline, more rounds of step 2 are made until it is over, each
at prices with some noise. The answer is always a plan that fits; a longer search might still have found room
for a query that was refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from headrace.errors import UserError
from headrace.planners.admission.asked import Admitted
from headrace.planners.admission.ours_choosy import Choosy
from headrace.planners.admission.ours_clusters import Clusters
from headrace.planners.admission.ours_moves import relieve
from headrace.planners.admission.ours_one_host import OneHost
from headrace.planners.admission.ours_prices import Outlook, Tuning
from headrace.planners.admission.ours_replan import Replanner, parts_of
from headrace.planners.admission.ours_search import IMPOSSIBLE, Barred, Prices, Table, carry_out
from headrace.planners.admission.ours_why import explain, explain_link, hopeless, unreachable
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
BARRED = 8
"""Copies and operators that are done without, one after another, before a query is given up."""


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
        self._one_host = OneHost(self.state, options.weights)
        self._rng = np.random.default_rng([options.seed, 6])
        self._all_cpu = float(self.state.cpu_limit.sum())
        self._admitted = Admitted(self.state)

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
            self._admitted.add(query)
        moved = self._moved()
        return Decision(query.id, not why, self._clock() - started, why, moved=moved)

    def remove(self, query_id: str) -> None:
        """Take a query out, and all that only it needed."""
        self._admitted.remove(query_id)

    def _check(self, query: Query) -> None:
        if query.id in self._admitted:
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
        # Elsewhere what binds is mostly what runs already, and there is no way round it.
        further = self.state.links is not None or not self.state.deliveries
        why = self._without_too_much(stream, BARRED if further else 0)
        if why and further and self._one_host.carry_out(stream):
            self._replan(stream, self._outlook.prices(ahead=False))
            return ""
        deadline = self._options.deadline
        while why and deadline is not None and self._clock() - started < deadline:
            noise = np.exp(NOISE * self._rng.standard_normal(len(self._problem.hosts)))
            if not self._round(stream, self._outlook.prices(ahead=False, noise=noise), Barred()):
                return ""
        return why

    def _without_too_much(self, stream: Stream, rounds: int) -> str:
        """A round; and up to so many others, each without one thing more that was too much for its host or
        link. Why the first failed, if all do."""
        barred, prices = Barred(), self._outlook.prices(ahead=False)
        first = why = self._round(stream, prices, barred)
        for done in range(1, rounds + 1):
            if not why or barred.count < done:
                break
            why = self._round(stream, prices, barred)
        return why and first

    def _round(self, stream: Stream, prices: Prices, barred: Barred) -> str:
        """Put the cheapest plan in that does without what is barred, then make room for it. Why not, if
        nothing has changed; one thing that is too much is barred from then on."""
        state, mark = self.state, self.state.mark()
        # The first time single steps may be too much too, since room can be made for them.
        table = Table(state, prices, stream, None if barred.count else self._tuning.soft, barred=barred)
        best, price = table.delivery()
        table.soft = self._tuning.soft
        if not price < np.inf:
            return unreachable(table, stream)
        if price >= IMPOSSIBLE and (why := hopeless(table, best, stream)):
            return why
        carry_out(table, best)
        state.deliver(stream, int(table.hosts[best]))
        self._replan(stream, prices)
        touched = {host for _, a, b, _ in state.since(mark) for host in (a, b)}
        why = explain(state, stream, touched)
        if why and (
            state.total_cpu > self._all_cpu or not relieve(state, prices, touched, self._tuning.relieved)
        ):
            self._bar(mark, barred)
            state.undo_to(mark)
            return why
        return self._narrow_link(mark, barred)

    def _bar(self, mark: int, barred: Barred) -> None:
        """The last step that is too much: it is nearest to the result and has most other ways."""
        state = self.state
        for step, a, b, what in reversed(state.since(mark)):
            if isinstance(what, Operator):
                if step is Step.PLACE and (
                    state.cpu[a] > state.cpu_limit[a] or state.memory[a] > state.memory_limit[a]
                ):
                    return barred.joins.add((what.output, a))
            elif step is Step.SEND and state.links is not None and not state.can_send(a, b, 0.0):
                return barred.copies.add((what, a, b))
        return None

    def _narrow_link(self, mark: int, barred: Barred) -> str:
        """Hosts can be relieved; of links only single streams were checked so far, not their sum."""
        for step, sender, receiver, what in reversed(self.state.since(mark)):
            if isinstance(what, Operator) or step is not Step.SEND:
                continue
            if self.state.link_room(sender, receiver) < 0.0:
                why = explain_link(self.state, sender, receiver)
                self.state.undo_to(mark)
                barred.copies.add((what, sender, receiver))
                return why
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
