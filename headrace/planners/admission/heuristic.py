"""The paper's heuristic (V-A): the whole of what a query still needs, at one host, and nothing is ever moved.

For every join tree of the query and every host: the host makes the tree, from the top down. A stream it has
costs nothing; a stream that some other host has is received, before its parts are looked at (sub-queries are
favoured over base streams, as the paper says, even where making them here would be cheaper); what nobody has,
or nobody can send, is joined here. Of all candidates that fit, the one with the best (III.3) is taken.

All hosts are tried at once, in arrays, and trees share their upper parts: a tree is given up at all hosts
where it already costs no less than the best candidate. Both leave the answer what the plain double loop would
find (the first of equals: trees in order, then hosts). Time: trees x joins x hosts at worst; a query of K
streams has (2K - 3)!! trees: 15 for four, 10,395 for seven, 135,135 for eight. At the deadline it is the best
of those tried by then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headrace.planners.admission.asked import Admitted, check_query
from headrace.planners.admission.objective import Lambdas, lambdas_of
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Decision,
    Host,
    Operator,
    Options,
    Plan,
    Query,
    Stream,
    cpu_of,
    memory_of,
    operators_of,
)
from headrace.planners.admission.state import Floats, State

Bools = NDArray[np.bool_]
DEADLINE = 5.0
"""Seconds for one query: enough for all trees of seven streams on some hosts, not for those of eight."""


class Heuristic:
    name = "heuristic"

    def __init__(self, problem: AdmissionProblem, options: Options, clock: Callable[[], float]) -> None:
        self._problem, self._clock = problem, clock
        self._deadline = DEADLINE if options.deadline is None else options.deadline
        self._lambdas = lambdas_of(problem, options.weights)
        self.state = State(problem)
        self._admitted = Admitted(self.state)

    @property
    def plan(self) -> Plan:
        return self.state.plan()

    def submit(self, query: Query) -> Decision:
        started = self._clock()
        check_query(self._problem, query, self._admitted)
        why = "" if query.streams in self.state.deliveries else self._admit(query.streams, started)
        if not why:
            self._admitted.add(query)
        return Decision(query.id, not why, self._clock() - started, why)

    def remove(self, query_id: str) -> None:
        """Take a query out, and all that only it needed. What others have stays where it is."""
        self._admitted.remove(query_id)

    def _admit(self, stream: Stream, started: float) -> str:
        search = OneHostSearch(self.state, self._lambdas, stream, self._until(started))
        if not search.carry_out():
            return search.why()
        self.state.forget()
        return ""

    def _until(self, started: float) -> Callable[[], bool]:
        deadline, clock = self._deadline, self._clock
        return lambda: clock() - started >= deadline


@dataclass(frozen=True, slots=True)
class _Step:
    """An operator placed, or a stream received, at some of the hosts."""

    what: Operator | Stream
    where: Bools
    sender: Host
    earlier: _Step | None


@dataclass(frozen=True, slots=True)
class _Draft:
    """Part of a tree at every host still in the running: what it takes beyond what runs."""

    alive: Bools
    into: Floats
    cpu: Floats
    memory: Floats
    out: dict[Host, Floats]
    """By sender, to each host: what the sender and that link carry more."""
    last: _Step | None = None


@dataclass(frozen=True, slots=True)
class _Best:
    cost: float
    host: Host
    steps: tuple[_Step, ...]


Todo = tuple[tuple[Stream, Bools], ...]
"""Streams still to be had, the next one last, and the hosts that need them."""


class OneHostSearch:
    """The best plan that receives or makes all that is missing at one host."""

    def __init__(self, state: State, lambdas: Lambdas, target: Stream, over: Callable[[], bool]) -> None:
        self._state, self._lambdas, self._over = state, lambdas, over
        self._target = target
        self._busiest = float(state.cpu.max())
        self._cuts: dict[Stream, list[Operator]] = {}
        for one in operators_of(state.problem, target):
            self._cuts.setdefault(one.output, []).append(one)
        self._mask = lru_cache(maxsize=None)(self._holding)
        self._senders = lru_cache(maxsize=None)(self._in_order)
        self.best: _Best | None = None
        self._stopped = False
        """Time was over before everything was tried."""
        self._short: dict[str, tuple[float, Host]] = {}
        """Why hosts dropped out: the least that was missing, and where."""
        if len(target) > 1 and target not in self._cuts:
            return
        size = len(state.cpu)
        everywhere = np.ones(size, dtype=bool)
        draft = _Draft(everywhere, np.zeros(size), np.zeros(size), np.zeros(size), {})
        lacks = state.out + state.problem.rate(target) - state.out_limit
        self._go(((target, everywhere),), self._without(draft, lacks, everywhere, "outgoing bandwidth"))

    def carry_out(self) -> bool:
        """Have the plan run and deliver. False: there is none, and nothing has changed."""
        if self.best is None:
            return False
        for one in self.best.steps:
            if isinstance(one.what, Operator):
                self._state.place(self.best.host, one.what)
            else:
                self._state.send(one.sender, self.best.host, one.what)
        self._state.deliver(self._target, self.best.host)
        return True

    def why(self) -> str:
        """Of a refusal."""
        if self._stopped:
            return "time was over before a plan was found"
        if not self._short:
            return "no chain of joins with known rates makes its stream"
        said = [
            f"{name} ({amount:.4g} more needed at host {self._state.problem.hosts[host].id})"
            for name, (amount, host) in sorted(self._short.items())
        ]
        return f"no single host has room for all that is left to do; binding: {', '.join(said)}"

    def _go(self, todo: Todo, draft: _Draft) -> None:
        if not todo:
            self._keep_best(draft)
            return
        (stream, needed), rest = todo[-1], todo[:-1]
        draft, needed = self._receive(draft, stream, needed & draft.alive & ~self._mask(stream))
        if not needed.any():
            self._go(rest, draft)
            return
        cuts = self._cuts.get(stream, ())
        if not cuts:
            self._go_on(rest, replace(draft, alive=draft.alive & ~needed))
        for one in cuts:
            self._go_on((*rest, (one.right, needed), (one.left, needed)), self._join(draft, one, needed))

    def _go_on(self, todo: Todo, draft: _Draft) -> None:
        """Only where it can still become the best."""
        if self.best is not None:
            draft = replace(draft, alive=draft.alive & (self._cost(draft) < self.best.cost))
        if not draft.alive.any():
            return
        self._stopped = self._stopped or self._over()
        if not self._stopped:
            self._go(todo, draft)

    def _keep_best(self, draft: _Draft) -> None:
        cost = np.where(draft.alive, self._cost(draft), np.inf)
        host = int(cost.argmin())
        if cost[host] < (np.inf if self.best is None else self.best.cost):
            steps = []
            step = draft.last
            while step is not None:
                if step.where[host]:
                    steps.append(step)
                step = step.earlier
            self.best = _Best(float(cost[host]), host, tuple(reversed(steps)))

    def _cost(self, draft: _Draft) -> Floats:
        """(III.3) without what is the same for all candidates. Never falls as a draft grows."""
        weight = self._lambdas
        busiest = np.maximum(self._busiest, self._state.cpu + draft.cpu)
        return weight.network * draft.into + weight.cpu * draft.cpu + weight.balance * busiest

    def _join(self, draft: _Draft, one: Operator, where: Bools) -> _Draft:
        state = self._state
        cpu = draft.cpu + cpu_of(state.problem, one) * where
        memory = draft.memory + memory_of(state.problem, one) * where
        draft = replace(draft, cpu=cpu, memory=memory, last=_Step(one, where, -1, draft.last))
        draft = self._without(draft, state.cpu + cpu - state.cpu_limit, where, "cpu")
        return self._without(draft, state.memory + memory - state.memory_limit, where, "memory")

    def _receive(self, draft: _Draft, stream: Stream, where: Bools) -> tuple[_Draft, Bools]:
        """Hosts that lack a stream get it from one that has it, if both have the bandwidth. What is left are
        the hosts that must make it themselves."""
        if not where.any():
            return draft, where
        state, rate = self._state, self._state.problem.rate(stream)
        over = state.into + draft.into + rate - state.into_limit
        able = where & (over <= 0.0)
        if len(stream) == 1:
            draft = self._without(draft, over, where, "incoming bandwidth")
        for sender in self._senders(stream):
            if not able.any():
                return draft, where & draft.alive
            sent = draft.out.get(sender, 0.0) + rate * able
            fits = (
                able
                & (sent <= self._link_room(sender))
                & (state.out[sender] + sent <= state.out_limit[sender])
            )
            if fits.any():
                draft = self._sent(draft, stream, sender, fits)
                able, where = able & ~fits, where & ~fits
        if len(stream) == 1 and able.any():
            self._note_sender(self._senders(stream)[0], rate)
        return draft, where & draft.alive

    def _sent(self, draft: _Draft, stream: Stream, sender: Host, where: Bools) -> _Draft:
        more: Floats = self._state.problem.rate(stream) * where.astype(np.float64)
        before = draft.out.get(sender)
        out = {**draft.out, sender: more if before is None else before + more}
        return replace(draft, into=draft.into + more, out=out, last=_Step(stream, where, sender, draft.last))

    def _without(self, draft: _Draft, over: Floats, where: Bools, name: str) -> _Draft:
        """Without those hosts that would use more than they have."""
        out = where & draft.alive & (over > 0.0)
        if not out.any():
            return draft
        least = int(np.where(out, over, np.inf).argmin())
        self._note(name, float(over[least]), least)
        return replace(draft, alive=draft.alive & ~out)

    def _note_sender(self, sender: Host, rate: float) -> None:
        """The one with most to spare cannot send, for its own bandwidth or for that of its links."""
        over = float(self._state.out[sender] + rate - self._state.out_limit[sender])
        self._note(*(("outgoing bandwidth", over) if over > 0.0 else ("link bandwidth", rate)), sender)

    def _note(self, name: str, amount: float, host: Host) -> None:
        if amount < self._short.get(name, (np.inf,))[0]:
            self._short[name] = amount, host

    def _holding(self, stream: Stream) -> Bools:
        mask = np.zeros(len(self._state.cpu), dtype=bool)
        mask[list(self._state.have.get(stream, ()))] = True
        return mask

    def _in_order(self, stream: Stream) -> list[Host]:
        """Who has a stream: those with most bandwidth to spare first."""
        state = self._state
        return sorted(state.have.get(stream, ()), key=lambda h: (state.out[h] - state.out_limit[h], h))

    def _link_room(self, sender: Host) -> Floats | float:
        if self._state.links is None:
            return np.inf
        limit = self._state.link_limit
        room: Floats = (limit[sender] if limit.ndim else limit) - self._state.links[sender]
        return room
