"""Spend less CPU on what runs already, when a new stream shows a better way: re-planning of related queries.

A query for {a,b,c} was made of {a,b} and c when nobody wanted {b,c}. Now somebody does: {a,b,c} is made of
{b,c} and a from now on, and {a,b}, which nobody else uses, goes. The same pays where no query wants {b,c} but
several streams hold it. In hindsight the queries that run could be had for a tenth less CPU than one by one.
"""

from __future__ import annotations

from itertools import combinations

from headrace.planners.admission.ours_moves import rebuild, remake
from headrace.planners.admission.ours_search import IMPOSSIBLE, Prices, Table, carry_out
from headrace.planners.admission.problem import Host, Operator, Stream, cpu_of, operator
from headrace.planners.admission.state import State

LEAST = 1e-7
"""Less than this is no gain, as a share of what reading the widest base stream takes."""
WORTH_A_SEARCH = 1.1
"""How much dearer something must be than reading what is missing, as that leaves out what composites cost."""


def parts_of(stream: Stream) -> list[Stream]:
    """All composite streams in one, large ones last."""
    names = sorted(stream)
    return [frozenset(p) for size in range(2, len(names) + 1) for p in combinations(names, size)]


class Replanner:
    def __init__(self, state: State, flow_price: float) -> None:
        self._state = state
        self._flow_price = flow_price
        """CPU that a unit of bandwidth is worth."""
        rates = (base.rate for base in state.problem.streams.values())
        self._least = LEAST * state.problem.operator_cost * max(rates, default=0.0)

    def spent(self) -> float:
        return self._state.total_cpu + self._flow_price * self._state.total_flow

    def improve(self, stream: Stream, prices: Prices) -> float:
        """Use a stream in all that can be made of it, if that saves; what was saved."""
        if stream in self._state.made:
            return self._switch_all(stream, prices)
        return self._try_new(stream, prices) if stream in self._state.problem.rates else 0.0

    def _switch_all(self, stream: Stream, prices: Prices) -> float:
        before = self.spent()
        for whole in self._state.supersets(stream):
            for host, old in list(self._state.made.get(whole, {}).items()):
                if stream in self._state.made and self._promise(stream, host, old) > self._least:
                    self._switch(stream, host, old, prices)
        return before - self.spent()

    def _switch(self, stream: Stream, host: Host, old: Operator, prices: Prices) -> None:
        state, before = self._state, self.spent()
        mark, rest = state.mark(), old.output - stream
        if state.have.get(rest):
            done = remake(state, prices, host, old, operator(stream, rest), leave=False)
        else:
            done = rebuild(state, prices, host, old)
        if done and self.spent() > before - self._least:
            state.undo_to(mark)

    def _promise(self, stream: Stream, host: Host, old: Operator) -> float:
        """What making `old`'s output of `stream` would save, at most."""
        state, rest = self._state, old.output - stream
        if not rest or stream in (old.left, old.right):
            return 0.0
        problem = state.problem
        saved = cpu_of(problem, old)
        saved += sum(self._freed(host, part, old) for part in (old.left, old.right) if part != rest)
        if state.have.get(rest):
            return saved - cpu_of(problem, operator(stream, rest))
        if self._comes_from(host, old.left, stream) or self._comes_from(host, old.right, stream):
            return 0.0
        new = problem.operator_cost * sum(problem.streams[name].rate for name in rest)
        return saved - new if saved > WORTH_A_SEARCH * new else 0.0

    def _comes_from(self, host: Host, stream: Stream, part: Stream) -> bool:
        """Whether a stream at a host is made of a part, in however many steps."""
        if stream == part:
            return True
        source = self._state.have[stream].get(host)
        if isinstance(source, Operator):
            return any(
                self._comes_from(host, one, part) for one in (source.left, source.right) if part <= one
            )
        return isinstance(source, int) and self._comes_from(source, stream, part)

    def _freed(self, host: Host, stream: Stream, user: Operator | Host) -> float:
        """CPU that nobody needs once a user of a stream at a host is gone."""
        state = self._state
        source = state.have[stream].get(host)
        if len(state.users[host, stream]) > 1:
            return 0.0
        if isinstance(source, Operator):
            below = sum(self._freed(host, part, source) for part in (source.left, source.right))
            return cpu_of(state.problem, source) + below
        return self._freed(source, stream, host) if isinstance(source, int) else 0.0

    def _try_new(self, stream: Stream, prices: Prices) -> float:
        """Make a stream that no query wants, if enough of what runs can use it."""
        state, before = self._state, self.spent()
        wholes = state.supersets(stream)
        promised = [
            p
            for w in wholes
            for h, o in state.made[w].items()
            if (p := self._promise(stream, h, o)) > self._least
        ]
        if len(promised) < 2:
            return 0.0
        table = Table(state, prices, stream)
        best, price = table.delivery()
        mark = state.mark()
        if price >= IMPOSSIBLE or not carry_out(table, best):
            state.undo_to(mark)
            return 0.0
        if state.total_cpu + self._flow_price * state.total_flow - before < sum(promised):
            self._switch_all(stream, prices)
            for at in list(state.made.get(stream, {})):
                state.drop_unused(at, stream)
        if self.spent() > before - self._least:
            state.undo_to(mark)
            return 0.0
        return before - self.spent()
