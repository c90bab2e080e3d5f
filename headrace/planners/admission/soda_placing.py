"""SODA's macroW: hosts for the new operators of one query, by branch and bound.

An operator's inputs are had at its host or received from the one host that makes them; its output is
delivered by the host that makes it. Value of a placement: balance of load and use of network, see soda.py;
every operator adds to it, so that a branch which is worth no more than the best one known is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.planners.admission.problem import Host, Operator, Stream, cpu_of, memory_of
from headrace.planners.admission.state import Floats, State

EFFORT = 300
"""Operators tried for one query; the best placement found by then is taken."""
LITTLE = 1e-200
"""In place of a limit of 0, to divide by: in any unit, nothing weighs more than to pass it."""


class Placing:
    def __init__(self, state: State) -> None:
        self.state = state
        finite = state.out_limit[np.isfinite(state.out_limit)]
        self.network = 1.0 / float(finite.sum()) if finite.sum() > 0 else 0.0
        """Worth of a unit of rate on the network."""
        known = np.isfinite(state.cpu_limit) & (state.cpu_limit > 0)
        self.share: Floats = np.divide(1.0, state.cpu_limit, out=np.zeros(len(known)), where=known)

    def value(self) -> float:
        """The less the better."""
        return float(((self.state.cpu * self.share) ** 2).sum()) + self.network * self.state.total_flow

    def maker(self, stream: Stream) -> Host:
        """The one host from which a stream comes: its home, or where its operator runs."""
        if len(stream) == 1:
            (name,) = stream
            return self.state.problem.streams[name].host
        return next(iter(self.state.made[stream]))

    def best(self, new: Sequence[Operator], target: Stream) -> bool:
        """Place new operators, inputs first, and deliver. False: no way was found; nothing has changed."""
        search = _Search(self, new, target)
        if search.best is None:
            return False
        for host, one in zip(search.best, new, strict=True):
            self.put(host, one)
        self.state.deliver(target, self.maker(target))
        return True

    def put(self, host: Host, one: Operator) -> None:
        """An operator with its inputs, limits or not."""
        for part in (one.left, one.right):
            self.bring(host, part)
        self.state.place(host, one)

    def bring(self, host: Host, stream: Stream) -> None:
        if host not in self.state.have[stream]:
            self.state.send(self.maker(stream), host, stream)

    def prices(self, one: Operator, delivered: bool) -> tuple[Floats, Floats]:
        """Of an operator at every host: what it adds to the value, and by what part of a host's limits, the
        most of all resources, it passes them (0: it fits)."""
        state, problem = self.state, self.state.problem
        cpu = cpu_of(problem, one)
        into, over = np.zeros(len(state.cpu)), np.zeros(len(state.cpu))
        sent: dict[Host, Floats] = {}
        for part in (one.left, one.right):
            rate = np.full(len(state.cpu), problem.rate(part))
            rate[list(state.have[part])] = 0.0
            into = into + rate
            sent[self.maker(part)] = sent.get(self.maker(part), 0.0) + rate
        for sender, rates in sent.items():
            used = state.out[sender] + rates
            over = np.maximum(over, np.where(rates > 0.0, passed(used, state.out_limit[sender]), 0.0))
            if state.links is not None:
                limit = state.link_limit[sender] if state.link_limit.ndim else state.link_limit
                used = state.links[sender] + rates
                over = np.maximum(over, np.where(rates > 0.0, passed(used, limit), 0.0))
        out = state.out + (problem.rate(one.output) if delivered else 0.0)
        for used, limit in (
            (state.cpu + cpu, state.cpu_limit),
            (state.memory + memory_of(problem, one), state.memory_limit),
            (state.into + into, state.into_limit),
            (out, state.out_limit),
        ):
            over = np.maximum(over, passed(used, limit))
        load = cpu * (2.0 * state.cpu + cpu) * self.share**2
        return load + self.network * into, over


def passed(used: Floats, limit: Floats) -> Floats:
    """By what part of a limit more is used than there is."""
    more = np.maximum(used - limit, 0.0)
    return more / np.where(np.isfinite(limit), np.maximum(limit, LITTLE), 1.0)


class _Search:
    def __init__(self, placing: Placing, new: Sequence[Operator], target: Stream) -> None:
        self._placing, self._new, self._target = placing, new, target
        self.best: tuple[Host, ...] | None = None
        self._least = np.inf
        self._effort = EFFORT
        if new:
            self._go((), 0.0)
        elif placing.state.can_deliver(placing.maker(target), target):
            self.best = ()

    def _go(self, chosen: tuple[Host, ...], value: float) -> None:
        state, one = self._placing.state, self._new[len(chosen)]
        last = len(chosen) + 1 == len(self._new)
        self._effort -= 1
        price, over = self._placing.prices(one, delivered=last)
        for host in np.argsort(price, kind="stable").tolist():
            if value + price[host] >= self._least or self._effort <= 0:
                return
            if over[host] > 0.0:
                continue
            if last:
                self.best, self._least = (*chosen, host), value + float(price[host])
                return
            mark = state.mark()
            self._placing.put(host, one)
            self._go((*chosen, host), value + float(price[host]))
            state.undo_to(mark)
